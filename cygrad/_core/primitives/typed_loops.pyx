"""
Primitives that NumPy lacks or computes differently: scalar functions and typed loops over them.

Importing this module enters its loops in the table of primitives. The last parameter of a loop is the `data` of loop_t;
where a loop has no use for it, its pointer type tells the compiler the element type.
"""

from libc.math cimport INFINITY, atan2, fabs, fma, log, log1p, trunc
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memmove, memset, strcmp
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX64, DTYPES, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT16, UINT32, UINT64, UINT8,
    itemsize,
)
from cygrad._core.memory.errors cimport MESSAGE, ZERO_DIVISION, message
from cygrad._core.primitives.primitive_table cimport (
    FLOAT, MAX_ARITY, SAME, SELECT, cast_loops, define, entries, entry_t, loop_t, primitive, primitives, set_entry,
    set_loop_status, type_rule_t,
)


# -------------------------------------------------------------------------------------------------------- integer loops

# Integer arithmetic as in PyTorch: division that refuses zero, powers, sign bits.
#
# Importing this module enters its loops in the table of primitives. The last parameter of a loop is the `data` of
# loop_t; its pointer type tells the compiler the element type.

ctypedef fused signed_t:
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused integer_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint16_t
    uint32_t
    uint64_t


# The smallest integer divided by -1 wraps around.

cdef inline integer_t _divided(integer_t a, integer_t b) noexcept nogil:
    """Round towards zero; the negation of the smallest integer is itself."""
    if integer_t in signed_t:
        if b == -1:
            return <integer_t>(0 - <uint64_t>a)
    return a // b


cdef inline integer_t _rest(integer_t a, integer_t b) noexcept nogil:
    """a - divided(a, b) * b: has the sign of a."""
    if integer_t in signed_t:
        if b == -1:
            return 0
    return a % b


cdef inline integer_t _floor_divided(integer_t a, integer_t b) noexcept nogil:
    cdef integer_t quotient = _divided(a, b)
    if integer_t in signed_t:
        if _rest(a, b) != 0 and (a < 0) != (b < 0):
            quotient -= 1
    return quotient


cdef inline integer_t _modulo(integer_t a, integer_t b) noexcept nogil:
    """a - floor_divided(a, b) * b: has the sign of b."""
    cdef integer_t left = _rest(a, b)
    if integer_t in signed_t:
        if left != 0 and (left < 0) != (b < 0):
            left += b
    return left


cdef inline integer_t _raised(integer_t base, integer_t exponent) noexcept nogil:
    """base ** exponent, wrapping around; a negative exponent gives the integer part of the inverse."""
    cdef uint64_t result = 1, square = <uint64_t>base
    if integer_t in signed_t:
        if exponent < 0:
            if base == 1:
                return 1
            if base == -1:
                return -1 if exponent & 1 else 1
            return 0
    while exponent:
        if exponent & 1:
            result *= square
        square *= square
        exponent >>= 1
    return <integer_t>result


cdef void _zero_division(const char *name) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: integer division by zero (got 0 in the divisor, expected other "
             b"numbers). Divide floating tensors to get inf or nan.", name)
    set_loop_status(ZERO_DIVISION)


cdef void trunc_divide_loop(char **arguments, const int64_t *n, const int64_t *steps,
                            integer_t *tag) noexcept nogil:
    cdef int64_t i
    cdef integer_t b
    for i in range(n[0]):
        b = (<integer_t *>(arguments[1] + i * steps[1]))[0]
        if b == 0:
            _zero_division(b"div")
            return
        (<integer_t *>(arguments[2] + i * steps[2]))[0] = _divided(
            (<integer_t *>(arguments[0] + i * steps[0]))[0], b)


cdef void floor_divide_loop(char **arguments, const int64_t *n, const int64_t *steps,
                            integer_t *tag) noexcept nogil:
    cdef int64_t i
    cdef integer_t b
    for i in range(n[0]):
        b = (<integer_t *>(arguments[1] + i * steps[1]))[0]
        if b == 0:
            _zero_division(b"floor_divide")
            return
        (<integer_t *>(arguments[2] + i * steps[2]))[0] = _floor_divided(
            (<integer_t *>(arguments[0] + i * steps[0]))[0], b)


