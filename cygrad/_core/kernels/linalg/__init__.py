"""
Products and linear algebra; ``blas.pyx`` makes all calls of BLAS, ``lapack.pyx`` those of LAPACK.

Knows matrices and batches of them. Never knows what the products are for. Read ``products.pyx`` first.
"""
