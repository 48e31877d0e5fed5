"""
Reading files of ``torch.save``: pickles whose tensors refer to storages in separate records.

The current format is a zip archive, ``NAME/data.pkl`` with ``NAME/data/0`` and so on. The format before PyTorch 1.6 is
several pickles, then the storages.
"""

import codecs
import io
import os
import pickle
import re
from collections import Counter, OrderedDict

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad._core.arrays import dtype as dtypes
from cygrad._core.creation.factories import empty
from cygrad.nn.parameter import Buffer, Parameter
from cygrad.serialization import elements
from cygrad.serialization.files import read_fully
from cygrad.serialization.native import finished, laid, sizes
from cygrad.serialization.unpickling import SAFE, Skimmer, Unpickler, check_key

__all__ = ["STORAGES", "read"]

MAGIC, LEGACY_VERSION = 0x1950A86A20F9469CFC6C, 1001
# PyTorch's names of storages, and the kinds of their elements.
STORAGES = {
    "BoolStorage": "BOOL", "ByteStorage": "U8", "CharStorage": "I8", "ShortStorage": "I16", "IntStorage": "I32",
    "LongStorage": "I64", "HalfStorage": "F16", "BFloat16Storage": "BF16", "FloatStorage": "F32",
    "DoubleStorage": "F64", "ComplexFloatStorage": "C64", "ComplexDoubleStorage": "C128", "UntypedStorage": "U8",
}
NUMPY_KIND = re.compile(r"\?|[biufc]\d{1,2}")


# ---- names that pickles may refer to

class _StorageType:
    """A storage class in pickles."""

    def __init__(self, name):
        self.name, self.kind = name, STORAGES[name]


def _set(items=()):
    return _checked_items(set, items)


def _frozenset(items=()):
    return _checked_items(frozenset, items)


def _checked_items(kind, items):
    for item in items:
        check_key(item)
    return kind(items)


def _ordered_dict(pairs=()):
    made = OrderedDict()
    for key, value in pairs:
        check_key(key)
        made[key] = value
    return made


def _counter(counts=()):
    if type(counts) is not dict and counts:
        raise ValueError("a Counter is not made from a dict")
    return Counter(dict(counts))


def _encode(text, encoding):
    if encoding != "latin1":
        raise ValueError(f"bytes have an encoding that they cannot have (got {encoding!r})")
    return codecs.latin_1_encode(text)[0]


def _bytes():
    return b""


def _bytearray(content=b"", encoding="latin-1"):
    if type(content) not in (bytes, str) or encoding != "latin-1":
        raise ValueError("a bytearray is not made from bytes or str")
    return bytearray(content if type(content) is bytes else codecs.latin_1_encode(content)[0])


def _complex(real, imag):
    if type(real) is not float or type(imag) is not float:
        raise ValueError("a complex number is not made from two floats")
    return complex(real, imag)


def _size(values):
    return cygrad.Size(sizes(values))


def _device(*description):
    return cygrad.device(*description)


def _layout(name):
    if name != "torch.strided":
        raise ValueError(f"cygrad has no layout {name!r}")
    return cygrad.strided


def _rebuild_tensor(storage, offset, shape, strides):
    if type(storage) is not Tensor or storage.ndim != 1:
        raise ValueError(f"the storage of a tensor is a {type(storage).__name__}")
    return laid(storage, shape, strides, offset)


def _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad=False, hooks=None, metadata=None):
    tensor = _rebuild_tensor(storage, offset, shape, strides)
    if metadata:
        with cygrad.no_grad():
            tensor = tensor.conj_physical() if metadata.get("conj") else tensor
            tensor = -tensor if metadata.get("neg") else tensor
    return finished(tensor, "Tensor", bool(requires_grad))


def _rebuild_tensor_v3(storage, offset, shape, strides, requires_grad, hooks, dtype, metadata=None):
    # Types without a storage class: their storage is bytes.
    if type(storage) is not Tensor or storage.dtype is not dtypes.uint8 or not isinstance(dtype, dtypes.dtype):
        raise ValueError("the storage of a tensor is invalid")
    kind = elements.kind_of(dtype)
    raw = storage.numpy()
    flat = elements.tensor_over(raw[:raw.size - raw.size % elements.element_size(kind)], kind)
    return _rebuild_tensor_v2(flat, offset, shape, strides, requires_grad, hooks, metadata)


