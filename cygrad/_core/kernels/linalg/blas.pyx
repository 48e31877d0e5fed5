# cygrad: openblas
"""
All calls of BLAS and LAPACK, one thread per call, and batches of matrices as their operands.

The library is a private copy of OpenBLAS, so one thread per call affects no other package. Parallelism comes from
tiles (matmul.pyx), which do not depend on the number of threads; OpenBLAS's own threads would make results depend on
it, and would queue callers from several Python threads.

OpenBLAS aborts the process if it cannot allocate memory to pack operands into. It keeps that memory for later calls, so
one buffer is allocated at load time; a concurrent call, which needs another one, tests for memory first and waits for
the other calls if there is none.
"""

from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, array_view, release, retain, shape_text, value_t
from cygrad._core.arrays.dtype cimport COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, dtype_name, is_differentiable
from cygrad._core.elementwise.copying cimport as_contiguous, as_copy
from cygrad._core.kernels.arguments cimport array_argument, array_result
from cygrad._core.memory.atomic cimport atomic_claim, atomic_decrement, atomic_increment, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message
from cygrad._core.threads.grain cimport CHUNK, MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

import os


# ----------------------------------------------------------------------------------------------------------------- blas

cdef extern from * nogil:
    """
    #include <sched.h>
    #include "memory/system_memory.h"
    /* Memory that OpenBLAS allocates for a call. */
    #define PACKED_BYTES ((size_t)64 << 20)
    static inline int is_memory_left(void) {
        void *found = map_memory(PACKED_BYTES, 0);
        if (found != NULL) unmap_memory(found, PACKED_BYTES);
        return found != NULL;
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
    extern void scipy_dpotrf_(const char *, const int *, void *, const int *, int *, size_t);
    """
    void scipy_dpotrf_(const char *, const int *, void *, const int *, int *, size_t)

# Kernels of OpenBLAS that read small operands without packing.
IN_PLACE = ("SkylakeX", "Cooperlake", "SapphireRapids")

cdef bint _in_place
cdef int64_t _calls = 0         # concurrent calls
cdef int64_t _rooms = 1         # number of concurrent calls for which OpenBLAS has memory


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
    """Drop the calls of other threads, and their buffers, in a forked child."""
    atomic_store(&_rooms, atomic_load(&_rooms) - atomic_load(&_calls))
    atomic_store(&_calls, 0)


cdef inline CBLAS_TRANSPOSE _transposed(bint transpose) noexcept nogil:
    """Return the CBLAS constant."""
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
    """Compute the sum of x[i] * y[i], or of conj(x[i]) * y[i]."""
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
    """Set one thread per call, and make OpenBLAS allocate the memory of one call by a factorization."""
    cdef double matrix = 1
    cdef int n = 1, info
    global _in_place
    _in_place = scipy_openblas_get_corename().decode() in IN_PLACE
    scipy_openblas_set_num_threads(1)
    scipy_dpotrf_(b"L", &n, &matrix, &n, &info, 1)


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_calls)


# --------------------------------------------------------------------------------------------------------------- lapack

# Factorizations of one column-major matrix of float32, float64, complex64 or complex128.

cdef extern from "kernels/linalg/lapack_routines.h" nogil:
    void (*lapack_before)() noexcept nogil
    void (*lapack_after)() noexcept nogil
    int lapack_potrf(int dtype, char uplo, int n, void *a)
    int lapack_width(int dtype, int m, int n)
    void lapack_getrf(int dtype, int count, int m, int n, void *a, int32_t *pivots, int32_t *info)
    void lapack_getrs(int dtype, int count, char trans, int n, int k, const void *lu, const int32_t *pivots, void *b)
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
    """Replace one triangle of a by the Cholesky factor."""
    return lapack_potrf(dtype, uplo, n, a)


cdef int lu_width(int dtype, int m, int n) noexcept nogil:
    """Return how many consecutive matrices getrf and getrs take at most."""
    return lapack_width(dtype, m, n)


cdef void getrf(int dtype, int count, int m, int n, void *a, int32_t *pivots, int32_t *info) noexcept nogil:
    """Compute triangular factors with exchanges of rows, in the place of a."""
    lapack_getrf(dtype, count, m, n, a, pivots, info)


cdef void getrs(int dtype, int count, char trans, int n, int k, const void *lu, const int32_t *pivots,
                void *b) noexcept nogil:
    """Solve with what getrf has given."""
    lapack_getrs(dtype, count, trans, n, k, lu, pivots, b)


