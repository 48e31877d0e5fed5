"""Zero second derivatives for operators whose gradients do not depend on the arguments."""

from cygrad._core.graph.node cimport node_t

cdef enum:
    COUNTS_ARGUMENTS = 1 << 20    # flag of operators whose rows have the key `zeros`

# Return recorded gradients, by edge, as results of a node with zero gradients for the arguments.
cdef list count_arguments(node_t *node, list gradients)
