"""
Kernels that run along dimensions: sums, extrema, statistics, scans, softmax.

Know how elements are combined in a fixed order, whatever the number of threads. Never know indices into other arrays.
Read ``reductions.pyx`` first (leaves of fixed size, combined as a tree).
"""
