"""
Kernels that run along dimensions: sums, extrema, statistics, scans, softmax.

Read ``reduce_engine.pyx`` first (the engine: leaves of fixed size joined as a tree), then ``reduce_kernels.pyx``.
"""