cdef void remainder_loop(char **arguments, const int64_t *n, const int64_t *steps,
                         integer_t *tag) noexcept nogil:
    cdef int64_t i
    cdef integer_t b
    for i in range(n[0]):
        b = (<integer_t *>(arguments[1] + i * steps[1]))[0]
        if b == 0:
            _zero_division(b"remainder")
            return
        (<integer_t *>(arguments[2] + i * steps[2]))[0] = _modulo(
            (<integer_t *>(arguments[0] + i * steps[0]))[0], b)


cdef void fmod_loop(char **arguments, const int64_t *n, const int64_t *steps, integer_t *tag) noexcept nogil:
    cdef int64_t i
    cdef integer_t b
    for i in range(n[0]):
        b = (<integer_t *>(arguments[1] + i * steps[1]))[0]
        if b == 0:
            _zero_division(b"fmod")
            return
        (<integer_t *>(arguments[2] + i * steps[2]))[0] = _rest(
            (<integer_t *>(arguments[0] + i * steps[0]))[0], b)


cdef void integer_pow_loop(char **arguments, const int64_t *n, const int64_t *steps, integer_t *tag) noexcept nogil:
    cdef int64_t i
    for i in range(n[0]):
        (<integer_t *>(arguments[2] + i * steps[2]))[0] = _raised(
            (<integer_t *>(arguments[0] + i * steps[0]))[0], (<integer_t *>(arguments[1] + i * steps[1]))[0])


cdef void signbit_loop(char **arguments, const int64_t *n, const int64_t *steps,
                       integer_t *tag) noexcept nogil:
    cdef int64_t i
    for i in range(n[0]):
        arguments[1][i * steps[1]] = (<integer_t *>(arguments[0] + i * steps[0]))[0] < 0


# The table

cdef int enter_integers(str name, int arity, int cost, loop_t u8, loop_t i8, loop_t i16, loop_t i32,
                        loop_t i64,
                        bint to_bool) except -1:
    cdef int index = define(name, arity, SAME, cost, True, -1)
    set_entry(index, UINT8, u8, NULL, BOOL if to_bool else UINT8)
    set_entry(index, INT8, i8, NULL, BOOL if to_bool else INT8)
    set_entry(index, INT16, i16, NULL, BOOL if to_bool else INT16)
    set_entry(index, INT32, i32, NULL, BOOL if to_bool else INT32)
    set_entry(index, INT64, i64, NULL, BOOL if to_bool else INT64)
    return index


cdef int _enter(integer_t *tag, int dtype) except -1:
    """Enter the loops of one dtype."""
    set_entry(define("floor_divide", 2, SAME, 8, True, -1), dtype, <loop_t>floor_divide_loop[integer_t], NULL, dtype)
    set_entry(define("remainder", 2, SAME, 8, True, -1), dtype, <loop_t>remainder_loop[integer_t], NULL, dtype)
    set_entry(define("fmod", 2, SAME, 8, True, -1), dtype, <loop_t>fmod_loop[integer_t], NULL, dtype)
    set_entry(define("trunc_divide", 2, SAME, 8, True, -1), dtype, <loop_t>trunc_divide_loop[integer_t], NULL, dtype)
    set_entry(define("pow", 2, SAME, 8, True, -1), dtype, <loop_t>integer_pow_loop[integer_t], NULL, dtype)
    set_entry(define("signbit", 1, SAME, 1, True, -1), dtype, <loop_t>signbit_loop[integer_t], NULL, BOOL)
    return 0


def _register_integer_loops():
    _enter[uint8_t](NULL, UINT8)
    _enter[int8_t](NULL, INT8)
    _enter[int16_t](NULL, INT16)
    _enter[int32_t](NULL, INT32)
    _enter[int64_t](NULL, INT64)
    _enter[uint16_t](NULL, UINT16)
    _enter[uint32_t](NULL, UINT32)
    _enter[uint64_t](NULL, UINT64)
    for name in ("floor_divide", "remainder", "fmod", "trunc_divide"):
        primitives[define(name, 2, SAME, 8, True, -1)].partial = True
    set_entry(define("signbit", 1, SAME, 1, True, -1), BOOL, <loop_t>signbit_loop[uint8_t], NULL, BOOL)


_register_integer_loops()


# ---------------------------------------------------------------------------------------------------------- typed loops

cdef extern from "<math.h>" nogil:
    float truncf(float)

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

