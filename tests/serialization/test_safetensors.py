"""safetensors files: written by cygrad, by safetensors, by hand, and corrupt ones."""

import json
import random
import struct

import numpy as np
import pytest

import cygrad
from cygrad import nn, safetensors
from cygrad.safetensors import SafetensorError

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64",
          "float16", "uint16", "uint32", "uint64"]


def crafted(header, data=b"", size=None):
    """A file by hand; the header as a dict or as bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def tensor(dtype, shape):
    values = np.random.default_rng(0).integers(0, 100, shape)
    made = cygrad.from_numpy(np.array(values)).to(getattr(cygrad, dtype))
    return made * 1j if dtype.startswith("complex") else made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (2, 3, 4)])
def test_there_and_back(tmp_path, dtype, shape):
    x = tensor(dtype, shape)
    safetensors.save_file({"x": x}, tmp_path / "f")
    with safetensors.safe_open(tmp_path / "f") as file:
        mapped = file.get_tensor("x")
    for found in safetensors.load_file(tmp_path / "f")["x"], safetensors.load(safetensors.save({"x": x}))["x"], mapped:
        assert found.dtype == x.dtype
        assert found.shape == x.shape
        assert cygrad.equal(found, x)
        if found.numel() and dtype != "bool":
            found += 1                                     # it is ours to change
    assert cygrad.equal(safetensors.load_file(tmp_path / "f")["x"], x)


def test_special_values_layouts_and_shared_memory(tmp_path):
    base = cygrad.tensor([[1.0, float("nan")], [float("inf"), -0.0]])
    tensors = {
        "t": base.t(),
        "row": base[1],
        "again": base[1],
        "reversed": base.flip(0),
        "wide": base[:, :1].expand(2, 3),
        "parameter": nn.Parameter(base),
        'name with ä and "': base,
    }
    safetensors.save_file(tensors, tmp_path / "f")
    found = safetensors.load_file(tmp_path / "f")
    assert list(found) == sorted(tensors)
    for name, value in tensors.items():
        np.testing.assert_array_equal(found[name].numpy(), value.detach().numpy())
        assert type(found[name]) is cygrad.Tensor
        assert not found[name].requires_grad
    assert np.signbit(found["t"][1, 1].item())


def test_models_and_metadata(tmp_path):
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    safetensors.save_file(model.state_dict(), tmp_path / "f", {"format": "pt", "epoch": "3"})
    other.load_state_dict(safetensors.load_file(tmp_path / "f"))
    assert cygrad.equal(other.weight, model.weight)
    with safetensors.safe_open(tmp_path / "f", "pt", "cpu") as file:
        assert file.metadata() == {"format": "pt", "epoch": "3"}
        assert file.keys() == ["bias", "weight"]
        assert file.offset_keys() == ["bias", "weight"]
        part = file.get_slice("weight")
        assert part.get_shape() == [2, 3]
        assert part.get_dtype() == "F32"
        assert cygrad.equal(part[:, 1:], model.weight.detach()[:, 1:])
        with pytest.raises(SafetensorError, match="does not contain"):
            file.get_tensor("x")
        kept = file.get_tensor("bias")
    with pytest.raises(SafetensorError, match="closed"):
        file.get_tensor("bias")
    assert cygrad.equal(kept, model.bias.detach())
    assert safetensors.load(safetensors.save({})) == {}


def test_every_tensor_is_aligned_in_our_files():
    raw = safetensors.save({"a": tensor("uint8", (3,)), "b": tensor("float64", (2,)), "c": tensor("int16", (1,))})
    size = int.from_bytes(raw[:8], "little")
    assert size % 8 == 0
    header = json.loads(raw[8:8 + size])
    assert list(header) == ["b", "c", "a"]
    assert header["a"]["data_offsets"] == [18, 21]


def test_files_by_hand(tmp_path):
    raw = crafted({"x": entry(), "__metadata__": {"a": "b"}}, np.array([1, 2], "<f4").tobytes())
    assert safetensors.load(raw)["x"].tolist() == [1, 2]
    assert safetensors.load(bytearray(raw))["x"].tolist() == [1, 2]
    unaligned = crafted(b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} ', np.array([1, 2], "<f4").tobytes())
    (tmp_path / "f").write_bytes(unaligned)
    with safetensors.safe_open(tmp_path / "f") as file:
        assert file.get_tensor("x").tolist() == [1, 2]
    assert safetensors.load(crafted({"x": entry("BOOL", (3,), (0, 3))}, b"\0\1\2"))["x"].tolist() == [False, True, True]
    assert safetensors.load(crafted({"x": entry("BF16", (2,), (0, 4))}, b"\x80\x3f\x00\xc0"))["x"].tolist() == [1, -2]
    assert safetensors.load(crafted({"x": entry("F16", (1,), (0, 2))}, np.float16(1.5).tobytes()))["x"].tolist() == [
        1.5
    ]
    large = safetensors.load(crafted({"x": entry("U32", (1,), (0, 4))}, b"\xff\xff\xff\xff"))["x"]
    assert (large.tolist(), large.dtype) == ([2**32 - 1], cygrad.uint32)
    assert safetensors.load(crafted({"x": entry("U16", (1,), (0, 2))}, b"\xff\xff"))["x"].dtype == cygrad.uint16


EIGHT = bytes(8)
DAMAGED = {
    "nothing": b"",
    "seven bytes": b"1234567",
    "no header": struct.pack("<Q", 0),
    "cut off header": crafted({}, size=100),
    "a header of 2**63 bytes": crafted({}, size=2**63),
    "a header above the limit": crafted({}, size=100_000_001),
    "not JSON": crafted(b"{abc}"),
    "not UTF-8": crafted(b'{"\xff": 1}'),
    "a list": crafted(b"[]"),
    "a number": crafted(b"3"),
    "space before": crafted(b" {}"),
    "deep": crafted(b"[" * 100_000),
    "deep objects": crafted(b'{"a":' * 100_000),
    "twice": crafted(
        b'{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "twice inside": crafted(b'{"x":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "gap": crafted({"x": entry(offsets=(4, 12))}, bytes(12)),
    "overlap": crafted({"x": entry(), "y": entry(offsets=(4, 12))}, bytes(12)),
    "the same bytes": crafted({"x": entry(), "y": entry()}, EIGHT),
    "beyond the end": crafted({"x": entry(shape=(3,), offsets=(0, 12))}, EIGHT),
    "bytes left over": crafted({"x": entry()}, bytes(9)),
    "data without tensors": crafted({}, b"1"),
    "backwards": crafted({"x": entry(offsets=(8, 0))}, EIGHT),
    "wrong size": crafted({"x": entry(shape=(3,))}, EIGHT),
    "wrong dtype for the size": crafted({"x": entry("F64")}, EIGHT),
    "unknown dtype": crafted({"x": entry("F33")}, EIGHT),
    "dtype is a number": crafted({"x": entry(4)}, EIGHT),
    "dtype is a list": crafted({"x": entry(["F32"])}, EIGHT),
    "negative size": crafted({"x": entry(shape=(-2,))}, EIGHT),
    "two negative sizes": crafted({"x": entry(shape=(-1, -2))}, EIGHT),
    "size is a bool": crafted({"x": entry("U8", (True,), (0, 1))}, b"1"),
    "size is a float": crafted({"x": entry(shape=(2.0,))}, EIGHT),
    "sizes whose product overflows": crafted({"x": entry(shape=(2**62, 4, 2))}, EIGHT),
    "zero size and a huge one": crafted({"x": entry(shape=(2**62, 2**62, 0), offsets=(0, 0))}),
    "huge integer": crafted(b'{"x":{"dtype":"U8","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,0]}}'),
    "too many dimensions": crafted({"x": entry("U8", (1,) * 65, (0, 1))}, b"1"),
    "one offset": crafted({"x": entry(offsets=(8,))}, EIGHT),
    "three offsets": crafted({"x": entry(offsets=(0, 4, 8))}, EIGHT),
    "offsets are no list": crafted({"x": {"dtype": "F32", "shape": [2], "data_offsets": 8}}, EIGHT),
    "shape is a dict": crafted({"x": {"dtype": "F32", "shape": {}, "data_offsets": [0, 4]}}, bytes(4)),
    "no shape": crafted({"x": {"dtype": "F32", "data_offsets": [0, 8]}}, EIGHT),
    "something more": crafted({"x": {**entry(), "code": "import os"}}, EIGHT),
    "a tensor that is none": crafted({"x": 3}),
    "metadata with numbers": crafted({"__metadata__": {"a": 1}}),
    "metadata is a list": crafted({"__metadata__": []}),
    "infinite": crafted(b'{"x":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,8]}}', EIGHT),
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch /tmp/pwned'\ntR.",
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files(kind, tmp_path):
    (tmp_path / "f").write_bytes(DAMAGED[kind])
    for read in (lambda: safetensors.load(DAMAGED[kind]), lambda: safetensors.load_file(tmp_path / "f"),
                 lambda: safetensors.safe_open(tmp_path / "f")):
        with pytest.raises(SafetensorError):
            read()


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        safetensors.safe_open(tmp_path / "none")


@pytest.mark.parametrize(("tensors", "metadata"), [
    ({"x": cygrad.ones(2, dtype=cygrad.complex128)}, None), ({3: cygrad.ones(2)}, None), ({"x": np.ones(2)}, None),
    ({"__metadata__": cygrad.ones(1)}, None), ([cygrad.ones(1)], None), ({}, {"a": 1}), ({}, {1: "a"})])
def test_what_cannot_be_saved(tensors, metadata):
    with pytest.raises(SafetensorError, match="save_file"):
        safetensors.save(tensors, metadata)


# ----------------------------------------------------------------------------------------------------- other libraries

def test_both_ways_with_the_formats_own_library(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    tensors = {f"{dtype} {shape}": tensor(dtype, shape) for dtype in DTYPES for shape in ((), (3,), (0,), (2, 3))}
    safetensors.save_file(tensors, tmp_path / "ours", {"a": "b"})
    found = theirs.load_file(tmp_path / "ours")
    assert sorted(found) == sorted(tensors)
    for name, value in tensors.items():
        np.testing.assert_array_equal(found[name], value.numpy())
        assert found[name].dtype == value.numpy().dtype
    arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in tensors.items()}
    theirs.save_file(arrays, tmp_path / "theirs", {"a": "b"})
    found = safetensors.load_file(tmp_path / "theirs")
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name].numpy(), value)
    assert theirs.save(arrays) == theirs.save(arrays)
    ours = {name: cygrad.from_numpy(value.copy()) for name, value in arrays.items()}
    assert safetensors.load(theirs.save(arrays)).keys() == theirs.load(safetensors.save(ours)).keys()


def outcome(read, raw):
    """Return the tensors that safetensors reads, or its error."""
    try:
        return read(bytes(raw))
    except Exception as error:
        if type(error).__name__ != "SafetensorError":      # ours and theirs have the same name
            raise
        return str(error)


def test_damaged_files_are_those_that_the_formats_own_library_refuses():
    """cygrad accepts and refuses the same mutated files as safetensors, and reads equal tensors."""
    theirs = pytest.importorskip("safetensors")
    whole = crafted({"x": entry(), "y": entry("U8", (3,), (8, 11)), "__metadata__": {"a": "b"}}, bytes(range(11)))
    pick, accepted = random.Random(0), 0
    for _ in range(4000):
        raw = bytearray(whole)
        for _ in range(pick.choice((1, 1, 1, 2, 3))):
            place = pick.randrange(len(raw))
            raw[place:place + pick.choice((0, 1, 1, 1, 2))] = bytes(
                pick.choice(b'0123456789,:[]{}" \0\xffFUI8axy') for _ in range(pick.choice((0, 1, 1, 2))))
        expected = outcome(theirs.deserialize, raw)
        found = outcome(safetensors.load, raw)
        if isinstance(found, str):
            # the only differences: dtypes that cygrad lacks, and longer names
            assert isinstance(expected, str) or any(text in found for text in ("cannot read", "nothing else", "twice"))
            continue
        expected = dict(expected)
        assert {name: tuple(facts["shape"]) for name, facts in expected.items()} == {
            name: tuple(value.shape) for name, value in found.items()}
        accepted += 1
    assert accepted > 50
