"""
NumPy's own functions on Tensors: ``numpy.sin(tensor)``, ``numpy.linalg.solve(tensor, array)`` and others.

Imported on the first such call. `ufuncs` has the table of NumPy's ufuncs; the other modules have one row for each
function of NumPy, under its name and with its parameters, and `dispatch` finds it. Shared helpers are in `arrays`.
"""

from cygrad._core.dispatch.dispatch import array_ufunc
from cygrad._core.graph.tensor import install, provide
from cygrad.numpy_protocols.dispatch import array_function
from cygrad.numpy_protocols.ufuncs import UFUNCS, general

__all__ = ["METHODS"]

provide(ufuncs=UFUNCS, general_ufunc=general)
METHODS = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
install(METHODS)      # replaces the functions that import this package
