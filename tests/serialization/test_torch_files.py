"""PyTorch files: reading those of torch.save, and writing those for torch.load."""

import io
import pickle
import zipfile
from collections import Counter, OrderedDict
from fractions import Fraction

import numpy as np
import pytest

import cygrad
from cygrad import nn

torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128",
          "float16", "uint16", "uint32", "uint64"]
FORMS = pytest.mark.parametrize("zipped", [True, False])


def from_torch(value, zipped=True, **arguments):
    """The value, saved by PyTorch and loaded here."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    return cygrad.load(file, **arguments)


def to_torch(value):
    """The value, saved here and loaded by PyTorch."""
    file = io.BytesIO()
    cygrad.save(value, file, format="torch")
    file.seek(0)
    return torch.load(file, weights_only=True)


def there_and_back(value, **arguments):
    file = io.BytesIO()
    cygrad.save(value, file, **arguments)
    file.seek(0)
    return cygrad.load(file, weights_only="pickle" not in arguments)


def same(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.requires_grad == theirs.requires_grad
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())


@FORMS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_every_dtype_and_shape(dtype, shape, zipped):
    theirs = torch.randint(0, 2, shape).to(getattr(torch, dtype))
    ours = from_torch(theirs, zipped)
    same(ours, theirs)
    ours.copy_(ours)                                          # its memory is its own and writable
    same(ours, to_torch(ours))


@FORMS
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", ["bfloat16", "complex32"])
def test_dtypes_that_numpy_does_not_have(dtype, zipped):
    theirs = torch.tensor([[1, 2, 3], [4, 5, 60_000]]).to(getattr(torch, dtype))
    ours = from_torch([theirs, theirs.t()[1:]], zipped)
    for found, expected in zip(ours, (theirs, theirs.t()[1:]), strict=True):
        assert found.dtype is getattr(cygrad, dtype) and found.tolist() == expected.tolist()
        back = to_torch(found)
        assert back.dtype == expected.dtype and back.tolist() == expected.tolist()


@FORMS
def test_layouts_and_shared_memory(zipped):
    base = torch.arange(24.0).reshape(4, 6)
    views = [base, base.t(), base[1::2, ::3], base[:, 1], base[:1].expand(5, 6), base.clone()]
    ours = from_torch([*views, base], zipped)
    for found, expected in zip(ours, views, strict=False):
        same(found, expected)
        assert found.stride() == expected.stride()
    assert ours[-1] is ours[0]
    ours[0].zero_()
    assert [found.sum().item() for found in ours[1:5]] == [0, 0, 0, 0]
    assert ours[5].sum().item() > 0
    mine = cygrad.arange(24.0).reshape(4, 6)
    theirs = to_torch([mine, mine.t()[1:], mine.flip(0), cygrad.from_numpy(np.arange(5.0)[::-1]), mine])
    assert theirs[-1] is theirs[0]
    theirs[0].zero_()
    assert theirs[1].sum() == 0
    assert theirs[2].sum() > 0
    assert theirs[3].tolist() == [4, 3, 2, 1, 0]


def test_flags_attributes_and_conjugates():
    x = torch.tensor([1 + 2j, 3 - 1j])
    assert from_torch(x.conj()).tolist() == [1 - 2j, 3 + 1j]
    assert from_torch(x.conj().imag).tolist() == [-2, 1]
    marked = torch.ones(2, requires_grad=True)
    marked.note, marked.backward_hook = "text", [1]
    found = from_torch(marked)
    assert (found.note, found.backward_hook, found.requires_grad) == ("text", [1], True)
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.group = 3
    found = from_torch(parameter)
    assert type(found) is nn.Parameter
    assert (found.group, found.requires_grad) == (3, False)
    back = to_torch([found, from_torch(marked)])
    assert (back[0].group, back[1].note) == (3, "text")
    assert type(from_torch(torch.nn.Buffer(torch.ones(2)))) is type(nn.Buffer(cygrad.ones(2)))


@FORMS
def test_storages(zipped):
    typed, raw = from_torch([torch.arange(3.0)._typed_storage(), torch.ones(2).untyped_storage()], zipped)
    assert typed.tolist() == [0, 1, 2]
    assert bytes(raw.numpy()) == np.ones(2, np.float32).tobytes()


STRUCTURE = {"none": None, 1: True, (2, "x"): [1.5, float("-inf"), 2 ** 100, -7, 1 - 2j, 300, 70_000], "text": "Grüße",
             "raw": b"\0\xff", "nothing": b"", "array": bytearray(b"xy"), "set": {1, 2},
             "tuple": ((), (1,), (1, 2), (1, 2, 3, 4)),
             "ordered": OrderedDict([("b", 1), ("a", 2)]), "counter": Counter({3: 2}), "empty": {}}


@FORMS
def test_structures(zipped):
    found = from_torch(STRUCTURE, zipped)
    assert found == STRUCTURE
    assert type(found["ordered"]) is OrderedDict
    assert type(found["counter"]) is Counter
    assert to_torch(STRUCTURE) == STRUCTURE
    assert there_and_back(STRUCTURE) == STRUCTURE
    torch_kinds = from_torch([torch.float32, torch.Size([2, 3]), torch.device("cpu")], zipped)
    assert torch_kinds[0] is cygrad.float32
    assert torch_kinds[1] == (2, 3)
    assert to_torch([cygrad.int64, cygrad.float16]) == [torch.int64, torch.float16]
    assert to_torch([np.float64(0.5), np.int32(3)]) == [0.5, 3]
    for value in cygrad.ones(2, 3).shape, cygrad.device("cpu"), cygrad.device("cpu", 0), cygrad.float16:
        for found in there_and_back(value), there_and_back(value, format="torch"):
            assert type(found) is type(value)
            assert found == value
    assert to_torch([cygrad.ones(2, 3).shape, cygrad.device("cpu")]) == [torch.Size([2, 3]), torch.device("cpu")]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle(protocol):
    file = io.BytesIO()
    value = {**STRUCTURE, "long": "x" * 300, "frozen": frozenset({1, 2}), "x": torch.arange(3)}
    torch.save(value, file, pickle_protocol=protocol)
    file.seek(0)
    found = cygrad.load(file)
    assert found.pop("x").tolist() == value.pop("x").tolist()
    assert found == value


@FORMS
def test_numbers_and_arrays_of_numpy(zipped):
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
              np.array(3, np.uint16), np.zeros((0, 2), bool), np.float64(0.25), np.int64(3), np.bool_(True)]
    for found, expected in zip(from_torch(arrays, zipped), arrays, strict=True):
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, expected)


@FORMS
def test_state_dicts_of_networks(zipped, tmp_path):
    def build(library):
        return library.nn.Sequential(
            library.nn.Conv2d(1, 4, 3), library.nn.BatchNorm2d(4), library.nn.ReLU(), library.nn.Flatten(),
            library.nn.Linear(4 * 36, 10), library.nn.LayerNorm(10))
    theirs, ours = build(torch), build(cygrad)
    optimizer = torch.optim.Adam(theirs.parameters())
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    x = torch.randn(3, 1, 8, 8)
    theirs(x).sum().backward()
    optimizer.step()
    torch.save({"epoch": 3, "model": theirs.state_dict(), "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict()}, tmp_path / "state.pt", _use_new_zipfile_serialization=zipped)
    state = cygrad.load(tmp_path / "state.pt", map_location="cpu")
    assert state["model"]._metadata == theirs.state_dict()._metadata
    ours.load_state_dict(state["model"])
    mine = cygrad.optim.Adam(ours.parameters())
    mine.load_state_dict(state["optimizer"])
    schedule = cygrad.optim.lr_scheduler.MultiStepLR(mine, [2, 4])
    schedule.load_state_dict(state["scheduler"])
    np.testing.assert_allclose(ours.eval()(cygrad.from_numpy(x.numpy())).detach().numpy(),
                               theirs.eval()(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    cygrad.save({"model": ours.state_dict(), "optimizer": mine.state_dict(), "scheduler": schedule.state_dict()},
                tmp_path / "back.pt", format="torch")
    back = torch.load(tmp_path / "back.pt", weights_only=True)
    theirs.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])
    scheduler.load_state_dict(back["scheduler"])


def test_what_the_format_does_not_hold():
    for value in np.ones(2), frozenset({1}), [{"a": frozenset()}]:
        with pytest.raises(TypeError, match="save: PyTorch's files do not hold"):
            cygrad.save(value, io.BytesIO(), format="torch")
    with pytest.raises(TypeError, match=r"save: obj\['a'\] cannot be saved .*pickle=True"):
        cygrad.save({"a": nn.Linear(1, 1)}, io.BytesIO(), format="torch")
    with pytest.raises(ValueError, match="unknown format"):
        cygrad.save(1, io.BytesIO(), format="onnx")
    with pytest.raises(ValueError, match="pickle=True only with"):
        cygrad.save(1, io.BytesIO(), format="cygrad", pickle=True)


class Net(nn.Module):
    """A user's module."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.1))
        self.tied = self.body[0].weight
        self.register_buffer("mask", cygrad.ones(4))
        self.extra = {"fraction": Fraction(1, 3)}

    def forward(self, x):
        return self.body(x) * self.mask


