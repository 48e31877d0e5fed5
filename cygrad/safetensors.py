"""
The safetensors format: named tensors in a file that holds no code.

A file is the length of a header (8 bytes, little-endian), the header as JSON, and the tensors' bytes, row-major and
little-endian. The header says for each name its dtype, its shape and where its bytes begin and end. Reading believes
none of it: names are unique, sizes fit dtypes and shapes, and the tensors cover the bytes without gap or overlap.
"""

import json
import math
import mmap
import os
from collections.abc import Mapping

import numpy as np

from cygrad._core.creation.factories import empty
from cygrad._core.graph.modes import no_grad
from cygrad._core.graph.tensor import Tensor
from cygrad.serialization import elements
from cygrad.serialization.files import read_fully, replacing

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

MAX_HEADER = 100_000_000              # bytes
METADATA = "__metadata__"


class SafetensorError(ValueError):
    """
    A file that is not what it should be, or tensors that the format cannot hold.

    Examples
    --------
    >>> cygrad.safetensors.load(b"no such file")
    Traceback (most recent call last):
        ...
    cygrad.safetensors.SafetensorError: ...
    """


# ------------------------------------------------------------------------------------------------------------- writing

def save_file(tensors, filename, metadata=None):
    """
    Write named tensors to a file.

    Parameters
    ----------
    tensors : mapping from str to Tensor
        Of any layout; each is written by itself, also where several share memory.
    filename : str or path
        What stands there is replaced when the new file is complete and on the disk.
    metadata : mapping from str to str, optional
        Kept with them.

    Raises
    ------
    SafetensorError
        For a dtype that the format does not have (complex32, complex128), and names that are no strings.

    See Also
    --------
    load_file

    Examples
    --------
    >>> import cygrad, os, tempfile
    >>> from cygrad import safetensors
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> safetensors.save_file({"weight": cygrad.ones(2)}, path, {"step": "3"})
    >>> safetensors.load_file(path)
    {'weight': tensor([1., 1.])}
    """
    header, found = _prepared(tensors, metadata)
    with replacing(filename) as file:
        file.write(header)
        for tensor in found:
            file.write(elements.memory(tensor))


def save(tensors, metadata=None):
    """
    The bytes that `save_file` would write.

    Parameters
    ----------
    tensors : mapping from str to Tensor
    metadata : mapping from str to str, optional

    Returns
    -------
    bytes

    Examples
    --------
    >>> data = cygrad.safetensors.save({"w": cygrad.ones(2)})
    >>> cygrad.safetensors.load(data)
    {'w': tensor([1., 1.])}
    """
    header, found = _prepared(tensors, metadata)
    return b"".join([header, *map(elements.memory, found)])


def _prepared(tensors, metadata):
    """Return the header with its length, and contiguous tensors in their order."""
    if not isinstance(tensors, Mapping):
        raise SafetensorError(f"save_file: expected a mapping from names to tensors (got {type(tensors).__name__}). "
                              "Use dict(model.named_parameters()) or a state_dict().")
    found = []
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == METADATA:
            raise SafetensorError(f"save_file: names must be strings other than {METADATA!r} (got {name!r}).")
        if not isinstance(tensor, Tensor):
            raise SafetensorError(f"save_file: {name!r} must be a Tensor (got {type(tensor).__name__}).")
        if elements.kind_of(tensor.dtype) in (None, *elements.OURS):
            raise SafetensorError(f"save_file: unsupported dtype in this format (got {tensor.dtype} for {name!r}). "
                                  "Save its real and imaginary parts, or use cygrad.save.")
        found.append((name, tensor))
    # The largest elements first, so that all are aligned.
    found.sort(key=lambda pair: (-pair[1].dtype.itemsize, pair[0]))
    header, start = {}, 0
    if metadata is not None:
        if any(not isinstance(text, str) for pair in metadata.items() for text in pair):
            raise SafetensorError(f"save_file: metadata must be strings by strings (got {metadata!r}).")
        header[METADATA] = dict(metadata)
    found = [(name, tensor.detach().contiguous()) for name, tensor in found]
    for name, tensor in found:
        header[name] = {"dtype": elements.kind_of(tensor.dtype), "shape": list(tensor.shape),
                        "data_offsets": [start, start + tensor.nbytes]}
        start += tensor.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [tensor for _, tensor in found]


