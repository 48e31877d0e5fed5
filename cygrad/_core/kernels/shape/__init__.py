"""
Kernels that change shapes: views, permutations, slices, splitting and joining.

Read ``shape.pyx`` first.
"""
