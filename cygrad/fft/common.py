"""Arguments of Fourier transforms: dimensions, lengths, normalization."""

from math import prod, sqrt

from cygrad._core.arrays.dtype import get_default_dtype
from cygrad._core.graph.argument_errors import as_dim, as_sizes
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators

__all__ = ["complex_n", "complex_tensor", "half_n", "whole_n"]


# ---- arguments

def _tensor(operation, value):
    """Check that a value is a Tensor; convert integers to the default dtype."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(value).__name__}).")
    if value.is_floating_point() or value.is_complex():
        return value
    return operators.cast(value, get_default_dtype())


def _real_tensor(operation, value):
    """Refuse complex tensors."""
    value = _tensor(operation, value)
    if value.is_complex():
        raise RuntimeError(f"{operation}: expects a real input tensor (got {value.dtype}).")
    return value


def complex_tensor(operation, value):
    """Check that a value is a Tensor and return it as complex."""
    value = _tensor(operation, value)
    return value if value.is_complex() else operators.complex(value, operators.cast(
        operators.logical_and(value.detach(), False), value.dtype))


def _dims(operation, input, s, dim):
    """Return non-negative dimensions and their lengths (-1: unchanged)."""
    if s is not None:
        s = as_sizes(operation, "s", s, 1)
    if dim is not None:
        dim = as_sizes(operation, "dim", dim, 1)
    if dim is None:
        if s is not None and len(s) > input.ndim:
            raise RuntimeError(f"{operation}: Got shape with {len(s)} values but input tensor only has {input.ndim} "
                               "dimensions.")
        dim = tuple(range(0 if s is None else input.ndim - len(s), input.ndim))
    dim = tuple([as_dim(operation, k, input.ndim) for k in dim])
    if len(set(dim)) < len(dim):
        raise RuntimeError(f"{operation}: FFT dims must be unique (got {dim}).")
    if s is not None and len(s) != len(dim):
        raise RuntimeError(f"{operation}: When given, dim and shape arguments must have the same length (got {dim} and "
                           f"{s}).")
    s = (-1,) * len(dim) if s is None else s
    for size in s:
        if size < 1 and size != -1:
            raise RuntimeError(f"{operation}: Invalid number of data points ({size}) specified.")
    return dim, s


def _scale(operation, norm, count, forward):
    """Return the normalization factor of a transform of `count` elements."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f"{operation}: Invalid normalization mode: {norm!r}. Use 'backward', 'forward' or 'ortho'.")
    if norm == "ortho":
        return 1.0 / sqrt(count)
    return 1.0 / count if (norm == "forward") == forward else 1.0


def _resized(operation, input, sizes, dims):
    """Truncate or zero-pad the input in these dimensions."""
    for size, k in zip(sizes, dims, strict=True):
        if 0 <= size < input.shape[k]:
            input = operators.narrow(input, k, 0, size)
        elif size > input.shape[k]:
            pad = [0] * (2 * (input.ndim - k))
            pad[-1] = size - input.shape[k]
            input = operators.pad(input, pad)
        if input.shape[k] < 1:
            raise RuntimeError(f"{operation}: Invalid number of data points ({input.shape[k]}) specified.")
    return input


# ---- transforms

def complex_n(operation, input, s, dim, norm, forward):
    """Transform real or complex numbers to complex ones."""
    input = _tensor(operation, input)
    dims, s = _dims(operation, input, s, dim)
    input = _resized(operation, input, s, dims)
    scale = _scale(operation, norm, prod(input.shape[k] for k in dims), forward)
    return (operators.fft_c2c if input.is_complex() else operators.fft_real)(input, dims, scale, forward)


def half_n(operation, input, s, dim, norm, forward):
    """Transform real numbers to a one-sided spectrum, or to a one-sided Hermitian signal."""
    input = _real_tensor(operation, input)
    dims, s = _dims(operation, input, s, dim)
    if not dims:
        raise RuntimeError(f"{operation}: must transform at least one axis.")
    input = _resized(operation, input, s, dims)
    scale = _scale(operation, norm, prod(input.shape[k] for k in dims), forward)
    if forward:
        return operators.fft_r2c(input, dims, scale)
    found = operators.conj(operators.fft_r2c(input, dims[-1:], scale))
    return operators.fft_c2c(found, dims[:-1], 1.0, False) if len(dims) > 1 else found


def whole_n(operation, input, s, dim, norm, forward):
    """Transform a one-sided spectrum to real numbers, or a one-sided Hermitian signal to its real spectrum."""
    input = complex_tensor(operation, input)
    dims, s = _dims(operation, input, s, dim)
    if not dims:
        raise RuntimeError(f"{operation}: must transform at least one axis.")
    last = 2 * (input.shape[dims[-1]] - 1) if s[-1] == -1 else s[-1]
    if last < 1:
        raise RuntimeError(f"{operation}: Invalid number of data points ({last}) specified.")
    input = _resized(operation, input, (*s[:-1], last // 2 + 1), dims)
    scale = _scale(operation, norm, last * prod(input.shape[k] for k in dims[:-1]), forward)
    if not forward:
        return operators.fft_c2r(input, dims, scale, last)
    if len(dims) > 1:
        input = operators.fft_c2c(input, dims[:-1], 1.0, True)
    return operators.fft_c2r(operators.conj(input), dims[-1:], scale, last)
