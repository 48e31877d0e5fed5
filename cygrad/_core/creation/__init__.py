"""
Tensors from data, sizes and ranges, and access to their elements.

Knows tensors, NumPy's arrays and Python's numbers. Never knows dispatch, and records nothing. Read ``creation.pyx``
first.
"""
