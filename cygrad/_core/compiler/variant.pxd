"""Call path of compiled functions: check guards, execute, return results."""

from cpython.object cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.guards cimport Guards, aliases_t, run_frame_t, tensor_guard_t
from cygrad._core.compiler.executable cimport Executable
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.graph.tensor cimport Tensor

# Guard on an option of an optimizer.
ctypedef struct option_t:
    PyObject *group
    PyObject *key
    PyObject *value
    int32_t number            # index in `Variant.optimizers`
    int32_t n                 # number of options in the group, at the first one
    uint64_t version          # of the group dict when the options were read

# Output: an input tensor, or a new tensor.
ctypedef struct result_t:
    int32_t tensor            # number of the input tensor, or -1
    int32_t base              # number of the tensor, or n_tensors + index of the output, of which it is a view; or -1
    int16_t view_kind, untracked
    int32_t requires_grad     # of a leaf
    int32_t output_nr         # of its node
    int32_t standard          # marked as Array API array
    int64_t version           # of new memory; -1: shared with an input

ctypedef struct commit_t:
    int32_t leaf              # number of the tensor
    int32_t slot              # slot of its new gradient, or -1

cdef enum:
    MAX_CALLS = 32            # per GIL release in `each`: their guards take less time than others spin

cdef class Variant:
    """One trace of a function: its guards and its program."""
    cdef readonly Executable executable
    cdef int n_arguments, n_tensors, n_own, n_options, n_commits
    cdef bint any_written, hooks_are_free
    cdef readonly bint sees_gradients     # reads .grad of inputs
    cdef tensor_guard_t *layouts
    cdef readonly Guards guards
    cdef option_t *options
    cdef commit_t *commits
    cdef int32_t *numbers         # tensor of each argument; -1: a value
    cdef tuple leaves             # per argument: number of its tensor, or (value,)
    cdef readonly tuple constants          # input tensors that are not arguments
    cdef object structure
    cdef list nodes, keep, optimizers
    cdef result_t *results
    cdef int32_t *outgoing        # slot of each output; -1: not a new array
    cdef int n_results
    cdef bint has_views           # some output is a view of another one
    cdef list view_nodes          # nodes of views: (template, number of the base, number of the next node, input_nr)
    cdef dict view_results        # number of a view -> (number of its node, output_nr)
    cdef object rebuild, graph
    cdef object draws             # Draws, or None
    cdef readonly list state      # (dict, key) of attributes that it sets
    cdef tuple undone             # slots of inputs that it may have modified when an operation fails; None: unknown
    cdef frozenset containers     # ids of the objects that the function reads besides its arguments
    cdef aliases_t aliases
    cdef int grad_disabled, inference, dtype
    cdef readonly int64_t runs
    cdef bint matches(self, const tensor_guard_t *layout, Tensor tensor, array_t **gradient) except -1
    cdef bint guards_hold(self, tuple leaves, run_frame_t *frame) except -1
    cdef bint arguments_hold(self, tuple leaves, run_frame_t *frame) except -1
    cdef bint options_hold(self) except -1
    cdef int run(self, run_frame_t *frame, gradient_t **targets) noexcept nogil
    cdef object execute(self, run_frame_t *frame, object compiled, object args, object kwargs)
    cdef list saved_inputs(self, run_frame_t *frame)
    cdef void confirm_options(self, int stop) noexcept
    cdef int draw(self, run_frame_t *frame) except -1
    cdef int set_view_nodes(self, list views) except -1
    cdef object make_result(self, run_frame_t *frame)
    cdef int make_views(self, run_frame_t *frame, list results) except -1
    cdef Tensor base(self, run_frame_t *frame, int number, list results)
    cdef bint is_second(self, int number) noexcept
    cdef Tensor result(self, run_frame_t *frame, int number, Tensor base)
    cdef int find_targets(self, run_frame_t *frame, gradient_t **targets) except -1
    cdef int commit(self, run_frame_t *frame, gradient_t **targets) noexcept nogil
    cdef object run_each(self, list calls, run_frame_t *frame)