cdef extern from "primitives/vector_choice.h" nogil:
    void choose_bytes(const uint8_t *condition, const uint8_t *x, const uint8_t *y, uint8_t *out, int64_t n,
                      int64_t x_step, int64_t y_step)
    void choose_halves(const uint8_t *condition, const uint16_t *x, const uint16_t *y, uint16_t *out, int64_t n,
                       int64_t x_step, int64_t y_step)
    void choose_words(const uint8_t *condition, const uint32_t *x, const uint32_t *y, uint32_t *out, int64_t n,
                      int64_t x_step, int64_t y_step)
    void choose_doubles(const uint8_t *condition, const uint64_t *x, const uint64_t *y, uint64_t *out, int64_t n,
                        int64_t x_step, int64_t y_step)

ctypedef fused real_t:
    float
    double

ctypedef fused ordered_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

# Types that represent all types of their size, where values are only moved.
ctypedef fused word_t:
    uint8_t
    int16_t
    int32_t
    int64_t
    (double complex)

cdef enum:
    BLOCK = 512       # elements that a loop copies to contiguous memory on the stack


# Choices

cdef void where_loop(char **arguments, const int64_t *n, const int64_t *steps, word_t *tag) noexcept nogil:
    """Condition (bool), x, y -> x where it is true, else y."""
    cdef int64_t i, size = sizeof(word_t)
    cdef char *condition = arguments[0]
    cdef char *x = arguments[1]
    cdef char *y = arguments[2]
    cdef char *out = arguments[3]
    if steps[0] == 0 and n[0] and steps[3] == size and steps[1 if condition[0] else 2] == size:    # one for all
        memmove(out, x if condition[0] else y, n[0] * size)
        return
    if word_t is not doublecomplex:
        if steps[0] == 1 and steps[3] == size and (steps[1] == size or steps[1] == 0) and (
                steps[2] == size or steps[2] == 0):
            if word_t is uint8_t:
                choose_bytes(<uint8_t *>condition, <uint8_t *>x, <uint8_t *>y, <uint8_t *>out, n[0], steps[1], steps[2])
            elif word_t is int16_t:
                choose_halves(<uint8_t *>condition, <uint16_t *>x, <uint16_t *>y, <uint16_t *>out, n[0], steps[1],
                              steps[2])
            elif word_t is int32_t:
                choose_words(<uint8_t *>condition, <uint32_t *>x, <uint32_t *>y, <uint32_t *>out, n[0], steps[1],
                             steps[2])
            else:
                choose_doubles(<uint8_t *>condition, <uint64_t *>x, <uint64_t *>y, <uint64_t *>out, n[0], steps[1],
                               steps[2])
            return
    for i in range(n[0]):
        (<word_t *>(out + i * steps[3]))[0] = (
            (<word_t *>(x + i * steps[1]))[0] if condition[i * steps[0]]
            else (<word_t *>(y + i * steps[2]))[0])


cdef inline ordered_t _relu(ordered_t x) noexcept nogil:
    """max(x, 0) of integers."""
    return <ordered_t>0 if x <= 0 else x


cdef void relu_loop(char **arguments, const int64_t *n, const int64_t *steps, ordered_t *tag) noexcept nogil:
    cdef int64_t i, size = sizeof(ordered_t)
    cdef char *x = arguments[0]
    cdef char *out = arguments[1]
    if steps[0] == size and steps[1] == size:
        for i in range(n[0]):
            (<ordered_t *>out)[i] = _relu((<ordered_t *>x)[i])
    else:
        for i in range(n[0]):
            (<ordered_t *>(out + i * steps[1]))[0] = _relu((<ordered_t *>(x + i * steps[0]))[0])


cdef void clamp_loop(char **arguments, const int64_t *n, const int64_t *steps, ordered_t *tag) noexcept nogil:
    cdef int64_t i
    cdef ordered_t x, low, high
    for i in range(n[0]):
        x = (<ordered_t *>(arguments[0] + i * steps[0]))[0]
        low = (<ordered_t *>(arguments[1] + i * steps[1]))[0]
        high = (<ordered_t *>(arguments[2] + i * steps[2]))[0]
        x = low if x < low else x
        (<ordered_t *>(arguments[3] + i * steps[3]))[0] = high if x > high else x


cdef void copy_bool_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """Bool -> the same: sign(), sgn() of bool."""
    cdef int64_t i
    for i in range(n[0]):
        arguments[1][i * steps[1]] = arguments[0][i * steps[0]]


# Floating functions

