"""Storages: the memory of tensors as bytes or elements."""

import cygrad
from cygrad import Tensor
from cygrad._core.arrays.dtype import library_name
from cygrad._core.creation.creation import seen_as
from cygrad.conversion import WITHOUT_NUMPY

__all__ = [         # and storage types by dtype, created below
    "Storage", "StorageBase", "TypedStorage", "UntypedStorage", "is_storage",
]


class StorageBase:
    """
    Memory as a 1-dim tensor.

    Parameters
    ----------
    content : int or sequence, optional
        Number of elements, or their values.
    """

    _dtype = None                  # of the elements, if the type has one
    is_cuda = is_sparse = is_hpu = False

    def __init__(self, content=0, *, dtype=None, device=None):
        dtype = dtype or self._dtype or cygrad.get_default_dtype()
        if isinstance(content, Tensor):
            self._elements = content
        elif isinstance(content, int):
            self._elements = cygrad.empty(content, dtype=dtype, device=device)
        else:
            self._elements = cygrad.tensor(content, dtype=dtype, device=device)

    @classmethod
    def _of(cls, tensor):
        """Return the whole memory of a tensor."""
        made = cls.__new__(cls)
        flat = tensor.detach()
        count = tensor._storage_nbytes() // tensor.element_size()
        flat = flat if flat.is_meta else flat.as_strided((count,), (1,), 0)
        made._elements = flat
        made._elements = flat if cls is not UntypedStorage or flat.is_meta else made._seen_as(cygrad.uint8)
        return made

    @classmethod
    def from_file(cls, filename, shared=False, size=0, *, nbytes=0):
        """Map the first `size` elements (or `nbytes`) of a file; `shared`: write changes to the file."""
        return cls(cygrad.from_file(filename, shared, size or nbytes, dtype=cls._dtype))

    def _seen_as(self, dtype):
        """Return the same memory as elements of another dtype."""
        if self._elements.dtype is dtype:
            return self._elements
        bits, kind = (WITHOUT_NUMPY.get(x, x) for x in (self._elements.dtype, dtype))
        array = seen_as(self._elements, bits).numpy()
        used = array[:array.nbytes // kind.itemsize * kind.itemsize // array.itemsize]
        return seen_as(cygrad.from_numpy(used.view(kind.numpy_dtype)), dtype)

    def _elements_as(self, dtype, operation):
        """Return the elements: of the dtype of a typed storage, or the bytes of an untyped one as this dtype."""
        own = self._elements.dtype
        if isinstance(self, TypedStorage) and dtype not in (None, own):
            raise RuntimeError(f"{operation}: expected a storage of {dtype} or an untyped one (got one of {own}).")
        return self._seen_as(dtype or own)

    device = property(lambda self: self._elements.device, doc="Where the memory is.")

    def __len__(self):
        return self._elements.numel()

    size = __len__

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(self._elements[index])
        return self._elements[index].item()

    def __setitem__(self, index, value):
        self._elements[index] = value._elements if isinstance(value, StorageBase) else value

    def __iter__(self):
        return iter(self.tolist())

    def __eq__(self, other):
        return isinstance(other, StorageBase) and (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self):
        return hash(self.data_ptr())

    def __repr__(self):
        lines = [f" {value}" for value in self.tolist()]
        return "\n".join([*lines, f"[{library_name()}.storage.{type(self).__name__}(dtype={self._elements.dtype}, "
                          f"device={self.device}) of size {len(self)}]"])

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.clone())

    def clone(self):
        """Return a copy."""
        return type(self)(self._elements.clone())

    def tolist(self):
        """Return the elements as a list."""
        return self._elements.tolist()

    def nbytes(self):
        """Bytes of all elements."""
        return self._elements.nbytes

    def element_size(self):
        """Bytes of one element."""
        return self._elements.element_size()

    def data_ptr(self):
        """Return the address of the memory."""
        return self._elements.data_ptr()

    def cpu(self):
        """Return self."""
        return self

    def is_shared(self):
        """Return whether the memory is shared between processes."""
        return self._elements.is_shared()

    def is_pinned(self, device=None):
        """Return False: there is no accelerator."""
        return False

    def copy_(self, source, non_blocking=None):
        """Copy the elements of another storage; return self."""
        self._elements.copy_(source._elements)
        return self

    def fill_(self, value):
        """Fill all elements; return self."""
        self._elements.fill_(value)
        return self


class UntypedStorage(StorageBase):
    """Memory as bytes, returned by ``Tensor.untyped_storage()``."""

    _dtype = cygrad.uint8

    def untyped(self):
        """Return self."""
        return self


class TypedStorage(StorageBase):
    """Memory as elements of a dtype, returned by ``Tensor.storage()``."""

    dtype = property(lambda self: self._elements.dtype, doc="Of the elements.")

    def untyped(self):
        """Return the same memory as bytes."""
        return UntypedStorage._of(self._elements)

    _untyped_storage = property(untyped)

    def type(self, dtype=None):
        """Return the name of the type of storage."""
        names = {kind._dtype: name for name, kind in _KINDS.items()}
        return f"{library_name()}.{names.get(self.dtype, 'TypedStorage')}"


_DTYPES = {"FloatStorage": cygrad.float32, "DoubleStorage": cygrad.float64, "LongStorage": cygrad.int64,
           "IntStorage": cygrad.int32, "ShortStorage": cygrad.int16, "CharStorage": cygrad.int8,
           "ByteStorage": cygrad.uint8, "BoolStorage": cygrad.bool, "HalfStorage": cygrad.float16,
           "BFloat16Storage": cygrad.bfloat16, "ComplexFloatStorage": cygrad.complex64,
           "ComplexDoubleStorage": cygrad.complex128}
_KINDS = {
    name: type(name, (TypedStorage,), {"_dtype": dtype, "__module__": __name__, "__doc__": f"Elements of {dtype}."})
    for name, dtype in _DTYPES.items()}
globals().update(_KINDS)
Storage = TypedStorage


def is_storage(obj):
    """
    Return whether an object is a storage.

    Examples
    --------
    >>> cygrad.is_storage(cygrad.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, StorageBase)
