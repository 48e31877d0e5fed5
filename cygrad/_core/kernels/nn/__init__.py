"""
Kernels of neural networks: pooling, normalization, attention, losses, recurrent cells, resampling, padding.

Know arrays of images and sequences. Never know parameters, modules or training. Read any; each file is one subject.
"""
