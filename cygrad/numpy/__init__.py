"""
NumPy's names, with NumPy's parameters, defaults and promotion, and with derivatives: ``import cygrad.numpy as np``.

A function called with Tensors, also with lists of them, gives Tensors with a history; called with arrays and numbers
alone it is NumPy's own and gives arrays. Types and constants are NumPy's. The functions are the rows of
`cygrad.numpy_protocols`, by which NumPy's own functions take Tensors, too; each is looked up when it is first used.
Only this namespace can do what NumPy does not hand over: ``array`` and ``asarray`` of lists of tensors, lists of
tensors as arguments, ``full``, ``r_``, ``c_`` and ``vectorize``.

Examples
--------
>>> import cygrad.numpy as np
>>> from cygrad.func import grad
>>> grad(lambda x: np.std(np.array([x[0], x[1] ** 2])))(np.array([1.0, 3.0]))
array([-0.5,  3. ])
"""

import sys as _sys
from types import ModuleType as _ModuleType

import numpy as _numpy

from cygrad.numpy_protocols.namespace import OWN as _OWN
from cygrad.numpy_protocols.namespace import namespace as _namespace

__all__ = list(_numpy.__all__)
globals().update(_OWN)
__getattr__, __dir__ = _namespace(__name__, _numpy)

for _name in ("linalg", "fft", "random"):
    _module = globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _ModuleType(
        f"{__name__}.{_name}", f"The names of `numpy.{_name}`; functions take Tensors where `cygrad.numpy` says so."
    )
    _module.__getattr__, _module.__dir__ = _namespace(_module.__name__, getattr(_numpy, _name))
