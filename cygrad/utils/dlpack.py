"""Tensors from and for other libraries that speak DLPack."""

from cygrad import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """
    A capsule over the memory of a tensor, which another library takes once.

    Parameters
    ----------
    tensor : Tensor

    Examples
    --------
    >>> import cygrad
    >>> type(cygrad.utils.dlpack.to_dlpack(cygrad.ones(2))).__name__
    'PyCapsule'
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack: expected a Tensor (got {type(tensor).__name__}).")
    return tensor.detach().__dlpack__()
