"""
The steps of optimizers: one pass over parameter, gradient and state.

Knows tensors' memory; never the graph beyond versions. Read ``update_batch.pyx`` first.
"""
