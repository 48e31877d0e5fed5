"""
Kernels that sort: sort, topk, unique, searchsorted, medians, kthvalue and mode.

Know rows of elements. Never know indices into other arrays. Read ``sort.pyx`` first.
"""
