"""
Casts between any two dtypes, as inner loops and of single numbers.

Complex to real keeps the real part, floating to integer cuts off the fraction, anything to bool asks "!= 0".
The last parameter of a loop is loop_t's `data`, unused: its type names the target.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from cygrad._core.arrays.dtype cimport (BOOL, COMPLEX64, COMPLEX128, DTYPES, FLOAT32, FLOAT64, INT8, INT16, INT32,
                                 INT64, UINT8, itemsize)
from cygrad._core.arrays.value cimport COMPLEX, REAL

cdef extern from "simd/word_moves.h" nogil:
    void backwards_bytes(const void *last, void *out, int64_t n)
    void backwards_halves(const void *last, void *out, int64_t n)
    void backwards_words(const void *last, void *out, int64_t n)
    void backwards_doubles(const void *last, void *out, int64_t n)

ctypedef fused source_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double
    (float complex)
    (double complex)

ctypedef fused target_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double
    (float complex)
    (double complex)

ctypedef fused word_t:
    uint8_t
    int16_t
    int32_t
    int64_t
    (double complex)


cdef inline void convert(const source_t *source, target_t *out) noexcept nogil:
    """One number to another type; a float goes to small integers by way of int64, so that it wraps around."""
    if source_t is floatcomplex or source_t is doublecomplex:
        if target_t is floatcomplex or target_t is doublecomplex:
            out[0] = <target_t>source[0]
        elif target_t is float or target_t is double:
            out[0] = <target_t>source[0].real
        else:
            out[0] = <target_t><int64_t>source[0].real
    elif source_t is float or source_t is double:
        if target_t is uint8_t or target_t is int8_t or target_t is int16_t or target_t is int32_t:
            out[0] = <target_t><int64_t>source[0]
        else:
            out[0] = <target_t>source[0]
    else:
        out[0] = <target_t>source[0]


cdef void cast_loop(char **arguments, const int64_t *n, const int64_t *steps, target_t *target_tag,
                    source_t *source_tag) noexcept nogil:
    """Called as a loop_t, without the last argument: it names the source type and is never looked at."""
    cdef char *source = arguments[0]
    cdef char *out = arguments[1]
    cdef int64_t i, count = n[0], step_in = steps[0], step_out = steps[1]
    if step_in == sizeof(source_t) and step_out == sizeof(target_t):
        for i in range(count):
            convert(<const source_t *>source + i, <target_t *>out + i)
    else:
        for i in range(count):
            convert(<const source_t *>(source + i * step_in), <target_t *>(out + i * step_out))


cdef void to_bool_loop(char **arguments, const int64_t *n, const int64_t *steps,
                       source_t *tag) noexcept nogil:
    cdef char *source = arguments[0]
    cdef char *out = arguments[1]
    cdef int64_t i, count = n[0], step_in = steps[0], step_out = steps[1]
    if step_in == sizeof(source_t) and step_out == 1:
        for i in range(count):
            out[i] = (<source_t *>source)[i] != 0
    else:
        for i in range(count):
            out[i * step_out] = (<source_t *>(source + i * step_in))[0] != 0


cdef void move_loop(char **arguments, const int64_t *n, const int64_t *steps, word_t *tag) noexcept nogil:
    """Copy elements of the size of word_t."""
    cdef char *source = arguments[0]
    cdef char *out = arguments[1]
    cdef int64_t i, count = n[0], step_in = steps[0], step_out = steps[1], size = sizeof(word_t)
    cdef word_t value
    if step_out == size:
        if step_in == size:
            memcpy(out, source, count * size)
        elif step_in == 0:
            value = (<word_t *>source)[0]
            for i in range(count):
                (<word_t *>out)[i] = value
        elif step_in == -size and size <= 8:
            if word_t is uint8_t:
                backwards_bytes(source, out, count)
            elif word_t is int16_t:
                backwards_halves(source, out, count)
            elif word_t is int32_t:
                backwards_words(source, out, count)
            else:
                backwards_doubles(source, out, count)
        else:
            for i in range(count):
                (<word_t *>out)[i] = (<word_t *>(source + i * step_in))[0]
    else:
        for i in range(count):
            (<word_t *>(out + i * step_out))[0] = (<word_t *>(source + i * step_in))[0]


cdef void number_to_cell(const value_t *number, int dtype, void *cell) noexcept nogil:
    cdef char *arguments[2]
    cdef int64_t one = 1
    cdef int64_t steps[2]
    cdef double[2] parts
    cdef int source = INT64
    steps[0] = steps[1] = 0
    arguments[1] = <char *>cell
    if number.kind >= REAL:
        parts[0] = number.of.real
        parts[1] = number.imag if number.kind == COMPLEX else 0
        source = COMPLEX128
        arguments[0] = <char *>parts
    else:
        arguments[0] = <char *>&number.of.integer
    cast_loops[source][dtype](arguments, &one, steps, NULL)


cdef void enter_source(source_t *tag, int source) noexcept:
    """The row of the table for one source type."""
    cast_loops[source][<int>BOOL] = <loop_t>to_bool_loop[source_t]
    cast_loops[source][<int>UINT8] = <loop_t>cast_loop[uint8_t, source_t]
    cast_loops[source][<int>INT8] = <loop_t>cast_loop[int8_t, source_t]
    cast_loops[source][<int>INT16] = <loop_t>cast_loop[int16_t, source_t]
    cast_loops[source][<int>INT32] = <loop_t>cast_loop[int32_t, source_t]
    cast_loops[source][<int>INT64] = <loop_t>cast_loop[int64_t, source_t]
    cast_loops[source][<int>FLOAT32] = <loop_t>cast_loop[float, source_t]
    cast_loops[source][<int>FLOAT64] = <loop_t>cast_loop[double, source_t]
    cast_loops[source][<int>COMPLEX64] = <loop_t>cast_loop[floatcomplex, source_t]
    cast_loops[source][<int>COMPLEX128] = <loop_t>cast_loop[doublecomplex, source_t]


def _initialize():
    cdef int code
    cdef loop_t[17] moves
    enter_source[uint8_t](NULL, BOOL)
    enter_source[uint8_t](NULL, UINT8)
    enter_source[int8_t](NULL, INT8)
    enter_source[int16_t](NULL, INT16)
    enter_source[int32_t](NULL, INT32)
    enter_source[int64_t](NULL, INT64)
    enter_source[float](NULL, FLOAT32)
    enter_source[double](NULL, FLOAT64)
    enter_source[floatcomplex](NULL, COMPLEX64)
    enter_source[doublecomplex](NULL, COMPLEX128)
    moves[1] = <loop_t>move_loop[uint8_t]
    moves[2] = <loop_t>move_loop[int16_t]
    moves[4] = <loop_t>move_loop[int32_t]
    moves[8] = <loop_t>move_loop[int64_t]
    moves[16] = <loop_t>move_loop[doublecomplex]
    for code in range(DTYPES):
        cast_loops[code][code] = moves[itemsize(code)]
    # bool and uint8 hold 0 and 1 alike
    cast_loops[<int>BOOL][<int>UINT8] = moves[1]
    cast_loops[<int>BOOL][<int>INT8] = moves[1]


_initialize()
