"""
Powers of real numbers: what is quicker, and as exact, than the general loop that NumPy has.

One integral or half-integral exponent for all elements, which is what programs mostly have, becomes products, a root
and a reciprocal. The general loop leaves vector code at each negative number: it gets absolute values, and the sign
is put right afterwards. A number 1/2 as exponent means the square root, which has nan at -inf and -0.0 at -0.0; as an
element of a tensor ("pow_tensor") it means the power: inf and 0. Importing this module puts its loops into the table of
primitives.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memmove
from cygrad._core.arrays.dtype cimport COMPLEX64, COMPLEX128, DTYPES, FLOAT32, FLOAT64
from cygrad._core.primitives.primitive_table cimport (
    SAME, define, entries, entry_t, loop_t, primitive, primitives, set_entry)

import cygrad._core.primitives.integer_loops  # noqa: F401  # no-cython-lint  # whose powers are those of tensors, too

cdef extern from "primitives/power_table.h" nogil:
    ctypedef int (*power_loop_t)(const void *x, double exponent, void *out, int64_t n) noexcept nogil
    ctypedef void (*signed_power_t)(const void *x, const void *exponent, int64_t step, void *out,
                                    int64_t n) noexcept nogil
    power_loop_t power_loop_of(bint double_precision)
    signed_power_t signed_power_of(bint double_precision)

ctypedef fused real_t:
    float
    double

cdef enum:
    BLOCK = 512       # elements that are copied to contiguous memory at a time

# For float32 and float64: NumPy's loops, and cygrad's for the SIMD target.
ctypedef struct powers_t:
    entry_t general
    entry_t square
    power_loop_t whole
    signed_power_t signed

cdef powers_t[2] _powers


cdef inline bint _single(const powers_t *powers, real_t *x, real_t exponent, real_t *out, int64_t n) noexcept nogil:
    """Compute with one exponent for all; -> False if the general loop must."""
    cdef char *pointers[2]
    cdef int64_t steps[2]
    cdef int64_t i
    if exponent == 2:
        pointers[0], pointers[1] = <char *>x, <char *>out
        steps[0] = steps[1] = sizeof(real_t)
        powers.square.loop(pointers, &n, steps, powers.square.data)
        return True
    if exponent == 1:
        memmove(out, x, n * sizeof(real_t))
        return True
    if exponent == 0:
        for i in range(n):
            out[i] = 1
        return True
    return powers.whole(x, exponent, out, n)


cdef inline void _general(const powers_t *powers, real_t *x, real_t *exponent, int64_t step, real_t *out,
                          int64_t n) noexcept nogil:
    """Compute at most BLOCK contiguous elements, with one exponent each or (step 0) the same."""
    cdef real_t[BLOCK] sizes
    cdef char *pointers[3]
    cdef int64_t steps[3]
    cdef int64_t i
    cdef bint negative = False
    for i in range(n):
        negative |= x[i] < 0
    pointers[0], pointers[1], pointers[2] = <char *>x, <char *>exponent, <char *>out
    steps[0], steps[1], steps[2] = sizeof(real_t), step * sizeof(real_t), sizeof(real_t)
    if not negative:
        powers.general.loop(pointers, &n, steps, powers.general.data)
        return
    for i in range(n):
        sizes[i] = <real_t>fabs(x[i])
    pointers[0] = <char *>sizes
    powers.general.loop(pointers, &n, steps, powers.general.data)
    powers.signed(x, exponent, step, out, n)


cdef void pow_loop(char **arguments, const int64_t *n, const int64_t *steps, real_t *tag) noexcept nogil:
    """x, exponent -> x ** exponent; with anything after `tag`, that of "pow_tensor"."""
    cdef const powers_t *powers = &_powers[real_t is double]
    cdef real_t[BLOCK] x
    cdef real_t[BLOCK] exponent
    cdef real_t[BLOCK] out
    cdef int64_t i, count, done = 0, size = sizeof(real_t)
    cdef char *base
    cdef bint one = steps[1] == 0, edges = False
    if one:
        exponent[0] = (<real_t *>arguments[1])[0]
        edges = tag != NULL and fabs(exponent[0]) == 0.5
        if not edges and steps[0] == size and steps[2] == size and _single[real_t](
                powers, <real_t *>arguments[0], exponent[0], <real_t *>arguments[2], n[0]):
            return
    while done < n[0]:
        count = min(n[0] - done, <int64_t>BLOCK)
        base = arguments[0] + done * steps[0]
        for i in range(count):
            x[i] = (<real_t *>(base + i * steps[0]))[0]
        if not one:
            base = arguments[1] + done * steps[1]
            for i in range(count):
                exponent[i] = (<real_t *>(base + i * steps[1]))[0]
        if not (one and _single[real_t](powers, x, exponent[0], out, count)):
            _general[real_t](powers, x, exponent, 0 if one else 1, out, count)
        elif edges:                               # where the power is no root
            for i in range(count):
                if x[i] == 0 or x[i] == -INFINITY:
                    out[i] = 0 if (x[i] == 0) == (exponent[0] > 0) else <real_t>INFINITY
        base = arguments[2] + done * steps[2]
        for i in range(count):
            (<real_t *>(base + i * steps[2]))[0] = out[i]
        done += count


# For complex numbers: loops for the exponents -1, 1/2 and 2 (or 3 and 4 by products), and NumPy's for all others.
ctypedef struct complex_powers_t:
    entry_t general
    entry_t inverse
    entry_t root
    entry_t square
    entry_t product

cdef complex_powers_t[2] _complex_powers


cdef void complex_pow_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """x, exponent -> x ** exponent."""
    cdef const complex_powers_t *powers = <const complex_powers_t *>data
    cdef const entry_t *entry = NULL
    cdef bint double_precision = powers == &_complex_powers[1]
    cdef double real, imag
    cdef char[BLOCK * 16] x
    cdef int64_t i, count, done = 0, size = 16 if double_precision else 8
    cdef char *pointers[3]
    cdef int64_t between[3]
    if double_precision:
        real, imag = (<double *>arguments[1])[0], (<double *>arguments[1])[1]
    else:
        real, imag = (<float *>arguments[1])[0], (<float *>arguments[1])[1]
    if steps[1] == 0 and imag == 0:
        if real == -1:
            entry = &powers.inverse
        elif real == 0.5:
            entry = &powers.root
        elif real == 2 or real == 3 or real == 4:
            entry = &powers.square
    if entry == NULL:
        powers.general.loop(arguments, n, steps, powers.general.data)
        return
    while done < n[0]:
        count = n[0] - done if real != 3 else min(n[0] - done, <int64_t>BLOCK)
        pointers[0], pointers[1] = arguments[0] + done * steps[0], arguments[2] + done * steps[2]
        between[0], between[1] = steps[0], steps[2]
        if real == 3:                             # x is needed again, and the result may overwrite it
            for i in range(count):
                memcpy(&x[i * size], pointers[0] + i * steps[0], size)
        entry.loop(pointers, &count, between, entry.data)
        if real == 3 or real == 4:
            pointers[0] = pointers[2] = pointers[1]
            between[0] = between[2] = steps[2]
            if real == 3:
                pointers[1], between[1] = x, size
            powers.product.loop(pointers, &count, between, powers.product.data)
        done += count


def _initialize():
    cdef int index = primitive("pow"), k, code
    cdef int of_tensors = define("pow_tensor", 2, SAME, primitives[index].cost, primitives[index].exact, -1)
    cdef powers_t *powers
    cdef complex_powers_t *complex_powers
    for k in range(2):
        complex_powers = &_complex_powers[k]
        code = COMPLEX128 if k else COMPLEX64
        complex_powers.general = entries[index][code]
        complex_powers.inverse = entries[primitive("reciprocal")][code]
        complex_powers.root = entries[primitive("sqrt")][code]
        complex_powers.square = entries[primitive("square")][code]
        complex_powers.product = entries[primitive("mul")][code]
        set_entry(index, code, complex_pow_loop, complex_powers, code)
    for k in range(2):
        powers = &_powers[k]
        code = FLOAT64 if k else FLOAT32
        powers.general = entries[index][code]
        powers.square = entries[primitive("square")][code]
        powers.whole = power_loop_of(k)
        powers.signed = signed_power_of(k)
    set_entry(index, FLOAT32, <loop_t>pow_loop[float], NULL, FLOAT32)
    set_entry(index, FLOAT64, <loop_t>pow_loop[double], NULL, FLOAT64)
    for code in range(DTYPES):
        entries[of_tensors][code] = entries[index][code]
    entries[of_tensors][<int>FLOAT32].data = entries[of_tensors][<int>FLOAT64].data = &_powers


_initialize()
