"""
Primitives of complex numbers that NumPy has not, and those that take numbers apart or put them together.

Importing this module enters its loops in the table of `loops`, after those of `typed_loops`. The last parameter of a
loop is the `data` of loop_t; where a loop has no use for it, its pointer type tells the compiler which element type is
meant.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64
from cygrad._core.primitives.primitive_table cimport FLOAT, SAME, define, entries, entry_t, loop_t, primitive, set_entry
# The same functions of real numbers.
import cygrad._core.primitives.typed_loops  # noqa: F401  # no-cython-lint

cdef extern from "<complex.h>" nogil:
    double carg(double complex)
    float cargf(float complex)

cdef extern from "<math.h>" nogil:
    double hypot(double, double)

ctypedef fused real_t:
    float
    double

ctypedef fused complex_t:
    (float complex)
    (double complex)

# A loop that loops here call.
cdef int _exp = primitive("exp")


cdef inline complex_t _complex_sigmoid(complex_t z, const entry_t *exp) noexcept nogil:
    cdef int64_t one = 1, step = sizeof(complex_t)
    cdef int64_t[2] steps
    cdef char *pointers[2]
    steps[0] = steps[1] = step
    z = -z
    pointers[0] = pointers[1] = <char *>&z
    exp.loop(pointers, &one, steps, exp.data)
    return 1 / (1 + z)


cdef void sigmoid_complex_loop(char **arguments, const int64_t *n, const int64_t *steps,
                               complex_t *data) noexcept nogil:
    """The logistic function; times its argument, which is silu, if `data` is not NULL."""
    cdef const entry_t *exp = &entries[_exp][<int>COMPLEX64 if complex_t is floatcomplex else <int>COMPLEX128]
    cdef int64_t i
    cdef complex_t z
    for i in range(n[0]):
        z = (<complex_t *>(arguments[0] + i * steps[0]))[0]
        (<complex_t *>(arguments[1] + i * steps[1]))[0] = (
            z * _complex_sigmoid(z, exp) if data != NULL else _complex_sigmoid(z, exp))


cdef void silu_backward_complex_loop(char **arguments, const int64_t *n, const int64_t *steps,
                                     complex_t *tag) noexcept nogil:
    cdef const entry_t *exp = &entries[_exp][<int>COMPLEX64 if complex_t is floatcomplex else <int>COMPLEX128]
    cdef int64_t i
    cdef complex_t z, s
    for i in range(n[0]):
        z = (<complex_t *>(arguments[1] + i * steps[1]))[0]
        s = _complex_sigmoid(z, exp)
        s = s * (1 + z * (1 - s))
        (<complex_t *>(arguments[2] + i * steps[2]))[0] = (
            (<complex_t *>(arguments[0] + i * steps[0]))[0] * s.conjugate())


cdef void slope_complex_loop(char **arguments, const int64_t *n, const int64_t *steps, complex_t *data) noexcept nogil:
    """sigmoid_backward; tanh_backward if `data` is not NULL."""
    cdef int64_t i
    cdef complex_t value, slope
    for i in range(n[0]):
        value = (<complex_t *>(arguments[1] + i * steps[1]))[0]
        slope = 1 - value * value if data != NULL else (1 - value) * value
        (<complex_t *>(arguments[2] + i * steps[2]))[0] = (
            (<complex_t *>(arguments[0] + i * steps[0]))[0] * slope.conjugate())


cdef void angle_complex_loop(char **arguments, const int64_t *n, const int64_t *steps,
                             complex_t *tag) noexcept nogil:
    cdef int64_t i
    cdef complex_t z
    for i in range(n[0]):
        z = (<complex_t *>(arguments[0] + i * steps[0]))[0]
        if complex_t is floatcomplex:
            (<float *>(arguments[1] + i * steps[1]))[0] = cargf(z)
        else:
            (<double *>(arguments[1] + i * steps[1]))[0] = carg(z)


cdef void real_loop(char **arguments, const int64_t *n, const int64_t *steps, real_t *tag) noexcept nogil:
    """Real part of a complex number whose parts are real_t; given a shifted pointer, the imaginary part."""
    cdef int64_t i
    for i in range(n[0]):
        (<real_t *>(arguments[1] + i * steps[1]))[0] = (<real_t *>(arguments[0] + i * steps[0]))[0]


cdef void lerp_complex_loop(char **arguments, const int64_t *n, const int64_t *steps, complex_t *tag) noexcept nogil:
    """Interpolate between two numbers, from the nearer end."""
    cdef int64_t i
    cdef complex_t x, y, weight
    for i in range(n[0]):
        x = (<complex_t *>(arguments[0] + i * steps[0]))[0]
        y = (<complex_t *>(arguments[1] + i * steps[1]))[0]
        weight = (<complex_t *>(arguments[2] + i * steps[2]))[0]
        (<complex_t *>(arguments[3] + i * steps[3]))[0] = (
            x + weight * (y - x) if hypot(weight.real, weight.imag) < 0.5 else y - (y - x) * (1 - weight))


cdef void imag_loop(char **arguments, const int64_t *n, const int64_t *steps, real_t *tag) noexcept nogil:
    cdef int64_t i
    for i in range(n[0]):
        (<real_t *>(arguments[1] + i * steps[1]))[0] = (<real_t *>(arguments[0] + i * steps[0]))[1]


cdef void complex_loop(char **arguments, const int64_t *n, const int64_t *steps, real_t *tag) noexcept nogil:
    """Two reals -> the complex number of these parts."""
    cdef int64_t i
    cdef real_t first, second
    cdef real_t *out = <real_t *>arguments[2]
    cdef int64_t size = sizeof(real_t)
    if steps[0] == size and steps[1] == size and steps[2] == 2 * size:
        for i in range(n[0]):
            first, second = (<real_t *>arguments[0])[i], (<real_t *>arguments[1])[i]
            out[2 * i], out[2 * i + 1] = first, second
        return
    for i in range(n[0]):
        first = (<real_t *>(arguments[0] + i * steps[0]))[0]
        second = (<real_t *>(arguments[1] + i * steps[1]))[0]
        out = <real_t *>(arguments[2] + i * steps[2])
        out[0] = first
        out[1] = second


cdef int _enter_complex(str name, loop_t c64, loop_t c128, void *data) except -1:
    """Enter loops of complex numbers for an existing primitive."""
    set_entry(primitive(name), COMPLEX64, c64, data, COMPLEX64)
    set_entry(primitive(name), COMPLEX128, c128, data, COMPLEX128)
    return 0


def _initialize():
    cdef int index
    _enter_complex("sigmoid", <loop_t>sigmoid_complex_loop[floatcomplex], <loop_t>sigmoid_complex_loop[doublecomplex],
                   NULL)
    _enter_complex("silu", <loop_t>sigmoid_complex_loop[floatcomplex], <loop_t>sigmoid_complex_loop[doublecomplex],
                   &entries)
    _enter_complex("silu_backward", <loop_t>silu_backward_complex_loop[floatcomplex],
                   <loop_t>silu_backward_complex_loop[doublecomplex], NULL)
    _enter_complex("lerp", <loop_t>lerp_complex_loop[floatcomplex], <loop_t>lerp_complex_loop[doublecomplex], NULL)
    _enter_complex("sigmoid_backward", <loop_t>slope_complex_loop[floatcomplex],
                   <loop_t>slope_complex_loop[doublecomplex], NULL)
    _enter_complex("tanh_backward", <loop_t>slope_complex_loop[floatcomplex], <loop_t>slope_complex_loop[doublecomplex],
                   &entries)

    index = primitive("angle")
    set_entry(index, COMPLEX64, <loop_t>angle_complex_loop[floatcomplex], NULL, FLOAT32)
    set_entry(index, COMPLEX128, <loop_t>angle_complex_loop[doublecomplex], NULL, FLOAT64)
    index = define("real", 1, SAME, 1, True, FLOAT64)
    set_entry(index, COMPLEX64, <loop_t>real_loop[float], NULL, FLOAT32)
    set_entry(index, COMPLEX128, <loop_t>real_loop[double], NULL, FLOAT64)
    index = define("imag", 1, SAME, 1, True, -1)
    set_entry(index, COMPLEX64, <loop_t>imag_loop[float], NULL, FLOAT32)
    set_entry(index, COMPLEX128, <loop_t>imag_loop[double], NULL, FLOAT64)
    index = define("complex", 2, FLOAT, 1, True, -1)
    set_entry(index, FLOAT32, <loop_t>complex_loop[float], NULL, COMPLEX64)
    set_entry(index, FLOAT64, <loop_t>complex_loop[double], NULL, COMPLEX128)


_initialize()
