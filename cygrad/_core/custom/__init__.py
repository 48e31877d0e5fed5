"""
Functions of the user's own: ``autograd.Function``, its context and its node.

Read ``function.pyx`` first.
"""
