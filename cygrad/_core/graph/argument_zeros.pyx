"""
Gradients that do not depend on the arguments, for operators that count them as if they did.

The gradient of relu is the same all around an argument: going back through it again finds zeros. Formulas do not say
so, and what they give would not require grad. Here it gets a node that knows.
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
        elif type(gradients[i]) is Tensor:                  # of the shape of the argument, as nothing else is said
            place = wrap(array_meta((<Tensor>gradients[i]).array))
        else:
            continue
        place.node = <Node>node.edges[i].node.object
        place.output_nr = node.edges[i].input_nr
        places.append(place)
    function = importlib.import_module("cygrad.autograd.zeros").ArgumentZeros
    return [function.apply(gradient, *places) if type(gradient) is Tensor else gradient for gradient in gradients]
