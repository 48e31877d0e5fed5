"""What a compiled function is called through: compare, run, hand out."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.program cimport Program, frame_t
from cygrad._core.graph.tensor cimport Tensor

# What a tensor from outside has to look like.
ctypedef struct layout_t:
    array_t *array            # shape, strides and dtype; of a constant: the very array
    PyObject *type            # of the Tensor, borrowed from `Variant.keep`
    int32_t exact             # it must be this array
    int32_t requires_grad
    int32_t is_view
    int32_t normal            # its changes are counted
    int32_t gradient          # .grad must be: 1 there, 0 None, -1 of no interest
    array_t *gradient_array   # ... and look like this
    int32_t written           # the program changes its memory
    int32_t same_as           # another tensor over the same memory comes before it; -1: none
    int64_t offset            # ... so far away

ctypedef enum guard_kind_t:
    ITEM = 0                  # of a dict
    ENTRY                     # of a list
    CELL
    LENGTH

ctypedef struct guard_t:
    int32_t kind
    void *container
    void *key
    void *value               # NULL: there must be none
    int64_t place             # of an entry; or a length

# Is it the same object, or a number or text of the same type and value?
cdef bint same(object a, object b) except -1

cdef class Variant:
    """One recording of a function: when it holds, and what is run then."""
    cdef readonly Program program
    cdef int n_arguments, n_tensors, n_guards
    cdef bint any_written
    cdef layout_t *layouts
    cdef guard_t *guards
    cdef tuple leaves             # the arguments: a number of a tensor, or (value,)
    cdef tuple constants          # tensors that are no arguments
    cdef object structure
    cdef list outputs, commits, keep, options, places
    cdef object rebuild
    cdef int grad_disabled, inference, dtype
    cdef readonly int64_t runs
    cdef Tensor tensor(self, int number, object leaves)
    cdef bint fits(self, const layout_t *layout, Tensor tensor) except -1
    cdef bint lies_apart(self, object leaves) except -1
    cdef bint holds(self, object leaves) except -1
    cdef int read_options(self) except -1
    cdef object run(self, object leaves)
    cdef object output(self, frame_t *frame, tuple given, object leaves)
    cdef int commit(self, frame_t *frame, Tensor leaf, int slot) except -1
