"""How elements lie in files. Kinds have the names of the safetensors format; other formats' names are translated."""

import ctypes
import sys

import numpy as np

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.creation.creation import from_numpy
from cygrad._core.creation.factories import empty

__all__ = ["KINDS", "dtype_of", "element_size", "fill", "kind_of", "memory", "tensor_over"]

# Kind: NumPy's code for the bytes, the dtype of that kind, and one that holds all its values for want of it.
KINDS = {
    "BOOL": ("u1", "bool", None), "U8": ("u1", "uint8", None), "I8": ("i1", "int8", None), "I16": ("i2", "int16", None),
    "I32": ("i4", "int32", None), "I64": ("i8", "int64", None), "F32": ("f4", "float32", None),
    "F64": ("f8", "float64", None), "C64": ("c8", "complex64", None), "C128": ("c16", "complex128", None),
    "U16": ("u2", "uint16", "int32"), "U32": ("u4", "uint32", "int64"), "U64": ("u8", "uint64", None),
    "F16": ("f2", "float16", "float32"), "BF16": ("u2", "bfloat16", "float32"),
}


def _exact(kind):
    """The dtype of a kind, or None if there are no tensors of it."""
    found = getattr(dtypes, KINDS[kind][1], None)
    return None if isinstance(found, dtypes.dtype_without_elements) else found


def dtype_of(kind):
    """The dtype that elements of a kind become."""
    _, name, larger = KINDS[kind]
    found = _exact(kind) or (larger and getattr(dtypes, larger))
    if found is None:
        raise ValueError(f"cygrad has no dtype for {name}")
    return found


def kind_of(dtype):
    """The kind of a dtype, or None."""
    return next((kind for kind, (_, name, _) in KINDS.items() if name == dtype.name), None)


def element_size(kind):
    """Bytes per element in files."""
    return np.dtype(KINDS[kind][0]).itemsize


def memory(tensor):
    """The bytes of a contiguous tensor, which has to outlive them."""
    if tensor.numel() == 0:
        return memoryview(bytearray())
    return memoryview((ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr())).cast("B")


def fill(tensor, kind, read, swapped=False):
    """
    Read the elements of a contiguous tensor of dtype ``dtype_of(kind)``.

    ``read(buffer)`` fills a buffer of bytes; `swapped`: most significant byte first.
    """
    if tensor.numel() == 0:
        return tensor
    raw = np.frombuffer(memory(tensor), KINDS[kind][0]) if _exact(kind) else np.empty(tensor.numel(), KINDS[kind][0])
    read(raw.view(np.uint8))
    if swapped != (sys.byteorder == "big"):
        unit = raw.itemsize // 2 if raw.dtype.kind == "c" else raw.itemsize
        raw.view(f"u{unit}").byteswap(inplace=True)
    if kind == "BOOL":
        np.not_equal(raw, 0, out=raw, casting="unsafe")        # any other byte is true as well
    if not _exact(kind):
        if kind == "BF16":                                     # the upper half of a float32
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        tensor.copy_(from_numpy(raw.astype(tensor.dtype.numpy_dtype, copy=False)))
    return tensor


def tensor_over(raw, kind):
    """A flat tensor of the elements in an array of bytes: over them if they can stay as they are, else a copy."""
    code, _, _ = KINDS[kind]
    count = raw.size // element_size(kind)
    if _exact(kind) and kind not in ("BOOL", "BF16") and sys.byteorder == "little":
        array = raw.view(code)
        if array.flags.aligned and array.flags.writeable:
            return from_numpy(array)

    def read(buffer):
        buffer[:] = raw
    return fill(empty((count,), dtype=dtype_of(kind)), kind, read)
