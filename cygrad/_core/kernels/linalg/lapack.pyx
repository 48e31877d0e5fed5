# cygrad: openblas
"""
All calls of LAPACK: factorizations of one matrix in column order, of float32, float64, complex64 and complex128.

The routines are those of our own copy of OpenBLAS, which runs each call on one thread (blas.pyx); batches of
matrices are divided among threads elsewhere.
"""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.kernels.linalg.blas cimport enter_blas, leave_blas

cdef extern from "kernels/linalg/lapack_routines.h" nogil:
    void (*lapack_before)() noexcept nogil
    void (*lapack_after)() noexcept nogil
    int lapack_potrf(int dtype, char uplo, int n, void *a)
    int lapack_getrf(int dtype, int m, int n, void *a, int32_t *pivots)
    void lapack_getrs(int dtype, char trans, int n, int k, const void *lu, const int32_t *pivots, void *b)
    void lapack_trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a, int lda,
                     void *b)
    int64_t lapack_sytrf(int dtype, int hermitian, int n, void *a, int32_t *pivots, void *scratch, int64_t size,
                         int *info)
    void lapack_sytrs(int dtype, int hermitian, int n, int k, const void *ld, const int32_t *pivots, void *b)
    int64_t lapack_geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info)
    int64_t lapack_orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch, int64_t size,
                         int *info)
    int64_t lapack_gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh, void *scratch,
                         int64_t size, int *info)
    int64_t lapack_heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *scratch, int64_t size,
                         int *info)
    int64_t lapack_geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *scratch, int64_t size,
                        int *info)
    int64_t lapack_lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond,
                         int32_t *rank, void *scratch, int64_t size, int *info)


cdef int potrf(int dtype, char uplo, int n, void *a) noexcept nogil:
    """Cholesky factor, in one triangle of a."""
    return lapack_potrf(dtype, uplo, n, a)


cdef int getrf(int dtype, int m, int n, void *a, int32_t *pivots) noexcept nogil:
    """Triangular factors with exchanges of rows, in the place of a."""
    return lapack_getrf(dtype, m, n, a, pivots)


cdef void getrs(int dtype, char trans, int n, int k, const void *lu, const int32_t *pivots, void *b) noexcept nogil:
    """Solve with what getrf has given."""
    lapack_getrs(dtype, trans, n, k, lu, pivots, b)


cdef void trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a, int lda,
               void *b) noexcept nogil:
    """Solve with a triangular matrix."""
    lapack_trsm(dtype, side, uplo, trans, diag, m, n, a, lda, b)


cdef int64_t sytrf(int dtype, bint hermitian, int n, void *a, int32_t *pivots, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    return lapack_sytrf(dtype, hermitian, n, a, pivots, scratch, size, info)


cdef void sytrs(int dtype, bint hermitian, int n, int k, const void *ld, const int32_t *pivots, void *b) noexcept nogil:
    """Solve with what sytrf has given."""
    lapack_sytrs(dtype, hermitian, n, k, ld, pivots, b)


cdef int64_t geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info) noexcept nogil:
    """Reflections and R."""
    return lapack_geqrf(dtype, m, n, a, tau, scratch, size, info)


cdef int64_t orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    """Q from reflections."""
    return lapack_orgqr(dtype, m, n, k, a, tau, scratch, size, info)


cdef int64_t gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    """Singular values and vectors."""
    return lapack_gesdd(dtype, job, m, n, a, s, u, vh, scratch, size, info)


cdef int64_t heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    return lapack_heevd(dtype, job, uplo, n, a, w, scratch, size, info)


cdef int64_t geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *scratch, int64_t size,
                  int *info) noexcept nogil:
    """Eigenvalues and eigenvectors of any matrix."""
    return lapack_geev(dtype, job, n, a, w, vectors, scratch, size, info)


cdef int64_t lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond, int32_t *rank,
                   void *scratch, int64_t size, int *info) noexcept nogil:
    return lapack_lstsq(dtype, driver, m, n, k, a, b, s, rcond, rank, scratch, size, info)


lapack_before, lapack_after = enter_blas, leave_blas
