# distutils: extra_compile_args = -O1
"""
The table of primitives: the inner loops of NumPy's ufuncs, and ours for what NumPy lacks or computes differently.

NumPy chose each loop for this machine's SIMD instructions when it was imported; its loops need no GIL.
"""

cimport numpy as np
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strcmp
from cygrad._core.arrays.array cimport COMPLEX, REAL
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX64, DTYPES, FLOAT32, FLOAT64, INT32, INT64, UINT8, category, code_of_typenum, is_short,
)
from cygrad._core.memory.errors cimport MESSAGE, ZERO_DIVISION, message

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
# that PyTorch refuses, or computes differently (then below).
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

cdef extern from "primitives/casts.h" nogil:
    loop_t cast_table[1][<int>DTYPES]

memcpy(cast_loops, cast_table, sizeof(cast_loops))


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


# ---------------------------------------------------------------------------------------------------------- typed loops

cdef extern from "primitives/powers.h" nogil:
    ctypedef int (*power_loop_t)(const void *x, double exponent, void *out, int64_t n) noexcept nogil
    ctypedef void (*signed_power_t)(const void *x, const void *exponent, int64_t step, void *out,
                                    int64_t n) noexcept nogil
    power_loop_t[2] power_loop
    signed_power_t[2] signed_power

cdef extern from "primitives/typed_loops.h" nogil:
    ctypedef struct typed_entry_t:
        const char *name
        int arity, rule, cost, dtype, out_dtype
        loop_t loop
        const char *uses
    const typed_entry_t typed_entries[1]
    int n_typed_entries
    void (*refuse_zero)(const char *operation) noexcept nogil
    loop_t vector_loop(int arity, int made, bint double_precision)
    ctypedef struct powers_t:
        entry_t general, square
        power_loop_t whole
        signed_power_t with_sign
    powers_t powers_of[2]
    const loop_t pow_loops[2]

cdef extern from "primitives/vector_math.h" nogil:
    void (*sines)(const double *x, double *out, int64_t n, int64_t quarter)
    ctypedef void (*vector_function_t)(const void *const *operands, void *out, int64_t n, bint numbers) noexcept nogil
    ctypedef struct vector_entry_t:
        const char *name
        int arity
        int cost
        int made
        vector_function_t[3][2] functions
    const vector_entry_t vector_entries[1]
    int VECTOR_ENTRIES
    int simd_target()

cdef enum:
    BLOCK = 512       # elements that a loop copies to contiguous memory on the stack


cdef void _refuse_zero(const char *name) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: integer division by zero (got 0 in the divisor, expected other "
             b"numbers). Divide floating tensors to get inf or nan.", name)
    set_loop_status(ZERO_DIVISION)


cdef void sine_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """sin, or cos if `data` is not NULL."""
    cdef int64_t i, quarter = data != NULL
    if steps[0] == sizeof(double) and steps[1] == sizeof(double):
        sines(<const double *>arguments[0], <double *>arguments[1], n[0], quarter)
        return
    for i in range(n[0]):
        sines(<const double *>(arguments[0] + i * steps[0]), <double *>(arguments[1] + i * steps[1]), 1,
              quarter)


cdef int _enter_vectors() except -1:
    """Enter the functions of vector_math.h for the real dtypes that they support."""
    cdef int i, index, k
    cdef const vector_entry_t *entry
    cdef vector_function_t function
    for i in range(VECTOR_ENTRIES):
        entry = &vector_entries[i]
        index = define(entry.name.decode(), entry.arity, FLOAT, entry.cost, True, -1)
        for k in range(2):
            function = entry.functions[simd_target()][k]
            if function != NULL:
                set_entry(index, FLOAT64 if k else FLOAT32, vector_loop(entry.arity, entry.made, k), <void *>function,
                          BOOL if entry.made == 1 else INT32 if entry.made == 4 else FLOAT64 if k else FLOAT32)
    return 0


cdef void *vector_loop_for(const char *name, int target) noexcept:
    cdef int entry
    for entry in range(VECTOR_ENTRIES if target <= simd_target() else 0):
        if strcmp(vector_entries[entry].name, name) == 0:
            return <void *>vector_entries[entry].functions[target][0]
    return NULL


