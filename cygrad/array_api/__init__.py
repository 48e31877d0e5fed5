"""
The Python array API standard on Tensors: the namespace of ``tensor.__array_namespace__()``.

Names, parameters, promotion and results are those of the standard, version 2025.12, where functions of `cygrad` itself
differ. Gradients flow as usual. Most functions are the rows of NumPy's functions on Tensors.
"""

from math import e, inf, nan, pi

from cygrad import Tensor
from cygrad._core.graph.tensor import install as _install
from cygrad.array_api import creation, dtypes, elementwise, fft, linalg, manipulation, searching, statistics
from cygrad.array_api.dtypes import bool, complex64, complex128, float32, float64, int8, int16, int32, int64, uint8
from cygrad.array_api.inspection import __array_namespace_info__

__array_api_version__ = "2025.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
newaxis = None

_MODULES = (creation, dtypes, elementwise, manipulation, searching, statistics)
__all__ = [
    "__array_api_version__", "__array_namespace_info__", "bool", "complex64", "complex128", "e", "fft", "float32",
    "float64", "inf", "int8", "int16", "int32", "int64", "linalg", "nan", "newaxis", "pi", "uint8",
]
for _name in ("uint16", "uint32", "uint64"):
    if hasattr(dtypes, _name):
        globals()[_name] = getattr(dtypes, _name)
        __all__ += [_name]
for _module in _MODULES:
    globals().update(_module.FUNCTIONS)
    __all__ += list(_module.FUNCTIONS)
for _name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
    globals()[_name] = linalg.FUNCTIONS[_name]
    __all__ += [_name]


def namespace_of(self, /, *, api_version=None):
    """
    Return the namespace of the array API standard for this tensor.

    Parameters
    ----------
    api_version : str, optional
        The version of the standard that is expected, such as ``"2024.12"``.

    Returns
    -------
    module
        `cygrad.array_api`.

    Raises
    ------
    ValueError
        If the version is not supported.
    """
    import cygrad

    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"__array_namespace__: unsupported version (got {api_version!r}, expected one of "
                         f"{', '.join(VERSIONS)}).")
    return cygrad.array_api


def to_device(self, device, /, *, stream=None):
    """
    Return the tensor on a device; the only one is the CPU.

    Parameters
    ----------
    device : device or str
    stream : None
        There are none.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> cygrad.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError(f"to_device: the CPU has no streams (got {stream!r}).")
    if not isinstance(self, Tensor):
        raise TypeError(f"to_device: expected a Tensor (got {type(self).__name__}). Make one with asarray().")
    return self.to(device)


METHODS = {"__array_namespace__": namespace_of, "to_device": to_device}
_install(METHODS)     # replaces the functions that import this module, with the signatures of the standard
