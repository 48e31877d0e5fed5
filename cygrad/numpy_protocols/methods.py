"""
Methods of NumPy's arrays that Tensors have besides PyTorch's, for `cygrad.tensor_methods`.

Those of operators handle calls that do not match PyTorch's signature; they are named by the rows of the table.
"""

from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_sizes
from cygrad.numpy_protocols.arrays import our_dtype

__all__ = ["METHODS"]


def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
    """
    Return the tensor in another dtype, as `to` does: a copy unless `copy` is false.

    Parameters
    ----------
    dtype : dtype, numpy.dtype, type or str
        What NumPy takes: ``float`` is float64.
    order, casting, subok
        Accepted and ignored.
    copy : bool, default True

    Returns
    -------
    Tensor
        Its derivative is 1, in the dtype of `self`.

    Examples
    --------
    >>> cygrad.tensor([1.5, 2.5]).astype(int)
    tensor([1, 2])
    """
    return self.to(our_dtype(dtype), copy=copy)


def copy(self, order="C"):
    """
    Return a copy with a history, as `clone` does.

    Examples
    --------
    >>> cygrad.ones(2).copy()
    tensor([1., 1.])
    """
    return self.clone()


def _running(name):
    def call(*arguments, dim=None, axis=None, **options):
        if len(arguments) != 1 or not isinstance(arguments[0], Tensor) or dim is not None or axis is not None:
            return NotImplemented
        return getattr(arguments[0].reshape(-1), name)(0, **options)
    return call


# Without a dimension: along all elements, flattened.
cumsum, cumprod = _running("cumsum"), _running("cumprod")


def transpose(*arguments, axes=None, **options):
    """Permute dimensions as ``ndarray.transpose`` does: to the order of `axes`, or to the opposite order."""
    if not arguments or options or not isinstance(arguments[0], Tensor):
        return NotImplemented
    tensor, *given = arguments
    if len(given) == 1 and not isinstance(given[0], int):
        given, = given
    elif given and len(given) != tensor.ndim:
        return NotImplemented
    axes = axes if given == [] else given
    return tensor.permute(tuple(range(tensor.ndim))[::-1] if axes is None else as_sizes("transpose", "axes", axes))


METHODS = {"astype": astype, "copy": copy}
