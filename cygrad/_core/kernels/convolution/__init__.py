"""
Convolutions, forward and both gradients, by three algorithms: im2col, direct, Winograd.

Knows products of matrices. Never knows padding modes, layers or derivatives. Read ``convolution.pyx`` first, which
chooses the algorithm.
"""