def test_whole_modules_under_their_own_switch(tmp_path):
    net = Net().eval()
    cygrad.save(net, tmp_path / "net", pickle=True)
    for trusting in ({}, {"weights_only": True}):
        with pytest.raises(RuntimeError, match=r"load: .*refers to .*Net.*weights_only=False"):
            cygrad.load(tmp_path / "net", **trusting)
    found = cygrad.load(tmp_path / "net", weights_only=False)
    x = cygrad.randn(2, 3)
    assert found(x).equal(net(x))
    assert found.tied is found.body[0].weight
    assert found.extra == net.extra
    assert not found.training
    optimizer = cygrad.optim.Adam(net.parameters())
    restored = there_and_back([optimizer, net, np.arange(3)], pickle=True)
    assert restored[0].param_groups[0]["params"][0] is restored[1].body[0].weight
    for value in cygrad.load, Net, slice(1, 2), frozenset({3}), range(3):
        assert there_and_back(value, pickle=True) == value
    with pytest.raises((pickle.PicklingError, AttributeError)):
        there_and_back(lambda: 1, pickle=True)


def test_what_only_holds_plain_things_needs_no_trust():
    file = io.BytesIO()
    cygrad.save({"x": cygrad.ones(2), "n": 3}, file, pickle=True)
    file.seek(0)
    assert cygrad.load(file)["x"].tolist() == [1, 1]
    file.seek(0)
    assert torch.load(file)["n"] == 3


