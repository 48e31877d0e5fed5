"""
Casts between any two dtypes, as inner loops and of single numbers.

The floating types of 16 bits go by way of float: numbers are rounded to it first, then to 16 bits, as PyTorch
does.

Complex to real keeps the real part, floating to integer cuts off the fraction, anything to bool asks "!= 0".
The last parameter of a loop is loop_t's `data`, unused: its type names the target.
"""

cimport cygrad._core.primitives.complex_parts
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from cygrad._core.arrays.dtype cimport (
    BFLOAT16, BOOL, COMPLEX32, COMPLEX64, COMPLEX128, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64,
    UINT8, UINT16, UINT32, UINT64, itemsize)
from cygrad._core.arrays.value cimport COMPLEX, REAL

cdef extern from "simd/word_moves.h" nogil:
    void backwards_bytes(const void *last, void *out, int64_t n)
    void backwards_halves(const void *last, void *out, int64_t n)
    void backwards_words(const void *last, void *out, int64_t n)
    void backwards_doubles(const void *last, void *out, int64_t n)

cdef extern from "primitives/short_floats.h" nogil:
    ctypedef struct half_t:
        uint16_t bits
    ctypedef struct bfloat_t:
        uint16_t bits
    ctypedef struct complex_half_t:
        half_t real
        half_t imag
    float float_of_half(half_t half)
    half_t half_of_float(float value)
    float float_of_bfloat(bfloat_t bfloat)
    bfloat_t bfloat_of_float(float value)
    void floats_of_halves(const half_t *source, float *out, int64_t n)
    void halves_of_floats(const float *source, half_t *out, int64_t n)
    void floats_of_bfloats(const bfloat_t *source, float *out, int64_t n)
    void bfloats_of_floats(const float *source, bfloat_t *out, int64_t n)
    void bools_of_floats(const float *source, uint8_t *out, int64_t n)
    void bools_of_doubles(const double *source, uint8_t *out, int64_t n)
    bint convert_neighbors(...)

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
    half_t
    bfloat_t
    complex_half_t
    uint16_t
    uint32_t
    uint64_t

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
    half_t
    bfloat_t
    complex_half_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused word_t:
    uint8_t
    int16_t
    int32_t
    int64_t
    (double complex)


cdef inline void _convert(const source_t *source, target_t *out) noexcept nogil:
    """One number to another type; a float goes to small integers by way of int64, so that it wraps around."""
    cdef float single
    cdef float complex both
    if source_t is half_t:
        single = float_of_half(source[0])
        _convert(&single, out)
    elif source_t is bfloat_t:
        single = float_of_bfloat(source[0])
        _convert(&single, out)
    elif source_t is complex_half_t:
        both.real, both.imag = float_of_half(source[0].real), float_of_half(source[0].imag)
        _convert(&both, out)
    elif target_t is half_t:
        _convert(source, &single)
        out[0] = half_of_float(single)
    elif target_t is bfloat_t:
        _convert(source, &single)
        out[0] = bfloat_of_float(single)
    elif target_t is complex_half_t:
        _convert(source, &both)
        out[0].real, out[0].imag = half_of_float(both.real), half_of_float(both.imag)
    elif source_t is floatcomplex or source_t is doublecomplex:
        if target_t is floatcomplex or target_t is doublecomplex:
            out[0] = <target_t>source[0]
        elif target_t is float or target_t is double:
            out[0] = <target_t>source[0].real
        else:
            out[0] = <target_t><int64_t>source[0].real
    elif source_t is float or source_t is double:
        if target_t is float or target_t is double or target_t is floatcomplex or target_t is doublecomplex:
            out[0] = <target_t>source[0]
        elif target_t is uint64_t:
            out[0] = <uint64_t>source[0] if source[0] >= 9223372036854775808.0 else <uint64_t><int64_t>source[0]
        else:
            out[0] = <target_t><int64_t>source[0]
    else:
        out[0] = <target_t>source[0]


