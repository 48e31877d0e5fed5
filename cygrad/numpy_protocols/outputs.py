"""The arguments ``out=`` and ``where=`` of NumPy's functions."""

import numpy as np

from cygrad import Tensor
from cygrad.numpy_protocols.arrays import has_history, numpy_dtype

__all__ = ["write"]


def write(operation, result, out, casting="same_kind"):
    """Write one or several results into `out`, Tensors or ndarrays; return `out`, with the history of the result."""
    if isinstance(result, tuple):
        return tuple(part if target is None else write(operation, part, target, casting)
                     for part, target in zip(result, out, strict=True))
    if isinstance(out, tuple):
        out, = out
    if not isinstance(out, (Tensor, np.ndarray)):
        raise TypeError(f"{operation}: out must be a Tensor or an ndarray (got {type(out).__name__}).")
    if tuple(out.shape) != tuple(result.shape):
        raise ValueError(f"{operation}: out has the wrong shape (got {tuple(out.shape)}, expected "
                         f"{tuple(result.shape)}).")
    theirs = out.dtype if isinstance(out, np.ndarray) else numpy_dtype(out)
    if not np.can_cast(numpy_dtype(result), theirs, casting):
        raise TypeError(f"{operation}: the result cannot be cast to out (got a result of {numpy_dtype(result)} and an "
                        f"out of {theirs}, with casting {casting!r}).")
    if isinstance(out, Tensor):
        return out.copy_(result)
    if has_history(result):
        raise TypeError(f"{operation}: out is an ndarray, in which the result would lose its history. Use a Tensor, or "
                        "the form without out=.")
    np.copyto(out, result.detach().numpy(), casting=casting)
    return out
