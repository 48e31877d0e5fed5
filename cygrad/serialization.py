"""
Saving tensors and what holds them to files, and loading them.

A file is a zip archive: ``structure.json`` says what was saved, and each piece of memory is an ``.npy`` file. Loading
reads numbers and names of known kinds, nothing that could run code, so files of strangers do no harm. NumPy reads the
arrays too: ``numpy.load(path)``.
"""

import base64
import io
import json
import math
import struct
import zipfile
from collections import OrderedDict

import numpy as np

from cygrad._core import dtype as dtypes
from cygrad._core.creation import from_numpy
from cygrad._core.factories import empty
from cygrad._core.modes import no_grad
from cygrad._core.tensor import Tensor

__all__ = ["load", "save"]

FORMAT, VERSION = "cygrad", 1
STRUCTURE = "structure.json"
# What damaged files make the modules raise that read them.
DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, KeyError, IndexError, ValueError, TypeError, EOFError,
          OverflowError, NotImplementedError, RecursionError, AttributeError, struct.error)


def save(obj, f):
    """
    Write tensors, or containers of them, to a file.

    Tensors that share memory still do so after loading, and one that occurs twice is one object again. Gradients and
    the graph are not saved; whether a tensor requires grad is.

    Parameters
    ----------
    obj : object
        Tensors, parameters, NumPy arrays, numbers, strings, bytes, None, dtypes; lists, tuples, sets, dicts and
        OrderedDicts of such, for example a ``state_dict()``.
    f : str, path or binary file

    Raises
    ------
    TypeError
        If something inside cannot be saved; it is named by its place.

    See Also
    --------
    load

    Examples
    --------
    >>> import cygrad, io
    >>> file = io.BytesIO()
    >>> cygrad.save({"weight": cygrad.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> cygrad.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not isinstance(f, (str, bytes)) and not hasattr(f, "__fspath__") and not hasattr(f, "write"):
        raise TypeError(f"save: expected a path or a file (got {type(f).__name__}).")
    writer = Writer()
    value = writer.encode(obj, "obj")
    pieces, tensors = writer.memory()
    structure = {"format": FORMAT, "version": VERSION, "value": value, "tensors": tensors}
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(STRUCTURE, json.dumps(structure, allow_nan=False))
        for number, piece in enumerate(pieces):
            with archive.open(f"{number}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, piece, allow_pickle=False)


def load(f, map_location=None, *, weights_only=True, mmap=None):
    """
    Read what `save` has written. No code of the file is ever run.

    Parameters
    ----------
    f : str, path or binary file
    map_location : optional
        Accepted for programs that pass it: all memory is the CPU's.
    weights_only : bool, default True
        Likewise: there is no other way of loading.
    mmap : bool, optional
        Likewise.

    Returns
    -------
    object

    Raises
    ------
    RuntimeError
        If the file was not written by `save`, or is damaged.

    See Also
    --------
    save

    Examples
    --------
    >>> import io
    >>> import cygrad
    >>> file = io.BytesIO()
    >>> cygrad.save({"weights": cygrad.ones(2)}, file)
    >>> file.seek(0)
    0
    >>> cygrad.load(file)
    {'weights': tensor([1., 1.])}
    """
    if not isinstance(f, (str, bytes)) and not hasattr(f, "__fspath__") and not hasattr(f, "seek"):
        if not hasattr(f, "read"):
            raise TypeError(f"load: expected a path or a file (got {type(f).__name__}).")
        f = io.BytesIO(f.read())
    try:
        with zipfile.ZipFile(f) as archive:
            return Reader(archive).value()
    except DAMAGE as error:
        raise RuntimeError(f"load: this is no file of cygrad.save, or it is damaged (got {type(error).__name__}: "
                           f"{error}). Files of other libraries have to be converted with them, for example to NumPy "
                           "arrays.") from error


# ------------------------------------------------------------------------------------------------------------- writing

class Writer:
    """Turns a value into what JSON can hold, and collects the tensors that it meets."""

    def __init__(self):
        self.tensors = []
        self.numbers = {}            # id of a tensor -> its number
        self.arrays = []             # NumPy arrays, which come after the tensors' memory
        self.open = set()            # ids of the containers around the present one

    def encode(self, value, place):
        """What JSON is to hold for the value; `place` is its name in messages."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
        if isinstance(value, Tensor):
            return {"kind": "tensor", "number": self.number(value, place)}
        if kind in CONTAINERS:
            if id(value) in self.open:
                raise ValueError(f"save: {place} contains itself (got a cycle of containers). Save its parts.")
            self.open.add(id(value))
            encoded = CONTAINERS[kind](self, value, place)
            self.open.remove(id(value))
            return encoded
        if kind is complex:
            return {"kind": "complex", "value": [self.encode(value.real, place), self.encode(value.imag, place)]}
        if kind in (bytes, bytearray):
            return {"kind": kind.__name__, "value": base64.b64encode(value).decode()}
        if kind is dtypes.dtype:
            return {"kind": "dtype", "value": value.name}
        if kind is np.ndarray and value.dtype.kind in "biufc":
            self.arrays.append(np.ascontiguousarray(value))
            return {"kind": "ndarray", "number": len(self.arrays) - 1, "shape": list(value.shape)}
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return self.encode(value.item(), place)
        raise TypeError(f"save: {place} cannot be saved (got {kind.__name__}, expected tensors, numbers, strings and "
                        "plain containers of them). Save its state_dict(), or what it is made of.")

    def sequence(self, values, place):
        """A list as a JSON array."""
        return [self.encode(value, f"{place}[{position}]") for position, value in enumerate(values)]

    def tagged(self, values, place):
        """Another sequence, with its kind."""
        return {"kind": type(values).__name__, "items": self.sequence(values, place)}

    def mapping(self, values, place):
        """A dict as pairs: its keys need not be strings."""
        return {"kind": type(values).__name__, "items": [
            [self.encode(key, f"a key of {place}"), self.encode(value, f"{place}[{key!r}]")]
            for key, value in values.items()]}

    def number(self, tensor, place):
        """The number of a tensor, the same each time that it occurs."""
        found = self.numbers.get(id(tensor))
        if found is None:
            if kind_of(tensor) is None:
                raise TypeError(f"save: {place} is of a class that load could not make (got {type(tensor).__name__}, "
                                "expected Tensor, Parameter or Buffer). Save a plain tensor, for example its detach().")
            found = self.numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return found

    def memory(self):
        """The pieces of memory as flat NumPy arrays, and for each tensor how it lies in its piece."""
        groups = {}
        for tensor in self.tensors:
            start = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
            key = (start, tensor.dtype) if tensor.numel() else id(tensor)
            groups.setdefault(key, []).append(tensor)
        pieces, facts = [], {}
        with no_grad():
            for group in groups.values():
                pieces.append(piece_of(group, len(pieces), facts))
        tensors = [facts[id(tensor)] for tensor in self.tensors]
        for array in self.arrays:
            pieces.append(array.reshape(-1))
        return pieces, tensors


