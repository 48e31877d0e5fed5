"""Memory of tensors for MPI."""

import functools

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.creation.creation import numpy_view, seen_as
from cygrad.distributed.work import written

__all__ = ["SHORT", "alike", "array_of", "arrays_of", "check_writable", "dtype_text", "reading", "tensor_over",
           "widening", "writing", "written_back"]

# Dtypes that MPI cannot add: the integer dtype for sending (NumPy's dtype identifies them), and the dtype of
# sums.
SHORT = {short: (bits, np.dtype(bits.name, metadata={"stands for": short.name}), wide)
         for short, bits, wide in ((cygrad.float16, cygrad.uint16, cygrad.float32),
                                   (cygrad.bfloat16, cygrad.uint16, cygrad.float32),
                                   (cygrad.complex32, cygrad.uint32, cygrad.complex64))}


def array_of(operation, tensor):
    """
    Return a NumPy array over the memory of a tensor of any strides; 16-bit floats as integers.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{operation}: expected a Tensor (got {type(tensor).__name__}).")
    short = SHORT.get(tensor.dtype)
    if short is None:
        return numpy_view(tensor)
    bits, named, _ = short
    return numpy_view(seen_as(tensor, bits)).view(named)


def tensor_over(array, dtype):
    """Return a tensor over the memory of an array that `array_of` could have returned for it."""
    tensor = cygrad.from_numpy(array)
    return seen_as(tensor, dtype) if dtype in SHORT else tensor


def dtype_text(array):
    """Return the dtype of the tensor of an array from `array_of`."""
    return (array.dtype.metadata or {}).get("stands for", array.dtype.name)


def widening(steps):
    """
    Run the steps of a reduction; 16-bit floats are reduced in float32 or complex64 and rounded once.

    Parameters
    ----------
    steps : generator function
        Function of the group, the name of the operation, the tensor for the result, the tensor of the data (or a list
        of them, or None if it is the same), and further arguments.
    """
    def widened(group, operation, output, inputs, given, rest):
        target, dtype = array_of(operation, output), output.dtype      # before its memory is replaced
        check_writable(operation, target)
        wide = [output, *given]
        wide = [one if one is None else one.detach().to(SHORT[dtype][2]) for one in wide]
        yield from steps(group, operation, wide[0], wide[1:] if given is inputs else wide[1], *rest)
        target[...] = array_of(operation, wide[0].to(dtype))
        return written(output)

    @functools.wraps(steps)
    def run(group, operation, output, inputs, *rest):
        if isinstance(output, Tensor) and output.dtype in SHORT:
            given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            if all(one is None or (isinstance(one, Tensor) and one.dtype is output.dtype) for one in given):
                return widened(group, operation, output, inputs, given, rest)
        return steps(group, operation, output, inputs, *rest)
    return run


def arrays_of(operation, tensors, size, name, written=False):
    """Return arrays over the memory of tensors, one per rank; `written`: check that they are writable."""
    if not isinstance(tensors, (list, tuple)) or len(tensors) != size:
        got = len(tensors) if isinstance(tensors, (list, tuple)) else type(tensors).__name__
        raise ValueError(f"{operation}: {name} must be a list with a tensor for each rank (got {got}, "
                         f"expected {size}).")
    arrays = [array_of(operation, tensor) for tensor in tensors]
    for array in arrays if written else ():
        check_writable(operation, array)
    return arrays


def alike(operation, arrays):
    """Raise an error unless all arrays have the shape and dtype of the first."""
    for array in arrays[1:]:
        if array.shape != arrays[0].shape or dtype_text(array) != dtype_text(arrays[0]):
            raise ValueError(f"{operation}: tensors must be identical in size and dtype (got {dtype_text(array)} of "
                             f"shape {array.shape}, expected {dtype_text(arrays[0])} of shape {arrays[0].shape}).")


def reading(array):
    """Return the array, or a copy if it is not contiguous."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def check_writable(operation, array):
    """Raise an error if the array is read-only or its elements share memory."""
    if not array.flags.writeable:
        raise RuntimeError(f"{operation}: the memory is read-only (got a tensor over a read-only buffer). Use clone() "
                           "first.")
    if 0 in array.strides and any(
            stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)):
        raise RuntimeError(f"{operation}: several elements of the tensor share a memory location (got strides "
                           f"{array.strides}). Use clone() first.")


def writing(operation, array, keep=False):
    """
    Return the array to write to, or if it is not contiguous, a buffer that `written_back` copies back.

    Parameters
    ----------
    operation : str
        Name for error messages.
    array : numpy.ndarray
    keep : bool
        Whether the contents are read before they are written.
    """
    flags = array.flags
    if flags.c_contiguous and flags.writeable:
        return array
    check_writable(operation, array)
    return np.ascontiguousarray(array) if keep else np.empty(array.shape, array.dtype)


def written_back(array, memory):
    """Copy the buffer of `writing` to the array."""
    if memory is not array:
        array[...] = memory
