"""Methods of NumPy's arrays that Tensors have besides PyTorch's, for `cygrad.tensor_methods`."""

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
    >>> import cygrad
    >>> cygrad.tensor([1.5, 2.5]).astype(int)
    tensor([1, 2])
    """
    return self.to(our_dtype(dtype), copy=copy)


def copy(self, order="C"):
    """
    Return a copy with a history, as `clone` does.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.ones(2).copy()
    tensor([1., 1.])
    """
    return self.clone()


METHODS = {"astype": astype, "copy": copy}
