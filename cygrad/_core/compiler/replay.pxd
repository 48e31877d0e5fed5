"""What a compiled function is called through: compare, run, hand out."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.aliasing cimport aliases_t, layout_t
from cygrad._core.compiler.frames cimport replay_frame_t
from cygrad._core.compiler.guards cimport Guards
from cygrad._core.compiler.program cimport Program
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.graph.tensor cimport Tensor

# An option of an optimizer: read anew if it is another object.
ctypedef struct option_t:
    PyObject *group
    PyObject *key
    PyObject *value
    int32_t number            # of the entry in `Variant.optimizers`
    int32_t n                 # options of the group from this one on, if it is the first
    uint64_t version          # of the group when they were read

# A result: one of the tensors from outside, an earlier result, or a new tensor.
ctypedef struct result_t:
    int32_t tensor            # number, or -1
    int32_t same_as           # number of a result, or -1
    int32_t base              # a new one is a view of this tensor; -1: no view
    int32_t view_kind
    int32_t requires_grad     # as a leaf
    int32_t output_nr         # of its node
    int32_t standard          # an array by the array API standard
    int64_t version           # of new memory; -1: it has that of a tensor from outside

ctypedef struct commit_t:
    int32_t leaf              # number of a tensor
    int32_t slot              # of its new gradient; -1: none

cdef enum:
    MOST_CALLS = 32           # that `each` makes at a time: to compare them takes no longer than threads wait awake

cdef class Variant:
    """One recording of a function: when it holds, and what is run then."""
    cdef readonly Program program
    cdef int n_arguments, n_tensors, n_own, n_options, n_commits
    cdef bint any_written
    cdef readonly bint sees_gradients     # what is in .grad when it begins matters
    cdef layout_t *layouts
    cdef readonly Guards guards
    cdef option_t *options
    cdef commit_t *commits
    cdef int32_t *numbers         # of the tensor of each argument; -1: a value
    cdef tuple leaves             # the arguments: a number of a tensor, or (value,)
    cdef readonly tuple constants          # tensors that are no arguments
    cdef object structure
    cdef list nodes, keep, optimizers
    cdef result_t *results
    cdef int32_t *outgoing        # slot of each result; -1: it is no new array
    cdef int n_results
    cdef object rebuild, graph
    cdef object draws             # of random numbers; None: there are none
    cdef frozenset containers     # identities of what the function reads besides its arguments
    cdef aliases_t aliases
    cdef int grad_disabled, inference, dtype
    cdef readonly int64_t runs
    cdef bint fits(self, const layout_t *layout, Tensor tensor, array_t **gradient) noexcept
    cdef bint holds(self, tuple leaves, replay_frame_t *frame) except -1
    cdef bint arguments_hold(self, tuple leaves, replay_frame_t *frame) except -1
    cdef bint options_hold(self) except -1
    cdef int run(self, replay_frame_t *frame, gradient_t **targets) noexcept nogil
    cdef object replay(self, replay_frame_t *frame)
    cdef void confirm_options(self, int stop) noexcept
    cdef int draw(self, replay_frame_t *frame) except -1
    cdef object hand_out(self, replay_frame_t *frame)
    cdef Tensor result(self, replay_frame_t *frame, int number)
    cdef int find_targets(self, replay_frame_t *frame, gradient_t **targets) except -1
    cdef int commit(self, replay_frame_t *frame, gradient_t **targets) noexcept nogil
    cdef object run_each(self, list calls, replay_frame_t *frame)
