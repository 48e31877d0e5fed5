"""
Custom autograd functions: ``autograd.Function``, its context and its node.

Knows Python code that takes and returns Tensors. Never knows the operators that it calls. Read
``function.pyx`` first.
"""