cdef void trunc_divide_real_loop(char **arguments, const int64_t *n, const int64_t *steps,
                                 real_t *tag) noexcept nogil:
    cdef int64_t i
    cdef real_t quotient
    for i in range(n[0]):
        quotient = (<real_t *>(arguments[0] + i * steps[0]))[0]
        quotient /= (<real_t *>(arguments[1] + i * steps[1]))[0]
        (<real_t *>(arguments[2] + i * steps[2]))[0] = (
            truncf(quotient) if real_t is float else trunc(quotient))


cdef inline void _run_vector(int arity, int64_t made, char **arguments, int64_t n, const int64_t *steps,
                             real_t *data) noexcept nogil:
    """Run the vector_function_t `data`, whose results have `made` bytes, on contiguous elements; copy others first."""
    cdef vector_function_t function = <vector_function_t><void *>data
    cdef real_t[MAX_ARITY + 1][BLOCK] block
    cdef const void *operands[MAX_ARITY]
    cdef real_t number
    cdef int64_t done = 0, count = n, i, size = sizeof(real_t)
    cdef char *x
    cdef char *out = arguments[arity]
    cdef char *results = <char *>block[MAX_ARITY]
    cdef int k
    cdef bint numbers = arity > 1
    for k in range(1, arity):
        numbers = numbers and steps[k] == 0
    for k in range(arity + 1):
        if steps[k] != (size if k < arity else made) and not (numbers and 0 < k < arity) and count > BLOCK:
            count = BLOCK
    while done < n:
        if n - done < count:
            count = n - done
        for k in range(arity):
            x = arguments[k] + done * steps[k]
            if steps[k] == size or (numbers and k):
                operands[k] = x
            else:
                operands[k] = block[k]
                if steps[k]:
                    for i in range(count):
                        block[k][i] = (<real_t *>(x + i * steps[k]))[0]
                elif done == 0:
                    number = (<real_t *>x)[0]
                    for i in range(count):
                        block[k][i] = number
        if steps[arity] == made:
            function(operands, out + done * made, count, numbers)
        else:
            function(operands, results, count, numbers)
            for i in range(count):
                memcpy(out + (done + i) * steps[arity], results + i * made, made)
        done += count


cdef void _vector_loop_of_one(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](1, sizeof(real_t), arguments, n[0], steps, data)


cdef void _vector_loop_of_two(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](2, sizeof(real_t), arguments, n[0], steps, data)


cdef void _vector_loop_of_three(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](3, sizeof(real_t), arguments, n[0], steps, data)


cdef void _vector_loop_of_four(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](4, sizeof(real_t), arguments, n[0], steps, data)


cdef void _truth_loop_of_one(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](1, 1, arguments, n[0], steps, data)


cdef void _truth_loop_of_two(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](2, 1, arguments, n[0], steps, data)


cdef void _integer_loop_of_one(char **arguments, const int64_t *n, const int64_t *steps, real_t *data) noexcept nogil:
    _run_vector[real_t](1, sizeof(int32_t), arguments, n[0], steps, data)


cdef void zeros_like_loop(char **arguments, const int64_t *n, const int64_t *steps, word_t *tag) noexcept nogil:
    """Write zeros without reading the elements."""
    cdef int64_t i
    if steps[1] == sizeof(word_t):
        memset(arguments[1], 0, n[0] * sizeof(word_t))
    else:
        for i in range(n[0]):
            memset(arguments[1] + i * steps[1], 0, sizeof(word_t))


cdef void sine_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """sin, or cos if `data` is not NULL."""
    cdef int64_t i, quarter = data != NULL
    if steps[0] == sizeof(double) and steps[1] == sizeof(double):
        sines(<const double *>arguments[0], <double *>arguments[1], n[0], quarter)
        return
    for i in range(n[0]):
        sines(<const double *>(arguments[0] + i * steps[0]), <double *>(arguments[1] + i * steps[1]), 1,
              quarter)


# The table

cdef int _enter_reals(str name, int arity, type_rule_t rule, int cost, bint exact, loop_t f32,
                      loop_t f64) except -1:
    cdef int index = define(name, arity, rule, cost, exact, -1)
    set_entry(index, FLOAT32, f32, NULL, FLOAT32)
    set_entry(index, FLOAT64, f64, NULL, FLOAT64)
    return index


