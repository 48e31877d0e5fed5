"""Forward mode through custom functions."""

from cygrad._core.custom.function_node cimport FunctionNode

# To be called in a level, when the outputs have their place in the graph: runs the function's jvp if an argument has a
# tangent. `computed`: what forward returned, in whose place the user gets `outputs`; `saved`: what it asked to save.
cdef int push_custom(FunctionNode node, object function, tuple arguments, object computed, object outputs,
                     tuple saved) except -1
