# cygrad: openblas
"""
All calls of BLAS: products of float32, float64, complex64 and complex128, one thread per call.

The library is a private copy of OpenBLAS, so one thread per call affects no other package. Parallelism comes from
tiles (multiply.pyx), which do not depend on the number of threads; OpenBLAS's own threads would make results depend on
it, and would queue callers from several Python threads.

OpenBLAS aborts the process if it cannot allocate memory to pack operands into. It keeps that memory for the next call,
so it allocates some when it is loaded; a call that may need more, because others are running, tests for it first, and
waits for the others if there is none.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from cygrad._core.memory.atomic cimport atomic_claim, atomic_decrement, atomic_increment, atomic_load, atomic_store
import os

cdef extern from * nogil:
    """
    #include <sched.h>
    #include <sys/mman.h>
    /* Memory that OpenBLAS allocates for a call. */
    #define PACKED_BYTES ((size_t)64 << 20)
    static inline int is_memory_left(void) {
        void *found = mmap(NULL, PACKED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return found != MAP_FAILED && munmap(found, PACKED_BYTES) == 0;
    }
    """
    bint is_memory_left()
    int sched_yield()

cdef extern from "cblas.h" nogil:
    ctypedef enum CBLAS_ORDER:
        CblasRowMajor
    ctypedef enum CBLAS_TRANSPOSE:
        CblasNoTrans
        CblasTrans
    void scipy_openblas_set_num_threads(int n)
    const char *scipy_openblas_get_corename()

    void scipy_cblas_sgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, float, const float *,
                           int, const float *, int, float, float *, int)
    void scipy_cblas_dgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, double, const double *,
                           int, const double *, int, double, double *, int)
    void scipy_cblas_cgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, const void *,
                           const void *, int, const void *, int, const void *, void *, int)
    void scipy_cblas_zgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, const void *,
                           const void *, int, const void *, int, const void *, void *, int)

    void scipy_cblas_sgemv(CBLAS_ORDER, CBLAS_TRANSPOSE, int, int, float, const float *, int,
                           const float *, int, float, float *, int)
    void scipy_cblas_dgemv(CBLAS_ORDER, CBLAS_TRANSPOSE, int, int, double, const double *, int,
                           const double *, int, double, double *, int)
    void scipy_cblas_cgemv(CBLAS_ORDER, CBLAS_TRANSPOSE, int, int, const void *, const void *, int,
                           const void *, int, const void *, void *, int)
    void scipy_cblas_zgemv(CBLAS_ORDER, CBLAS_TRANSPOSE, int, int, const void *, const void *, int,
                           const void *, int, const void *, void *, int)

    float scipy_cblas_sdot(int, const float *, int, const float *, int)
    double scipy_cblas_ddot(int, const double *, int, const double *, int)
    void scipy_cblas_cdotu_sub(int, const void *, int, const void *, int, void *)
    void scipy_cblas_cdotc_sub(int, const void *, int, const void *, int, void *)
    void scipy_cblas_zdotu_sub(int, const void *, int, const void *, int, void *)
    void scipy_cblas_zdotc_sub(int, const void *, int, const void *, int, void *)


cdef extern from * nogil:
    """
    extern void scipy_dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
    """
    void scipy_dpotrf_(const char *, const int *, double *, const int *, int *, size_t)

# Kernels of OpenBLAS that read small operands without packing.
IN_PLACE = ("SkylakeX", "Cooperlake", "SapphireRapids")

cdef bint _in_place
cdef int64_t _calls = 0         # under way
cdef int64_t _rooms = 1         # for as many calls OpenBLAS has memory, or will find it


cdef bint reads_in_place() noexcept nogil:
    return _in_place


cdef void enter_blas() noexcept nogil:
    cdef int64_t calls = atomic_increment(&_calls), rooms = atomic_load(&_rooms)
    while calls > rooms:
        if calls == 1 or is_memory_left():
            atomic_claim(&_rooms, rooms, calls)
        else:
            atomic_decrement(&_calls)
            sched_yield()
            calls = atomic_increment(&_calls)
        rooms = atomic_load(&_rooms)


cdef void leave_blas() noexcept nogil:
    atomic_decrement(&_calls)


def _forget_calls():
    """After a fork: the threads that were in one, and the memory that they used, are lost."""
    atomic_store(&_rooms, atomic_load(&_rooms) - atomic_load(&_calls))
    atomic_store(&_calls, 0)


cdef inline CBLAS_TRANSPOSE _transposed(bint transpose) noexcept nogil:
    """BLAS's name for it."""
    return CblasTrans if transpose else CblasNoTrans


cdef void gemm(int dtype, bint transpose_a, bint transpose_b, int64_t m, int64_t n, int64_t k,
               blas_scalar_t alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
               blas_scalar_t beta, void *c, int64_t ldc) noexcept nogil:
    cdef CBLAS_TRANSPOSE op_a = _transposed(transpose_a), op_b = _transposed(transpose_b)
    cdef float[2] alpha32
    cdef float[2] beta32
    enter_blas()
    if dtype == FLOAT32:
        scipy_cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, <float>alpha.real, <const float *>a, lda,
                          <const float *>b, ldb, <float>beta.real, <float *>c, ldc)
    elif dtype == FLOAT64:
        scipy_cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha.real, <const double *>a, lda,
                          <const double *>b, ldb, beta.real, <double *>c, ldc)
    elif dtype == COMPLEX64:
        alpha32[0], alpha32[1] = <float>alpha.real, <float>alpha.imag
        beta32[0], beta32[1] = <float>beta.real, <float>beta.imag
        scipy_cblas_cgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha32, a, lda, b, ldb, beta32, c, ldc)
    elif dtype == COMPLEX128:
        scipy_cblas_zgemm(CblasRowMajor, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)
    leave_blas()


