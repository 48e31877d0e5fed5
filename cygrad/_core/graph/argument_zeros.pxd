"""Gradients that do not depend on the arguments, for operators that count them as if they did."""

from cygrad._core.graph.node cimport node_t

cdef enum:
    COUNTS_ARGUMENTS = 1 << 20    # the flag of operators whose rows have the key `zeros`

# Recorded gradients, by edge, as results of a node that has zeros for the arguments.
cdef list count_arguments(node_t *node, list gradients)
