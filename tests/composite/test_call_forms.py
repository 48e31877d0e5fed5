"""Alternative call forms: NumPy's argument names, deprecated signatures, Python types."""

import inspect

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")


# ---- axis and keepdims

def _with_dim():
    """Yield every public function with an argument `dim` that PyTorch has too."""
    for library, other in ((cygrad, torch), (cygrad.linalg, torch.linalg), (cygrad.fft, torch.fft),
                           (cygrad.special, torch.special), (cygrad.Tensor, torch.Tensor)):
        for name in dir(library):
            function = getattr(library, name)
            if name[:1] == "_" or isinstance(function, type) or not callable(function) or not hasattr(other, name):
                continue
            try:
                names = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            if "dim" in names and name not in ("size", "stride", "ndim"):
                yield pytest.param(function, names, id=f"{library.__name__}.{name}")


@pytest.mark.parametrize(("function", "names"), list(_with_dim()))
def test_axis_is_a_name_of_dim(function, names):
    assert "axis" in names or hasattr(function, "__wrapped__")
    if "keepdim" in names:
        assert "keepdims" in names or hasattr(function, "__wrapped__")


CALLS = {
    "sum": lambda lib, x: lib.sum(x, axis=1, keepdims=True),
    "linalg.norm": lambda lib, x: lib.linalg.norm(x, axis=1, keepdims=True),
    "linalg.vector_norm": lambda lib, x: lib.linalg.vector_norm(x, axis=0, keepdims=True),
    "linalg.matrix_norm": lambda lib, x: lib.linalg.matrix_norm(x, axis=(0, 1), keepdims=True),
    "index_select": lambda lib, x: lib.index_select(x, axis=1, index=lib.tensor([0, 2])),
    "gather": lambda lib, x: x.gather(axis=0, index=lib.tensor([[0, 1, 1]])),
    "scatter": lambda lib, x: x.scatter(axis=0, index=lib.tensor([[0, 1, 1]]), value=2.0),
    "split": lambda lib, x: lib.cat(lib.tensor_split(x, 2, axis=1)[1:]),
    "chunk": lambda lib, x: x.chunk(2, axis=1)[0],
    "cat": lambda lib, x: lib.cat([x, x], axis=1),
    "fft": lambda lib, x: lib.view_as_real(lib.fft.fft(x, axis=0)),
    "cumsum": lambda lib, x: x.cumsum(axis=1),
    "softmax": lambda lib, x: lib.softmax(x, axis=1),
    "unbind": lambda lib, x: x.unbind(axis=1)[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_axis_means_what_it_means_elsewhere(name):
    values = [[1.0, 2.0, -3.0], [4.0, 5.5, 6.0]]
    assert cygrad.allclose(CALLS[name](cygrad, cygrad.tensor(values)),
                           cygrad.tensor(CALLS[name](torch, torch.tensor(values)).tolist()))


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="dim"):
        cygrad.linalg.norm(cygrad.ones(2, 2), dim=0, axis=1)
    with pytest.raises(TypeError, match="index_select: missing required argument 'index'"):
        cygrad.index_select(cygrad.ones(2), axis=0)


# ---- factors before the tensors they belong to

EARLY = {
    "add": lambda lib, v, w, m: lib.add(v, 3, w),
    "x.add": lambda lib, v, w, m: v.add(2, w),
    "add_": lambda lib, v, w, m: v.clone().add_(-1.0, w),
    "sub": lambda lib, v, w, m: lib.sub(v, 3, w),
    "sub_": lambda lib, v, w, m: v.clone().sub_(2, w),
    "addmm": lambda lib, v, w, m: lib.addmm(2, m, 3, m, m),
    "addmm, one factor": lambda lib, v, w, m: lib.addmm(2, m, m, m),
    "x.addmm": lambda lib, v, w, m: m.addmm(2, 3, m, m),
    "addmm_": lambda lib, v, w, m: m.clone().addmm_(2, m, m),
    "addmv": lambda lib, v, w, m: lib.addmv(2, v, 3, m, w),
    "addr": lambda lib, v, w, m: m.addr(2, 3, v, w),
    "baddbmm": lambda lib, v, w, m: m[None].baddbmm(2, 3, m[None], m[None]),
    "addbmm": lambda lib, v, w, m: lib.addbmm(2, m, m[None], m[None]),
    "addcmul": lambda lib, v, w, m: lib.addcmul(v, 0.5, w, w),
    "addcmul_": lambda lib, v, w, m: v.clone().addcmul_(0.5, w, w),
    "addcdiv": lambda lib, v, w, m: v.addcdiv(0.5, w, w),
}


@pytest.mark.filterwarnings("ignore:This overload")
@pytest.mark.parametrize("name", EARLY)
def test_factors_may_come_first(name):
    values = ([1.0, 2.0], [3.0, -4.0], [[1.0, 2.0], [3.0, 4.0]])
    found = EARLY[name](cygrad, *map(cygrad.tensor, values))
    assert found.tolist() == EARLY[name](torch, *map(torch.tensor, values)).tolist()


def test_too_many_arguments_are_refused():
    with pytest.raises(TypeError, match="add: too many positional arguments"):
        cygrad.ones(2).add(cygrad.ones(2), cygrad.ones(2))
    with pytest.raises(TypeError, match="addmm: too many positional arguments"):
        cygrad.addmm(1, cygrad.ones(2, 2), 1, 1, cygrad.ones(2, 2), cygrad.ones(2, 2))


# ---- as many parts as there are

MANY = 100_000


@pytest.mark.parametrize("part", [
    lambda x: x.split(1), lambda x: x.split([1] * 1000), lambda x: x.chunk(1000), lambda x: x.unbind(),
    lambda x: x.tensor_split(1000), lambda x: cygrad.split_with_sizes(x, [1] * 1000), lambda x: x.unsafe_split(1),
    lambda x: x.unsafe_chunk(1000), lambda x: x.reshape(1, 1000).hsplit(1000),
])
def test_a_thousand_parts_and_their_gradients(part):
    x = cygrad.arange(1000.0, requires_grad=True)
    parts = part(x)
    assert len(parts) == 1000
    for order in (False, True):
        grad, = cygrad.autograd.grad(cygrad.cat([p.reshape(1) for p in parts]).square().sum(), x, create_graph=order,
                                     retain_graph=True)
        assert grad.tolist() == (2 * x).tolist()


@pytest.mark.parametrize("join", [cygrad.cat, cygrad.stack, cygrad.vstack, cygrad.hstack])
def test_very_many_operands(join):
    x = cygrad.ones(1, requires_grad=True)
    result = join([x] * MANY)
    assert result.numel() == MANY
    grad, = cygrad.autograd.grad(result.sum(), x, create_graph=True)
    assert grad.item() == MANY


def test_a_grid_of_many_dimensions():
    grids = cygrad.meshgrid(*[cygrad.zeros(1)] * 64, indexing="ij")
    assert len(grids) == 64
    assert grids[0].ndim == 64
    with pytest.raises(RuntimeError, match="too many dimensions"):
        cygrad.meshgrid(*[cygrad.zeros(1)] * 65, indexing="ij")


@pytest.mark.parametrize("name", [
    "reshape", "view", "expand", "permute", "flip", "sum", "squeeze", "repeat", "unflatten", "as_strided", "movedim",
    "roll", "pad", "fft", "tile", "amax"])
def test_lists_longer_than_any_shape_are_refused(name):
    long = [1] * 200
    x = cygrad.ones(2, 2)
    calls = {
        "unflatten": lambda: x.unflatten(0, long), "as_strided": lambda: x.as_strided(long, long),
        "movedim": lambda: x.movedim(long, long), "pad": lambda: cygrad.nn.functional.pad(x, long),
        "fft": lambda: cygrad.fft.fftn(x, dim=long), "roll": lambda: x.roll([1] * 200, [5] * 200),
    }
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        calls.get(name, lambda: getattr(x, name)(long))()


# ---- Python's types as dtypes

@pytest.mark.parametrize("make", [
    lambda kind: cygrad.zeros(2, dtype=kind), lambda kind: cygrad.tensor([1], dtype=kind),
    lambda kind: cygrad.empty(3, dtype=kind), lambda kind: cygrad.full((2,), 1, dtype=kind),
    lambda kind: cygrad.ones(3).sum(dtype=kind), lambda kind: cygrad.as_tensor([1], dtype=kind),
    lambda kind: cygrad.ones(2).to(kind), lambda kind: cygrad.ones(2).to(dtype=kind),
    lambda kind: cygrad.ones_like(cygrad.ones(2), dtype=kind),
])
def test_types_of_python_mean_the_widest_of_their_kind(make):
    wanted = {float: cygrad.float64, int: cygrad.int64, bool: cygrad.bool, complex: cygrad.complex128}
    for kind, dtype in wanted.items():
        assert make(kind).dtype is dtype


def test_modules_know_types_of_python():
    assert cygrad.nn.Linear(2, 2).to(float).weight.dtype is cygrad.float64
    assert cygrad.nn.Linear(2, 2, dtype=float).weight.dtype is cygrad.float64


def test_sizes_may_be_given_one_by_one():
    x = cygrad.ones(3)
    assert x.broadcast_to(2, 3).shape == x.broadcast_to((2, 3)).shape == cygrad.broadcast_to(x, (2, 3)).shape == (2, 3)


@pytest.mark.parametrize("call", [
    lambda x, n: x.chunk(n), lambda x, n: x.split(n), lambda x, n: cygrad.diff(x, n), lambda x, n: cygrad.histc(x, n),
    lambda x, n: cygrad.mvlgamma(x + 2, n), lambda x, n: cygrad.hamming_window(n),
    lambda x, n: cygrad.nn.functional.group_norm(x.reshape(1, 4, 1), n), lambda x, n: cygrad.tensor_split(x, n),
], ids=range(8))
def test_counts_may_be_integers_of_numpy_and_tensors(call):
    x = cygrad.tensor([1.0, 2.0, 4.0, 8.0])
    expected = call(x, 2)
    for count in (np.int64(2), np.uint8(2), cygrad.tensor(2)):
        found = call(x, count)
        assert all(map(cygrad.equal, *[parts if isinstance(parts, (list, tuple)) else [parts]
                                       for parts in (found, expected)]))


@pytest.mark.parametrize("call", [
    lambda x: x.sum(True), lambda x: x.mean(True), lambda x: x.sort(True), lambda x: x.topk(1, True),
    lambda x: x.sum(dim=(False,)), lambda x: x.all(np.True_), lambda x: x.view(True, -1), lambda x: x.chunk(True),
    lambda x: x.size(False), lambda x: x.diff(True)])
def test_a_bool_is_not_an_int(call):
    with pytest.raises(TypeError, match="int"):
        call(cygrad.ones(2, 3))


@pytest.mark.parametrize("call", [
    lambda x, out: cygrad.sum(x, 0, dtype=cygrad.float64, out=out),
    lambda x, out: cygrad.mean(x, 0, dtype=cygrad.float64, out=out),
    lambda x, out: cygrad.prod(x, 0, dtype=cygrad.float64, out=out)])
def test_an_out_of_another_dtype_than_asked_for_is_refused(call):
    with pytest.raises(RuntimeError, match="expected an out of dtype"):
        call(cygrad.ones(3), cygrad.empty(()))
    assert call(cygrad.ones(3), cygrad.empty((), dtype=cygrad.float64)).dtype is cygrad.float64