cdef inline bint _is_set(const source_t *source) noexcept nogil:
    """Is the number not zero?"""
    if source_t is half_t or source_t is bfloat_t:
        return source[0].bits & 0x7fff != 0
    elif source_t is complex_half_t:
        return (source[0].real.bits | source[0].imag.bits) & 0x7fff != 0
    else:
        return source[0] != 0


cdef void cast_loop(char **arguments, const int64_t *n, const int64_t *steps, target_t *target_tag,
                    source_t *source_tag) noexcept nogil:
    """Called as a loop_t, without the last argument: it names the source type and is never looked at."""
    cdef char *source = arguments[0]
    cdef char *out = arguments[1]
    cdef int64_t i, count = n[0], step_in = steps[0], step_out = steps[1]
    if step_in == sizeof(source_t) and step_out == sizeof(target_t):
        if source_t is half_t and target_t is float:
            floats_of_halves(<const half_t *>source, <float *>out, count)
        elif source_t is float and target_t is half_t:
            halves_of_floats(<const float *>source, <half_t *>out, count)
        elif source_t is bfloat_t and target_t is float:
            floats_of_bfloats(<const bfloat_t *>source, <float *>out, count)
        elif source_t is float and target_t is bfloat_t:
            bfloats_of_floats(<const float *>source, <bfloat_t *>out, count)
        elif not convert_neighbors(<const source_t *>source, <target_t *>out, count):
            for i in range(count):
                _convert(<const source_t *>source + i, <target_t *>out + i)
    else:
        for i in range(count):
            _convert(<const source_t *>(source + i * step_in), <target_t *>(out + i * step_out))


cdef void to_bool_loop(char **arguments, const int64_t *n, const int64_t *steps,
                       source_t *tag) noexcept nogil:
    cdef char *source = arguments[0]
    cdef char *out = arguments[1]
    cdef int64_t i, count = n[0], step_in = steps[0], step_out = steps[1]
    if step_in == sizeof(source_t) and step_out == 1:
        if source_t is float:
            bools_of_floats(<const float *>source, <uint8_t *>out, count)
        elif source_t is double:
            bools_of_doubles(<const double *>source, <uint8_t *>out, count)
        else:
            for i in range(count):
                out[i] = _is_set(<const source_t *>source + i)
    else:
        for i in range(count):
            out[i * step_out] = _is_set(<const source_t *>(source + i * step_in))


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


cdef void _enter_source(source_t *tag, int source) noexcept:
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
    cast_loops[source][<int>FLOAT16] = <loop_t>cast_loop[half_t, source_t]
    cast_loops[source][<int>BFLOAT16] = <loop_t>cast_loop[bfloat_t, source_t]
    cast_loops[source][<int>COMPLEX32] = <loop_t>cast_loop[complex_half_t, source_t]
    cast_loops[source][<int>UINT16] = <loop_t>cast_loop[uint16_t, source_t]
    cast_loops[source][<int>UINT32] = <loop_t>cast_loop[uint32_t, source_t]
    cast_loops[source][<int>UINT64] = <loop_t>cast_loop[uint64_t, source_t]


def _initialize():
    cdef int code
    cdef loop_t[17] moves
    _enter_source[uint8_t](NULL, BOOL)
    _enter_source[uint8_t](NULL, UINT8)
    _enter_source[int8_t](NULL, INT8)
    _enter_source[int16_t](NULL, INT16)
    _enter_source[int32_t](NULL, INT32)
    _enter_source[int64_t](NULL, INT64)
    _enter_source[float](NULL, FLOAT32)
    _enter_source[double](NULL, FLOAT64)
    _enter_source[floatcomplex](NULL, COMPLEX64)
    _enter_source[doublecomplex](NULL, COMPLEX128)
    _enter_source[half_t](NULL, FLOAT16)
    _enter_source[bfloat_t](NULL, BFLOAT16)
    _enter_source[complex_half_t](NULL, COMPLEX32)
    _enter_source[uint16_t](NULL, UINT16)
    _enter_source[uint32_t](NULL, UINT32)
    _enter_source[uint64_t](NULL, UINT64)
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
