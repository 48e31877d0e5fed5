"""
Dtypes, the n-dimensional array of C, and boxed values.

Knows shapes, strides, dtypes and their promotion; exchanges arrays with NumPy. Never knows kernels or tensors. Read
``array.pxd`` first.
"""
