"""
Products and linear algebra; ``blas.pyx`` is the one door to BLAS, ``lapack.pyx`` the one to LAPACK.

Knows matrices and batches of them. Never knows what the products are for. Read ``products.pyx`` first.
"""
