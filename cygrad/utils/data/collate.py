"""Collation of samples into batches."""

import copy
from collections.abc import Mapping, MutableMapping, Sequence

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import names_arguments

__all__ = ["default_collate", "default_convert"]


@names_arguments
def default_collate(batch):
    """
    Collate samples: tensors are stacked, numbers become tensors, containers keep their structure.

    Parameters
    ----------
    batch : list
        Samples of the same structure: tensors, NumPy arrays, numbers, strings, and dicts, tuples and lists of them.

    Returns
    -------
    Tensor or container
        Tuples become lists; named tuples, dicts and lists of strings stay.

    Raises
    ------
    TypeError
        If the type of a sample is not supported.
    RuntimeError
        If samples have different sizes.

    Examples
    --------
    >>> from cygrad.utils.data import default_collate
    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    first = batch[0]
    kind = type(first)
    if isinstance(first, Tensor):
        return cygrad.stack(list(batch))
    if isinstance(first, (str, bytes)):             # NumPy's strings, too
        return batch
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind not in "biufc":
            raise TypeError("default_collate: expected tensors, arrays, numbers, strings, or collections of them (got "
                            f"an array of {first.dtype}).")
        return cygrad.as_tensor(np.stack([np.asarray(item) for item in batch]))
    if isinstance(first, float):
        return cygrad.tensor(batch, dtype=cygrad.float64)
    if isinstance(first, int):
        return cygrad.tensor(batch)
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(column) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("default_collate: lists of a batch should be of equal size (got several sizes). "
                               "Pass a collate_fn.")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, (list, tuple, range)) else _sequence_like(kind, columns)
    raise TypeError("default_collate: expected tensors, arrays, numbers, strings, or collections of them (got "
                    f"{kind}).")


def default_convert(data):
    """
    Convert NumPy arrays in a sample to tensors.

    Parameters
    ----------
    data : any

    Returns
    -------
    any
        Of the same structure.

    Examples
    --------
    >>> from cygrad.utils.data import default_convert
    >>> import numpy as np
    >>> default_convert({"x": np.ones(2, dtype="float32")})
    {'x': tensor([1., 1.])}
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return cygrad.as_tensor(data) if data.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence):
        return _sequence_like(type(data), [default_convert(item) for item in data])
    return data


def _like(mapping, values):
    """Return a mapping of the same class with new values, or a dict."""
    try:
        if isinstance(mapping, MutableMapping):
            made = copy.copy(mapping)
            made.update(values)
            return made
        return type(mapping)(values)
    except TypeError:
        return values


def _sequence_like(kind, items):
    try:
        return kind(items)
    except TypeError:
        return items
