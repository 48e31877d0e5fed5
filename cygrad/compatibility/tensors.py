"""Rarely used methods of Tensor, which `cygrad.tensor_methods` imports at their first call."""

import math

import cygrad
from cygrad import Size, Tensor
from cygrad._core.creation.creation import constructed
from cygrad._core.dispatch import tangents
from cygrad._core.graph.argument_errors import as_callable, as_sizes
from cygrad._core.graph.boxing import Disabled, become
from cygrad._core.table.operator import operators
from cygrad.compatibility.storages import TypedStorage, UntypedStorage
from cygrad.composite.out_forms import as_tensor_argument, spelled

__all__ = ["METHODS"]


def new(self, *args, **options):
    """Return a tensor of the same dtype: uninitialized with given sizes, or of data.

    Examples
    --------
    >>> cygrad.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    return constructed(self.dtype, (Size(options.pop("size")),) if "size" in options else args, options, "new")


def storage(self):
    """Return the memory of the tensor as elements.

    Examples
    --------
    >>> cygrad.arange(4)[1:].storage().tolist()
    [0, 1, 2, 3]
    """
    return TypedStorage._of(self)


def untyped_storage(self):
    """Return the memory of the tensor as bytes.

    Examples
    --------
    >>> cygrad.ones(2).untyped_storage().nbytes()
    8
    """
    return UntypedStorage._of(self)


def resize_(self, *sizes, memory_format=None):
    """
    Change the shape in-place, in row-major order, keeping the elements of the memory; new elements are uninitialized.

    Parameters
    ----------
    *sizes : int or tuple of int
    memory_format : memory_format, optional
        Order of the dimensions in memory.

    Examples
    --------
    >>> cygrad.arange(4).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    size = Size(as_sizes("resize_", "sizes", sizes[0] if len(sizes) == 1 else sizes, 1))
    if any(n < 0 for n in size):
        raise RuntimeError(f"resize_: sizes must not be negative (got {size}).")
    if math.prod(size) * self.element_size() >= 2**63:
        raise RuntimeError(f"resize_: too many elements for 64-bit arithmetic (got shape {tuple(size)}).")
    if self.requires_grad and not cygrad.is_inference_mode_enabled():
        raise RuntimeError("resize_: cannot resize variables that require grad. Use reshape(), or detach() first.")
    strides = None if memory_format is None else cygrad.empty(size, device="cpu", memory_format=memory_format).stride()
    if tuple(size) == tuple(self.shape) and (strides is None or strides == self.stride()):
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
    return self.set_(flat, start, size, strides)


def resize_as_(self, tensor, memory_format=None):
    """Resize to the shape of another tensor.

    Examples
    --------
    >>> cygrad.arange(4).resize_as_(cygrad.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    tensor = as_tensor_argument("resize_as_", "tensor", tensor)
    if memory_format == cygrad.preserve_format:
        kinds = {4: cygrad.channels_last, 5: cygrad.channels_last_3d}
        memory_format = kinds.get(tensor.ndim, cygrad.contiguous_format)
        if tensor.is_contiguous() or not tensor.is_contiguous(memory_format=memory_format):
            memory_format = None
    return resize_(self, tensor.shape, memory_format=memory_format)


def share_memory_(self):
    """Move the memory to shared memory; return the tensor. See `cygrad.multiprocessing`.

    Examples
    --------
    >>> cygrad.ones(2).share_memory_().is_shared()
    True
    """
    from cygrad.multiprocessing import memory
    return memory.share(self)


def is_shared(self):
    """Return whether the memory is shared with other processes.

    Examples
    --------
    >>> cygrad.ones(2).is_shared()
    False
    """
    from cygrad.multiprocessing import memory
    return memory.is_shared(self)


def _refuse_history(operation, *tensors):
    """Raise if a tensor requires grad: Python functions of numbers are not recorded."""
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"{operation}: cannot be called on tensors that require grad, because the function is not "
                           "recorded. Use detach() first.")


def apply_(self, callable):
    """Apply a Python function to each element in place; slow.

    Examples
    --------
    >>> cygrad.tensor([1.0, 2.0]).apply_(lambda value: value + 1)
    tensor([2., 3.])
    """
    as_callable("apply_", "callable", callable)
    _refuse_history("apply_", self)
    return self.copy_(cygrad.tensor([callable(value) for value in self.flatten().tolist()]).view(self.shape))


def map_(self, tensor, callable):
    """Apply a Python function to the elements of two tensors, in place; slow.

    Examples
    --------
    >>> cygrad.tensor([1.0, 2.0]).map_(cygrad.ones(2), lambda x, y: x - y)
    tensor([0., 1.])
    """
    other = as_tensor_argument("map_", "tensor", tensor).expand_as(self)
    as_callable("map_", "callable", callable)
    _refuse_history("map_", self, other)
    pairs = zip(self.flatten().tolist(), other.flatten().tolist(), strict=True)
    return self.copy_(cygrad.tensor([callable(*pair) for pair in pairs]).view(self.shape))


def as_subclass(self, cls):
    """Return a differentiable view of the tensor as a subclass.

    Examples
    --------
    >>> class Image(cygrad.Tensor):
    ...     pass
    >>> type(cygrad.ones(2).as_subclass(Image)).__name__
    'Image'
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"as_subclass: expected a subclass of Tensor (got {cls!r}).")
    with Disabled():
        return become(operators.alias(self), cls)


