"""
Primitives that NumPy lacks or computes differently: `typed_loops.cpp` and `vector_math.cpp` have their loops.

Importing this module enters them in the table of primitives.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strcmp
from cygrad._core.arrays.dtype cimport BOOL, COMPLEX128, COMPLEX64, DTYPES, FLOAT32, FLOAT64, INT32, INT64
from cygrad._core.memory.errors cimport MESSAGE, ZERO_DIVISION, message
from cygrad._core.primitives.primitive_table cimport (
    FLOAT, SAME, cast_loops, define, entries, entry_t, loop_t, primitive, primitives, set_entry, set_loop_status,
    type_rule_t,
)


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
