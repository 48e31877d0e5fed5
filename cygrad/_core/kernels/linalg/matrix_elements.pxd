"""Access to contiguous elements of matrices of any floating or complex dtype."""

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.string cimport memset
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, is_complex, itemsize, real_of
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t


cdef inline blas_scalar_t number_at(int dtype, const char *data, int64_t i) noexcept nogil:
    """Read element i."""
    cdef blas_scalar_t number
    number.imag = 0
    if dtype == FLOAT32:
        number.real = (<const float *>data)[i]
    elif dtype == FLOAT64:
        number.real = (<const double *>data)[i]
    elif dtype == COMPLEX64:
        number.real, number.imag = (<const float *>data)[2 * i], (<const float *>data)[2 * i + 1]
    else:
        number.real, number.imag = (<const double *>data)[2 * i], (<const double *>data)[2 * i + 1]
    return number


cdef inline void put_number(int dtype, char *data, int64_t i, blas_scalar_t number) noexcept nogil:
    """Write element i."""
    if dtype == FLOAT32:
        (<float *>data)[i] = <float>number.real
    elif dtype == FLOAT64:
        (<double *>data)[i] = number.real
    elif dtype == COMPLEX64:
        (<float *>data)[2 * i], (<float *>data)[2 * i + 1] = <float>number.real, <float>number.imag
    else:
        (<double *>data)[2 * i], (<double *>data)[2 * i + 1] = number.real, number.imag


cdef inline blas_scalar_t times(blas_scalar_t a, blas_scalar_t b) noexcept nogil:
    """Multiply two numbers, real ones without the nan of inf * 0 in the imaginary part."""
    cdef blas_scalar_t product
    product.real, product.imag = a.real * b.real, 0
    if a.imag != 0 or b.imag != 0:
        product.real -= a.imag * b.imag
        product.imag = a.real * b.imag + a.imag * b.real
    return product


cdef inline void scale(int dtype, char *data, int64_t count, blas_scalar_t factor) noexcept nogil:
    """Multiply contiguous elements by a number."""
    cdef int64_t i
    for i in range(count):
        put_number(dtype, data, i, times(number_at(dtype, data, i), factor))


cdef inline void conjugate(int dtype, char *data, int64_t count) noexcept nogil:
    """Conjugate contiguous elements."""
    cdef int64_t i
    cdef blas_scalar_t number
    if is_complex(dtype):
        for i in range(count):
            number = number_at(dtype, data, i)
            number.imag = -number.imag
            put_number(dtype, data, i, number)


cdef inline void fill_nan(int dtype, char *data, int64_t count) noexcept nogil:
    """Fill with nan (both parts of complex numbers)."""
    cdef int64_t i
    cdef int64_t reals = count * itemsize(dtype) // itemsize(real_of(dtype))
    for i in range(reals):
        if real_of(dtype) == FLOAT32:
            (<float *>data)[i] = NAN
        else:
            (<double *>data)[i] = NAN


cdef inline void set_identity(int dtype, char *data, int64_t rows, int64_t columns) noexcept nogil:
    """Fill a contiguous matrix with ones on the diagonal and zeros elsewhere."""
    cdef int64_t i, step = columns + 1, size = itemsize(dtype)
    memset(data, 0, rows * columns * size)
    for i in range(min(rows, columns)):
        if dtype == FLOAT64 or dtype == COMPLEX128:
            (<double *>(data + i * step * size))[0] = 1
        else:
            (<float *>(data + i * step * size))[0] = 1