def new_empty_strided(self, size, stride, dtype=None, **options):
    """Return an uninitialized tensor of the same dtype with given strides; see `empty_strided`.

    Examples
    --------
    >>> cygrad.ones(2).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return cygrad.empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, **options)


@spelled
def narrow_copy(self, dim, start, length):
    """Return a copy of a part along one dimension.

    Examples
    --------
    >>> cygrad.arange(4).narrow_copy(0, 1, 2)
    tensor([1, 2])
    """
    return cygrad.narrow_copy(self, dim, start, length)


def __div__(self, other):  # Python 2 names that PyTorch keeps
    """``self / other``."""
    return self / other


def __idiv__(self, other):
    """``self /= other``."""
    return self.div_(other)


def __long__(self):
    """``int(self)``."""
    return int(self)


def __nonzero__(self):
    """``bool(self)``."""
    return bool(self)


def __rdiv__(self, other):
    """``other / self``."""
    return self.reciprocal() * other


def dim_order(self, ambiguity_check=False):
    """Return the dimensions in order of decreasing strides.

    Parameters
    ----------
    ambiguity_check : bool or list of memory_format, default False
        True: raise RuntimeError if several orders describe the memory, because dimensions have size 1, equal
        strides or the stride 0. A list: raise if the tensor has several of these formats.

    Examples
    --------
    >>> cygrad.ones(2, 3).t().dim_order()
    (1, 0)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(
            isinstance(kind, cygrad.memory_format) for kind in formats):
        raise TypeError(f"dim_order: ambiguity_check must be a bool or a list of memory formats (got "
                        f"{ambiguity_check!r}).")
    if ((ambiguity_check is True and (1 in self.shape or len({0, *self.stride()}) <= self.ndim))
            or sum(self.is_contiguous(memory_format=kind) for kind in formats) > 1):
        raise RuntimeError(f"dim_order: the tensor does not have a unique order of dimensions (got shape "
                           f"{tuple(self.shape)} with strides {self.stride()}).")
    return tuple(sorted(range(self.ndim), key=lambda dim: -self.stride(dim)))


def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself: all are dense.

    Examples
    --------
    >>> cygrad.ones(2).to_dense()
    tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


def prelu(self, weight):
    """Apply `nn.functional.prelu`.

    Examples
    --------
    >>> cygrad.tensor([-2.0, 3.0]).prelu(cygrad.tensor(0.5))
    tensor([-1.,  3.])
    """
    return cygrad.nn.functional.prelu(self, weight)


def record_stream(self, stream):
    """Do nothing: the CPU has no streams.

    Examples
    --------
    >>> cygrad.ones(2).record_stream(None)
    """


def is_distributed(self):
    """Return False: distributed tensors are not supported.

    Examples
    --------
    >>> cygrad.ones(2).is_distributed()
    False
    """
    return False


def storage_type(self):
    """Return the type of the storage.

    Examples
    --------
    >>> cygrad.ones(2).storage_type().__name__
    'TypedStorage'
    """
    return type(self.storage())


