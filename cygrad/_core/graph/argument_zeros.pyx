"""
Zero second derivatives for operators whose gradients do not depend on the arguments.

The gradient of relu is locally constant in the argument, so its derivative is zero. Formulas do not express that, and
their result would not require grad. This node does both.
"""

import importlib

from cygrad._core.arrays.array cimport array_meta
from cygrad._core.graph.modes cimport grad_enabled, thread_state
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport Tensor, wrap


cdef list count_arguments(node_t *node, list gradients):
    cdef int i
    cdef Tensor place
    cdef list places = []
    if not grad_enabled() or thread_state().dual_level:
        return gradients
    for i in range(node.n_edges):
        if node.edges[i].node == NULL:
            continue
        if node.metas != NULL and node.metas[i] != NULL:
            place = wrap(array_meta(node.metas[i]))
        elif type(gradients[i]) is Tensor:                  # in the shape of the argument, because no other is known
            place = wrap(array_meta((<Tensor>gradients[i]).array))
        else:
            continue
        place.node = <Node>node.edges[i].node.object
        place.output_nr = node.edges[i].input_nr
        places.append(place)
    function = importlib.import_module("cygrad.autograd.zeros").ArgumentZeros
    return [function.apply(gradient, *places) if type(gradient) is Tensor else gradient for gradient in gradients]
