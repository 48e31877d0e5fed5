"""
The objects of the graph: tensors, nodes, edges, saved tensors, in-place operations, modes.

Knows operators as descriptors, never what they compute, nor in which order nodes run. Read ``node.pxd`` and
``tensor.pxd`` first, then ``native.pyx``: the node of an operator.
"""
