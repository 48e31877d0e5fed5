"""Methods of Tensor that few programs need; `cygrad.tensor_methods` finds them here when they are first called."""

import math

import cygrad
from cygrad import Size
from cygrad._core.creation.creation import constructed
from cygrad._core.graph.tensor_type import make_subclass
from cygrad.compatibility.storages import TypedStorage, UntypedStorage

__all__ = ["METHODS"]


def new(self, *args, **options):
    """A tensor of the same dtype: of sizes, whose elements are not set, or of data."""
    return constructed(self.dtype, args, options, "new")


def storage(self):
    """The memory that the tensor lies in, as elements."""
    return TypedStorage._of(self)


def untyped_storage(self):
    """The memory that the tensor lies in, as bytes."""
    return UntypedStorage._of(self)


def resize_(self, *sizes, memory_format=None):
    """
    Give the tensor another shape, in row-major order, keeping the elements of its memory and adding what is missing.

    Parameters
    ----------
    *sizes : int or tuple of int
    memory_format : optional
        Without effect.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.arange(4).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    size = Size(sizes[0] if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes)
    if any(n < 0 for n in size):
        raise RuntimeError(f"resize_: sizes must not be negative (got {size}).")
    if self.requires_grad:
        raise RuntimeError("resize_: cannot resize variables that require grad. Use reshape(), or detach() first.")
    if tuple(size) == tuple(self.shape):
        return self
    start = self.storage_offset()
    flat = self.storage()._elements
    if start + math.prod(size) > flat.numel() and not self.is_meta:
        larger = cygrad.empty(start + math.prod(size), dtype=self.dtype)
        larger[:flat.numel()] = flat
        flat = larger
    if self.is_meta:
        self.data = cygrad.empty(size, dtype=self.dtype, device="meta")
        return self
    return self.set_(flat, start, size)


def resize_as_(self, tensor, memory_format=None):
    """`resize_` to the shape of another tensor."""
    return resize_(self, tensor.shape)


def share_memory_(self):
    """The tensor itself: threads share all memory."""
    return self


def is_shared(self):
    """Whether other processes see the memory."""
    return False


def apply_(self, callable):
    """Replace each element by what a function of Python gives for it: slow."""
    return self.copy_(cygrad.tensor([callable(value) for value in self.flatten().tolist()]).view(self.shape))


def map_(self, tensor, callable):
    """Replace each element by what a function of Python gives for it and that of another tensor: slow."""
    pairs = zip(self.flatten().tolist(), tensor.expand_as(self).flatten().tolist(), strict=True)
    return self.copy_(cygrad.tensor([callable(*pair) for pair in pairs]).view(self.shape))


def as_subclass(self, cls):
    """The same memory as a tensor of a subclass."""
    return make_subclass(cls, self.detach(), self.requires_grad)


def new_empty_strided(self, size, stride, dtype=None, **options):
    """A tensor of the same dtype with given strides whose elements are not set; see `empty_strided`."""
    return cygrad.empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, **options)


def narrow_copy(self, dim, start, length):
    """A copy of a part along one dimension."""
    return cygrad.narrow_copy(self, dim, start, length)


def __rdiv__(self, other):  # a name of Python 2 that PyTorch keeps
    """``other / self``."""
    return self.reciprocal() * other


def dim_order(self, ambiguity_check=False):
    """The dimensions from the one with the longest steps in memory to that with the shortest."""
    return tuple(sorted(range(self.ndim), key=lambda dim: -self.stride(dim)))


def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself: all are dense."""
    return self if dtype is None else self.to(dtype)


METHODS = {name: value for name, value in list(globals().items())
           if callable(value) and getattr(value, "__module__", None) == __name__}
