"""Writing files for ``torch.load``: a pickle with PyTorch's class names, and the storages in separate records."""

import codecs
import io
import pickle
import sys
from collections import Counter, OrderedDict
from typing import Any, ClassVar

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.arrays import dtype as dtypes
from cygrad.nn.parameter import Buffer, Parameter
from cygrad.serialization import elements
from cygrad.serialization.files import add_member
from cygrad.serialization.native import Writer
from cygrad.serialization.torch_reader import STORAGES

__all__ = ["prepared"]

FOLDER = "archive/"
# Types that torch.load(weights_only=True) accepts.
PLAIN = {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, OrderedDict, Counter,
         dtypes.dtype, dtypes.dtype_without_elements, type, type(codecs.encode)}


def prepared(obj, any_object):
    """Return a function that writes an object to a zip archive; it is pickled now, before the file exists."""
    if not any_object:
        Writer().encode(obj, "obj")                           # names the position of what cannot be saved
    file = io.BytesIO()
    pickler = _Pickler(file, any_object)
    pickler.dump(obj)
    text = file.getvalue()

    def write(archive):
        for name, content in ("data.pkl", text), ("byteorder", sys.byteorder.encode()), ("version", b"3\n"):
            add_member(archive, FOLDER + name, [content], len(content))
        for storage in pickler.storages.values():
            content = elements.memory(storage.tensor)
            add_member(archive, f"{FOLDER}data/{storage.key}", [content], len(content))
    return write


class _Name:
    """A class or function of PyTorch, which need not be installed."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *_):
        raise NotImplementedError                             # pickle checks that it is callable


class _Storage:
    """Return the storage of a tensor, as a flat tensor, and its index in the file."""

    def __init__(self, tensor, key):
        self.tensor, self.key = tensor, key


REBUILD, REBUILD_NEWER, REBUILD_PARAMETER, REBUILD_PARAMETER_WITH_STATE = [_Name("torch._utils", name) for name in (
    "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_parameter_with_state")]
REBUILD_FROM_TYPE, TENSOR = _Name("torch._tensor", "_rebuild_from_type_v2"), _Name("torch", "Tensor")
SIZE, DEVICE = _Name("torch", "Size"), _Name("torch", "device")
TYPES = {kind: _Name("torch", name) for name, kind in STORAGES.items() if name != "UntypedStorage"}
UNTYPED = _Name("torch.storage", "UntypedStorage")        # dtypes without a storage class


class _Pickler(pickle._Pickler):                              # the one in Python: names need no modules here
    dispatch: ClassVar[dict[type, Any]] = pickle._Pickler.dispatch.copy()
    write: Any
    memoize: Any
    save_reduce: Any

    def __init__(self, file, any_object):
        super().__init__(file, protocol=2)
        self.any_object, self.storages = any_object, {}

    def save(self, obj, save_persistent_id=True):
        if not self.any_object and isinstance(obj, np.generic):
            obj = obj.item()
        return super().save(obj, save_persistent_id)  # type: ignore[misc]

    def save_name(self, obj):
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = save_name

    def save_raw(self, obj):
        self.save_reduce(codecs.encode, (obj.decode("latin1"), "latin1"), obj=obj)

    dispatch[bytes] = save_raw

    def save_dtype(self, obj):
        self.write(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[dtypes.dtype] = dispatch[dtypes.dtype_without_elements] = save_dtype

    def persistent_id(self, obj):
        if type(obj) is not _Storage:
            return None
        kind = TYPES.get(elements.kind_of(obj.tensor.dtype), UNTYPED)
        count = obj.tensor.nbytes if kind is UNTYPED else obj.tensor.numel()
        return "storage", kind, str(obj.key), "cpu", count

    def reducer_override(self, obj):
        if type(obj) is cygrad.Size:
            return SIZE, (tuple(obj),)
        if type(obj) is cygrad.device:
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if type(obj) is Parameter:
            parts = obj.detach(), obj.requires_grad, OrderedDict()
            if obj.__dict__:
                return REBUILD_PARAMETER_WITH_STATE, (*parts, dict(obj.__dict__))
            return REBUILD_PARAMETER, parts
        if type(obj) is Tensor or (isinstance(obj, Buffer) and not self.any_object):
            arguments = (*self.place(obj.detach()), obj.requires_grad, OrderedDict())
            rebuild = REBUILD
            if elements.kind_of(obj.dtype) not in TYPES:
                rebuild, arguments = REBUILD_NEWER, (*arguments, obj.dtype)
            if type(obj) is Tensor and obj.__dict__:
                return REBUILD_FROM_TYPE, (rebuild, TENSOR, arguments, dict(obj.__dict__))
            return rebuild, arguments
        if not self.any_object and type(obj) not in PLAIN and type(obj) is not _Name:
            raise TypeError(f"save: PyTorch's files do not hold an object of type {type(obj).__name__} for "
                            "weights_only=True. Turn it into tensors or numbers, or use format='cygrad'.")
        return NotImplemented

    def place(self, tensor):
        """Return the storage of a tensor, and offset, shape and strides of its view."""
        if any(stride < 0 for stride in tensor.stride()) or not tensor.numel():
            tensor = tensor.clone().contiguous()
        start = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
        key = start, tensor.dtype
        if key not in self.storages:
            whole = tensor.as_strided((tensor._storage_nbytes() // tensor.itemsize,), (1,), 0)
            self.storages[key] = _Storage(whole, len(self.storages))
        return self.storages[key], tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
