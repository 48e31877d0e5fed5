"""Results of kernels and formulas as Python objects."""

from cygrad._core.arrays.array cimport value_t

# Convert arrays to ndarrays over their memory.
cdef object unbox_raw(value_t *value)
