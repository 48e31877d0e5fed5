"""AccumulateGrad: adds gradients to a leaf's ``.grad``."""

from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport Node, gradient_t, node_t

cdef class AccumulateGrad(Node):
    """Accumulates the gradient of a leaf into its ``.grad``."""

# Return the node of a leaf, created if necessary. `gradient` and `array` are the leaf's; `bare`: the leaf refers to no
# Python objects.
cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient, const array_t *array, bint bare)
# Return the node of a leaf, or None.
cdef AccumulateGrad known_accumulator(gradient_t *gradient)
# gradient of the leaf += array, under its mutex; takes `array` over (keeps it if possible). No GIL needed.
cdef int add_gradient(node_t *node, array_t *array) noexcept nogil

# Give the leaf another node from now on; its former node still accumulates into the same gradient.
cdef void forget_accumulator(gradient_t *gradient) noexcept
# gradient of the leaf = array, with a new reference, if there is none and no other array shares the memory.
cdef bint keep_gradient(node_t *node, array_t *array) noexcept nogil
