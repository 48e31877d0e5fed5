"""Tensors as the memory that MPI reads and writes."""

import numpy as np

from cygrad import Tensor
from cygrad._core.creation.access import numpy_view

__all__ = ["alike", "array_of", "arrays_of", "check_writable", "reading", "writing", "written_back"]


def array_of(operation, tensor):
    """A NumPy array over the memory of a tensor, whatever its strides."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{operation}: expected a Tensor (got {type(tensor).__name__}).")
    return numpy_view(tensor)


def arrays_of(operation, tensors, size, name, written=False):
    """Arrays over the memory of tensors, as many as there are ranks; `written`: check that they can be."""
    if not isinstance(tensors, (list, tuple)) or len(tensors) != size:
        got = len(tensors) if isinstance(tensors, (list, tuple)) else type(tensors).__name__
        raise ValueError(f"{operation}: {name} must be a list with a tensor for each rank (got {got}, "
                         f"expected {size}).")
    arrays = [array_of(operation, tensor) for tensor in tensors]
    for array in arrays if written else ():
        check_writable(operation, array)
    return arrays


def alike(operation, arrays):
    """Raise unless all arrays have the shape and dtype of the first."""
    for array in arrays[1:]:
        if array.shape != arrays[0].shape or array.dtype != arrays[0].dtype:
            raise ValueError(f"{operation}: tensors must be identical in size and dtype (got {array.dtype} of shape "
                             f"{array.shape}, expected {arrays[0].dtype} of shape {arrays[0].shape}).")


def reading(array):
    """The elements one after the other: the memory itself, or a copy if there are gaps."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def check_writable(operation, array):
    """Raise unless each element of the array has a place of its own to write to."""
    if not array.flags.writeable:
        raise RuntimeError(f"{operation}: the memory is read-only (got a tensor over a read-only buffer). Use clone() "
                           "first.")
    if any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        raise RuntimeError(f"{operation}: several elements of the tensor share one place in memory (got strides "
                           f"{array.strides}). Use clone() first.")


def writing(operation, array, keep=False):
    """
    Memory to write to: the array's own, or, if there are gaps, other memory, to be copied back by `written_back`.

    Parameters
    ----------
    operation : str
        For messages.
    array : numpy.ndarray
    keep : bool
        Whether the contents matter before they are written.
    """
    check_writable(operation, array)
    if array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array) if keep else np.empty(array.shape, array.dtype)


def written_back(array, memory):
    """Bring to the array what was written to the memory that `writing` gave for it."""
    if memory is not array:
        array[...] = memory
