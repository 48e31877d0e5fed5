"""Tracing: record each operation of a function and the source of each array it reads."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.storage cimport version_t
from cygrad._core.optimizers.optimize cimport UpdateMode, rule_t
from cygrad._core.table.operator cimport Operator

# --------------------------------------------------------------------------------------------------------------- tracer

cdef class Constant:
    """Boxed argument that is not a tensor."""
    cdef value_t value

cdef class TracedArray:
    """Array kept alive by the trace, so that its memory is not reused."""
    cdef array_t *array
    cdef object number                # its number
    cdef readonly int buffer          # index of its buffer
    cdef readonly int64_t offset      # in bytes, from the first array of the buffer

cdef inline array_t *array_of(TracedArray traced) except NULL:
    if traced.array == NULL:
        raise RuntimeError("TracedArray: the object holds no array. Only a Tracer creates valid ones.")
    return traced.array

cdef class Buffer:
    """Memory and its origin."""
    cdef readonly str kind            # "tensor", "gradient", "constant", "result"
    cdef readonly Tensor tensor       # the input tensor, or the leaf whose gradient it is
    cdef readonly int first           # first array in this buffer
    cdef readonly int maker           # step that computes it, or -1
    cdef readonly object writes       # steps that modify it in place: a list, or an empty tuple
    cdef readonly TracedArray original  # copy of a constant that is modified or returned
    cdef version_t *version
    cdef int64_t expected             # version if only traced operations modify it
    cdef int add_write(self, int step) except -1

cdef class Step:
    """One operation; arguments are array numbers, lists of them, Constants or None."""
    cdef readonly str kind            # "call", "change", "optimize", "draw", "keep"
    cdef readonly int draw            # number of the draw
    cdef readonly Operator operator
    cdef readonly tuple arguments
    cdef readonly tuple results       # array numbers; -1: unused
    cdef readonly int target          # array modified in place, or -1
    cdef readonly object is_list      # the results form one list

cdef class OptimizerStep(Step):
    """Step of an optimizer."""
    cdef readonly dict group          # its param group
    cdef readonly object optimizer
    cdef rule_t rule

# Numbers by address.
ctypedef struct address_t:
    const void *address
    int32_t number

cdef class AddressMap:
    cdef address_t *entries           # open addressing; NULL: free
    cdef size_t capacity, n
    # Return the number of an address, or -1.
    cdef int get(self, const void *address) noexcept
    cdef int put(self, const void *address, int32_t number) except -1
    cdef address_t *find(self, const void *address) noexcept

cdef class RuleCapture(UpdateMode):
    """Captures the update rule of a param group."""
    cdef rule_t rule
    cdef bint is_set

# Read the current options of a param group; return False if the optimizer rejects them or has no native rule.
cdef bint read_rule(object optimizer, object group, rule_t *rule) except -1

# Return the number of an array that a traced operation reads; register new arrays of known memory.
cdef int number_of_array(object tracer, array_t *array) except -2

# Return whether the Tensor in .grad, if there is one, has no graph, hooks, attributes, class of a user or .grad.
cdef bint has_plain_gradient(Tensor leaf) noexcept
