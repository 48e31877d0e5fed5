"""Forward mode through custom functions."""

from cygrad._core.custom.function_node cimport FunctionNode

# Run the function's jvp if an argument has a tangent. Call it inside a level, when the outputs are connected.
# `computed`: what forward returned, for which the user gets `outputs`; `saved`: the arguments of save_for_forward.
cdef int push_custom(FunctionNode node, object function, tuple arguments, object computed, object outputs,
                     tuple saved) except -1