# ------------------------------------------------------------------------------------------------------------- reading

class _Entry:
    """One tensor as the header describes it, checked by itself."""

    def __init__(self, name, facts):
        if not isinstance(facts, dict) or facts.keys() != {"dtype", "shape", "data_offsets"}:
            raise SafetensorError(f"{name!r} needs exactly dtype, shape and data_offsets")
        self.name, self.kind, self.shape = name, facts["dtype"], facts["shape"]
        if not isinstance(self.kind, str) or self.kind not in elements.KINDS or self.kind in elements.OURS:
            raise SafetensorError(f"{name!r} has dtype {self.kind!r}, which cygrad cannot read")
        offsets = facts["data_offsets"]
        for values in self.shape, offsets:
            if not isinstance(values, list) or any(type(n) is not int or not 0 <= n < 1 << 63 for n in values):
                raise SafetensorError(f"{name!r} has an invalid size or offset")
        if len(offsets) != 2:
            raise SafetensorError(f"{name!r} needs two offsets (got {len(offsets)})")
        if len(self.shape) > 64:
            raise SafetensorError(f"{name!r} has too many dimensions (got {len(self.shape)}, at most 64)")
        self.begin, self.end = offsets
        size = math.prod(self.shape) * elements.element_size(self.kind)
        if math.prod(max(n, 1) for n in self.shape) >= 1 << 63 or self.end - self.begin != size:
            raise SafetensorError(f"{name!r} has {self.end - self.begin} bytes where dtype and shape need {size}")


