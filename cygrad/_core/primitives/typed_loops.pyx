"""
Primitives that NumPy lacks or computes differently: scalar functions and typed loops over them.

Importing this module enters its loops in the table of primitives. The last parameter of a loop is the `data` of loop_t;
where a loop has no use for it, its pointer type tells the compiler the element type.
"""

from libc.math cimport trunc
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset
from cygrad._core.arrays.dtype cimport BOOL, DTYPES, FLOAT32, FLOAT64, INT32, INT64, itemsize
from cygrad._core.primitives.cast cimport cast_loops
from cygrad._core.primitives.integer_loops cimport enter_integers
from cygrad._core.primitives.primitive_table cimport (
    FLOAT, MAX_ARITY, SAME, SELECT, define, entries, loop_t, set_entry, type_rule_t)

cdef extern from "<math.h>" nogil:
    float truncf(float)

cdef extern from "primitives/vector_math.h" nogil:
    void sines(const double *x, double *out, int64_t n, int64_t quarter)
    ctypedef void (*vector_function_t)(const void **operands, void *out, int64_t n, bint numbers) noexcept nogil
    ctypedef struct vector_entry_t:
        const char *name
        int arity
        int cost
        int made
    const vector_entry_t vector_entries[1]
    int VECTOR_ENTRIES
    vector_function_t vector_function(int entry, bint double_precision)

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
        set_entry(index, FLOAT32, single[kind], <void *>vector_function(entry, False),
                  FLOAT32 if dtype < 0 else dtype)
        if vector_function(entry, True) != NULL:
            set_entry(index, FLOAT64, double[kind], <void *>vector_function(entry, True),
                      FLOAT64 if dtype < 0 else dtype)
    return 0


def _initialize():
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


_initialize()