CONTAINERS = {list: Writer.sequence, tuple: Writer.tagged, set: Writer.tagged, frozenset: Writer.tagged,
              dict: Writer.mapping, OrderedDict: Writer.mapping}


def kind_of(tensor):
    """The name of the tensor's class in files, or None if it is not one that can be loaded."""
    from cygrad.nn.parameter import Buffer, Parameter
    if isinstance(tensor, Buffer):
        return "Buffer" if tensor.persistent else "TransientBuffer"
    return {Tensor: "Tensor", Parameter: "Parameter"}.get(type(tensor))


def piece_of(group, number, facts):
    """The memory that the tensors of a group lie in; notes in `facts` how each of them does."""
    first = group[0].detach()
    alike = all(extent(tensor) == extent(first) and tensor.shape == first.shape and tensor.stride() == first.stride()
                for tensor in group)
    if alike:                       # one tensor, perhaps by several names: its elements and nothing between them
        flat = first.contiguous().reshape((first.numel(),))
        layouts = [(list(row_major(first.shape)), 0)] * len(group)
    else:
        low = min(extent(tensor)[0] for tensor in group)
        high = max(extent(tensor)[1] for tensor in group)
        flat = first.as_strided((high - low + 1,), (1,), low)
        layouts = [(list(tensor.stride()), tensor.storage_offset() - low) for tensor in group]
    for tensor, (strides, offset) in zip(group, layouts, strict=True):
        facts[id(tensor)] = {"memory": number, "shape": list(tensor.shape), "strides": strides, "offset": offset,
                             "requires_grad": tensor.requires_grad, "class": kind_of(tensor)}
    return flat.numpy()


