"""
Custom autograd functions: ``autograd.Function``, its context and its node.

Knows Python code that takes and returns Tensors. Never knows what it computes, nor the operators it calls. Read
``function.pyx`` first.
"""
