"""
Kernels that change shapes: views, permutations, slices, splitting and joining.

Know strides and offsets: they share or move elements, or add up those that share a place. Never know indices that are
arrays themselves. Read ``shape.pyx`` first.
"""
