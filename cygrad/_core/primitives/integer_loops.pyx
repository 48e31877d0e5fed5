"""
Integer arithmetic as in PyTorch: division that refuses zero, powers, sign bits.

Importing this module enters its loops in the table of primitives. The last parameter of a loop is the `data` of loop_t;
its pointer type tells the compiler the element type.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.dtype cimport BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64
from cygrad._core.memory.errors cimport MESSAGE, ZERO_DIVISION, message
from cygrad._core.primitives.primitive_table cimport SAME, define, loop_t, primitives, set_entry, set_loop_status

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


cdef void pow_loop(char **arguments, const int64_t *n, const int64_t *steps, integer_t *tag) noexcept nogil:
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
    set_entry(define("pow", 2, SAME, 8, True, -1), dtype, <loop_t>pow_loop[integer_t], NULL, dtype)
    set_entry(define("signbit", 1, SAME, 1, True, -1), dtype, <loop_t>signbit_loop[integer_t], NULL, BOOL)
    return 0


def _initialize():
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


_initialize()
