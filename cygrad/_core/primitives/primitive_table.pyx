"""
The table of primitives, filled with the inner loops of NumPy's ufuncs.

NumPy chose each loop for this machine's SIMD instructions when it was imported; its loops need no GIL. `typed_loops`
adds what NumPy lacks or computes differently.
"""

cimport numpy as np
cimport cygrad._core.primitives.complex_parts
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport COMPLEX, REAL
from cygrad._core.arrays.dtype cimport (
    BFLOAT16, BOOL, COMPLEX128, COMPLEX32, COMPLEX64, DTYPES, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8,
    UINT16, UINT32, UINT64, UINT8, category, code_of_typenum, is_short, itemsize,
)

import numpy


# ------------------------------------------------------------------------------------------------------ primitive table

cdef extern from "primitives/ufunc_types.h":
    const char *ufunc_types(void *)

cdef extern from * nogil:
    """
    static __thread int status_of_loops;
    """
    int status_of_loops

cdef dict _indices = {}
cdef list _names = []


cdef int loop_status() noexcept nogil:
    return status_of_loops


cdef void set_loop_status(int status) noexcept nogil:
    global status_of_loops
    status_of_loops = status


cdef int primitive(str name) except -1:
    index = _indices.get(name)
    if index is None:
        raise ValueError(f"primitive: unknown name (got {name!r}, expected one of "
                         f"{', '.join(sorted(_indices))}). Add it to the table in primitive_table.pyx.")
    return index


cdef int primitive_arity(int primitive) noexcept nogil:
    return primitives[primitive].arity


def names():
    """Return the names of all primitives."""
    return list(_indices)


def dtypes_of(str name):
    """Return the codes of the dtypes for which the primitive `name` has a loop."""
    cdef int index = primitive(name), code
    return [code for code in range(DTYPES) if entries[index][code].loop != NULL]


def arity_of(str name):
    """Return the number of operands of the primitive `name`."""
    return primitives[primitive(name)].arity


cdef int define(str name, int arity, type_rule_t rule, int cost, bint exact, int identity) except -1:
    if name in _indices:
        return _indices[name]
    cdef int index = len(_names)
    if index >= MAX_PRIMITIVES:
        raise RuntimeError(f"define: too many primitives for {name!r}. Increase MAX_PRIMITIVES")
    _names.append(name.encode())
    _indices[name] = index
    primitives[index].name = _names[index]
    primitives[index].arity = arity
    primitives[index].rule = rule
    primitives[index].cost = cost
    primitives[index].exact = exact
    primitives[index].identity = identity
    return index


cdef void set_entry(int primitive, int dtype, loop_t loop, void *data, int out_dtype) noexcept:
    entries[primitive][dtype].loop = loop
    entries[primitive][dtype].data = data
    entries[primitive][dtype].out_dtype = out_dtype


cdef int _take(int index, np.ufunc ufunc, str kinds) except -1:
    """Enter the loops of `ufunc` whose inputs all have one dtype, of a kind (b, i, f, c) in `kinds`."""
    cdef int i, k, code
    cdef bint uniform
    cdef const char *types
    for i in range(ufunc.ntypes):
        types = ufunc_types(<void *>ufunc) + i * ufunc.nargs
        code = code_of_typenum(types[0])
        uniform = code >= 0 and code_of_typenum(types[ufunc.nin]) >= 0
        for k in range(1, ufunc.nin):
            uniform = uniform and types[k] == types[0]
        if not uniform or is_short(code) or entries[index][code].loop != NULL:
            continue
        if "bifc"[category(code)] in kinds:
            set_entry(index, code, <loop_t><void *>ufunc.functions[i], ufunc.data[i],
                      code_of_typenum(types[ufunc.nin]))
    return 0


