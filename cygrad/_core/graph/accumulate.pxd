"""AccumulateGrad: where backward ends and a leaf's ``.grad`` begins."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node, gradient_t, node_t

cdef class AccumulateGrad(Node):
    """The end of a path: adds the gradient to the leaf's ``.grad``."""

# The node for a leaf, made if it has none at the moment. `gradient` is the leaf's, and so is `array`; `bare`: nothing
# of Python's hangs on the leaf.
cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient, const array_t *array, bint bare)
# The node of a leaf, or None if it has none at the moment.
cdef AccumulateGrad known_accumulator(gradient_t *gradient)
# The leaf's gradient += array, under its lock; takes `array` over (keeps it if it can). No GIL needed.
cdef int add_gradient(node_t *node, array_t *array) noexcept nogil

# Let the leaf have another node from now on; the one it had, if there is one, still adds to the same gradient.
cdef void forget_accumulator(gradient_t *gradient) noexcept
# The leaf's gradient = array, a reference of its own, if there is none and no other array is over that memory.
cdef bint keep_gradient(node_t *node, array_t *array) noexcept nogil