cdef int _enter_vectors() except -1:
    """The functions of vector_math.h, for the real dtypes that they are there for."""
    cdef int entry, index, kind, dtype
    cdef const vector_function_t *functions
    cdef loop_t[8] single, double                 # by arity; then those of bool, and of int32
    single[1], double[1] = <loop_t>_vector_loop_of_one[float], <loop_t>_vector_loop_of_one[double]
    single[2], double[2] = <loop_t>_vector_loop_of_two[float], <loop_t>_vector_loop_of_two[double]
    single[3], double[3] = <loop_t>_vector_loop_of_three[float], <loop_t>_vector_loop_of_three[double]
    single[4], double[4] = <loop_t>_vector_loop_of_four[float], <loop_t>_vector_loop_of_four[double]
    single[5], double[5] = <loop_t>_truth_loop_of_one[float], <loop_t>_truth_loop_of_one[double]
    single[6], double[6] = <loop_t>_truth_loop_of_two[float], <loop_t>_truth_loop_of_two[double]
    single[7], double[7] = <loop_t>_integer_loop_of_one[float], <loop_t>_integer_loop_of_one[double]
    for entry in range(VECTOR_ENTRIES):
        kind = vector_entries[entry].arity + (0, 4, 0, 0, 6)[vector_entries[entry].made]
        dtype = (-1, BOOL, -1, -1, INT32)[vector_entries[entry].made]
        index = define(vector_entries[entry].name.decode(), vector_entries[entry].arity, FLOAT,
                       vector_entries[entry].cost, True, -1)
        functions = vector_entries[entry].functions[simd_target()]
        if functions[0] != NULL:
            set_entry(index, FLOAT32, single[kind], <void *>functions[0], FLOAT32 if dtype < 0 else dtype)
        if functions[1] != NULL:
            set_entry(index, FLOAT64, double[kind], <void *>functions[1], FLOAT64 if dtype < 0 else dtype)
    return 0


cdef void *vector_loop_for(const char *name, int target) noexcept:
    cdef int entry
    for entry in range(VECTOR_ENTRIES if target <= simd_target() else 0):
        if strcmp(vector_entries[entry].name, name) == 0:
            return <void *>vector_entries[entry].functions[target][0]
    return NULL


def _register_typed_loops():
    cdef int index, zero, code
    cdef loop_t[17] moves, zeros
    moves[1] = <loop_t>where_loop[uint8_t]
    moves[2] = <loop_t>where_loop[int16_t]
    moves[4] = <loop_t>where_loop[int32_t]
    moves[8] = <loop_t>where_loop[int64_t]
    moves[16] = <loop_t>where_loop[doublecomplex]
    zeros[1] = <loop_t>zeros_like_loop[uint8_t]
    zeros[2] = <loop_t>zeros_like_loop[int16_t]
    zeros[4] = <loop_t>zeros_like_loop[int32_t]
    zeros[8] = <loop_t>zeros_like_loop[int64_t]
    zeros[16] = <loop_t>zeros_like_loop[doublecomplex]
    index = define("where", 3, SELECT, 1, True, -1)
    zero = define("zeroed", 1, SAME, 1, True, -1)
    for code in range(DTYPES):
        set_entry(index, code, moves[itemsize(code)], NULL, code)
        set_entry(zero, code, zeros[itemsize(code)], NULL, code)

    enter_integers("relu", 1, 1, <loop_t>relu_loop[uint8_t], <loop_t>relu_loop[int8_t],
                   <loop_t>relu_loop[int16_t], <loop_t>relu_loop[int32_t], <loop_t>relu_loop[int64_t], False)
    index = enter_integers("clamp_between", 3, 2, <loop_t>clamp_loop[uint8_t], <loop_t>clamp_loop[int8_t],
                           <loop_t>clamp_loop[int16_t], <loop_t>clamp_loop[int32_t], <loop_t>clamp_loop[int64_t], False)
    set_entry(index, BOOL, <loop_t>clamp_loop[uint8_t], NULL, BOOL)
    _enter_vectors()

    _enter_reals("trunc_divide", 2, SAME, 4, True, <loop_t>trunc_divide_real_loop[float],
                 <loop_t>trunc_divide_real_loop[double])
    for name in ("sign", "sgn"):
        set_entry(define(name, 1, SAME, 1, True, -1), BOOL, copy_bool_loop, NULL, BOOL)
    # The square of bool counts: it is an integer.
    set_entry(define("square", 1, SAME, 1, True, -1), BOOL, cast_loops[<int>BOOL][<int>INT64], NULL, INT64)

    # NumPy does not vectorize these two.
    set_entry(define("sin", 1, FLOAT, 10, False, -1), FLOAT64, sine_loop, NULL, FLOAT64)
    set_entry(define("cos", 1, FLOAT, 10, False, -1), FLOAT64, sine_loop, &entries, FLOAT64)


