"""
Kernels that pick or place elements by index, mask or position.

Read ``index.pyx`` first.
"""
