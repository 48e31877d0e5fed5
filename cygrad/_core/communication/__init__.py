"""
Communication between processes without the GIL.

Knows MPI as a few addresses of functions, and tensors by their memory. Never knows mpi4py, groups or what a collective
means; those are ``cygrad.distributed``, which imports this layer on demand. Read ``progress.pyx`` first.
"""
