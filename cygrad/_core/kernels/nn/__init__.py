"""
Kernels of neural networks: pooling, normalization, attention, losses, recurrent cells, resampling, padding.

Know arrays of images and sequences. Never know parameters, modules or training. Each file has one subject. Read any.
"""