def _register_typed_loops():
    global refuse_zero
    cdef int i, index
    cdef const typed_entry_t *entry
    refuse_zero = _refuse_zero
    define("real", 1, SAME, 1, True, FLOAT64)
    define("xlogy", 2, FLOAT, 10, False, -1)          # as log
    define("xlog1py", 2, FLOAT, 12, False, -1)
    for i in range(n_typed_entries):
        entry = &typed_entries[i]
        index = define(entry.name.decode(), entry.arity, <type_rule_t>entry.rule, entry.cost, True, -1)
        set_entry(index, entry.dtype, entry.loop,
                  &entries[primitive(entry.uses.decode())][entry.dtype] if entry.uses != NULL else NULL,
                  entry.out_dtype)
    for name in ("floor_divide", "remainder", "fmod", "trunc_divide"):
        primitives[primitive(name)].partial = True
    _enter_vectors()
    # The square of bool counts: it is an integer.
    set_entry(primitive("square"), BOOL, cast_loops[<int>BOOL][<int>INT64], NULL, INT64)
    # NumPy does not vectorize these two.
    set_entry(primitive("sin"), FLOAT64, sine_loop, NULL, FLOAT64)
    set_entry(primitive("cos"), FLOAT64, sine_loop, &entries, FLOAT64)


_register_typed_loops()


# ---------------------------------------------------------------------------------------------------------- power loops

# Powers of real numbers: faster than NumPy's general loop, and as accurate.
#
# One integral or half-integral exponent for all elements, which is what programs mostly have, becomes products, a root
# and a reciprocal. The general loop leaves vector code at each negative number: it gets absolute values, and the sign
# is put right afterwards. A number 1/2 as exponent means the square root, which has nan at -inf and -0.0 at -0.0; as an
# element of a tensor ("pow_tensor") it means the power: inf and 0.

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


def _register_power_loops():
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
        powers = &powers_of[k]
        code = FLOAT64 if k else FLOAT32
        powers.general = entries[index][code]
        powers.square = entries[primitive("square")][code]
        powers.whole = power_loop[k]
        powers.with_sign = signed_power[k]
        set_entry(index, code, pow_loops[k], NULL, code)
    for code in range(DTYPES):
        entries[of_tensors][code] = entries[index][code]
    entries[of_tensors][<int>FLOAT32].data = entries[of_tensors][<int>FLOAT64].data = &powers_of


_register_power_loops()


# ---------------------------------------------------------------------------------------------------------- short loops

# cygrad's loops for cheap arithmetic on contiguous elements.
#
# In the table they replace NumPy's, which they call for other strides and for the remainder after whole vectors: there
# nan may have another sign.

cdef extern from "primitives/short_loops.h" nogil:
    ctypedef struct short_entry_t:
        const char *name
        int arity
        short_loop_t loops[2][3]
    const short_entry_t short_entries[1]
    enum:
        SHORT_ENTRIES

ctypedef struct known_t:
    loop_t loop                       # NumPy's
    void *data
    loop_t long_loop                  # from WHOLE elements on
    const short_loop_t *ours
    int arity
    int64_t size                      # of an element

cdef enum:
    MOST = 16

cdef known_t[MOST] _known


cdef inline short_loop_t _ours(const known_t *entry, const int64_t *steps) noexcept nogil:
    """Return the loop for operands of these strides; the result is contiguous."""
    cdef int64_t size = entry.size
    if steps[0] == size:
        if entry.arity == 1 or steps[1] == size:
            return entry.ours[0]
        return entry.ours[2] if steps[1] == 0 else NULL
    return entry.ours[1] if entry.arity == 2 and steps[0] == 0 and steps[1] == size else NULL


