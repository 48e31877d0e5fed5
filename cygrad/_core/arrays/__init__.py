"""
Dtypes, the n-dimensional array of C, and boxed values.

Knows shapes, strides, types and how they combine; exchanges arrays with NumPy. Never knows what is computed with an
array, nor tensors. Read ``array.pxd`` first, then ``value.pxd``: what arguments and results of kernels are.
"""