# name, ufunc, rule, kinds of dtype taken from NumPy (bool, integer, float, complex), cost. Kinds left out are those
# that PyTorch refuses, or computes differently (then in typed_loops).
_from_numpy = [
    ("add", "add", SAME, "bifc", 1),
    ("sub", "subtract", SAME, "ifc", 1),
    ("mul", "multiply", SAME, "bifc", 1),
    ("div", "true_divide", FLOAT, "fc", 2),
    ("floor_divide", "floor_divide", SAME, "f", 30),
    ("remainder", "remainder", SAME, "f", 30),
    ("fmod", "fmod", SAME, "f", 30),
    ("neg", "negative", SAME, "ifc", 1),
    ("abs", "absolute", SAME, "ifc", 1),
    ("sign", "sign", SAME, "i", 1),
    ("sgn", "sign", SAME, "ic", 1),
    ("reciprocal", "reciprocal", FLOAT, "fc", 2),
    ("square", "square", SAME, "ifc", 1),
    ("sqrt", "sqrt", FLOAT, "fc", 3),
    ("exp", "exp", FLOAT, "fc", 8),
    ("expm1", "expm1", FLOAT, "fc", 10),
    ("exp2", "exp2", FLOAT, "fc", 8),
    ("log", "log", FLOAT, "fc", 8),
    ("log1p", "log1p", FLOAT, "f", 10),
    ("log2", "log2", FLOAT, "fc", 8),
    ("log10", "log10", FLOAT, "fc", 8),
    ("sin", "sin", FLOAT, "fc", 10),
    ("cos", "cos", FLOAT, "fc", 10),
    ("tan", "tan", FLOAT, "fc", 12),
    ("asin", "arcsin", FLOAT, "fc", 12),
    ("acos", "arccos", FLOAT, "fc", 12),
    ("atan", "arctan", FLOAT, "fc", 12),
    ("atan2", "arctan2", FLOAT, "f", 16),
    ("sinh", "sinh", FLOAT, "fc", 12),
    ("cosh", "cosh", FLOAT, "fc", 12),
    ("tanh", "tanh", FLOAT, "fc", 8),
    ("asinh", "arcsinh", FLOAT, "fc", 12),
    ("acosh", "arccosh", FLOAT, "fc", 12),
    ("atanh", "arctanh", FLOAT, "fc", 12),
    ("floor", "floor", SAME, "f", 1),
    ("ceil", "ceil", SAME, "f", 1),
    ("trunc", "trunc", SAME, "f", 1),
    ("round", "rint", SAME, "f", 1),
    ("maximum", "maximum", SAME, "bif", 1),
    ("minimum", "minimum", SAME, "bif", 1),
    ("fmax", "fmax", SAME, "bif", 1),
    ("fmin", "fmin", SAME, "bif", 1),
    ("pow", "power", SAME, "fc", 20),
    ("eq", "equal", SAME, "bifc", 1),
    ("ne", "not_equal", SAME, "bifc", 1),
    ("lt", "less", SAME, "bif", 1),
    ("le", "less_equal", SAME, "bif", 1),
    ("gt", "greater", SAME, "bif", 1),
    ("ge", "greater_equal", SAME, "bif", 1),
    ("logical_and", "logical_and", SAME, "bifc", 1),
    ("logical_or", "logical_or", SAME, "bifc", 1),
    ("logical_xor", "logical_xor", SAME, "bifc", 1),
    ("logical_not", "logical_not", SAME, "bifc", 1),
    ("bitwise_and", "bitwise_and", SAME, "bi", 1),
    ("bitwise_or", "bitwise_or", SAME, "bi", 1),
    ("bitwise_xor", "bitwise_xor", SAME, "bi", 1),
    ("bitwise_not", "invert", SAME, "bi", 1),
    ("left_shift", "left_shift", SAME, "i", 1),
    ("right_shift", "right_shift", SAME, "i", 1),
    ("isnan", "isnan", SAME, "bifc", 1),
    ("isinf", "isinf", SAME, "bifc", 1),
    ("isfinite", "isfinite", SAME, "bifc", 1),
    ("signbit", "signbit", SAME, "f", 1),
    ("conj", "conjugate", SAME, "c", 1),
    ("logaddexp", "logaddexp", FLOAT, "f", 30),
    ("hypot", "hypot", FLOAT, "f", 10),
    ("copysign", "copysign", FLOAT, "f", 1),
]

# Identities for dtypes up to this one.
_identities = {"conj": FLOAT64, "floor": INT64, "ceil": INT64, "trunc": INT64, "round": INT64}


def _register_ufuncs():
    for name, ufunc_name, rule, kinds, cost in _from_numpy:
        ufunc = getattr(numpy, ufunc_name)
        # Cheap real arithmetic is correctly rounded by any loop; the rest may differ between vector and scalar code
        # (complex products with fused multiply-add among them).
        index = define(name, ufunc.nin, rule, cost, cost <= 3, _identities.get(name, -1))
        _take(index, ufunc, kinds)


_register_ufuncs()


# --------------------------------------------------------------------------------------------------------------- chains

# Several cheap operations on the same elements, block by block, with intermediate values in registers.

cdef extern from "primitives/chains.h" nogil:
    int64_t (*run_steps[2])(const chain_step_t *steps, int64_t count, int64_t n)


cdef int64_t run_chain(bint double_precision, const chain_step_t *steps, int64_t count, int64_t n) noexcept nogil:
    return run_steps[double_precision](steps, count, n)


# ----------------------------------------------------------------------------------------------------------------- cast

# Casts between any two dtypes, as inner loops and of single numbers.
#
# The floating types of 16 bits go by way of float: numbers are rounded to it first, then to 16 bits, as PyTorch
# does.
#
# Complex to real keeps the real part, floating to integer cuts off the fraction, anything to bool asks "!= 0".
# The last parameter of a loop is loop_t's `data`, unused: its type names the target.

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
    """Return whether the number is nonzero."""
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


def _register_casts():
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


_register_casts()