cdef void _long(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """Run whole vectors by cygrad's loop, if there is one for these strides, all else by NumPy's."""
    cdef const known_t *entry = <const known_t *>data
    cdef int arity = entry.arity
    cdef short_loop_t ours
    cdef char *rest[3]
    cdef int64_t count = n[0] & ~<int64_t>(WHOLE - 1), left = n[0] - count
    cdef int k
    if steps[arity] == entry.size:
        ours = _ours(entry, steps)
        if ours != NULL:
            ours(arguments[0], arguments[1], arguments[arity], count)
            if left == 0:
                return
            for k in range(arity + 1):
                rest[k] = arguments[k] + count * steps[k]
            entry.loop(rest, &left, steps, entry.data)
            return
    entry.loop(arguments, n, steps, entry.data)


cdef void _either(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """The table entry; the call through a pointer keeps this a jump for few elements."""
    cdef const known_t *entry = <const known_t *>data
    if n[0] < WHOLE:
        entry.loop(arguments, n, steps, entry.data)
    else:
        entry.long_loop(arguments, n, steps, data)


cdef short_loop_t short_loop(loop_t loop, const void *data, const int64_t *steps) noexcept nogil:
    return _ours(<const known_t *>data, steps) if loop == <loop_t>_either else NULL


cdef int chain_operation(loop_t loop, const void *data) noexcept nogil:
    return <int>(<const known_t *>data - _known) if loop == <loop_t>_either else -1


cdef int short_operation(loop_t loop, const void *data, const int64_t *steps) noexcept nogil:
    return -1 if short_loop(loop, data, steps) == NULL else chain_operation(loop, data)


def _register_short_loops():
    cdef int i, index, k, n = 0
    cdef known_t *known
    for i in range(SHORT_ENTRIES):
        index = primitive(short_entries[i].name.decode())
        for k, dtype in enumerate((FLOAT32, FLOAT64)):
            known = &_known[n]
            n += 1
            known.loop, known.data = entries[index][<int>dtype].loop, entries[index][<int>dtype].data
            known.long_loop, known.arity = <loop_t>_long, short_entries[i].arity
            known.ours, known.size = <const short_loop_t *>short_entries[i].loops[k], 8 if k else 4
            set_entry(index, dtype, <loop_t>_either, known, dtype)


_register_short_loops()


# ---------------------------------------------------------------------------------------------------- special functions

# The functions themselves are in C headers and of doubles; float32 is computed in double and rounded, functions of one
# argument by tables (float_tables.h). Those of doubles which are interpolated come in blocks (piecewise.h), the others
# one by one; the function is the `data` of the loop.

ctypedef double (*function_t)(double) noexcept nogil
ctypedef double (*function_of_two_t)(double, double) noexcept nogil

cdef extern from "primitives/ufunc_types.h":
    const char *ufunc_types(void *)

cdef extern from "primitives/piecewise.h" nogil:
    ctypedef struct piecewise_t:
        pass
    void piecewise_block(const piecewise_t *f, const double *x, double *out, int count)

cdef extern from "primitives/bessel_functions.h" nogil:
    const piecewise_t bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e
    double bessel_j0(double)
    double bessel_j1(double)
    double bessel_y0(double)
    double bessel_y1(double)
    double spherical_j0(double)

cdef extern from "primitives/airy_function.h" nogil:
    double airy_ai(double)
    double airy_ai_slope(double)

cdef extern from "primitives/error_functions.h" nogil:
    const piecewise_t scaled_erfc, inverse_normal

cdef extern from "primitives/gamma_functions.h" nogil:
    const piecewise_t digamma_function
    double log_gamma(double)
    double polygamma_1(double)
    double polygamma_2(double)
    double polygamma_3(double)
    double polygamma_4(double)
    double zeta_function(double, double)
    double polygamma_function(double, double)
    double stirling_remainder_0(double)
    double stirling_remainder_1(double)
    double stirling_remainder_2(double)
    double stirling_remainder_3(double)
    double stirling_remainder_4(double)
    double stirling_remainder(double, double)
    double gamma_divergence(double, double)
    double digamma_divergence(double, double)
    double gamma_lower(double, double)
    double gamma_upper(double, double)
    double gamma_lower_single(double, double)
    double gamma_upper_single(double, double)

cdef extern from "primitives/float_tables.h" nogil:
    ctypedef struct float_table_t:
        function_t function
        const piecewise_t *piecewise
        int bits
    void (*table_loop)(float_table_t *table, const char *x, int64_t x_step, char *out, int64_t out_step, int64_t n)
    void (*table_differences[2])(float_table_t *table, function_of_two_t exact, char **operands, const int64_t *steps,
                                 char *out, int64_t n)

cdef extern from "primitives/polynomial_functions.h" nogil:
    ctypedef struct polynomial_t:
        pass
    const polynomial_t chebyshev_polynomials[2][4]
    const polynomial_t other_polynomials[4]
    loop_t polynomial_loop[2]

cdef enum:
    SPECIAL_BLOCK = 64             # as PIECEWISE_BLOCK
    MAX_TABLES = 24


cdef void piecewise_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef double[SPECIAL_BLOCK] values
    cdef int64_t done = 0
    cdef int count, k
    cdef char *x
    cdef char *out
    while done < n[0]:
        count = <int>min(n[0] - done, <int64_t>SPECIAL_BLOCK)
        x, out = arguments[0] + done * steps[0], arguments[1] + done * steps[1]
        for k in range(count):
            values[k] = (<double *>(x + k * steps[0]))[0]
        piecewise_block(<const piecewise_t *>data, values, values, count)
        for k in range(count):
            (<double *>(out + k * steps[1]))[0] = values[k]
        done += count


cdef void unary_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef int64_t i
    cdef function_t function = <function_t>data
    for i in range(n[0]):
        (<double *>(arguments[1] + i * steps[1]))[0] = function((<double *>(arguments[0] + i * steps[0]))[0])


cdef void unary_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    table_loop(<float_table_t *>data, arguments[0], steps[0], arguments[1], steps[1], n[0])


cdef void binary_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef int64_t i
    cdef function_of_two_t function = <function_of_two_t>data
    for i in range(n[0]):
        (<double *>(arguments[2] + i * steps[2]))[0] = function(
            (<double *>(arguments[0] + i * steps[0]))[0], (<double *>(arguments[1] + i * steps[1]))[0])


cdef void binary_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    cdef int64_t i
    cdef function_of_two_t function = <function_of_two_t>data
    for i in range(n[0]):
        (<float *>(arguments[2] + i * steps[2]))[0] = <float>function(
            (<float *>(arguments[0] + i * steps[0]))[0], (<float *>(arguments[1] + i * steps[1]))[0])


ctypedef struct order_tables_t:
    function_of_two_t function     # of an order and a number; tables of the orders from `first` on
    int first
    float_table_t[5] tables


cdef void order_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """Run elements of one order together, for orders with tables."""
    cdef order_tables_t *of = <order_tables_t *>data
    cdef int64_t start = 0, stop
    cdef float order
    cdef char *rest[3]
    while start < n[0]:
        order = (<float *>(arguments[0] + start * steps[0]))[0]
        stop = n[0] if steps[0] == 0 else start + 1
        while stop < n[0] and (<float *>(arguments[0] + stop * steps[0]))[0] == order:
            stop += 1
        rest = [arguments[0] + start * steps[0], arguments[1] + start * steps[1], arguments[2] + start * steps[2]]
        stop -= start
        if of.first <= order <= 4 and order == <int>order:
            table_loop(&of.tables[<int>order], rest[1], steps[1], rest[2], steps[2], stop)
        else:
            binary_float_loop(rest, &stop, steps, <void *>of.function)
        start += stop


cdef void gamma_divergence_float_loop(char **arguments, const int64_t *n, const int64_t *steps,
                                      void *data) noexcept nogil:
    table_differences[1](&stirling_tables.tables[0], gamma_divergence, arguments, steps, arguments[2], n[0])


cdef void digamma_divergence_float_loop(char **arguments, const int64_t *n, const int64_t *steps,
                                        void *data) noexcept nogil:
    table_differences[0](&stirling_tables.tables[1], digamma_divergence, arguments, steps, arguments[2], n[0])


cdef int _enter_orders(str name, order_tables_t *of, function_of_two_t function, int first, function_t *tables,
                       int cost) except -1:
    """Enter a function of an order and a number, with tables of the orders up to 4."""
    cdef int index = define(name, 2, FLOAT, cost, True, -1), order
    of.function, of.first = function, first
    for order in range(first, 5):
        of.tables[order].function, of.tables[order].bits = tables[order - first], 6
    set_entry(index, FLOAT32, order_float_loop, of, FLOAT32)
    set_entry(index, FLOAT64, binary_loop, <void *>function, FLOAT64)
    return 0


cdef float_table_t[MAX_TABLES] _tables
cdef order_tables_t polygamma_tables, stirling_tables
cdef int _n_tables = 0


cdef int _enter_one(str name, loop_t loop, function_t function, const piecewise_t *piecewise, int cost,
                    int bits) except -1:
    """Enter a function of one argument, or an interpolated one where `function` is NULL."""
    global _n_tables
    cdef int index = define(name, 1, FLOAT, cost, True, -1)
    if _n_tables == MAX_TABLES:
        raise RuntimeError(f"define: too many tables for {name!r}. Increase MAX_TABLES")
    _tables[_n_tables].function, _tables[_n_tables].piecewise, _tables[_n_tables].bits = function, piecewise, bits
    set_entry(index, FLOAT32, unary_float_loop, &_tables[_n_tables], FLOAT32)
    set_entry(index, FLOAT64, loop, <void *>function if piecewise == NULL else <void *>piecewise, FLOAT64)
    _n_tables += 1
    return 0


cdef int _enter(str name, function_t function, int cost, int bits=4) except -1:
    return _enter_one(name, unary_loop, function, NULL, cost, bits)


cdef int _enter_piecewise(str name, const piecewise_t *function, int cost, int bits=4) except -1:
    return _enter_one(name, piecewise_loop, NULL, function, cost, bits)


cdef int _enter_binary(str name, function_of_two_t single, function_of_two_t function, int cost) except -1:
    cdef int index = define(name, 2, FLOAT, cost, True, -1)
    set_entry(index, FLOAT32, binary_float_loop, <void *>single, FLOAT32)
    set_entry(index, FLOAT64, binary_loop, <void *>function, FLOAT64)
    return 0


cdef int _enter_polynomial(str name, const polynomial_t *polynomial) except -1:
    cdef int index = define(name, 2, FLOAT, 60, True, -1)
    set_entry(index, FLOAT32, <loop_t>polynomial_loop[0], <void *>polynomial, FLOAT32)
    set_entry(index, FLOAT64, <loop_t>polynomial_loop[1], <void *>polynomial, FLOAT64)
    return 0


cdef int _enter_from_numpy(str name, np.ufunc ufunc, type_rule_t rule, int lowest, int highest) except -1:
    """Enter the loops of a ufunc whose inputs have one dtype between two bounds."""
    cdef int i, k, code, index = define(name, ufunc.nin, rule, 20, True, -1)
    cdef bint uniform
    cdef const char *types
    for i in range(ufunc.ntypes):
        types = ufunc_types(<void *>ufunc) + i * ufunc.nargs
        code = code_of_typenum(types[0])
        uniform = lowest <= code <= highest
        for k in range(1, ufunc.nargs):
            uniform = uniform and types[k] == types[0]
        if uniform:
            set_entry(index, code, <loop_t><void *>ufunc.functions[i], ufunc.data[i], code)
    return 0


def _initialize():
    cdef int kind
    _enter_piecewise("i0", &bessel_i0, 20)
    _enter_piecewise("i0e", &bessel_i0e, 10)
    _enter_piecewise("i1", &bessel_i1, 20)
    _enter_piecewise("i1e", &bessel_i1e, 10)
    _enter_piecewise("modified_bessel_k0", &bessel_k0, 60)
    _enter_piecewise("modified_bessel_k1", &bessel_k1, 60)
    _enter_piecewise("scaled_modified_bessel_k0", &bessel_k0e, 60)
    _enter_piecewise("scaled_modified_bessel_k1", &bessel_k1e, 60)
    _enter("bessel_j0", bessel_j0, 60)
    _enter("bessel_j1", bessel_j1, 60)
    _enter("bessel_y0", bessel_y0, 80)
    _enter("bessel_y1", bessel_y1, 80)
    _enter("spherical_bessel_j0", spherical_j0, 20)
    _enter("airy_ai", airy_ai, 100)
    _enter("airy_ai_slope", airy_ai_slope, 100)
    _enter_piecewise("erfcx", &scaled_erfc, 15)
    _enter_piecewise("ndtri", &inverse_normal, 30, 6)
    _enter_piecewise("digamma", &digamma_function, 30, 6)
    _enter("lgamma", log_gamma, 60, 6)
    _enter_binary("zeta", zeta_function, zeta_function, 300)
    _enter_orders("polygamma", &polygamma_tables, polygamma_function, 1,
                  [polygamma_1, polygamma_2, polygamma_3, polygamma_4], 300)
    _enter_orders("stirling_remainder", &stirling_tables, stirling_remainder, 0,
                  [stirling_remainder_0, stirling_remainder_1, stirling_remainder_2, stirling_remainder_3,
                   stirling_remainder_4], 60)
    _enter_binary("gamma_divergence", gamma_divergence, gamma_divergence, 150)
    set_entry(primitive("gamma_divergence"), FLOAT32, gamma_divergence_float_loop, NULL, FLOAT32)
    _enter_binary("digamma_divergence", digamma_divergence, digamma_divergence, 100)
    set_entry(primitive("digamma_divergence"), FLOAT32, digamma_divergence_float_loop, NULL, FLOAT32)
    _enter_binary("igamma", gamma_lower_single, gamma_lower, 400)
    _enter_binary("igammac", gamma_upper_single, gamma_upper, 400)
    for kind in range(4):
        _enter_polynomial("chebyshev_polynomial_" + "tuvw"[kind], &chebyshev_polynomials[0][kind])
        _enter_polynomial("shifted_chebyshev_polynomial_" + "tuvw"[kind], &chebyshev_polynomials[1][kind])
        _enter_polynomial(("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
                           "legendre_polynomial_p")[kind], &other_polynomials[kind])
    _enter_from_numpy("gcd", numpy.gcd, SAME, UINT8, INT64)
    _enter_from_numpy("lcm", numpy.lcm, SAME, UINT8, INT64)


_initialize()
