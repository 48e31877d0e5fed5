"""
Tensors from data, sizes and ranges, and access to their elements.

Knows tensors; never records anything but through them. Read ``creation.pyx`` first.
"""