cdef void gemv(int dtype, bint transpose_a, int64_t m, int64_t n, blas_scalar_t alpha, const void *a, int64_t lda,
               const void *x, int64_t x_stride, blas_scalar_t beta, void *y, int64_t y_stride) noexcept nogil:
    cdef CBLAS_TRANSPOSE op = _transposed(transpose_a)
    cdef float[2] alpha32
    cdef float[2] beta32
    enter_blas()
    if dtype == FLOAT32:
        scipy_cblas_sgemv(CblasRowMajor, op, m, n, <float>alpha.real, <const float *>a, lda,
                          <const float *>x, x_stride, <float>beta.real, <float *>y, y_stride)
    elif dtype == FLOAT64:
        scipy_cblas_dgemv(CblasRowMajor, op, m, n, alpha.real, <const double *>a, lda,
                          <const double *>x, x_stride, beta.real, <double *>y, y_stride)
    elif dtype == COMPLEX64:
        alpha32[0], alpha32[1] = <float>alpha.real, <float>alpha.imag
        beta32[0], beta32[1] = <float>beta.real, <float>beta.imag
        scipy_cblas_cgemv(CblasRowMajor, op, m, n, alpha32, a, lda, x, x_stride, beta32, y, y_stride)
    elif dtype == COMPLEX128:
        scipy_cblas_zgemv(CblasRowMajor, op, m, n, &alpha, a, lda, x, x_stride, &beta, y, y_stride)
    leave_blas()


cdef void dot(int dtype, bint conjugate, int64_t n, const void *x, int64_t x_stride,
              const void *y, int64_t y_stride, void *result) noexcept nogil:
    """The sum of x[i] * y[i], or conj(x[i]) * y[i]."""
    if dtype == FLOAT32:
        (<float *>result)[0] = scipy_cblas_sdot(n, <const float *>x, x_stride, <const float *>y, y_stride)
    elif dtype == FLOAT64:
        (<double *>result)[0] = scipy_cblas_ddot(n, <const double *>x, x_stride, <const double *>y, y_stride)
    elif dtype == COMPLEX64:
        if conjugate:
            scipy_cblas_cdotc_sub(n, x, x_stride, y, y_stride, result)
        else:
            scipy_cblas_cdotu_sub(n, x, x_stride, y, y_stride, result)
    elif dtype == COMPLEX128:
        if conjugate:
            scipy_cblas_zdotc_sub(n, x, x_stride, y, y_stride, result)
        else:
            scipy_cblas_zdotu_sub(n, x, x_stride, y, y_stride, result)


def _begin():
    """Set one thread for each call, and allocate memory for one, which a factorization of any size needs."""
    cdef double matrix = 1
    cdef int n = 1, info
    global _in_place
    _in_place = scipy_openblas_get_corename().decode() in IN_PLACE
    scipy_openblas_set_num_threads(1)
    scipy_dpotrf_(b"L", &n, &matrix, &n, &info, 1)


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_calls)
