"""Arithmetic on Python numbers without the GIL, for numbers of a program that are not constant."""

from libc.math cimport exp, fabs, floor, fmod, hypot, log, pow, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, strcmp
from cygrad._core.arrays.array cimport (
    BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL, TEXT, as_real, is_number, value_t,
)
from cygrad._core.memory.errors cimport MESSAGE, OK, TYPE_ERROR, VALUE_ERROR, ZERO_DIVISION, message

cdef extern from "<complex.h>" nogil:
    double complex cpow(double complex, double complex)
    double complex cexp(double complex)
    double complex clog(double complex)
    double complex csqrt(double complex)
    double creal(double complex)
    double cimag(double complex)


cdef bint truth(const value_t *value) noexcept nogil:
    if value.kind == REAL:
        return value.of.real != 0
    if value.kind == COMPLEX:
        return value.of.real != 0 or value.imag != 0
    if BOOLEAN <= value.kind <= INTEGER:
        return value.of.integer != 0
    if value.kind == INTEGERS:
        return value.count != 0
    return value.kind != NOTHING


cdef int scalar(int operation, const value_t *a, const value_t *b, value_t *result) noexcept nogil:
    cdef const value_t *other = b if b != NULL else a
    if operation == IS_NONE:
        return _boolean(a.kind == NOTHING, result)
    if operation == NOT:
        return _boolean(not truth(a), result)
    if (operation == EQ or operation == NE) and not (is_number(a) and is_number(other)):
        return _boolean(_same(a, other) == (operation == EQ), result)
    if not is_number(a) or not is_number(other):
        snprintf(message(), MESSAGE, b"formula: arithmetic requires numbers (got kinds %d and %d)",
                 <int>a.kind, <int>other.kind)
        return TYPE_ERROR
    if a.kind == COMPLEX or other.kind == COMPLEX:
        return _complex(operation, a, other, result)
    if a.kind == REAL or other.kind == REAL:
        return _real(operation, as_real(a), as_real(other), result)
    return _integer(operation, a.of.integer, other.of.integer, result)


cdef bint _same(const value_t *a, const value_t *b) noexcept nogil:
    if a.kind != b.kind:
        return False
    if a.kind == INTEGERS:
        return (a.count == b.count
                and memcmp(a.of.integers, b.of.integers, a.count * sizeof(int64_t)) == 0)
    if a.kind == TEXT:
        return strcmp(a.of.text, b.of.text) == 0
    return a.kind == NOTHING or a.kind == DTYPE and a.of.integer == b.of.integer


cdef inline int _boolean(bint truth, value_t *result) noexcept nogil:
    result.kind = BOOLEAN
    result.of.integer = truth
    return OK


cdef inline int _put_real(double number, value_t *result) noexcept nogil:
    result.kind = REAL
    result.of.real = number
    return OK


cdef inline int _put_complex(double complex number, value_t *result) noexcept nogil:
    result.kind = COMPLEX
    result.of.real = creal(number)
    result.imag = cimag(number)
    return OK


cdef int _division_by_zero() noexcept nogil:
    snprintf(message(), MESSAGE, b"formula: division of a number by zero")
    return ZERO_DIVISION


cdef int _unsupported(int operation, const char *kind) noexcept nogil:
    snprintf(message(), MESSAGE, b"formula: operation %d is not defined for %s numbers", operation, kind)
    return TYPE_ERROR


cdef int _integer(int operation, int64_t a, int64_t b, value_t *result) noexcept nogil:
    """Compute on integers and bools. Results that Python makes floats are floats; 64 bits wrap around."""
    cdef int64_t number, base, rest
    if EQ <= operation <= GE:
        return _boolean(a == b if operation == EQ else a != b if operation == NE else a < b if operation == LT
                        else a <= b if operation == LE else a > b if operation == GT else a >= b, result)
    if operation == DIV or operation == SQRT or operation == EXP or operation == LOG \
            or operation == POW and b < 0:
        return _real(operation, <double>a, <double>b, result)
    if operation == ADD:
        number = <int64_t>(<uint64_t>a + <uint64_t>b)
    elif operation == SUB:
        number = <int64_t>(<uint64_t>a - <uint64_t>b)
    elif operation == MUL:
        number = <int64_t>(<uint64_t>a * <uint64_t>b)
    elif operation == FLOOR_DIVIDE or operation == REMAINDER:
        if b == 0:
            return _division_by_zero()
        if b == -1:          # INT64_MIN / -1 would trap
            number = <int64_t>(0 - <uint64_t>a) if operation == FLOOR_DIVIDE else 0
        else:
            rest = a % b
            number = a // b
            if rest != 0 and (rest < 0) != (b < 0):
                rest += b
                number -= 1
            number = number if operation == FLOOR_DIVIDE else rest
    elif operation == POW:
        number, base = 1, a
        while b:
            if b & 1:
                number = <int64_t>(<uint64_t>number * <uint64_t>base)
            base = <int64_t>(<uint64_t>base * <uint64_t>base)
            b >>= 1
    elif operation == NEG:
        number = <int64_t>(0 - <uint64_t>a)
    elif operation == ABS:
        number = <int64_t>(0 - <uint64_t>a) if a < 0 else a
    elif operation == CONJ:
        number = a
    elif operation == MAXIMUM:
        number = a if a > b else b
    elif operation == MINIMUM:
        number = a if a < b else b
    else:
        return _unsupported(operation, b"integer")
    result.kind = INTEGER
    result.of.integer = number
    return OK


