"""
Kernels that pick or place elements by index, mask or position.

Know integers and masks as arrays. Never know Python's indices: ``dispatch/indexing.pyx`` takes those apart. Read
``index.pyx`` first.
"""
