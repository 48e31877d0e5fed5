"""
Kernels of neural networks: pooling, normalization, attention, losses, recurrent cells, resampling, padding.

Read any; each file is one subject.
"""
