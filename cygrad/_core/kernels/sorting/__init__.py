"""
Kernels that put elements into order: sort, topk, medians, quantiles.

Know one row of elements at a time. Never know what it is a row of. Read ``sort.pyx`` first.
"""
