"""
Shared memory: an unnamed file, mapped by each process and sent by its descriptor.

It lives as long as a tensor of any process uses it.
"""

import mmap
import os
import weakref

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._system import unnamed_file

__all__ = ["Region", "is_shared", "placed", "region_of", "share"]

_by_file = weakref.WeakValueDictionary()         # (device, inode) -> Region
_by_address = weakref.WeakValueDictionary()      # of its first byte -> Region


class Region(mmap.mmap):
    """
    A region of shared memory.

    Parameters
    ----------
    descriptor : int
        Descriptor of the file, owned by the region.
    size : int
        Bytes.
    """

    def __new__(cls, descriptor, size):
        made = super().__new__(cls, descriptor, size)
        made.descriptor = descriptor
        weakref.finalize(made, os.close, descriptor).atexit = False
        _by_file[_identity(descriptor)] = made
        _by_address[made.bytes().ctypes.data] = made
        return made

    @classmethod
    def new(cls, size):
        """Allocate zeroed memory of `size` bytes."""
        descriptor = unnamed_file()
        try:
            os.ftruncate(descriptor, max(size, 1))
            return cls(descriptor, max(size, 1))
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def opened(cls, descriptor, size):
        """Return the region of a received descriptor; map each file once."""
        known = _by_file.get(_identity(descriptor))
        if known is None:
            return cls(descriptor, size)
        if known.descriptor != descriptor:
            os.close(descriptor)
        return known

    def bytes(self):
        """Return the memory as an array."""
        return np.frombuffer(self, np.uint8)


def _identity(descriptor):
    """Return the identity of a file, which does not depend on the descriptor."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def region_of(tensor):
    """Return the region of a tensor, or None."""
    if tensor.is_meta:
        return None
    return _by_address.get(tensor.data_ptr() - tensor.storage_offset() * tensor.element_size())


def is_shared(tensor):
    """Return whether the memory of a tensor is shared between processes."""
    return region_of(tensor) is not None


def placed(region, dtype, size, stride, offset):
    """Return a tensor over a region; `offset` in elements."""
    flat = cygrad.from_numpy(region.bytes()[:len(region) // dtype.itemsize * dtype.itemsize]).view(dtype)
    return flat.as_strided(tuple(size), tuple(stride), offset).detach()


def share(tensor):
    """
    Move the storage of a tensor to shared memory; return the tensor.

    Other views of the storage keep the old memory.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"share_memory_: expected a Tensor (got {type(tensor).__name__}).")
    if tensor.is_meta or is_shared(tensor):
        return tensor
    whole = tensor.detach().untyped_storage()._elements.numpy()
    region = Region.new(whole.nbytes)
    region.bytes()[:whole.nbytes] = whole
    tensor.data = placed(region, tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())
    return tensor
