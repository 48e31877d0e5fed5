"""Printing: byte for byte PyTorch's text, except dtype names."""

import numpy as np
import pytest

import cygrad
from cygrad._core.arrays.dtype import set_library_name
from tests.reference import torch


@pytest.fixture(autouse=True)
def default_options():
    """Each test starts and ends with the default options of both libraries."""
    yield
    torch.set_printoptions(profile="default")
    cygrad.set_printoptions(profile="default")


def text_of(theirs):
    """Our text for a tensor of theirs."""
    ours = cygrad.tensor(theirs.detach().numpy())
    if theirs.grad_fn is not None:
        ours = ours.requires_grad_().clone()
    elif theirs.requires_grad:
        ours.requires_grad_()
    return repr(ours)


def random_tensor(rng):
    """Any shape, dtype, size of numbers, with nan and inf, with and without a history."""
    sizes = rng.choice([0, 1, 2, 3, 5, 7, 8, 20, 40], p=[0.05, 0.1, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05],
                       size=rng.integers(0, 4))
    shape = tuple(int(size) for size in sizes)
    dtype = [torch.float32, torch.float32, torch.int64, torch.bool, torch.complex64][rng.integers(5)]
    x = rng.standard_normal(shape)
    kind = rng.integers(6)
    if kind == 1:
        x = np.round(x * 10)
    elif kind == 2:
        x = x * 10.0 ** rng.integers(-10, 10, size=shape)
    elif kind == 3:
        x = np.round(x * 10.0 ** rng.integers(0, 9))
    elif kind == 4:
        x = x * 10.0 ** int(rng.integers(-6, 10))
    x = np.asarray(x)
    if rng.random() < 0.3:
        x = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], size=shape), x)
    if dtype.is_complex:
        x = x + 1j * (rng.standard_normal(shape) if kind % 2 else np.round(x.real * 3))
    elif not dtype.is_floating_point:
        x = np.nan_to_num(x, posinf=1, neginf=-1).clip(-1e6, 1e6).astype(np.int64)
    tensor = torch.tensor(x).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        history = rng.random()
        if history < 0.4:
            tensor.requires_grad_()
        if history < 0.2:
            tensor = tensor.clone()
    return tensor


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("seed", range(20))
def test_random_tensors(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        options = {"profile": ["default", "short", "full"][rng.integers(3)]}
        if rng.random() < 0.4:
            options = {
                "precision": int(rng.integers(0, 8)), "threshold": int(rng.choice([5, 50, 1000])),
                "edgeitems": int(rng.integers(1, 5)), "linewidth": int(rng.choice([20, 40, 80, 120])),
                "sci_mode": [None, True, False][rng.integers(3)],
            }
        torch.set_printoptions(**options)
        cygrad.set_printoptions(**options)
        theirs = random_tensor(rng)
        if theirs.numel() == 0 and theirs.dtype is not torch.float32:
            continue                   # its dtype is named
        assert text_of(theirs) == repr(theirs), options


@pytest.mark.parametrize(("make", "text"), [
    (lambda: cygrad.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: cygrad.tensor([1.5], dtype=cygrad.float64), "tensor([1.5000], dtype=cygrad.float64)"),
    (lambda: cygrad.tensor(3), "tensor(3)"),
    (lambda: cygrad.tensor([1], dtype=cygrad.uint8), "tensor([1], dtype=cygrad.uint8)"),
    (lambda: cygrad.zeros(0), "tensor([])"),
    (lambda: cygrad.zeros(0, 2), "tensor([], size=(0, 2))"),
    (lambda: cygrad.zeros(0, dtype=cygrad.int64), "tensor([], dtype=cygrad.int64)"),
    (lambda: cygrad.tensor([True, False]), "tensor([ True, False])"),
    (lambda: cygrad.tensor([1 + 2j]), "tensor([1.+2.j])"),
    (lambda: cygrad.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (lambda: cygrad.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
    (lambda: cygrad.tensor([0.0, float("nan"), float("-inf")]), "tensor([0., nan, -inf])"),
])
def test_texts(make, text):
    assert repr(make()) == text == str(make())


def test_any_strides():
    x = cygrad.arange(12.0).reshape(3, 4)
    for ours, theirs in ((x.T, x.numpy().T), (x[:, ::2], x.numpy()[:, ::2]), (x[1], x.numpy()[1])):
        assert repr(ours) == repr(torch.tensor(theirs))
    assert repr(cygrad.from_numpy(np.arange(3.0, dtype=np.float32)[::-1])) == "tensor([2., 1., 0.])"


def test_a_huge_view_is_not_copied():
    wide = cygrad.arange(2.0)[:, None].expand(2, 2**40)
    assert repr(wide) == "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [1., 1., 1.,  ..., 1., 1., 1.]])"


def test_default_dtype_is_not_named():
    try:
        cygrad.set_default_dtype(cygrad.float64)
        assert repr(cygrad.tensor([1.0])) == "tensor([1.])"
        assert repr(cygrad.tensor([1.0], dtype=cygrad.float32)) == "tensor([1.], dtype=cygrad.float32)"
    finally:
        cygrad.set_default_dtype(cygrad.float32)


def test_subclass():
    class Special(cygrad.Tensor):
        pass

    assert repr(Special([1.0])) == "Special([1.])"


def test_format():
    assert f"{cygrad.tensor(2.5):.3f}" == "2.500"
    assert f"{cygrad.tensor([1.0])}" == "tensor([1.])"
    assert f"{cygrad.tensor(2.5, requires_grad=True)}" == "2.5"
    with pytest.raises(TypeError):
        f"{cygrad.tensor([1.0]):.3f}"


def test_options():
    before = cygrad.get_printoptions()
    with cygrad.printoptions(precision=2, sci_mode=True):
        assert repr(cygrad.tensor([1.0])) == "tensor([1.00e+00])"
    assert cygrad.get_printoptions() == before
    with pytest.raises(ValueError, match="set_printoptions: unknown profile"):
        cygrad.set_printoptions(profile="long")


OPTIONS = [{}, {"precision": 2}, {"linewidth": 40}, {"linewidth": 10}, {"threshold": 5, "edgeitems": 2},
           {"edgeitems": 0, "threshold": 2}, {"sci_mode": True}, {"profile": "short"}]
KINDS = {
    "coo": lambda t: t.eye(3).to_sparse(), "csr": lambda t: t.eye(30).to_sparse_csr(),
    "csc": lambda t: t.eye(3).to_sparse_csc(), "double": lambda t: t.eye(3, dtype=t.float64).to_sparse(),
    "empty": lambda t: t.sparse_coo_tensor(size=(2, 3)), "leaf": lambda t: t.eye(3).to_sparse().requires_grad_(),
    "result": lambda t: t.eye(3).to_sparse().requires_grad_() * 2,
    "hybrid": lambda t: t.sparse_coo_tensor(t.tensor([[0, 1]]), t.ones(2, 2, 2), (2, 2, 2)),
    "dense": lambda t: t.arange(40.0).reshape(2, 20) / 3, "scalar": lambda t: t.tensor(1 / 3),
    "short": lambda t: t.tensor([1 / 3, 2.0], dtype=t.bfloat16), "integers": lambda t: t.arange(40),
    "buffer": lambda t: t.nn.Buffer(t.ones(2)),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tensor_obeys_the_options(kind, options):
    torch.set_printoptions(**options)
    cygrad.set_printoptions(**options)
    set_library_name("torch")                          # its length decides where lines end
    try:
        ours = repr(KINDS[kind](cygrad))
    finally:
        set_library_name("cygrad")
    assert ours == repr(KINDS[kind](torch))
