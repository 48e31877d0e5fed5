"""
``__array_ufunc__`` of Tensor. Plain calls run here, for speed; others go to a Python package that is imported on first
use.
"""

from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64
from cygrad._core.graph.tensor cimport Tensor, provided


def array_ufunc(Tensor self not None, ufunc, str method not None, *inputs, **options):
    """Compute a NumPy ufunc of Tensors."""
    cdef int dtype = self.array.dtype
    if not options and (dtype == FLOAT64 or dtype == FLOAT32) and method == "__call__":
        if len(inputs) == 1:
            function = (<dict>provided["ufuncs"]).get(ufunc)
            if function is not None:
                return function(self)
        elif (len(inputs) == 2 and isinstance(inputs[0], Tensor) and isinstance(inputs[1], Tensor)
                and (<Tensor>inputs[0]).array.dtype == dtype and (<Tensor>inputs[1]).array.dtype == dtype):
            function = (<dict>provided["ufuncs"]).get(ufunc)
            if function is not None:
                return function(inputs[0], inputs[1])
    return provided["general_ufunc"](self, ufunc, method, inputs, options)
