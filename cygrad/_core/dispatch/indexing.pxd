"""Subscripts: ``x[key]`` and ``x[key] = value``."""

from cygrad._core.graph.tensor cimport Tensor

cdef object getitem(Tensor self, object key)
cdef int setitem(Tensor self, object key, object value) except -1
