"""
cygrad's file format.

A file is a zip archive: ``structure.json`` describes the objects, and each storage is an ``.npy`` file. Loading reads
numbers and names of known kinds, nothing that could run code. NumPy reads the arrays too: ``numpy.load(path)``.
"""

import base64
import contextlib
import json
import math
import re
import sys
from collections import Counter, OrderedDict

import numpy as np

import cygrad
from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.array import Size
from cygrad._core.creation.factories import empty
from cygrad._core.graph.modes import no_grad
from cygrad._core.graph.tensor import Tensor
from cygrad.serialization import elements
from cygrad.serialization.files import add_member, read_fully

__all__ = ["STRUCTURE", "Writer", "finished", "laid", "prepared", "read", "sizes"]

FORMAT, VERSION = "cygrad", 1
STRUCTURE = "structure.json"
# Beginning of an .npy file: magic number and version, the length of the header, and the header.
NPY_MAGIC = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|=][biufc]\d+)', 'fortran_order': (?:False|True), 'shape': \((\d{1,18}),\), \}\s*")


def prepared(obj):
    """
    Return a function that writes an object to a zip archive; what cannot be saved raises now, before the file exists.
    """
    writer = Writer()
    value = writer.encode(obj, "obj")
    chunks, tensors = writer.memory()
    structure = {"format": FORMAT, "version": VERSION, "value": value, "tensors": tensors}
    text = json.dumps(structure, allow_nan=False).encode()

    def write(archive):
        add_member(archive, STRUCTURE, [text], len(text))
        for number, chunk in enumerate(chunks):
            if isinstance(chunk, Tensor):
                kind, content = npy_kind(chunk.dtype), elements.memory(chunk)
            else:
                kind, content = chunk.dtype, chunk.view(np.uint8)
            count = content.nbytes // kind.itemsize
            header = f"{{'descr': '{kind.str}', 'fortran_order': False, 'shape': ({count},), }}".encode()
            header += b" " * (-(len(header) + 11) % 64) + b"\n"
            header = NPY_MAGIC + len(header).to_bytes(2, "little") + header
            add_member(archive, f"{number}.npy", [header, content], len(header) + content.nbytes)
    return write


def read(archive):
    """Read an object from an `Archive`."""
    return Reader(archive).value()


# ------------------------------------------------------------------------------------------------------------- writing

class Writer:
    """Converts a value to JSON, and collects its tensors."""

    def __init__(self):
        self.tensors = []
        self.numbers = {}            # id of a tensor -> its index
        self.arrays = []             # NumPy arrays, which come after the storages of tensors
        self.open = set()            # ids of the enclosing containers

    def encode(self, value, place):
        """Return the JSON form of a value; `place` is its name in messages."""
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
        if isinstance(value, dtypes.dtype):
            return {"kind": "dtype", "value": value.name}
        if kind is cygrad.device:
            return {"kind": "device", "value": str(value)}
        if kind is np.ndarray and value.dtype.kind in "biufc" and value.dtype.itemsize <= 16:
            self.arrays.append(np.ascontiguousarray(value))
            return {"kind": "ndarray", "number": len(self.arrays) - 1, "shape": list(value.shape)}
        if isinstance(value, np.generic) and value.dtype.kind in "biufc" and not isinstance(value.item(), np.generic):
            return self.encode(value.item(), place)
        raise TypeError(f"save: {place} cannot be saved (got {kind.__name__}, expected tensors, numbers, strings and "
                        "plain containers of them). Save its state_dict(), or what it is made of; pickle=True saves "
                        "any picklable object.")

    def sequence(self, values, place):
        """Return a list as a JSON array."""
        return [self.encode(value, f"{place}[{position}]") for position, value in enumerate(values)]

    def tagged(self, values, place):
        """Return another sequence, with its kind."""
        return {"kind": type(values).__name__, "items": self.sequence(values, place)}

    def mapping(self, values, place):
        """Return a dict as pairs: its keys need not be strings."""
        return {"kind": type(values).__name__, "items": [
            [self.encode(key, f"a key of {place}"), self.encode(value, f"{place}[{key!r}]")]
            for key, value in values.items()]}

    def number(self, tensor, place):
        """Return the index of a tensor, the same each time that it occurs."""
        found = self.numbers.get(id(tensor))
        if found is None:
            if kind_of(tensor) is None:
                raise TypeError(f"save: {place} is of a class that load cannot create (got {type(tensor).__name__}, "
                                "expected Tensor, Parameter or Buffer). Save a plain tensor, for example its detach().")
            found = self.numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return found

    def memory(self):
        """Return the storages as flat tensors and NumPy arrays, and for each tensor its view of the storage."""
        groups = {}
        for tensor in self.tensors:
            start = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
            key = (start, tensor.dtype) if tensor.numel() else id(tensor)
            groups.setdefault(key, []).append(tensor)
        chunks, facts = [], {}
        with no_grad():
            for group in groups.values():
                chunks.append(chunk_of(group, len(chunks), facts))
        tensors = [facts[id(tensor)] for tensor in self.tensors]
        for array in self.arrays:
            chunks.append(array.reshape(-1))
        return chunks, tensors


