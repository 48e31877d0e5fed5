"""cygrad.save and cygrad.load."""

import io
import json
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import cygrad
from cygrad.nn import Buffer, Parameter


def round_trip(obj):
    file = io.BytesIO()
    cygrad.save(obj, file)
    file.seek(0)
    return cygrad.load(file)


DTYPES = [cygrad.bool, cygrad.uint8, cygrad.int8, cygrad.int16, cygrad.int32, cygrad.int64, cygrad.float32,
          cygrad.float64, cygrad.complex64, cygrad.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_every_dtype_and_shape(dtype, shape):
    tensor = cygrad.randint(0, 2, shape).to(dtype)
    loaded = round_trip(tensor)
    assert type(loaded) is cygrad.Tensor and loaded.dtype is dtype and loaded.shape == shape and loaded.equal(tensor)
    assert loaded.is_leaf and not loaded.requires_grad and not loaded._is_view()
    loaded.copy_(loaded)                      # its memory is its own and writable


def test_special_values_bit_by_bit():
    tensor = cygrad.tensor([float("nan"), float("inf"), -0.0, 5e-324], dtype=cygrad.float64)
    assert round_trip(tensor).numpy().tobytes() == tensor.numpy().tobytes()


def test_layouts():
    base = cygrad.arange(24.0).reshape(4, 6)
    for view in (base.t(), base[1::2, ::3], base[:, 1], base[:1].expand(5, 6), cygrad.from_numpy(np.arange(5.0)[::-1])):
        loaded = round_trip(view)
        assert loaded.equal(view) and loaded.is_contiguous()


def test_shared_memory_stays_shared():
    base = cygrad.arange(24.0).reshape(4, 6)
    a, b, c, again, other = round_trip((base, base.t(), base[1:, 2::2], base, base + 0))
    assert a is again and other is not a and other.data_ptr() != a.data_ptr()
    assert b.stride() == (1, 6) and c.equal(base[1:, 2::2])
    a.zero_()
    assert b.sum().item() == 0 and c.sum().item() == 0 and other.sum().item() > 0
    backwards = cygrad.from_numpy(np.arange(5.0)[::-1])
    one, two = round_trip([backwards, backwards[1:]])
    assert one.tolist() == [4, 3, 2, 1, 0] and two.tolist() == [3, 2, 1, 0]


def test_a_small_view_makes_a_small_file():
    file = io.BytesIO()
    cygrad.save(cygrad.zeros(100_000)[::1000], file)
    assert file.tell() < 3000


def test_requires_grad_and_classes():
    x = cygrad.ones(2, requires_grad=True)
    for tensor in (x, x * 2):
        loaded = round_trip(tensor)
        assert loaded.requires_grad and loaded.is_leaf and loaded.tolist() == tensor.tolist()
    parameter, frozen = round_trip([Parameter(cygrad.ones(2)), Parameter(cygrad.ones(2), requires_grad=False)])
    assert type(parameter) is Parameter and parameter.requires_grad and not frozen.requires_grad
    buffer = round_trip(Buffer(cygrad.ones(2), persistent=False))
    assert isinstance(buffer, Buffer) and not buffer.persistent and buffer.tolist() == [1, 1]


def test_structures():
    value = {"none": None, 1: True, (2, "x"): [1.5, float("-inf"), 2 ** 100, 1 - 2j], "text": "Grüße", "b": b"\0\xff",
             "set": {1, 2}, "frozen": frozenset("ab"), "tuple": ((), (1,)), "dtype": cygrad.float64, "kind": "tensor",
             "array": bytearray(b"xy"), "empty": {}}
    assert round_trip(value) == value
    assert np.isnan(round_trip(float("nan")))
    ordered = round_trip(OrderedDict([("b", 1), ("a", 2)]))
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"]
    array = round_trip([np.arange(6, dtype=np.uint16).reshape(2, 3), np.float32(0.5)])
    assert array[0].dtype == np.uint16 and array[0].tolist() == [[0, 1, 2], [3, 4, 5]] and array[1] == 0.5


def test_state_dicts(tmp_path):
    model = cygrad.nn.Sequential(cygrad.nn.Linear(3, 4), cygrad.nn.Linear(4, 2))
    path = tmp_path / "model.cg"
    cygrad.save(model.state_dict(), path)
    other = cygrad.nn.Sequential(cygrad.nn.Linear(3, 4), cygrad.nn.Linear(4, 2))
    other.load_state_dict(cygrad.load(str(path), map_location="cpu", weights_only=True))
    x = cygrad.randn(5, 3)
    assert other(x).equal(model(x))
    optimizer = cygrad.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    restored = cygrad.optim.Adam(other.parameters())
    restored.load_state_dict(round_trip(optimizer.state_dict()))
    assert restored.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_numpy_reads_the_arrays(tmp_path):
    cygrad.save(cygrad.arange(3.0), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        assert archive["0"].tolist() == [0, 1, 2]


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match=r"obj\['a'\]\[1\] cannot be saved .got Linear.*state_dict"):
        round_trip({"a": [1, cygrad.nn.Linear(1, 1)]})
    with pytest.raises(TypeError, match=r"cannot be saved .got function"):
        round_trip(lambda: 1)
    mine = cygrad._core.graph.type_slots.make_subclass(type("Mine", (cygrad.Tensor,), {}), cygrad.ones(1))
    with pytest.raises(TypeError, match=r"of a class that load cannot create .got Mine"):
        round_trip([mine])
    cycle = {}
    cycle["self"] = cycle
    with pytest.raises(ValueError, match="contains itself"):
        round_trip(cycle)


# ------------------------------------------------------------------------------------------ files that are not to trust

class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code of the file was run",))


def archive_of(structure, pieces=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("structure.json", structure if isinstance(structure, bytes) else json.dumps(structure))
        for name, content in pieces:
            archive.writestr(name, content)
    file.seek(0)
    return file


def described(value, tensors=()):
    return {"format": "cygrad", "version": 1, "value": value, "tensors": list(tensors)}


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def facts(**changes):
    return {"memory": 0, "shape": [2], "strides": [1], "offset": 0, "requires_grad": False, "class": "Tensor",
            **changes}


TENSOR = {"kind": "tensor", "number": 0}
FLOATS = [("0.npy", npy(np.arange(3.0)))]


def test_the_crafted_file_loads():
    assert cygrad.load(archive_of(described(TENSOR, [facts(offset=1)]), FLOATS)).tolist() == [1, 2]


@pytest.mark.parametrize("file", [
    io.BytesIO(b""), io.BytesIO(b"PK\3\4 nonsense"), io.BytesIO(pickle.dumps(Evil())),
    archive_of(b"not json"), archive_of([]), archive_of({"format": "other", "version": 1}),
    archive_of({"format": "cygrad", "version": 99, "value": 1, "tensors": []}),
    archive_of(described({"kind": "unknown"})), archive_of(described({"no": "kind"})),
    archive_of(described({"kind": "dtype", "value": "numpy"})), archive_of(described({"kind": "float", "value": "x"})),
    archive_of(described({"kind": "dict", "items": [[[1], 2]]})),
    archive_of(described({"kind": "bytes", "value": "%"})),
    archive_of(described(TENSOR)), archive_of(described(TENSOR, [facts()])),
    archive_of(described(TENSOR, [facts(shape=[4])]), FLOATS),
    archive_of(described(TENSOR, [facts(shape=[-1])]), FLOATS),
    archive_of(described(TENSOR, [facts(shape=[2.5])]), FLOATS),
    archive_of(described(TENSOR, [facts(shape=[2 ** 62, 2 ** 62], strides=[0, 0])]), FLOATS),
    archive_of(described(TENSOR, [facts(offset=2)]), FLOATS), archive_of(described(TENSOR, [facts(offset=-1)]), FLOATS),
    archive_of(described(TENSOR, [facts(strides=[3])]), FLOATS),
    archive_of(described(TENSOR, [facts(strides=[2 ** 70])]), FLOATS),
    archive_of(described(TENSOR, [facts(strides=[1, 1])]), FLOATS),
    archive_of(described(TENSOR, [facts(memory="../x")]), FLOATS),
    archive_of(described(TENSOR, [facts()]), [("0.npy", npy(np.array([Evil(), Evil()], dtype=object)))]),
    archive_of(described(TENSOR, [facts()]), [("0.npy", npy(np.arange(3.0))[:-4])]),
    archive_of(described(TENSOR, [facts()]), [("0.npy", b"\x93NUMPY")]),
    archive_of(described(TENSOR, [facts()]), [("0.npy", npy(np.zeros((2, 2))))]),
    archive_of(described(TENSOR, [facts()]), [("0.npy", npy(np.array(["a", "b"])))]),
    archive_of(described({"kind": "ndarray", "number": 0, "shape": [5]}), FLOATS),
])
def test_damaged_and_foreign_files(file):
    for error in (RuntimeError, pickle.UnpicklingError, EOFError):         # PyTorch raises one of them
        file.seek(0)
        with pytest.raises(error, match=r"load: weights only load failed: this is no file of cygrad\.save or torch\.s"):
            cygrad.load(file)


def test_streams_and_missing_files(tmp_path):
    file = io.BytesIO()
    cygrad.save(3, file)

    class Stream:
        def read(self):
            return file.getvalue()
    assert cygrad.load(Stream()) == 3
    with pytest.raises(FileNotFoundError):
        cygrad.load(tmp_path / "missing")