def extent(tensor):
    """The first and the last place in the storage that the tensor uses."""
    steps = [stride * (size - 1) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    start = tensor.storage_offset()
    return start + sum(min(step, 0) for step in steps), start + sum(max(step, 0) for step in steps)


def row_major(shape):
    """The strides of a tensor whose elements lie one after the other."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


# ------------------------------------------------------------------------------------------------------------- reading

class Reader:
    """Makes a value from what a file says, believing none of it."""

    def __init__(self, archive):
        self.archive = archive
        structure = json.loads(self.read(STRUCTURE))
        if structure["format"] != FORMAT or structure["version"] != VERSION:
            raise ValueError(f"the file is of another format (got {structure['format']!r} version "
                             f"{structure['version']!r}, expected {FORMAT!r} version {VERSION})")
        self.structure = structure
        self.facts = structure["tensors"]
        self.pieces = {}
        self.tensors = {}

    def read(self, name):
        """The bytes of a member, which may not be longer than it says."""
        if self.archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        return self.archive.read(name)

    def value(self):
        """What was saved."""
        return self.decode(self.structure["value"])

    def decode(self, node):
        """The value for what JSON holds."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["kind"]
        if kind == "tensor":
            return self.tensor(node["number"])
        if kind in ("dict", "OrderedDict"):
            made = {} if kind == "dict" else OrderedDict()
            for key, value in node["items"]:
                made[self.decode(key)] = self.decode(value)
            return made
        if kind in SEQUENCES:
            return SEQUENCES[kind](self.decode(item) for item in node["items"])
        if kind == "float":
            return float(node["value"])
        if kind == "complex":
            real, imag = node["value"]
            return complex(self.decode(real), self.decode(imag))
        if kind in ("bytes", "bytearray"):
            raw = base64.b64decode(node["value"], validate=True)
            return raw if kind == "bytes" else bytearray(raw)
        if kind == "dtype":
            return dtype_named(node["value"])
        if kind == "ndarray":
            first = 1 + max((facts["memory"] for facts in self.facts), default=-1)
            return self.array(first + node["number"]).reshape(sizes(node["shape"])).copy()
        raise ValueError(f"unknown kind {kind!r}")

    def array(self, number):
        """A piece of memory as a flat NumPy array."""
        raw = io.BytesIO(self.read(f"{int(number)}.npy"))
        if np.lib.format.read_magic(raw) != (1, 0):
            raise ValueError("unknown version of an array")
        shape, _, kind = np.lib.format.read_array_header_1_0(raw)
        if kind.hasobject or kind.kind not in "biufc" or len(shape) != 1:
            raise ValueError(f"not an array of numbers (got dtype {kind}, shape {shape})")
        array = np.frombuffer(raw.getbuffer()[raw.tell():], dtype=kind)
        if array.size != shape[0]:
            raise ValueError(f"an array is cut off (got {array.size} elements, expected {shape[0]})")
        if kind.kind == "b":
            return array.view(np.uint8) != 0         # any other byte is true as well
        return array.astype(kind.newbyteorder("="), copy=False)

    def piece(self, number):
        """A piece of memory as a tensor of its own."""
        if number not in self.pieces:
            array = self.array(number)
            source = from_numpy(array if array.flags.writeable else array.copy())
            piece = empty((array.size,), dtype=source.dtype)
            self.pieces[number] = piece.copy_(source)
        return self.pieces[number]

    def tensor(self, number):
        """A saved tensor; the same object each time."""
        if number not in self.tensors:
            facts = self.facts[number]
            piece, shape = self.piece(facts["memory"]), sizes(facts["shape"])
            strides, offset = [int(stride) for stride in facts["strides"]], int(facts["offset"])
            if len(strides) != len(shape):
                raise ValueError("a tensor needs one stride for each dimension")
            steps = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
            low = offset + sum(min(step, 0) for step in steps)
            high = offset + sum(max(step, 0) for step in steps)
            if 0 not in shape and not (low >= 0 and high < piece.numel()):
                raise ValueError(f"a tensor lies outside its memory (got places {low} to {high} of {piece.numel()})")
            with no_grad():
                tensor = piece.as_strided(shape, strides, offset if 0 not in shape else 0).detach()
            self.tensors[number] = finished(tensor, facts["class"], bool(facts["requires_grad"]))
        return self.tensors[number]


SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset}


def finished(tensor, kind, requires_grad):
    """The tensor as an instance of the class that it was of."""
    from cygrad.nn.parameter import Buffer, Parameter
    if kind == "Parameter":
        return Parameter(tensor, requires_grad)
    if kind in ("Buffer", "TransientBuffer"):
        tensor = Buffer(tensor, persistent=kind == "Buffer")
    return tensor.requires_grad_() if requires_grad else tensor


def sizes(shape):
    """A shape out of a file, checked."""
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(max(size, 1) for size in shape) >= 2**63:
        raise ValueError(f"not a shape (got {shape})")
    return tuple(shape)


def dtype_named(name):
    """The dtype of a name."""
    found = getattr(dtypes, name, None) if name in DTYPES else None
    if found is None:
        raise ValueError(f"unknown dtype {name!r}")
    return found


DTYPES = {"bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"}