CONTAINERS = {list: Writer.sequence, tuple: Writer.tagged, set: Writer.tagged, frozenset: Writer.tagged,
              dict: Writer.mapping, OrderedDict: Writer.mapping, Counter: Writer.mapping, Size: Writer.tagged}


def kind_of(tensor):
    """Return the name of the tensor's class in files, or None if it cannot be loaded."""
    from cygrad.nn.parameter import Buffer, Parameter
    if isinstance(tensor, Buffer):
        return "Buffer" if tensor.persistent else "TransientBuffer"
    return {Tensor: "Tensor", Parameter: "Parameter"}.get(type(tensor))


def chunk_of(group, number, facts):
    """Return the memory shared by the tensors of a group; store the view of each in `facts`."""
    first = group[0].detach()
    alike = all(extent(tensor) == extent(first) and tensor.shape == first.shape and tensor.stride() == first.stride()
                for tensor in group)
    if alike:                       # one tensor, perhaps by several names: only its elements
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
        if not hasattr(np, flat.dtype.name):                  # its file has integers of the same size
            facts[id(tensor)]["elements"] = elements.kind_of(flat.dtype)
    return flat


def npy_kind(dtype):
    """Return the NumPy dtype of elements in a file."""
    return np.dtype(dtype.name if hasattr(np, dtype.name) else elements.KINDS[elements.kind_of(dtype)][0])


