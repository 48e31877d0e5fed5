"""
Convolutions, forward and both gradients, in three forms: products, direct, Winograd.

Read ``convolution.pyx`` first; ``convolution_choice.pyx`` picks the form.
"""
