"""
Kernels that change shapes: views, permutations, slices, split, cat and stack.

Know strides and offsets. Never know indices that are arrays. Read ``shape.pyx`` first.
"""