cdef void trsm(int dtype, char side, char uplo, char trans, char diag, int m, int n, const void *a, int lda,
               void *b) noexcept nogil:
    """Solve with a triangular matrix."""
    lapack_trsm(dtype, side, uplo, trans, diag, m, n, a, lda, b)


cdef int64_t sytrf(int dtype, bint hermitian, int n, void *a, int32_t *pivots, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    return lapack_sytrf(dtype, hermitian, n, a, pivots, scratch, size, info)


cdef void sytrs(int dtype, bint hermitian, int n, int k, const void *ld, const int32_t *pivots, void *b) noexcept nogil:
    """Solve with the factors of sytrf."""
    lapack_sytrs(dtype, hermitian, n, k, ld, pivots, b)


cdef int64_t geqrf(int dtype, int m, int n, void *a, void *tau, void *scratch, int64_t size, int *info) noexcept nogil:
    """Replace a by reflectors and R."""
    return lapack_geqrf(dtype, m, n, a, tau, scratch, size, info)


cdef int64_t orgqr(int dtype, int m, int n, int k, void *a, const void *tau, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    """Compute Q from reflectors."""
    return lapack_orgqr(dtype, m, n, k, a, tau, scratch, size, info)


cdef int64_t gesdd(int dtype, char job, int m, int n, void *a, void *s, void *u, void *vh, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    """Compute singular values and vectors."""
    return lapack_gesdd(dtype, job, m, n, a, s, u, vh, scratch, size, info)


cdef int64_t heevd(int dtype, char job, char uplo, int n, void *a, void *w, void *scratch, int64_t size,
                   int *info) noexcept nogil:
    return lapack_heevd(dtype, job, uplo, n, a, w, scratch, size, info)


cdef int64_t geev(int dtype, char job, int n, void *a, void *w, void *vectors, void *scratch, int64_t size,
                  int *info) noexcept nogil:
    """Compute eigenvalues and eigenvectors of a general matrix."""
    return lapack_geev(dtype, job, n, a, w, vectors, scratch, size, info)


cdef int64_t lstsq(int dtype, char driver, int m, int n, int k, void *a, void *b, void *s, double rcond, int32_t *rank,
                   void *scratch, int64_t size, int *info) noexcept nogil:
    return lapack_lstsq(dtype, driver, m, n, k, a, b, s, rcond, rank, scratch, size, info)


lapack_before, lapack_after = enter_blas, leave_blas


# ------------------------------------------------------------------------------------------------------- lapack batches

# LAPACK works in-place on column-major matrices. So an operand is copied once, transposed by its strides, and a result
# is a view of LAPACK's output with the last two dimensions exchanged, without a second copy.

cdef int matrix_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil:
    cdef array_t *found
    cdef int status = array_argument(operation, name, value, &found)
    if status != OK:
        return status
    if found.ndim < 2:
        snprintf(message(), MESSAGE, b"%s: The input tensor %s must have at least 2 dimensions (got shape %s).",
                 operation, name, shape_text(found))
        return RUNTIME_ERROR
    if not is_differentiable(found.dtype):
        snprintf(message(), MESSAGE, b"%s: Expected a floating point or complex tensor as %s (got %s). Convert it with "
                 b"to().", operation, name, dtype_name(found.dtype))
        return RUNTIME_ERROR
    if found.shape[found.ndim - 1] >= INT32_MAX or found.shape[found.ndim - 2] >= INT32_MAX:
        snprintf(message(), MESSAGE, b"%s: the matrices are too large (got shape %s, expected sizes below 2147483647).",
                 operation, shape_text(found))
        return RUNTIME_ERROR
    array[0] = found
    return OK


cdef int square_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil:
    """Read an array of square matrices."""
    cdef array_t *found
    cdef int status = matrix_argument(operation, name, value, array)
    if status != OK:
        return status
    found = array[0]
    if found.shape[found.ndim - 1] != found.shape[found.ndim - 2]:
        snprintf(message(), MESSAGE, b"%s: %s must be batches of square matrices, but they are %lld by %lld matrices "
                 b"(got shape %s).", operation, name, <long long>found.shape[found.ndim - 2],
                 <long long>found.shape[found.ndim - 1], shape_text(found))
        return RUNTIME_ERROR
    return OK


cdef int check_pair(const char *operation, const array_t *a, const array_t *b) noexcept nogil:
    """Refuse different dtypes or leading dimensions."""
    cdef int i
    cdef bint fit = a.ndim == b.ndim
    if a.dtype != b.dtype:
        snprintf(message(), MESSAGE, b"%s: Expected both operands to have the same dtype (got %s and %s).", operation,
                 dtype_name(a.dtype), dtype_name(b.dtype))
        return RUNTIME_ERROR
    if fit:
        for i in range(a.ndim - 2):
            fit = fit and a.shape[i] == b.shape[i]
    if not fit:
        snprintf(message(), MESSAGE, b"%s: the operands must have the same leading dimensions (got shapes %s and %s).",
                 operation, shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    return OK


cdef int64_t batch_count(const array_t *array) noexcept nogil:
    cdef int64_t count = 1
    cdef int i
    for i in range(array.ndim - 2):
        count *= array.shape[i]
    return count


cdef int new_batch(const array_t *like, int drop, int dtype, int64_t rows, int64_t columns,
                   array_t **array) noexcept nogil:
    cdef int64_t[MAX_DIMS + 2] shape
    cdef int i, ndim = like.ndim - drop
    for i in range(ndim):
        shape[i] = like.shape[i]
    if rows >= 0:
        shape[ndim] = rows
        ndim += 1
    if columns >= 0:
        shape[ndim] = columns
        ndim += 1
    array[0] = array_empty(dtype, ndim, shape)
    return OK if array[0] != NULL else MEMORY_ERROR


cdef array_t *transposed(array_t *array) noexcept nogil:
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, n = array.ndim
    for i in range(n):
        shape[i], strides[i] = array.shape[i], array.strides[i]
    shape[n - 1], shape[n - 2] = shape[n - 2], shape[n - 1]
    strides[n - 1], strides[n - 2] = strides[n - 2], strides[n - 1]
    if array.size == 0:
        return array_empty(array.dtype, n, shape)
    return array_view(array, array.dtype, n, shape, strides, 0)


cdef int in_columns(array_t *array, array_t **copy) noexcept nogil:
    """Copy in column-major order."""
    cdef array_t *view = transposed(array)
    copy[0] = NULL
    if view == NULL:
        return MEMORY_ERROR
    copy[0] = as_copy(view, view.dtype)
    release(view)
    return OK if copy[0] != NULL else MEMORY_ERROR


cdef int exchange_axes(array_t **columns) noexcept nogil:
    """Replace LAPACK's output by its view in row-major order."""
    cdef array_t *view = transposed(columns[0])
    release(columns[0])
    columns[0] = view
    return OK if view != NULL else MEMORY_ERROR


cdef int transposed_result(array_t *columns, value_t *result) noexcept nogil:
    """Store that view as a result."""
    cdef array_t *view = transposed(columns)
    release(columns)
    return array_result(view, result)


cdef void _run_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Process matrices begin..end with one scratch memory."""
    cdef matrix_batch_t *task = <matrix_batch_t *>context
    cdef char *scratch = NULL
    cdef int info
    if task.scratch:
        scratch = <char *>malloc(task.scratch)
        if scratch == NULL:
            atomic_store(&task.failed, <int64_t>1)
            return
    while begin < end:
        info = task.each(task, begin, scratch)
        if task.info != NULL and task.width == 1:
            task.info[begin] = info
        begin += task.width
    if scratch != NULL:
        free(scratch)


cdef int run_batch(matrix_batch_t *task, int64_t count, double work) noexcept nogil:
    """Process all matrices, in chunks that depend only on their size."""
    cdef int64_t chunk = rows_per_chunk(<int64_t>min(max(work, 100.0), <double>CHUNK), MOVED)
    task.failed = 0
    task.count = count
    if task.width == 0:
        task.width = 1
    parallel_for(_run_chunk, task, count, (chunk + task.width - 1) // task.width * task.width)
    if task.failed:
        snprintf(message(), MESSAGE, b"out of memory for a scratch of %lld bytes", <long long>task.scratch)
        return MEMORY_ERROR
    return OK


cdef void release_all(int count, array_t **arrays) noexcept nogil:
    """Release the arrays that are not NULL."""
    cdef int i
    for i in range(count):
        release(arrays[i])


cdef bint all_finite(int dtype, const char *data, int64_t count) noexcept nogil:
    """Return whether all numbers are finite, complex ones in both parts."""
    cdef int64_t i
    if dtype == COMPLEX64 or dtype == COMPLEX128:
        count *= 2
    if dtype == FLOAT64 or dtype == COMPLEX128:
        for i in range(count):
            if not isfinite((<const double *>data)[i]):
                return False
    else:
        for i in range(count):
            if not isfinite((<const float *>data)[i]):
                return False
    return True


# --------------------------------------------------------------------------------------------------------------- matrix

# Operands of products: arrays as batches of matrices in a layout that BLAS reads.

cdef inline matrix_t _bare(array_t *array, int batch_ndim) noexcept nogil:
    """Retain the array for a matrix without sizes yet."""
    cdef matrix_t matrix
    matrix.array = retain(array)
    matrix.data = array.data
    matrix.rows = matrix.columns = 1
    matrix.row_step = matrix.column_step = 1
    matrix.batch_ndim = batch_ndim
    matrix.batch_shape = array.shape
    matrix.batch_steps = array.strides
    matrix.transposed = False
    matrix.leading = 0
    return matrix


cdef matrix_t matrix_of(array_t *array) noexcept nogil:
    cdef matrix_t matrix = _bare(array, array.ndim - 2)
    matrix.rows = array.shape[array.ndim - 2]
    matrix.columns = array.shape[array.ndim - 1]
    matrix.row_step = array.strides[array.ndim - 2]
    matrix.column_step = array.strides[array.ndim - 1]
    return matrix


cdef matrix_t row_of(array_t *vector) noexcept nogil:
    """View a vector as a matrix of one row."""
    cdef matrix_t matrix = _bare(vector, 0)
    matrix.columns = vector.shape[0]
    matrix.column_step = vector.strides[0]
    return matrix


cdef matrix_t column_of(array_t *vector) noexcept nogil:
    """View a vector as a matrix of one column."""
    cdef matrix_t matrix = _bare(vector, 0)
    matrix.rows = vector.shape[0]
    matrix.row_step = vector.strides[0]
    return matrix


cdef void transpose_matrix(matrix_t *matrix) noexcept nogil:
    """Exchange rows and columns."""
    matrix.rows, matrix.columns = matrix.columns, matrix.rows
    matrix.row_step, matrix.column_step = matrix.column_step, matrix.row_step


cdef bint fold_rows(matrix_t *matrix) noexcept nogil:
    cdef int64_t rows = matrix.rows, step = matrix.row_step
    cdef int i
    for i in range(matrix.batch_ndim - 1, -1, -1):
        if matrix.batch_shape[i] == 1:
            continue
        if rows == 1:
            step = matrix.batch_steps[i]
        elif matrix.array.size and matrix.batch_steps[i] != step * rows:
            return False  # strides of empty arrays are meaningless
        rows *= matrix.batch_shape[i]
    matrix.rows, matrix.row_step = rows, step
    matrix.batch_ndim = 0
    return True


cdef inline bint _readable(int64_t columns, int64_t column_step, int64_t rows, int64_t row_step) noexcept nogil:
    """Return whether these are contiguous rows without gaps."""
    return ((column_step == 1 or columns <= 1)
            and (rows <= 1 or (row_step >= (columns if columns > 1 else 1) and row_step <= BLAS_MAX)))


cdef int _copy_matrix(matrix_t *matrix) noexcept nogil:
    """Replace the matrix by a row-major copy."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] steps
    cdef array_t *array = matrix.array
    cdef array_t *view
    cdef array_t *copy
    cdef int i, n = matrix.batch_ndim
    for i in range(n):
        shape[i] = matrix.batch_shape[i]
        steps[i] = matrix.batch_steps[i]
    shape[n], steps[n] = matrix.rows, matrix.row_step
    shape[n + 1], steps[n + 1] = matrix.columns, matrix.column_step
    view = array_view(array, array.dtype, matrix.batch_ndim + 2, shape, steps, 0)
    if view == NULL:
        return MEMORY_ERROR
    copy = as_contiguous(view, -1)
    release(view)
    if copy == NULL:
        return MEMORY_ERROR
    matrix[0] = matrix_of(copy)
    release(copy)
    release(array)
    return OK


cdef int lay_out(matrix_t *matrix, bint row_major) noexcept nogil:
    cdef int64_t rows = matrix.rows, columns = matrix.columns
    cdef int status
    if not _readable(columns, matrix.column_step, rows, matrix.row_step):
        if not row_major and _readable(rows, matrix.row_step, columns, matrix.column_step):
            matrix.transposed = True
            matrix.leading = matrix.column_step if columns > 1 else rows
            return OK
        status = _copy_matrix(matrix)
        if status != OK:
            return status
    matrix.transposed = False
    matrix.leading = matrix.row_step if rows > 1 else columns
    return OK


cdef void release_matrix(matrix_t *matrix) noexcept nogil:
    """Release the array."""
    release(matrix.array)
    matrix.array = NULL