def _rebuild_parameter(data, requires_grad, hooks):
    if type(data) is not Tensor:
        raise ValueError(f"a parameter is made of a {type(data).__name__}")
    return Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data, requires_grad, hooks, state):
    return _with_attributes(_rebuild_parameter(data, requires_grad, hooks), state)


def _rebuild_from_type(make, kind, arguments, state):
    if not any(make is known for known in (_rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter)):
        raise ValueError("a tensor with attributes is made by something unknown")
    tensor = make(*arguments)
    if kind is not type(tensor):
        raise ValueError("a tensor with attributes is of another class")
    if type(state) is dict and state.pop("_is_buffer", False) is True:
        tensor = Buffer(tensor, persistent=state.pop("persistent", True) is True)
    return _with_attributes(tensor, state)


def _with_attributes(tensor, state):
    """Set the user attributes of a tensor; never replace an attribute of its class."""
    if type(state) is tuple and len(state) == 2:              # with those of slots
        state = state[0]
    for name, value in (state or {}).items():
        if type(name) is str and name.isidentifier() and not hasattr(type(tensor), name):
            tensor.__dict__[name] = value
    return tensor


def _numpy_dtype(name, align=False, copy=True):
    if type(name) is not str or not NUMPY_KIND.fullmatch(name):
        raise ValueError(f"not a dtype of numbers (got {name!r})")
    return np.dtype(name, copy=True)                          # a new object, which its state may modify


def _numpy_scalar(dtype, raw):
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc" or len(raw) != dtype.itemsize:
        raise ValueError("a number of NumPy is damaged")
    return np.frombuffer(raw, dtype)[0]


def _numpy_array(kind, shape, code):
    return np.empty(0, np.uint8)                              # its state has everything


def _build(made, state):
    """Set the state of an object of a pickle."""
    if type(made) is OrderedDict:                             # the versions of a state_dict
        if type(state) is not dict or not all(type(name) is str and name.isidentifier() for name in state):
            raise ValueError("an OrderedDict has invalid attributes")
        made.__dict__.update(state)
    elif isinstance(made, np.dtype):
        if type(state) is not tuple or state[2:] != (None, None, None, -1, -1, 0) or state[1] not in tuple("<>|="):
            raise ValueError("a dtype is not one of numbers")
        made.__setstate__(state)  # type: ignore[attr-defined]
    elif type(made) is np.ndarray:
        version, shape, dtype, fortran, raw = state
        shape, raw = sizes(shape), _encode(raw, "latin1") if type(raw) is str else raw
        if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc":
            raise ValueError("an array is not one of numbers")
        if type(raw) is not bytes or len(raw) != int(np.prod(shape, dtype=object)) * dtype.itemsize:
            raise ValueError(f"an array of shape {shape} has another number of bytes")
        made.__setstate__((version, shape, dtype, bool(fortran), raw))  # type: ignore[arg-type]
    elif any(type(made) is known for known in SAFE.values()):
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            made.__dict__.update(state)
    elif not (isinstance(made, Tensor) and not state):
        raise ValueError(f"a {type(made).__name__} gets a state")


MAKERS = {
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor, ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_tensor_v3,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type, ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch", "Size"): _size, ("torch", "device"): _device, ("torch.serialization", "_get_layout"): _layout,
    ("collections", "OrderedDict"): _ordered_dict, ("collections", "Counter"): _counter, ("_codecs", "encode"): _encode,
    **{(module, name): make for module in ("builtins", "__builtin__") for name, make in (
        ("set", _set), ("frozenset", _frozenset), ("bytes", _bytes), ("bytearray", _bytearray), ("complex", _complex))},
    ("numpy", "dtype"): _numpy_dtype,
    **{(module, name): make for module in ("numpy.core.multiarray", "numpy._core.multiarray") for name, make in (
        ("scalar", _numpy_scalar), ("_reconstruct", _numpy_array))},
}
NAMES = {
    **MAKERS, ("torch", "Tensor"): Tensor, ("numpy", "ndarray"): np.ndarray,
    **{("torch", name): getattr(dtypes, name) for _, name in elements.KINDS.values()},
    **{(module, name): _StorageType(name) for module in ("torch", "torch.storage", "torch.cuda") for name in STORAGES},
}
MAKER_IDS = {id(make) for make in MAKERS.values()}


# ------------------------------------------------------------------------------------------------------------- reading

