"""
Kernels that put elements into order: sort, topk, medians, quantiles.

Read ``sort.pyx`` first.
"""
