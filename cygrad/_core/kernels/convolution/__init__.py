"""
Convolutions, forward and both gradients, in three forms: products, direct, Winograd.

Knows products of matrices. Never knows padding modes, layers or derivatives. Read ``convolution.pyx`` first;
``convolution_choice.pyx`` picks the form.
"""
