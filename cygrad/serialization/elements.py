"""Elements in files. Kinds have the names of the safetensors format; those of other formats are translated."""

import sys

import numpy as np

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.creation.creation import from_numpy, numpy_view, seen_as
from cygrad._core.creation.factories import empty

__all__ = ["KINDS", "dtype_of", "element_size", "fill", "kind_of", "memory", "tensor_over"]

# Kind: NumPy's code for the bytes, and the name of the dtype. C32 is cygrad's, the format has none.
KINDS = {
    "BOOL": ("u1", "bool"), "U8": ("u1", "uint8"), "I8": ("i1", "int8"), "I16": ("i2", "int16"), "I32": ("i4", "int32"),
    "I64": ("i8", "int64"), "F32": ("f4", "float32"), "F64": ("f8", "float64"), "C64": ("c8", "complex64"),
    "C128": ("c16", "complex128"), "U16": ("u2", "uint16"), "U32": ("u4", "uint32"), "U64": ("u8", "uint64"),
    "F16": ("f2", "float16"), "BF16": ("u2", "bfloat16"), "C32": ("u4", "complex32"),
}
OURS = ("C128", "C32")                 # not part of the safetensors format


def dtype_of(kind):
    """Return the dtype of elements of a kind."""
    return getattr(dtypes, KINDS[kind][1])


def kind_of(dtype):
    """Return the kind of a dtype, or None."""
    return next((kind for kind, (_, name) in KINDS.items() if name == dtype.name), None)


def element_size(kind):
    """Return the bytes per element in files."""
    return np.dtype(KINDS[kind][0]).itemsize


def memory(tensor):
    """Return the bytes of a contiguous tensor."""
    if tensor.numel() == 0:
        return memoryview(bytearray())
    same = seen_as(tensor, {1: dtypes.uint8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64,
                            16: dtypes.complex128}[tensor.element_size()])
    return numpy_view(same).reshape(-1).view(np.uint8).data


def fill(tensor, kind, read, swapped=False):
    """
    Read the elements of a contiguous tensor of dtype ``dtype_of(kind)``.

    ``read(buffer)`` fills a buffer of bytes; `swapped`: most significant byte first.
    """
    if tensor.numel() == 0:
        return tensor
    raw = np.frombuffer(memory(tensor), KINDS[kind][0])
    read(raw.view(np.uint8))
    if swapped != (sys.byteorder == "big"):
        unit = raw.itemsize // 2 if tensor.is_complex() else raw.itemsize
        raw.view(f"u{unit}").byteswap(inplace=True)
    if kind == "BOOL":
        np.not_equal(raw, 0, out=raw, casting="unsafe")        # other bytes than 1 are True as well
    return tensor


def tensor_over(raw, kind):
    """Return a flat tensor of the elements in an array of bytes: without a copy if possible."""
    code, _ = KINDS[kind]
    count = raw.size // element_size(kind)
    if kind != "BOOL" and sys.byteorder == "little":
        array = raw.view(code)
        if array.flags.aligned and array.flags.writeable:
            return seen_as(from_numpy(array), dtype_of(kind))

    def read(buffer):
        buffer[:] = raw
    return fill(empty((count,), dtype=dtype_of(kind)), kind, read)
