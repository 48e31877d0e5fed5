"""
Products and linear algebra; ``blas.pyx`` is the one door to BLAS, ``lapack.pyx`` the one to LAPACK.

Read ``products.pyx`` first.
"""