def map2_(self, x, y, callable):
    """Apply a Python function to the elements of three tensors, in place; slow.

    Examples
    --------
    >>> cygrad.tensor([1.0, 2.0]).map2_(cygrad.ones(2), cygrad.ones(2), lambda x, y, z: x + y + z)
    tensor([3., 4.])
    """
    x, y = (as_tensor_argument("map2_", name, part).expand_as(self) for name, part in (("x", x), ("y", y)))
    _refuse_history("map2_", self, x, y)
    triples = zip(*(part.flatten().tolist() for part in (self, x, y)), strict=True)
    return self.copy_(cygrad.tensor([callable(*triple) for triple in triples]).view(self.shape))


def module_load(self, other, assign=False):
    """Return the replacement of this tensor when a module loads another one.

    Examples
    --------
    >>> cygrad.zeros(2).module_load(cygrad.ones(2))
    tensor([1., 1.])
    """
    as_tensor_argument("module_load", "other", other)
    return other.detach() if assign else self.copy_(other).detach()


def reinforce(self, reward):
    """Refuse, as PyTorch does since version 0.4.

    Examples
    --------
    >>> cygrad.ones(2).reinforce(1.0)
    Traceback (most recent call last):
        ...
    RuntimeError: reinforce: not supported, as in PyTorch since 0.4. Use log_prob() of a distribution.
    """
    raise RuntimeError("reinforce: not supported, as in PyTorch since 0.4. Use log_prob() of a distribution.")


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """Convert to a sparse tensor; see `cygrad.sparse`.

    Examples
    --------
    >>> cygrad.tensor([0.0, 2.0]).to_sparse().indices()
    tensor([[1]])
    """
    return cygrad.sparse.factories.from_dense(self, sparse_dim, layout=layout)


def to_sparse_coo(self):
    """Convert to a sparse tensor of layout ``sparse_coo``.

    Examples
    --------
    >>> cygrad.tensor([0.0, 2.0]).to_sparse_coo().values()
    tensor([2.])
    """
    return to_sparse(self)


def to_sparse_csr(self, dense_dim=None):
    """Convert a matrix to the layout ``sparse_csr``.

    Examples
    --------
    >>> cygrad.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=cygrad.sparse_csr)


def to_sparse_csc(self, dense_dim=None):
    """Convert a matrix to the layout ``sparse_csc``.

    Examples
    --------
    >>> cygrad.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc().ccol_indices()
    tensor([0, 0, 2])
    """
    return to_sparse(self, layout=cygrad.sparse_csc)


def sparse_dim(self):
    """Return 0: a dense tensor has no sparse dimensions.

    Examples
    --------
    >>> cygrad.ones(2, 3).sparse_dim()
    0
    """
    return 0


def dense_dim(self):
    """Return the number of dimensions.

    Examples
    --------
    >>> cygrad.ones(2, 3).dense_dim()
    2
    """
    return self.ndim


def const_data_ptr(self):
    """Return ``data_ptr()``.

    Examples
    --------
    >>> x = cygrad.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


def sparse_mask(self, mask):
    """Return the elements at the indices of a sparse tensor.

    Examples
    --------
    >>> x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.sparse_mask(cygrad.eye(2).to_sparse()).to_dense()
    tensor([[1., 0.],
            [0., 4.]])
    """
    return cygrad.sparse.functions.sparse_mask(self, mask)


def _view_func(self, new_base):
    """Return the view of another tensor that this tensor is of its base, or None."""
    base = self._base
    if base is None or (base.shape, base.stride(), base.dtype) != (new_base.shape, new_base.stride(), new_base.dtype):
        return None
    return tangents.same_view(self, new_base)


_view_func_unsafe = _view_func


def _rev_view_func_unsafe(self, new_view):
    """Return the inverse view: the base of which another tensor would be this view."""
    base = self._base
    if self.dtype != base.dtype:
        return (cygrad.view_as_complex if base.is_complex() else cygrad.view_as_real)(new_view)
    return new_view.as_strided(base.shape, base.stride(),
                               new_view.storage_offset() + base.storage_offset() - self.storage_offset())


METHODS = {name: value for name, value in list(globals().items())
           if callable(value) and getattr(value, "__module__", None) == __name__}
