"""DLPack exchange of tensors with other libraries."""

from cygrad import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """
    Export a tensor as a DLPack capsule, which another library can import once.

    Parameters
    ----------
    tensor : Tensor

    Examples
    --------
    >>> type(cygrad.utils.dlpack.to_dlpack(cygrad.ones(2))).__name__
    'PyCapsule'
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack: expected a Tensor (got {type(tensor).__name__}).")
    return tensor.detach().__dlpack__()