class _PicklerOfAll(pickle.Unpickler):
    """Python's unpickler, which runs what the pickle says; for trusted files."""

    def __init__(self, file, persistent):
        super().__init__(file, encoding="utf-8")
        self.persistent_load = persistent  # type: ignore[method-assign]

    def find_class(self, module, name):
        if module.partition(".")[0] == "torch":
            # In the stand-in for PyTorch, all its paths can be imported.
            if (module, name) in NAMES:
                return NAMES[module, name]
            if dtypes.library_name() != "torch":
                try:
                    return super().find_class("cygrad" + module[5:], name)
                except ModuleNotFoundError:                   # torch.nn.modules.linear.Linear is in cygrad.nn
                    module = ".".join(["cygrad", *module.split(".")[1:2]])
        return super().find_class(module, name)


def read(archive, file, weights_only):
    """Read an object that ``torch.save`` wrote, from an `Archive`, or from a file of the older format."""
    if archive is not None:
        return _read_archive(archive, weights_only)
    return _read_legacy(file, weights_only)


def _unpickled(file, size, persistent, weights_only):
    if weights_only:
        return Unpickler(file, size, NAMES, MAKER_IDS, persistent, _build).load()
    return _PicklerOfAll(file, persistent).load()


def _described(identifier):
    """Return key, kind, number of elements and the rest of a storage identifier."""
    if type(identifier) is not tuple or len(identifier) < 5 or identifier[0] != "storage":
        raise ValueError("a persistent id in a pickle is not a storage")
    _, kind, key, _, count, *rest = identifier
    if type(kind) is not _StorageType or type(key) is not str or type(count) is not int or count < 0:
        raise ValueError(f"a storage is described wrongly (got {identifier[1:]})")
    return key, kind.kind, count, rest


def _read_archive(archive, weights_only):
    found = [name for name in archive.sizes if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(found) != 1:
        raise ValueError("it does not contain exactly one pickle, as files of torch.save do")
    folder = found[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in archive:
        raise ValueError("it is a program of TorchScript, which cygrad does not run. Save the module's state_dict()")
    order = archive.read(f"{folder}byteorder").strip() if f"{folder}byteorder" in archive else b"little"
    if order not in (b"little", b"big"):
        raise ValueError(f"unknown byte order (got {order!r})")
    storages = {}

    def persistent(identifier):
        key, kind, count, _ = _described(identifier)
        if key not in storages:
            name, needed = f"{folder}data/{key}", count * elements.element_size(kind)
            if archive.sizes[name] != needed:
                raise ValueError(f"{name} has {archive.sizes[name]} bytes where {count} elements need {needed}")
            with archive.open(name) as member:
                storage = empty((count,), dtype=elements.dtype_of(kind))
                elements.fill(storage, kind, lambda buffer: read_fully(member, buffer), order == b"big")
                member.read(1)                                # at the end the file verifies its checksum
            storages[key] = kind, count, storage
        if storages[key][:2] != (kind, count):
            raise ValueError(f"storage {key!r} has conflicting descriptions")
        return storages[key][2]

    text = archive.read(found[0])
    return _unpickled(io.BytesIO(text), len(text), persistent, weights_only)


def _read_legacy(file, weights_only):
    start = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(start)

    def plain():
        return Unpickler(file, size, {}, (), None, _build).load()

    if plain() != MAGIC or plain() != LEGACY_VERSION:
        raise ValueError("it does not begin with the magic number of torch.save")
    swapped = not plain()["little_endian"]
    # The storages come after the pickle, which describes them, so the pickle is read twice.
    described, storages = {}, {}

    def note(identifier):
        key, kind, count, _ = _described(identifier)
        if described.setdefault(key, (kind, count)) != (kind, count):
            raise ValueError(f"storage {key!r} has conflicting descriptions")

    start = file.tell()
    Skimmer(file, size, NAMES, (), note, None).load()
    for key in plain():
        kind, count = described.pop(key)
        if int.from_bytes(file.read(8), "big" if swapped else "little") != count:
            raise ValueError(f"storage {key!r} has a different number of elements than declared")
        if count * elements.element_size(kind) > size - file.tell():
            raise ValueError(f"storage {key!r} is truncated")
        storages[key] = elements.fill(empty((count,), dtype=elements.dtype_of(kind)), kind,
                                      lambda buffer: read_fully(file, buffer), swapped)
    if described:
        raise ValueError(f"some storages are missing (got no {sorted(described)[:10]})")
    end = file.tell()
    file.seek(start)

    def persistent(identifier):
        key, _, _, view = _described(identifier)
        if not view or view[0] is None:
            return storages[key]
        _, offset, length = view[0]
        return laid(storages[key], [length], [1], offset)

    value = _unpickled(file, size, persistent, weights_only)
    file.seek(end)
    return value