_register_typed_loops()


# ---------------------------------------------------------------------------------------------------------- power loops

# Powers of real numbers: faster than NumPy's general loop, and as accurate.
#
# One integral or half-integral exponent for all elements, which is what programs mostly have, becomes products, a root
# and a reciprocal. The general loop leaves vector code at each negative number: it gets absolute values, and the sign
# is put right afterwards. A number 1/2 as exponent means the square root, which has nan at -inf and -0.0 at -0.0; as an
# element of a tensor ("pow_tensor") it means the power: inf and 0. Importing this module puts its loops into the table
# of primitives.

cdef extern from "primitives/powers.h" nogil:
    ctypedef int (*power_loop_t)(const void *x, double exponent, void *out, int64_t n) noexcept nogil
    ctypedef void (*signed_power_t)(const void *x, const void *exponent, int64_t step, void *out,
                                    int64_t n) noexcept nogil
    power_loop_t[2] power_loop
    signed_power_t[2] signed_power

# For float32 and float64: NumPy's loops, and cygrad's for the SIMD target.
ctypedef struct powers_t:
    entry_t general
    entry_t square
    power_loop_t whole
    signed_power_t signed

cdef powers_t[2] _powers


cdef inline bint _single(const powers_t *powers, real_t *x, real_t exponent, real_t *out, int64_t n) noexcept nogil:
    """Compute with one exponent for all; return False if the general loop must."""
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
        powers = &_powers[k]
        code = FLOAT64 if k else FLOAT32
        powers.general = entries[index][code]
        powers.square = entries[primitive("square")][code]
        powers.whole = power_loop[k]
        powers.signed = signed_power[k]
    set_entry(index, FLOAT32, <loop_t>pow_loop[float], NULL, FLOAT32)
    set_entry(index, FLOAT64, <loop_t>pow_loop[double], NULL, FLOAT64)
    for code in range(DTYPES):
        entries[of_tensors][code] = entries[index][code]
    entries[of_tensors][<int>FLOAT32].data = entries[of_tensors][<int>FLOAT64].data = &_powers


_register_power_loops()


# -------------------------------------------------------------------------------------------------------- complex loops

# Primitives of complex numbers that NumPy lacks, and those that split or join numbers. The last parameter of a loop is
# the `data` of loop_t; where a loop does not use it, its pointer type selects the element type.

cdef extern from "<complex.h>" nogil:
    double carg(double complex)
    float cargf(float complex)

cdef extern from "<math.h>" nogil:
    double hypot(double, double)

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


cdef inline double _log_of_sum(double x, double y) noexcept nogil:
    """log(abs(1 + x + y * i)), accurate where the modulus is near 1: its square minus 1 is summed with errors."""
    cdef double modulus = hypot(1 + x, y), s, t, e, a = 2 * x, b = x * x, c = y * y
    if y == 0 and x > -1:
        return log1p(x)
    if not 0.5 < modulus < 2:
        return log(modulus)
    s = a + b
    t = s - a
    e = (a - (s - t)) + (b - t) + fma(x, x, -b) + fma(y, y, -c)
    t = s + c
    b = t - s
    return 0.5 * log1p(t + ((s - (t - b)) + (c - b) + e))


cdef void log1p_complex_loop(char **arguments, const int64_t *n, const int64_t *steps, complex_t *tag) noexcept nogil:
    cdef int64_t i
    cdef double x, y
    cdef complex_t z
    for i in range(n[0]):
        z = (<complex_t *>(arguments[0] + i * steps[0]))[0]
        x, y = z.real, z.imag
        z.real, z.imag = _log_of_sum(x, y), atan2(y, 1 + x)
        (<complex_t *>(arguments[1] + i * steps[1]))[0] = z


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


def _register_complex_loops():
    cdef int index
    _enter_complex("sigmoid", <loop_t>sigmoid_complex_loop[floatcomplex], <loop_t>sigmoid_complex_loop[doublecomplex],
                   NULL)
    _enter_complex("silu", <loop_t>sigmoid_complex_loop[floatcomplex], <loop_t>sigmoid_complex_loop[doublecomplex],
                   &entries)
    _enter_complex("log1p", <loop_t>log1p_complex_loop[floatcomplex], <loop_t>log1p_complex_loop[doublecomplex], NULL)
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


_register_complex_loops()


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
    int SHORT_ENTRIES

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
