"""Noting what a function does: each operation, and where what it reads came from."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.storage cimport version_t
from cygrad._core.optimizers.update_batch cimport UpdateMode, rule_t
from cygrad._core.table.operator cimport Operator

cdef class Constant:
    """A boxed argument that is no tensor."""
    cdef value_t value

cdef class Held:
    """An array that the recording holds, so that its memory is nobody else's meanwhile."""
    cdef array_t *array
    cdef readonly int buffer          # where it lies
    cdef readonly int64_t offset      # in bytes, from the array by which the recording met the buffer

cdef inline array_t *lent(Held held) except NULL:
    if held.array == NULL:
        raise RuntimeError("Held: it holds no array. Only a recording makes one that does.")
    return held.array

cdef class Buffer:
    """Memory, and where it comes from."""
    cdef readonly str kind            # "tensor", "gradient", "constant", "result"
    cdef readonly Tensor tensor       # what was there before, or whose gradient that is
    cdef readonly int first           # the array by which the recording met it
    cdef readonly int maker           # the step that made it, or -1
    cdef readonly list writes         # steps that change it in place
    cdef readonly Held original       # elements of a constant that is changed or leaves
    cdef version_t *version
    cdef int64_t expected             # what the version has to be if nothing else has changed it

cdef class Step:
    """One operation: arguments are numbers of arrays, lists of them, Constants, or None."""
    cdef readonly str kind            # "call", "change", "optimize", "draw", "keep"
    cdef readonly int draw            # which random numbers
    cdef readonly Operator operator
    cdef readonly tuple arguments
    cdef readonly tuple results       # numbers of arrays; -1: of no interest
    cdef readonly int target          # the array that is changed in place, or -1
    cdef readonly object listed       # the results are one list
    cdef readonly dict group          # of the optimizer
    cdef readonly object optimizer
    cdef rule_t rule

cdef class RuleCapture(UpdateMode):
    """Takes the rule of a step, and lets the optimizer update nothing."""
    cdef rule_t rule
    cdef bint is_set

# The options of a group as its optimizer reads them now; False if it refuses them, or makes no native step of them.
cdef bint read_rule(object optimizer, object group, rule_t *rule) except -1

# The number of an array that an operation of a recorder reads; a new array of known memory gets one.
cdef int number_of_array(object recorder, array_t *array) except -2
