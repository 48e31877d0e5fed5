"""
Steps of optimizers: one pass over parameter, gradient and state.

Knows tensors' memory and versions. Never knows the graph, nor the classes in ``cygrad.optim``. Read ``optimize.pyx``
first, then ``loops.h``.
"""