def extent(tensor):
    """Return the first and the last offset of the tensor in its storage."""
    steps = [stride * (size - 1) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    start = tensor.storage_offset()
    return start + sum(min(step, 0) for step in steps), start + sum(max(step, 0) for step in steps)


def row_major(shape):
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


# ------------------------------------------------------------------------------------------------------------- reading

class Reader:
    """Builds a value from a file, checking everything."""

    def __init__(self, archive):
        self.archive = archive
        structure = json.loads(archive.read(STRUCTURE))
        if structure["format"] != FORMAT or structure["version"] != VERSION:
            raise ValueError(f"the file is of another format (got {structure['format']!r} version "
                             f"{structure['version']!r}, expected {FORMAT!r} version {VERSION})")
        self.structure = structure
        self.facts = structure["tensors"]
        self.chunks = {}
        self.tensors = {}

    def value(self):
        """Return the saved object."""
        return self.decode(self.structure["value"])

    def decode(self, node):
        """Return the value of a JSON form."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["kind"]
        if kind == "tensor":
            return self.tensor(node["number"])
        if kind in MAPPINGS:
            made = MAPPINGS[kind]()
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
        if kind == "device":
            return cygrad.device(node["value"])
        if kind == "ndarray":
            first = 1 + max((facts["memory"] for facts in self.facts), default=-1)
            number = first + node["number"]
            if number in self.chunks:
                raise ValueError("duplicate array")
            array = self.chunks[number] = self.array(number)
            return array.reshape(sizes(node["shape"]))
        raise ValueError(f"unknown kind {kind!r}")

    @contextlib.contextmanager
    def member(self, number):
        """Return the file of a storage, at its first element; the NumPy dtype; and the number of elements."""
        name = f"{int(number)}.npy"
        with self.archive.open(name) as file:
            start = file.read(len(NPY_MAGIC) + 2)
            header = file.read(int.from_bytes(start[-2:], "little"))
            found = NPY_HEADER.fullmatch(header)
            if start[:-2] != NPY_MAGIC or not found:
                raise ValueError(f"{name} is not a flat array of numbers")
            kind, count = np.dtype(found[1].decode()), int(found[2])
            size = self.archive.sizes[name] - len(start) - len(header)
            if count * kind.itemsize != size:
                raise ValueError(f"{name} has {size} bytes where {count} elements need {count * kind.itemsize}")
            yield file, kind, count
            if file.read(1):                                  # at the end the file verifies its checksum
                raise ValueError(f"{name} is longer than declared")

    def array(self, number):
        """Return a storage as a flat NumPy array."""
        with self.member(number) as (file, kind, count):
            array = np.empty(count, kind)
            read_fully(file, array.view(np.uint8))
        if kind.kind == "b":
            return array.view(np.uint8) != 0                  # other bytes than 1 are True as well
        return array.astype(kind.newbyteorder("="), copy=False)

    def chunk(self, number, kind):
        """Return a storage as a flat tensor; `kind` of its elements, if NumPy lacks it."""
        if number not in self.chunks:
            with self.member(number) as (file, found, count):
                swapped = found.newbyteorder("=") != found
                kind = kind or next((kind for kind, (code, name) in elements.KINDS.items()
                                     if hasattr(np, name) and np.dtype(name) == found.newbyteorder("=")), None)
                if kind is None or elements.element_size(kind) != found.itemsize:
                    raise ValueError(f"unsupported elements (got {found})")
                chunk = empty((count,), dtype=elements.dtype_of(kind))
                self.chunks[number] = elements.fill(chunk, kind, lambda buffer: read_fully(file, buffer),
                                                    swapped != (sys.byteorder == "big"))
        return self.chunks[number]

    def tensor(self, number):
        """Return a saved tensor; the same object each time."""
        if number not in self.tensors:
            facts = self.facts[number]
            chunk = self.chunk(facts["memory"], facts.get("elements"))
            tensor = laid(chunk, facts["shape"], facts["strides"], facts["offset"])
            self.tensors[number] = finished(tensor, facts["class"], bool(facts["requires_grad"]))
        return self.tensors[number]


def laid(chunk, shape, strides, offset):
    """Return a tensor in a storage, after checking bounds."""
    shape = sizes(shape)
    if len(strides) != len(shape) or any(type(number) is not int for number in (*strides, offset)):
        raise ValueError("a tensor needs one stride for each dimension, and an offset")
    steps = [stride * (size - 1) for size, stride in zip(shape, strides, strict=True)]
    low = offset + sum(min(step, 0) for step in steps)
    high = offset + sum(max(step, 0) for step in steps)
    if 0 in shape:
        offset = 0
    elif not (low >= 0 and high < chunk.numel()):
        raise ValueError(f"a tensor is outside of its storage (got offsets {low} to {high} of {chunk.numel()})")
    with no_grad():
        return chunk.as_strided(shape, strides, chunk.storage_offset() + offset).detach()


SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset, "Size": Size}
MAPPINGS = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}


def finished(tensor, kind, requires_grad):
    """Return the tensor as an instance of its class."""
    from cygrad.nn.parameter import Buffer, Parameter
    if kind == "Parameter":
        return Parameter(tensor, requires_grad)
    if kind in ("Buffer", "TransientBuffer"):
        tensor = Buffer(tensor, persistent=kind == "Buffer")
    return tensor.requires_grad_() if requires_grad else tensor


def sizes(shape):
    """Check a shape from a file."""
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(max(size, 1) for size in shape) >= 2**63:
        raise ValueError(f"not a shape (got {shape})")
    return tuple(shape)


def dtype_named(name):
    """Return the dtype of a name."""
    found = getattr(dtypes, name, None) if name in {name for _, name in elements.KINDS.values()} else None
    if found is None:
        raise ValueError(f"unknown dtype {name!r}")
    return found
