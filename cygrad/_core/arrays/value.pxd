"""Boxed arguments and results: what operators, kernels and formulas exchange without the GIL."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t

ctypedef enum kind_t:
    NOTHING = 0        # None, or an argument that was not given
    ARRAY              # of.array
    ARRAYS             # of.arrays, `count` of them (an entry may be NULL)
    BOOLEAN            # of.integer 0 or 1
    INTEGER            # of.integer
    REAL               # of.real
    COMPLEX            # of.real and imag
    INTEGERS           # of.integers, `count` of them
    DTYPE              # of.integer
    TEXT               # of.text: interned, never freed

ctypedef union payload_t:
    array_t *array
    array_t **arrays
    int64_t integer
    int64_t *integers
    double real
    const char *text

ctypedef struct value_t:
    int32_t kind
    int32_t count
    payload_t of
    double imag

# A kernel checks its arguments, allocates its results and returns a status (cygrad._core.memory.errors). Arguments are
# borrowed, results are owned by the caller. On failure it leaves no result.
ctypedef int (*kernel_t)(const value_t *arguments, value_t *results) noexcept nogil

# Kernels by name; kernel modules register theirs when they are imported.
cdef int register_kernel(str name, kernel_t kernel) except -1
cdef kernel_t find_kernel(str name) noexcept

# Constructors that own their memory; -> MEMORY_ERROR on failure.
cdef int set_integers(value_t *value, int count, const int64_t *integers) noexcept nogil   # NULL: zeros
cdef int set_arrays(value_t *value, int count) noexcept nogil       # all entries NULL
cdef void clear(value_t *value) noexcept nogil                     # releases owned memory; the value becomes NOTHING
cdef int copy_value(value_t *to, const value_t *source) noexcept nogil  # retains arrays, copies lists

cdef inline void set_array(value_t *value, array_t *array) noexcept nogil:
    """Takes over the caller's reference."""
    value.kind = ARRAY
    value.count = 1
    value.of.array = array

cdef inline bint is_number(const value_t *value) noexcept nogil:
    return BOOLEAN <= value.kind <= COMPLEX

cdef inline double as_real(const value_t *value) noexcept nogil:
    return value.of.real if value.kind >= REAL else <double>value.of.integer

cdef inline bint is_true(const value_t *value) noexcept nogil:
    return value.kind != NOTHING and value.of.integer != 0
