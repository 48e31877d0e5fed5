"""Splitting of arguments along a dimension, and concatenation of results."""

from collections.abc import Mapping
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs, n, dim=0):
    """
    Split all tensors in a structure; copy other values to all parts.

    Parameters
    ----------
    inputs : any
        Tensors in tuples, lists and dicts.
    n : int
        Maximum number of parts.
    dim : int, default 0
        Dimension to split.

    Returns
    -------
    list
        Structures like `inputs`; fewer than `n` if tensors are too small.

    Examples
    --------
    >>> [part.shape for part in nn.parallel.scatter(cygrad.ones(5, 2), 2)]
    [(3, 2), (2, 2)]
    """
    if isinstance(inputs, Tensor):
        return list(inputs.chunk(n, dim)) if inputs.ndim else [inputs] * n
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        return [type(inputs)(*parts) for parts in _together(inputs, n, dim)]
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(parts) for parts in _together(inputs, n, dim)]
    if isinstance(inputs, Mapping) and inputs:
        kind: Any = type(inputs)
        return [kind(zip(inputs, parts, strict=True)) for parts in _together(inputs.values(), n, dim)]
    return [inputs] * n


def _together(items, n, dim):
    """Return the parts of each item, as many as the shortest item has."""
    return zip(*(scatter(item, n, dim) for item in items), strict=False)


def scatter_kwargs(inputs, kwargs, n, dim=0):
    """
    Split positional and keyword arguments.

    Parameters
    ----------
    inputs : tuple
    kwargs : dict or None
    n, dim : int
        See `scatter`.

    Returns
    -------
    (list of tuple, list of dict)
        Of the same length.

    Examples
    --------
    >>> arguments, named = nn.parallel.scatter_kwargs((cygrad.ones(4, 2),), {"scale": 2.0}, 2)
    >>> arguments[0][0].shape, named[1]
    ((2, 2), {'scale': 2.0})
    """
    parts, named = scatter(inputs, n, dim) if inputs else [], scatter(kwargs, n, dim) if kwargs else []
    if not parts:
        parts = [()] * len(named)
    if not named:
        named = [{}] * len(parts)
    size = min(len(parts), len(named))                 # one without tensors has n parts
    return parts[:size], named[:size]


def gather(outputs, dim=0):
    """
    Concatenate the results of all parts.

    Parameters
    ----------
    outputs : list
        Equal structures of tensors in tuples, lists and dicts.
    dim : int, default 0
        Dimension to concatenate along.

    Returns
    -------
    Tensor or structure
        0-dimensional tensors become a vector.

    Examples
    --------
    >>> nn.parallel.gather([cygrad.ones(1, 2), cygrad.zeros(1, 2)], 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        if all(output.ndim == 0 for output in outputs) and dim == 0:
            warn_user("gather: 0-dimensional tensors cannot be concatenated; they are stacked to a vector.")
            return cygrad.stack(outputs)
        return cygrad.cat(outputs, dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        if any(output.keys() != first.keys() for output in outputs):
            raise ValueError("gather: All dicts must have the same keys (got "
                             f"{[sorted(map(str, output)) for output in outputs]}).")
        kind: Any = type(first)
        return kind((key, gather([output[key] for output in outputs], dim)) for key in first)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(gather(column, dim) for column in zip(*outputs, strict=True)))
    if isinstance(first, (tuple, list)):
        return type(first)(gather(column, dim) for column in zip(*outputs, strict=True))
    raise TypeError("gather: results must be tensors, or tuples, lists and dicts of them (got "
                    f"{type(first).__name__}).")
