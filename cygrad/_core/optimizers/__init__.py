"""
The steps of optimizers: one pass over parameter, gradient and state.

Knows tensors' memory and versions. Never knows the graph, nor the classes in ``cygrad.optim``. Read
``update_batch.pyx`` first, then ``optimize_rules.h``.
"""
