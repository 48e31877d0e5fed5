"""
Products and linear algebra; ``blas.pyx`` makes all calls of BLAS and LAPACK.

Knows matrices and batches of them. Never knows what the products are for. Read ``matmul.pyx`` first.
"""
