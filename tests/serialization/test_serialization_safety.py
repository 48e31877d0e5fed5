"""Untrusted files: loading executes no code, does not crash, and raises a clear error."""

import io
import json
import os
import pickle
import random
import subprocess
import tracemalloc
import zipfile

import numpy as np
import pytest

import cygrad
from cygrad import nn, safetensors
from tests.tools import try_load

RAN = []


def _run(*_):
    RAN.append("code of the file")
    return 1


class ByReduce:
    def __reduce__(self):
        return _run, ()


class ByCommand:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class ByState:
    def __setstate__(self, state):
        _run()

    def __getstate__(self):
        return {"a": 1}


class ByProcess:
    def __reduce__(self):
        return subprocess.check_output, (["touch", "nothing"],)


def pickles(path):
    """Pickles that run code when they are read, by all protocols, plain and inside what libraries save."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for thing in ByReduce(), ByCommand(path), ByState(), [ByReduce()], {"state_dict": ByReduce()}, ByProcess():
            yield pickle.dumps(thing, protocol)
    yield b"cos\nsystem\n(S'touch " + str(path).encode() + b"'\ntR."
    yield b"c__builtin__\neval\n(S'1/0'\ntR."


def archive(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def test_pickles_are_never_run(tmp_path):
    RAN.clear()
    target = tmp_path / "touched"
    good = saved({"x": cygrad.ones(2)})
    for raw in pickles(target):
        # as the file itself, in the place of each member of an archive, and as other libraries lay files out
        for file in (raw, archive({"data.pkl": raw}), archive({"archive/data.pkl": raw, "archive/version": "3"}),
                     archive({"structure.json": raw}), with_member(good, "0.npy", raw),
                     with_member(good, "structure.json", raw), archive({"__init__.py": raw, "structure.json": "{}"}),
                     raw + good[:0], zlib_npz(raw)):
            assert try_load(file) is None
            with pytest.raises(safetensors.SafetensorError):
                safetensors.load(file)
    objects = npy(np.array([ByReduce(), ByCommand(target)], dtype=object))
    assert try_load(with_member(good, "0.npy", objects)) is None
    assert try_load(objects) is None
    assert RAN == []
    assert not target.exists()


def zlib_npz(raw):
    return archive({"arr_0.npy": raw}, zipfile.ZIP_DEFLATED)


def saved(value):
    file = io.BytesIO()
    cygrad.save(value, file)
    return file.getvalue()


def with_member(raw, name, content):
    """The archive with other content of one member."""
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        members = {member: old.read(member) for member in old.namelist()}
    return archive({**members, name: content})


def test_names_of_code_are_only_text():
    structure = {"format": "cygrad", "version": 1, "tensors": [], "value": None}
    for value in ({"kind": "os.system", "value": "true"}, {"kind": "__import__", "items": []}, {"kind": "eval"},
                  {"kind": "dtype", "value": "__class__"}, {"kind": "dtype", "value": "dtype"},
                  {"kind": ["dict"], "items": []}, {"kind": None}, {"kind": "tensor", "number": "x"}):
        assert try_load(archive({"structure.json": json.dumps({**structure, "value": value})})) is None


def test_deep_files_are_refused_and_not_followed_down_the_stack():
    head, tail = b'{"format":"cygrad","version":1,"tensors":[],"value":', b"}"
    for depth in 900, 100_000:
        try_load(archive({"structure.json": head + b"[" * depth + b"]" * depth + tail}))
        try_load(archive({"structure.json": head + b'{"kind":"tuple","items":[' * depth + b"]}" * depth + tail}))
    assert try_load(archive({"structure.json": b"[" * 1_000_000})) is None


def test_compressed_members_are_refused():
    """A few bytes could become any amount of memory."""
    with zipfile.ZipFile(io.BytesIO(saved(cygrad.ones(3)))) as old:
        members = {member: old.read(member) for member in old.namelist()}
    assert try_load(archive(members, zipfile.ZIP_DEFLATED)) is None


def test_truth_values_that_are_neither_zero_nor_one():
    good = saved(cygrad.tensor([True, False, True]))
    bad = npy(np.zeros(3, bool))[:-3] + bytes([0, 2, 255])
    found = try_load(with_member(good, "0.npy", bad))
    assert found.tolist() == [False, True, True]
    assert found.to(cygrad.int64).sum().item() == 2


VALUE = {"model": nn.Linear(2, 3).state_dict(), "list": [1, 2.5, None, "text", (1j, b"raw")],
         "view": cygrad.ones(3, 4)[:, ::2],
         "array": np.arange(4), "kind": cygrad.float64, 3: {1, 2}}


def test_mutated_bytes():
    """Files with some bytes changed: they load, or say that they are damaged."""
    raw, pick, refused = saved(VALUE), random.Random(0), 0
    for _ in range(3000):
        changed = bytearray(raw)
        for _ in range(pick.choice((1, 1, 2, 8))):
            place = pick.randrange(len(changed))
            if pick.random() < 0.2:
                del changed[place:place + pick.randrange(1, 20)]
            else:
                changed[place] = pick.randrange(256)
        refused += try_load(bytes(changed)) is None
    for length in range(0, len(raw), 37):
        try_load(raw[:length])
    assert refused > 1000


def mutated(node, pick):
    """The JSON value with one part replaced by something that does not belong there."""
    strange = [None, True, -1, 0, 2 ** 63, 10 ** 30, 1.5, "x", "", [], {}, [[]], "tensor", "__class__",
               {"kind": "tensor", "number": 0}, {"kind": "ndarray", "number": 7, "shape": [2]}]
    if isinstance(node, (list, dict)) and node and pick.random() < 0.9:
        key = pick.choice(list(node) if isinstance(node, dict) else range(len(node)))
        copied = node.copy()
        copied[key] = mutated(node[key], pick)
        return copied
    return pick.choice(strange)


def test_mutated_structures():
    """The same for the description of the tensors: sizes, strides, offsets, kinds, numbers."""
    raw, pick, refused = saved(VALUE), random.Random(1), 0
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        members = {member: old.read(member) for member in old.namelist()}
    structure = json.loads(members["structure.json"])
    for _ in range(3000):
        changed = mutated(structure, pick)
        found = try_load(archive({**members, "structure.json": json.dumps(changed)}))
        refused += found is None
        if isinstance(found, dict) and isinstance(found.get("view"), cygrad.Tensor):
            found["view"].sum().item() if found["view"].dtype != cygrad.bool else None
    assert refused > 500


def test_mutated_arrays():
    """The same for an .npy member, with a sum that is right: its header is matched with a pattern, not evaluated."""
    good = saved({"x": cygrad.arange(5.0), "n": np.arange(3)})
    with zipfile.ZipFile(io.BytesIO(good)) as old:
        members = {member: old.read(member) for member in old.namelist()}
    pick, refused = random.Random(2), 0
    for _ in range(3000):
        changed = bytearray(members["0.npy"])
        for _ in range(pick.choice((1, 1, 2, 4))):
            place = pick.randrange(min(len(changed), 80))
            text = bytes(pick.choice(b"'\"{}(),:<>fiubcOVUS0123456789\\\n \0\xff") for _ in range(pick.choice((0, 1, 1,
                3))))
            changed[place:place + pick.choice((0, 1, 1, 2))] = text
        refused += try_load(archive({**members, "0.npy": bytes(changed)})) is None
    assert refused > 2000


@pytest.mark.parametrize("header", [
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999,), }",
    b"{'descr': '<f4', 'fortran_order': False, ",
    b"{'descr': '<f0', 'fortran_order': False, 'shape': (5,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1), }",
    b"{'descr': '<f999', 'fortran_order': False, 'shape': (5,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': 5}",
    b"__import__('os').system('true')", b"(" * 5000, b"'" * 100, b"\\N{", b"{'descr': [('a', '<f4')]}", b"",
    b"\n" * 100,
])
def test_headers_that_lie(header):
    good = saved(cygrad.arange(5.0))
    raw = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + np.arange(5, dtype="f4").tobytes()
    assert try_load(with_member(good, "0.npy", raw)) is None


def test_arrays_are_read_once():
    """A mention of an array takes its memory: a thousand mentions of one megabyte would take a gigabyte."""
    structure = {"format": "cygrad", "version": 1, "tensors": [],
                 "value": [{"kind": "ndarray", "number": 0, "shape": [3]}] * 2}
    assert try_load(archive({"structure.json": json.dumps(structure), "0.npy": npy(np.arange(3))})) is None


def test_members_that_overlap_or_are_doubled_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(cygrad.zeros(100_000)))) as old, zipfile.ZipFile(file, "w") as made:
        for member in old.namelist():
            made.writestr(member, old.read(member))
        info = made.getinfo("0.npy")
        for number in range(1, 1000):
            twin = zipfile.ZipInfo(f"{number}.npy")
            for fact in "header_offset", "file_size", "compress_size", "CRC":
                setattr(twin, fact, getattr(info, fact))
            made.filelist.append(twin)
    assert try_load(file.getvalue()) is None
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("structure.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("structure.json", "{}")
    assert try_load(file.getvalue()) is None


def test_a_bomb_is_refused_before_it_takes_memory():
    raw = archive({"structure.json": b"[" + b" " * 50_000_000 + b"]"}, zipfile.ZIP_DEFLATED)
    assert len(raw) < 100_000
    tracemalloc.start()
    try:
        assert try_load(raw) is None
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
