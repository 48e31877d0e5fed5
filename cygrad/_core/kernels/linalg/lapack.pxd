"""All calls of LAPACK: factorizations of one matrix in column order, of float32, float64, complex64 and complex128."""

from libc.stdint cimport int32_t, int64_t

# Each returns LAPACK's info. The leading dimension of a matrix is the number of its rows, so all sizes must be at least
# 1. Routines that need scratch memory return the number of bytes if `scratch` is NULL, and read only the sizes.
cdef int potrf(int dtype, char uplo, int n, void *a) noexcept nogil
cdef int getrf(int dtype, int m, int n, void *a, int32_t *pivots) noexcept nogil
cdef void getrs(int dtype, char trans, int n, int k, const void *lu, const int32_t *pivots, void *b) noexcept nogil
# b (m x n) becomes op(a)^-1 b for side 'L', b op(a)^-1 for 'R'; `a` is triangular, `lda` the step between its columns.
cdef void trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a, int lda,
               void *b) noexcept nogil
# A symmetric or a Hermitian matrix by its lower triangle: as L D L^T or L D L^H, and solutions with these factors.
cdef int64_t sytrf(int dtype, bint hermitian, int n, void *a, int32_t *pivots, void *scratch, int64_t size,
                   int *info) noexcept nogil
cdef void sytrs(int dtype, bint hermitian, int n, int k, const void *ld, const int32_t *pivots, void *b) noexcept nogil
cdef int64_t geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info) noexcept nogil
# The first n columns of the product of k reflections.
cdef int64_t orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch, int64_t size,
                   int *info) noexcept nogil
# job 'N': singular values only; 'S': thin; 'A': full.
cdef int64_t gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh, void *scratch, int64_t size,
                   int *info) noexcept nogil
# Symmetric and Hermitian matrices; job 'N': eigenvalues only; 'V': eigenvectors, in the place of the matrix.
cdef int64_t heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *scratch, int64_t size,
                   int *info) noexcept nogil
# Of a real matrix `w` has n real parts, then n imaginary ones, and `vectors` is packed as LAPACK does.
cdef int64_t geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *scratch, int64_t size,
                  int *info) noexcept nogil
# Least squares; `b` has max(m, n) rows, of which the first n become the solution. driver 's': full rank (gels);
# 'y': gelsy; 'd': gelsd, which gives the singular values `s`.
cdef int64_t lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond, int32_t *rank,
                   void *scratch, int64_t size, int *info) noexcept nogil
