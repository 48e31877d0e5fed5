"""The free list of tensors."""

from cygrad._core.graph.tensor cimport Tensor

# A Tensor without an array: the caller sets one before any Python code runs.
cdef Tensor bare_tensor()