cdef int _real(int operation, double a, double b, value_t *result) noexcept nogil:
    cdef double rest
    if EQ <= operation <= GE:
        return _boolean(a == b if operation == EQ else a != b if operation == NE else a < b if operation == LT
                        else a <= b if operation == LE else a > b if operation == GT else a >= b, result)
    if operation == ADD:
        return _put_real(a + b, result)
    if operation == SUB:
        return _put_real(a - b, result)
    if operation == MUL:
        return _put_real(a * b, result)
    if operation == DIV:
        return _put_real(a / b, result) if b != 0 else _division_by_zero()
    if operation == FLOOR_DIVIDE or operation == REMAINDER:
        if b == 0:
            return _division_by_zero()
        rest = fmod(a, b)
        if rest != 0 and (rest < 0) != (b < 0):
            rest += b
        return _put_real(floor((a - rest) / b + 0.5) if operation == FLOOR_DIVIDE else rest, result)
    if operation == POW:
        if a == 0 and b < 0:
            return _division_by_zero()
        if a < 0 and floor(b) != b:          # Python's result is complex
            return _put_complex(cpow(a, b), result)
        return _put_real(pow(a, b), result)
    if operation == NEG:
        return _put_real(-a, result)
    if operation == ABS:
        return _put_real(fabs(a), result)
    if operation == SQRT or operation == LOG:
        if a < 0 or operation == LOG and a == 0:
            snprintf(message(), MESSAGE, b"formula: %s of the number %g",
                     b"sqrt" if operation == SQRT else b"log", a)
            return VALUE_ERROR
        return _put_real(sqrt(a) if operation == SQRT else log(a), result)
    if operation == EXP:
        return _put_real(exp(a), result)
    if operation == CONJ:
        return _put_real(a, result)
    if operation == MAXIMUM:
        return _put_real(b if b > a else a, result)
    if operation == MINIMUM:
        return _put_real(b if b < a else a, result)
    return _unsupported(operation, b"real")


cdef int _complex(int operation, const value_t *left, const value_t *right, value_t *result) noexcept nogil:
    cdef double complex a = as_real(left) + 1j * (left.imag if left.kind == COMPLEX else 0.0)
    cdef double complex b = as_real(right) + 1j * (right.imag if right.kind == COMPLEX else 0.0)
    if operation == EQ or operation == NE:
        return _boolean((creal(a) == creal(b) and cimag(a) == cimag(b)) == (operation == EQ), result)
    if operation == ADD:
        return _put_complex(a + b, result)
    if operation == SUB:
        return _put_complex(a - b, result)
    if operation == MUL:
        return _put_complex(a * b, result)
    if operation == DIV:
        if creal(b) == 0 and cimag(b) == 0:
            return _division_by_zero()
        return _put_complex(a / b, result)
    if operation == POW:
        if creal(a) == 0 and cimag(a) == 0:
            if cimag(b) != 0 or creal(b) < 0:
                return _division_by_zero()
            return _put_complex(1 if creal(b) == 0 else 0, result)
        return _put_complex(cpow(a, b), result)
    if operation == NEG:
        return _put_complex(-a, result)
    if operation == ABS:
        return _put_real(hypot(creal(a), cimag(a)), result)
    if operation == SQRT:
        return _put_complex(csqrt(a), result)
    if operation == EXP:
        return _put_complex(cexp(a), result)
    if operation == LOG:
        return _put_complex(clog(a), result)
    if operation == CONJ:
        return _put_complex(creal(a) - 1j * cimag(a), result)
    return _unsupported(operation, b"complex")
