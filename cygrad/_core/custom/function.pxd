"""The node of a custom function, which is the ``ctx`` of its methods."""

from libc.stdint cimport int32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor

# -------------------------------------------------------------------------------------------------------- function node

# The node of a custom function, which is the ``ctx`` of its methods.

# Where a saved tensor comes from: the edge of an argument, one of these, or OUTPUT + the index of an output.
cdef enum:
    CONSTANT = -1            # needs no gradient: only its array is saved
    OBJECT = -2              # saved as a Tensor object
    OUTPUT = 1 << 30

cdef class FunctionNode(Node):
    cdef readonly tuple needs_input_grad
    cdef tuple to_save            # arguments of save_for_backward, until the outputs exist
    cdef tuple dirty              # arguments of mark_dirty
    cdef tuple constants          # arguments of mark_non_differentiable
    cdef readonly tuple saved_for_forward
    cdef readonly bint keeps      # retain_graph of the backward that runs
    cdef bint clears              # the first access of saved_tensors in backward releases them
    cdef bint materialize         # undefined gradients of outputs are materialized as zeros
    cdef int32_t n_arguments
    cdef int32_t *edges_of        # n_arguments: the edge of an argument, or -1 if it is no Tensor
    cdef int32_t *origins         # of the saved tensors
    cdef list objects            # for each OBJECT the Tensor, or its (node, output_nr) if hooks have packed it, or None
    cdef array_t **outputs        # n_outputs: shape and dtype of each Tensor, or NULL if not needed
    cdef int32_t n_known          # entries of `outputs`
    cdef object unpack(self, int position)
    cdef object unpack_plain(self, int position)
    cdef object known(self, array_t *array, int position)
    # Give a tensor without history the history of the saved one.
    cdef Tensor placed(self, Tensor tensor, int position)
    cdef int set_packed(self, int position, object packed) except -1

# ---------------------------------------------------------------------------------------------------- function tangents

# Forward mode through custom functions.

# Run the function's jvp if an argument has a tangent. Call it inside a level, when the outputs are connected.
# `computed`: what forward returned, for which the user gets `outputs`; `saved`: the arguments of save_for_forward.
cdef int push_custom(FunctionNode node, object function, tuple arguments, object computed, object outputs,
                     tuple saved) except -1
