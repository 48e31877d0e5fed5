"""AccumulateGrad: where backward ends and a leaf's ``.grad`` begins."""

from cygrad._core.array cimport array_t
from cygrad._core.node cimport Node, gradient_t

cdef class AccumulateGrad(Node):
    """The end of a path: adds the gradient to the leaf's ``.grad``."""

# The node for a leaf, made if it has none at the moment. `gradient` is the leaf's.
cdef AccumulateGrad accumulator_of(object leaf, gradient_t *gradient)
# The node of a leaf, or None if it has none at the moment.
cdef AccumulateGrad known_accumulator(gradient_t *gradient)
# gradient.value += array, under its lock; takes `array` over (keeps it if it can). No GIL needed.
cdef int add_gradient(gradient_t *gradient, array_t *array) noexcept nogil