def _unique(pairs):
    """Convert a JSON object to a dict; refuse duplicate names."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SafetensorError("duplicate name")
    return found


def _header(text, data_size):
    """Parse a header before `data_size` bytes: return entries by name, and metadata."""
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except SafetensorError:
        raise
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"the header is not JSON ({type(error).__name__}: {error})") from error
    if not text.startswith(b"{") or not isinstance(header, dict):
        raise SafetensorError("the header is not a JSON object")
    metadata = header.pop(METADATA, None)
    if metadata is not None and (not isinstance(metadata, dict)
                                 or any(not isinstance(value, str) for value in metadata.values())):
        raise SafetensorError("the metadata is not a map from strings to strings")
    entries = [_Entry(name, facts) for name, facts in header.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    place = 0
    for entry in entries:
        if entry.begin != place:
            raise SafetensorError(f"{entry.name!r} begins at byte {entry.begin}, where {place} was expected: tensors "
                                  "must follow each other without gap or overlap")
        place = entry.end
    if place != data_size:
        raise SafetensorError(f"there are {data_size} bytes of data (the header declares {place})")
    return {entry.name: entry for entry in entries}, metadata


def _header_size(first, total):
    """Return the length of the header of a file of `total` bytes."""
    if len(first) < 8:
        raise SafetensorError(f"the file is too short (got {len(first)} bytes)")
    size = int.from_bytes(first, "little")
    if size > MAX_HEADER:
        raise SafetensorError(f"the header is too large (got {size} bytes, at most {MAX_HEADER})")
    if size > total - 8:
        raise SafetensorError(f"the header is truncated (got {total - 8} bytes of {size})")
    return size


def _tensor(raw, entry):
    """Return a tensor over an array of bytes that it owns, or a converted copy."""
    return elements.tensor_over(raw, entry.kind).reshape(tuple(entry.shape))


def _explained(place, error):
    return SafetensorError(f"safetensors: {place} is not a safetensors file, or it is damaged: {error}.")


def load_file(filename, device="cpu"):
    """
    Read all tensors of a file. No code of the file is ever run.

    Parameters
    ----------
    filename : str or path
    device : optional
        The CPU.

    Returns
    -------
    dict from str to Tensor
        The types of 8 bits and fewer other than int8, uint8 and bool are refused.

    Raises
    ------
    SafetensorError
        If it is no such file, or damaged.

    See Also
    --------
    safe_open : Read some of them.

    Examples
    --------
    >>> cygrad.safetensors.save_file({"w": cygrad.ones(2)}, "model.safetensors")
    >>> cygrad.safetensors.load_file("model.safetensors")
    {'w': tensor([1., 1.])}
    """
    with open(filename, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        try:
            size = _header_size(file.read(8), total)
            entries, _ = _header(file.read(size), total - 8 - size)
            tensors = {}
            for name, entry in entries.items():        # in the order of their bytes
                target = empty(tuple(entry.shape), dtype=elements.dtype_of(entry.kind))
                tensors[name] = elements.fill(target, entry.kind, lambda buffer: read_fully(file, buffer))
        except (EOFError, SafetensorError) as error:
            raise _explained(repr(os.fspath(filename)), error) from error
    return {name: tensors[name] for name in sorted(tensors)}


def load(data):
    """
    Read all tensors from bytes; see `load_file`.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    dict from str to Tensor

    Examples
    --------
    >>> cygrad.safetensors.load(cygrad.safetensors.save({"w": cygrad.ones(2)}))
    {'w': tensor([1., 1.])}
    """
    view = memoryview(data).cast("B")
    try:
        size = _header_size(bytes(view[:8]), len(view))
        entries, _ = _header(bytes(view[8:8 + size]), len(view) - 8 - size)
    except SafetensorError as error:
        raise _explained("this", error) from error
    content = np.frombuffer(view, np.uint8)[8 + size:]
    return {name: _tensor(content[entries[name].begin:entries[name].end].copy(), entries[name])
            for name in sorted(entries)}


class safe_open:
    """
    Open a file to read its tensors on request. The file is mapped into memory: other parts are not read.

    Changes of the tensors do not reach the file. The file must not be made shorter while they are in use.

    Parameters
    ----------
    filename : str or path
    framework : optional
        Accepted; tensors are cygrad's.
    device : optional
        The CPU.

    Examples
    --------
    >>> import cygrad, os, tempfile
    >>> from cygrad import safetensors
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> safetensors.save_file({"weight": cygrad.arange(6).reshape(3, 2)}, path)
    >>> with safetensors.safe_open(path) as file:
    ...     print(file.keys(), file.get_slice("weight")[1:])
    ['weight'] tensor([[2, 3],
            [4, 5]])
    """

    def __init__(self, filename, framework="pt", device="cpu"):
        with open(filename, "rb") as file:
            total = os.fstat(file.fileno()).st_size
            try:
                size = _header_size(file.read(8), total)
                self._entries, self._metadata = _header(file.read(size), total - 8 - size)
            except SafetensorError as error:
                raise _explained(repr(os.fspath(filename)), error) from error
            self._content = np.frombuffer(mmap.mmap(file.fileno(), total, access=mmap.ACCESS_COPY), np.uint8)[8 + size:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._content = None                   # the memory stays as long as tensors lie in it

    def keys(self):
        """Return the names, sorted."""
        return sorted(self._entries)

    def offset_keys(self):
        """Return the names in the order of their bytes."""
        return list(self._entries)

    def metadata(self):
        """Return the metadata, or None."""
        return self._metadata

    def _raw(self, name):
        if self._content is None:
            raise SafetensorError("safe_open: the file is closed. Read inside the with block.")
        if name not in self._entries:
            raise SafetensorError(f"safe_open: File does not contain tensor {name!r} (it has {self.keys()}).")
        entry = self._entries[name]
        return self._content[entry.begin:entry.end], entry

    def get_tensor(self, name):
        """Return the tensor of a name."""
        return _tensor(*self._raw(name))

    def get_slice(self, name):
        """Something to be indexed like the tensor of a name."""
        self._raw(name)
        return _Slice(self, name)


class _Slice:
    """A tensor in a file, of which indexing reads a part."""

    def __init__(self, file, name):
        self._file, self._name, self._entry = file, name, file._entries[name]

    def get_shape(self):
        """Return the shape of the whole."""
        return list(self._entry.shape)

    def get_dtype(self):
        """Return the dtype as the format calls it."""
        return self._entry.kind

    def __getitem__(self, index):
        with no_grad():
            return self._file.get_tensor(self._name)[index].clone()