def test_names_that_the_user_lets_in():
    file = io.BytesIO()
    torch.save({"fraction": Fraction(1, 3)}, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match=r"fractions\.Fraction"):
        cygrad.load(file)
    with cygrad.serialization.safe_globals([Fraction]):
        assert cygrad.serialization.get_safe_globals() == [Fraction]
        file.seek(0)
        assert cygrad.load(file) == {"fraction": Fraction(1, 3)}
    assert cygrad.serialization.get_safe_globals() == []
    cygrad.serialization.add_safe_globals([(Fraction, "some.where.Else")])
    cygrad.serialization.clear_safe_globals()
    file.seek(0)
    with pytest.raises(RuntimeError):
        cygrad.load(file)
    assert cygrad.load(io.BytesIO(file.getvalue()), weights_only=False) == {"fraction": Fraction(1, 3)}


def test_bytes_in_the_other_order():
    """Files of machines that put the most significant byte first."""
    file = io.BytesIO()
    torch.save(torch.tensor([1.5, -2.0]), file)
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members |= {"archive/byteorder": b"big", "archive/data/0": np.array([1.5, -2.0], ">f4").tobytes()}
    swapped = io.BytesIO()
    with zipfile.ZipFile(swapped, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    swapped.seek(0)
    assert cygrad.load(swapped).tolist() == [1.5, -2.0]
