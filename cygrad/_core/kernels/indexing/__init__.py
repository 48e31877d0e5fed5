"""
Kernels that gather or scatter elements by index, mask or position.

Know integers and masks as arrays. Never know Python's indices, which ``dispatch/indexing.pyx`` parses. Read
``index.pyx`` first.
"""
