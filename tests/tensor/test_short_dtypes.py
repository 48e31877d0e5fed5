"""Storage-only dtypes: conversions, promotion, saved tensors, files, autocast, integers."""

import copy
import io
import math
import pickle

import numpy as np
import pytest

import cygrad
from cygrad import nn, safetensors
from cygrad.autograd import forward_ad
from cygrad.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

SHORT = pytest.mark.parametrize("name", ["float16", "bfloat16"])
NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128", "float16",
    "bfloat16", "complex32", "uint16", "uint32", "uint64",
]


def both(name):
    """The dtype of that name in both libraries."""
    return getattr(cygrad, name), getattr(torch, name)


def floats(count, seed=0):
    """float32 numbers of all sizes, and those at which roundings may go wrong."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal(count) * 10.0 ** rng.integers(-12, 12, count)
    edges = [0.0, -0.0, np.inf, -np.inf, 65504, 65519.99, 65520, 2**-24, 2**-25, 2**-25 * 1.0001, 2**-14,
             2**-14 * 0.9999, 3.3895313e38, 3.3961776e38, 1e-40, 2049, 2051, 257, 259]
    return np.concatenate([numbers, edges, np.negative(edges)]).astype(np.float32)


# ---- conversions

@SHORT
def test_conversion_from_floats_rounds_as_the_peer_does(name):
    ours, theirs = both(name)
    values = floats(100_000)
    for kind in (np.float32, np.float64, np.complex64):
        found = cygrad.from_numpy(values.astype(kind)).to(ours).float().numpy()
        expected = torch.from_numpy(values.astype(kind)).real.to(theirs).float().numpy()
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
    assert cygrad.tensor([float("nan")]).to(ours).isnan().item()


@SHORT
def test_conversion_to_floats_and_back_keeps_all_numbers(name):
    ours, theirs = both(name)
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    twin = torch.from_numpy(bits).view(theirs)
    buffer = io.BytesIO()
    torch.save(twin, buffer)
    buffer.seek(0)
    x = cygrad.load(buffer)
    assert x.dtype is ours
    np.testing.assert_array_equal(x.float().numpy(), twin.float().numpy())
    np.testing.assert_array_equal(x.float().to(ours).float().numpy(), x.float().numpy())
    assert x.to(cygrad.bool).tolist() == twin.to(torch.bool).tolist()


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", ["float16", "bfloat16", "complex32", "uint16", "uint32", "uint64"])
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_conversion_between_all(source, target):
    values = [0, 1, 2, 100] if source != "bool" else [0, 1]
    for layout in (lambda x: x, lambda x: x[::2], lambda x: x.reshape(2, -1).t()):
        found = layout(cygrad.tensor(values).to(getattr(cygrad, source))).to(getattr(cygrad, target))
        expected = layout(torch.tensor(values).to(getattr(torch, source))).to(getattr(torch, target))
        assert found.tolist() == expected.tolist()
        back = found.to(getattr(cygrad, source))
        assert back.dtype is getattr(cygrad, source)
        assert back.tolist() == expected.to(getattr(torch, source)).tolist()


def test_promotion():
    for first in NAMES:
        for second in NAMES:
            try:
                expected = str(torch.promote_types(*(getattr(torch, name) for name in (first, second))))
            except RuntimeError:
                # PyTorch refuses unsigned integers with others, and with complex numbers, which they meet as others do.
                expected = (f"torch.{np.promote_types(first, second)}" if "complex" not in first + second else
                            f"torch.{first if 'complex' in first else second}")
                if expected == "torch.float64":
                    with pytest.raises(RuntimeError, match="no integer type holds uint64 and signed integers"):
                        cygrad.promote_types(*(getattr(cygrad, name) for name in (first, second)))
                    continue
            found = cygrad.promote_types(*(getattr(cygrad, name) for name in (first, second)))
            assert f"torch.{found.name}" == expected


@SHORT
def test_promotion_of_operands(name):
    ours, theirs = both(name)
    for other in (1, 1.5, 1j, True):
        assert f"torch.{(cygrad.ones(2, dtype=ours) * other).dtype.name}" == str(
            (torch.ones(2, dtype=theirs) * other).dtype)
    for kind in ("int64", "float32", "float64", "bool", "float16", "bfloat16"):
        for shape in ((), (2,)):
            found = cygrad.ones(2, dtype=ours) + cygrad.ones(shape, dtype=getattr(cygrad, kind))
            expected = torch.ones(2, dtype=theirs) + torch.ones(shape, dtype=getattr(torch, kind))
            assert f"torch.{found.dtype.name}" == str(expected.dtype)
    x = cygrad.tensor(0.1, dtype=ours)
    assert (x == 0.1).item() and not (x.float() == 0.1).item()
    for function in (lambda x: x % 0.3, lambda x: x.fmod(0.3), lambda x: x // 0.3, lambda x: x * 0.3):
        assert function(cygrad.arange(10, dtype=ours)).tolist() == function(torch.arange(10, dtype=theirs)).tolist()
    with pytest.raises(RuntimeError, match="expected tensors of the same dtype"):
        cygrad.ones(2, 2, dtype=ours) @ cygrad.ones(2, 2)
    assert cygrad.cat([cygrad.ones(1, dtype=ours), cygrad.ones(1)]).dtype is cygrad.float32


# ---- creation, printing, Python

@SHORT
def test_creation(name):
    ours, theirs = both(name)
    for make in (lambda lib, d: lib.arange(0, 3, 0.3, dtype=d), lambda lib, d: lib.linspace(0, 1, 5, dtype=d),
                 lambda lib, d: lib.tensor([[1.1, 1e6], [-2, 1e-7]], dtype=d),
                 lambda lib, d: lib.full((2, 2), 0.1, dtype=d), lambda lib, d: lib.eye(2, dtype=d),
                 lambda lib, d: lib.zeros(2, dtype=d).fill_(0.1),
                 lambda lib, d: lib.as_tensor([0.1]).to(d), lambda lib, d: lib.ones(2).new_tensor([0.3], dtype=d),
                 lambda lib, d: lib.logspace(0, 2, 5, dtype=d), lambda lib, d: lib.scalar_tensor(0.7, dtype=d)):
        found, expected = make(cygrad, ours), make(torch, theirs)
        assert found.dtype is ours and found.tolist() == expected.tolist()
        assert repr(found).replace("cygrad.", "torch.").split() == repr(expected).split()
    with pytest.raises(RuntimeError, match="without overflow"):
        cygrad.full((2,), 1e39, dtype=ours)
    x = cygrad.tensor(2.5, dtype=ours)
    assert x.item() == 2.5 and float(x) == 2.5 and int(x) == 2 and bool(x) and f"{x:.1f}" == "2.5"
    assert x.type() == f"cygrad.{'HalfTensor' if name == 'float16' else 'BFloat16Tensor'}"
    assert getattr(cygrad.ones(1), "half" if name == "float16" else name)().dtype is ours


def test_default_dtype():
    cygrad.set_default_dtype(cygrad.bfloat16)
    try:
        assert cygrad.tensor([1.5]).dtype is cygrad.zeros(1).dtype is cygrad.rand(1).dtype is cygrad.bfloat16
        assert (cygrad.tensor([1]) / 2).dtype is nn.Linear(1, 1).weight.dtype is cygrad.bfloat16
    finally:
        cygrad.set_default_dtype(cygrad.float32)


def test_numpy():
    x = cygrad.ones(2, dtype=cygrad.float16)
    x.numpy()[0] = 3
    assert x.tolist() == [3, 1] and cygrad.from_numpy(np.ones(2, np.float16)).dtype is cygrad.float16
    for dtype in (cygrad.bfloat16, cygrad.complex32):
        for use in (lambda x: x.numpy(), np.asarray, lambda x: x.dtype.numpy_dtype):
            with pytest.raises(TypeError, match="NumPy has no dtype"):
                use(cygrad.ones(2, dtype=dtype))
        assert dtype != np.dtype("float32") and dtype in {dtype}


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_files(name, tmp_path):
    dtype = getattr(cygrad, name)
    x = cygrad.tensor([[0, 1], [1, 0]]).to(dtype).t()
    for found in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.contiguous()):
        assert found.dtype is dtype and found.tolist() == x.tolist()
    for form in ("cygrad", "torch"):
        cygrad.save({"x": x, "d": dtype}, tmp_path / "f", format=form)
        found = cygrad.load(tmp_path / "f")
        assert found["x"].dtype is found["d"] is dtype and found["x"].tolist() == x.tolist()
    found = torch.load(tmp_path / "f", weights_only=True)["x"]
    assert str(found.dtype) == f"torch.{name}" and found.tolist() == x.tolist()
    if name in ("complex32", "complex128"):
        with pytest.raises(safetensors.SafetensorError, match="unsupported dtype"):
            safetensors.save({"x": x})
    else:
        found = safetensors.load(safetensors.save({"x": x}))["x"]
        assert found.dtype is dtype and found.tolist() == x.tolist()


@SHORT
def test_random_numbers(name):
    ours, theirs = both(name)
    x = cygrad.rand(100_000, dtype=ours)
    assert x.dtype is ours and x.min().item() >= 0 and x.max().item() < 1
    assert abs(x.float().mean().item() - 0.5) < 0.01
    assert abs(cygrad.randn(100_000, dtype=ours).float().std().item() - 1) < 0.02
    assert cygrad.zeros(1000, dtype=ours).uniform_(2, 3).max().item() < 3
    before = cygrad.random.get_algorithm() if hasattr(cygrad.random, "get_algorithm") else "pcg64"
    cygrad.random.set_algorithm("mt19937")
    try:
        for draw in (lambda lib, d: lib.rand(1000, dtype=d), lambda lib, d: lib.zeros(1000, dtype=d).uniform_(-2, 3),
                     lambda lib, d: lib.randint(0, 100, (50,), dtype=d), lambda lib, d: lib.randperm(50, dtype=d),
                     lambda lib, d: lib.bernoulli(lib.full((100,), 0.25, dtype=d))):
            cygrad.manual_seed(3)
            torch.manual_seed(3)
            assert draw(cygrad, ours).tolist() == draw(torch, theirs).tolist()
    finally:
        cygrad.random.set_algorithm(before)


# ---- recording

@SHORT
def test_one_node_that_keeps_short_numbers(name):
    dtype = getattr(cygrad, name)
    x = cygrad.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    for y, node in ((x * x, "MulBackward0"), (x @ x, "MatmulBackward0"), (x.exp(), "ExpBackward0"),
                    (x.softmax(0), "SoftmaxBackward0"), (x.sum(), "SumBackward0")):
        assert y.dtype is dtype and type(y.grad_fn).__name__ == node
        assert all(edge is x.grad_fn or type(edge).__name__ == "AccumulateGrad" for edge, _ in y.grad_fn.next_functions)
    assert x.exp().grad_fn._saved_result.dtype is (x @ x).grad_fn._saved_self.dtype is dtype
    assert (x * x).grad_fn._saved_self is x
    (x * cygrad.ones(2, 2)).sum().backward()
    assert x.grad.dtype is dtype


@SHORT
def test_accumulation_hooks_and_graphs_of_gradients(name):
    ours, theirs = both(name)

    def program(lib, dtype):
        x = lib.tensor([[0.5, -1.25], [2.0, 0.75]], dtype=dtype, requires_grad=True)
        seen = []
        x.register_hook(lambda grad: seen.append(str(grad.dtype).rpartition(".")[2]))
        for _ in range(3):
            (x * x).sum().backward()
        first = x.grad.tolist()
        (slope,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
        (second,) = lib.autograd.grad(slope.sum(), x)
        return first, slope.tolist(), second.tolist(), seen

    assert program(cygrad, ours) == program(torch, theirs)


@SHORT
def test_in_place_views_and_out(name):
    ours, theirs = both(name)

    def program(lib, dtype):
        x = lib.tensor([[0.5, -1.25], [2.0, 0.75]], dtype=dtype, requires_grad=True)
        y = x * 2
        view = y[0]
        view.mul_(3).add_(1)
        y[:, 1] = 5
        y.clamp_(max=4)
        y.index_put_((lib.tensor([1]), lib.tensor([0])), lib.tensor(0.5, dtype=dtype), accumulate=True)
        (y * y).sum().backward()
        out = lib.empty(2, 2, dtype=dtype)
        with lib.no_grad():
            lib.matmul(x, x, out=out)
            z = x.detach().clone()
            z += lib.ones(2, 2)
            z.cumsum_(0)
            z.masked_fill_(z > 3, 0.1)
            z.scatter_add_(0, lib.tensor([[0, 1]]), lib.ones(1, 2, dtype=dtype))
        return [t.tolist() for t in (y, view, x.grad, out, z)], [y._version, z._version], str(z.dtype)[-8:]

    assert program(cygrad, ours) == program(torch, theirs)
    x = cygrad.ones(2, dtype=ours)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        cygrad.ones(2, dtype=cygrad.int64).add_(x)
    y = x.clone().requires_grad_().exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@SHORT
def test_forward_mode(name):
    dtype = getattr(cygrad, name)
    x, t = cygrad.tensor([0.5, 2.0], dtype=dtype), cygrad.tensor([1.0, -1.0], dtype=dtype)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        for function, slope in ((lambda x: x * x, 2 * x), (lambda x: x.sum(), None), (lambda x: x.exp(), x.exp())):
            tangent = forward_ad.unpack_dual(function(dual)).tangent
            assert tangent.dtype is dtype
            if slope is not None:
                assert cygrad.allclose(tangent.float(), (slope * t).float(), rtol=2**-6)


@SHORT
def test_large_tensors_and_broadcast_gradients(name):
    dtype = getattr(cygrad, name)
    x = cygrad.ones(400, 400, dtype=dtype, requires_grad=True)
    bias = cygrad.zeros(400, dtype=dtype, requires_grad=True)
    scale = cygrad.full((400, 400), 0.5, requires_grad=True)
    y = ((x + bias) * 0.5).tanh() * x
    (y * scale).sum().backward()
    assert x.grad.dtype is bias.grad.dtype is dtype and scale.grad.dtype is cygrad.float32
    wide = [t.detach().float().requires_grad_() for t in (x, bias)]
    (((wide[0] + wide[1]) * 0.5).tanh() * wide[0] * scale.detach()).sum().backward()
    for found, exact in zip((x, bias), wide, strict=True):
        assert cygrad.allclose(found.grad.float(), exact.grad, rtol=2**-6)
    assert cygrad.ones(100_000, dtype=dtype).sum().item() == (np.inf if name == "float16" else 99840)
    meta = cygrad.empty(300, 300, dtype=dtype, device="meta")
    assert (meta @ meta).dtype is dtype and meta.softmax(0).is_meta


# ---- the same bytes as other elements

VIEWS = [
    "a.view(T.int32)", "a.view(T.float64)", "a.view(T.uint8)", "a.view(dtype=T.int16)", "a[:, 1:3].view(T.int32)",
    "a.t().view(T.int32)", "a.view(T.bfloat16).view(T.float32)", "a.view(T.complex64).view(T.float32)",
    "a[1:].view(T.int64)", "a.bool().view(T.uint8)", "a[0, 0].view(T.int32)", "a[:0].view(T.float64)",
]


@pytest.mark.parametrize("text", VIEWS)
def test_view_as_a_dtype(text):
    found = []
    for lib in (cygrad, torch):
        result = eval(text, {"T": lib, "a": lib.arange(12, dtype=lib.float32).reshape(3, 4)})
        found.append((str(result.dtype).rpartition(".")[2], tuple(result.shape), result.stride(),
                      result.storage_offset(), result.tolist()))
    assert found[0] == found[1]


def test_view_as_a_dtype_shares_memory_and_version_outside_the_graph():
    a = cygrad.ones(4)
    bits = a.view(cygrad.int32)
    bits[0] = 0
    assert a.tolist() == [0, 1, 1, 1] and a._version == bits._version == 1
    w = cygrad.ones(4, requires_grad=True)
    assert not w.view(cygrad.int32).requires_grad and w.view(cygrad.float32).grad_fn is not None
    assert cygrad.empty(2, 4, device="meta").view(cygrad.int16).shape == (2, 8)


@pytest.mark.parametrize("text", ["a[0, 0].view(T.int16)", "a[:, :3].view(T.float64)", "a[:, 1:].view(T.float64)",
                                  "a.t().view(T.int16)", "a[0, 1:3].view(T.float64)"])
def test_view_as_a_dtype_that_does_not_fit(text):
    for lib in (cygrad, torch):
        with pytest.raises(RuntimeError):
            eval(text, {"T": lib, "a": lib.ones(3, 4)})


# ---- modules, optimizers, autocast

@SHORT
def test_training(name):
    ours, theirs = both(name)

    def program(lib, dtype):
        model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.LayerNorm(8), lib.nn.GELU(), lib.nn.Linear(8, 1))
        rng = np.random.default_rng(0)
        with lib.no_grad():
            for p in model.parameters():
                p.copy_(lib.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)) * 0.5)
        model.to(dtype)
        optimizer = lib.optim.AdamW(model.parameters(), lr=0.02, eps=1e-3)
        x = lib.tensor(rng.standard_normal((32, 4)).astype(np.float32)).to(dtype)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = lib.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        states = {str(v.dtype).rpartition(".")[2] for s in optimizer.state.values() for v in s.values()}
        return losses, states, {str(p.grad.dtype).rpartition(".")[2] for p in model.parameters()}

    found, expected = program(cygrad, ours), program(torch, theirs)
    assert found[1:] == expected[1:] == ({name, "float32"}, {name})
    np.testing.assert_allclose(found[0], expected[0], rtol=0.1, atol=0.05)
    assert found[0][-1] < found[0][0] / 4


def test_normalization_with_float32_weights():
    x = cygrad.randn(3, 4, 5, dtype=cygrad.bfloat16, requires_grad=True)
    for module in (nn.LayerNorm(5), nn.BatchNorm1d(4), nn.GroupNorm(2, 4)):
        y = module(x)
        assert y.dtype is cygrad.bfloat16
        y.sum().backward()
        assert module.weight.grad.dtype is cygrad.float32 and x.grad.dtype is cygrad.bfloat16


def test_autocast():
    def program(lib):
        rng = np.random.default_rng(1)
        model = lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.nn.ReLU(), lib.nn.Flatten(),
                                  lib.nn.Linear(12, 3))
        with lib.no_grad():
            for p in model.parameters():
                p.copy_(lib.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
        x = lib.tensor(rng.standard_normal((5, 2, 4, 4)).astype(np.float32))
        seen = []
        with lib.autocast("cpu", dtype=lib.bfloat16):
            y = model(x)
            m = y @ y.t()
            loss = lib.nn.functional.cross_entropy(y, lib.tensor([0, 1, 2, 0, 1]))
            seen += [y, m, loss, lib.cat([y, y]), lib.cat([y, y.float()]), y + 1, y.float() + 1, y.softmax(1), m.prod(),
                     lib.nn.functional.mse_loss(y, y), lib.bmm(x[0], x[0]), lib.linalg.inv(lib.eye(2)),
                     x.double()[0, 0] @ x.double()[0, 0]]
            with lib.autocast("cpu", enabled=False):
                seen.append(x[0] @ x[0])
            inside = lib.is_autocast_enabled("cpu"), str(lib.get_autocast_dtype("cpu"))[-8:]
        seen.append(x[0] @ x[0])
        loss.backward()
        kinds = [str(t.dtype).rpartition(".")[2] for t in (*seen, *(p.grad for p in model.parameters()))]
        return kinds, inside, lib.is_autocast_enabled("cpu"), loss.item(), [p.grad.flatten()[0].item()
                                                                          for p in model.parameters()]

    found, expected = program(cygrad), program(torch)
    assert found[:3] == expected[:3]
    np.testing.assert_allclose(found[3], expected[3], rtol=0.01)
    np.testing.assert_allclose(found[4], expected[4], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("short", [False, True])
def test_autocast_of_recurrent_layers(name, short):
    def program(lib, short):
        rng = np.random.default_rng(2)
        layer = getattr(lib.nn, name)(3, 4)
        with lib.no_grad():
            for p in layer.parameters():
                p.copy_(lib.tensor(rng.uniform(-0.5, 0.5, tuple(p.shape)).astype(np.float32)))
        x = lib.tensor(rng.standard_normal((2, 3) if name.endswith("Cell") else (5, 2, 3)).astype(np.float32))
        with lib.autocast("cpu", dtype=lib.bfloat16):
            found = layer(x.bfloat16() if short else x)
        output, state = found if isinstance(found, tuple) else (found, found)
        results = (output, *(state if isinstance(state, tuple) else (state,)))
        sum(part.float().sum() for part in results).backward()
        kinds = [str(t.dtype).rpartition(".")[2] for t in (*results, *(p.grad for p in layer.parameters()))]
        return kinds, [t.float().tolist() for t in (*results, *(p.grad for p in layer.parameters()))]

    # PyTorch rounds the inputs of an LSTM, and on processors without AVX-512 cannot make one that does.
    (kinds, values), (expected_kinds, expected) = program(cygrad, short), program(torch, short or name == "LSTM")
    assert kinds == expected_kinds
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=0.03, atol=0.03)


def test_autocast_casts_a_parameter_once_and_forgets_it():
    layer, x = nn.Linear(3, 3), cygrad.ones(2, 3, requires_grad=True)
    with cygrad.autocast("cpu"):
        first, second = layer(x).grad_fn, layer(x).grad_fn
        assert first._saved_weight is second._saved_weight and first._saved_weight.dtype is cygrad.bfloat16
        with cygrad.no_grad():
            layer.weight.add_(1)
        assert layer(x).grad_fn._saved_weight is not first._saved_weight
    with cygrad.autocast("cpu", cache_enabled=False):
        assert layer(x).grad_fn._saved_weight is not layer(x).grad_fn._saved_weight

    @cygrad.autocast("cpu", dtype=cygrad.float16)
    def decorated():
        return layer(x).dtype

    assert decorated() is cygrad.float16 and layer(x).dtype is cygrad.float32
    with pytest.warns(UserWarning, match="Disabling autocast"), cygrad.autocast("cpu", dtype=cygrad.float32):
        assert layer(x).dtype is cygrad.float32


@pytest.mark.parametrize("reentrant", [True, False])
def test_autocast_where_code_runs_again_or_elsewhere(reentrant):
    from cygrad.utils.checkpoint import checkpoint
    layers, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), cygrad.randn(5, 3, requires_grad=True)
    gradients = []
    for function in (layers, lambda x: checkpoint(layers, x, use_reentrant=reentrant),
                     lambda x: nn.parallel.parallel_apply([layers, layers], [x, x])[1]):
        with cygrad.autocast("cpu"):
            y = function(x)
        assert y.dtype is cygrad.bfloat16
        y.sum().backward()
        gradients.append([p.grad.tolist() for p in (x, *layers.parameters())])
        for p in (x, *layers.parameters()):
            p.grad = None
    assert gradients[0] == gradients[1] == gradients[2]


# ---- unsigned integers and short complex numbers

@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_integers(name):
    ours, theirs = both(name)
    x, twin = cygrad.tensor([3, 1, 2, 1], dtype=ours), torch.tensor([3, 1, 2, 1], dtype=theirs)
    for function in (lambda x, lib: x * x, lambda x, lib: x == x, lambda x, lib: x / x, lambda x, lib: x.sum(),
                     lambda x, lib: x.sort()[0], lambda x, lib: x.unique(), lambda x, lib: x.cumsum(0),
                     lambda x, lib: x[1:], lambda x, lib: x[lib.tensor([0, 2])], lambda x, lib: lib.cat([x, x]),
                     lambda x, lib: lib.stack([x, x]), lambda x, lib: x.float(),
                     lambda x, lib: x + 1.5, lambda x, lib: x.view(2, 2).t().contiguous(),
                     lambda x, lib: x & x, lambda x, lib: x.sqrt(), lambda x, lib: x.any(), lambda x, lib: x.prod()):
        found, expected = function(x, cygrad), function(twin, torch)
        assert f"torch.{found.dtype.name}" == str(expected.dtype) and found.tolist() == expected.tolist()
    assert repr(x).replace("cygrad.", "torch.") == repr(twin)
    # what PyTorch refuses and NumPy has
    assert (x + 1).tolist() == [4, 2, 3, 2] and (x < 3).tolist() == [False, True, True, True] and x.max().item() == 3
    assert x.max().dtype is x.flip(0).dtype is cygrad.arange(3, dtype=ours).dtype is ours
    assert x.argmax().dtype is cygrad.int64 and x[x > 1].tolist() == [3, 2]
    assert cygrad.where(x > 1, x, x * 0).tolist() == [3, 0, 2, 0]
    x[0] = 7
    assert x.tolist() == [7, 1, 2, 1] and x[0].item() == 7
    limits, top = cygrad.iinfo(ours), cygrad.tensor([cygrad.iinfo(ours).max], dtype=ours)
    assert top.item() == limits.max and (top + 1).item() == 0
    small = cygrad.tensor([2], dtype=cygrad.int8)
    if name == "uint64":
        with pytest.raises(RuntimeError, match="no integer type holds uint64 and signed integers"):
            x + small
    else:
        assert (x - 2 * small).tolist() == [3, -3, -2, -3]
    assert (x + cygrad.tensor(1)).dtype is (x + cygrad.tensor([200], dtype=cygrad.uint8)).dtype is ours
    assert (x // 2).tolist() == [3, 0, 1, 0] and (x % 2).tolist() == [1, 1, 0, 1]
    assert (top // 2).item() == limits.max // 2 and (top % 1000).item() == limits.max % 1000
    assert (top ** 2).item() == 1 and (x ** 2).tolist() == [49, 1, 4, 1]
    with pytest.raises(ZeroDivisionError, match="floor_divide: integer division by zero"):
        x // 0
    if name == "uint64":
        with pytest.raises(NotImplementedError, match="computed in int64"):
            top.sort()
    else:
        assert top.sort()[0].item() == limits.max


def test_complex32():
    x, twin = cygrad.tensor([1 + 2j, -0.5j]).to(cygrad.complex32), torch.tensor([1 + 2j, -0.5j]).to(torch.complex32)
    for function in (lambda x: x, lambda x: x * x, lambda x: x + 1, lambda x: x.real, lambda x: x.imag,
                     lambda x: x.conj()):
        found, expected = function(x), function(twin)
        assert f"torch.{found.dtype.name}" == str(expected.dtype) and found.tolist() == expected.tolist()
    assert x.abs().dtype is cygrad.float16 and cygrad.view_as_real(x).dtype is cygrad.float16
    assert (x * cygrad.ones(2)).dtype is cygrad.complex64 and (x.real * 1j).dtype is cygrad.complex32
    z = x.clone().requires_grad_()
    z.abs().sum().backward()
    assert z.grad.dtype is cygrad.complex32
    assert repr(x).replace("cygrad.", "torch.") == repr(twin)


def blank(*shape):
    return cygrad.linspace(-2, 2, math.prod(shape)).reshape(shape)


IMAGES = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool3d": lambda x: F.max_pool3d(x.unsqueeze(2).to(memory_format=cygrad.channels_last_3d), (1, 2, 2)),
}


@pytest.mark.parametrize("dtype", [cygrad.float16, cygrad.bfloat16])
@pytest.mark.parametrize("name", IMAGES)
def test_functions_of_images_keep_channels_last_and_values_of_short_floats(name, dtype):
    images = blank(2, 3, 6, 7).to(dtype)
    last = images.to(memory_format=cygrad.channels_last).requires_grad_()
    first = images.clone().requires_grad_()
    found, expected = IMAGES[name](last), IMAGES[name](first)
    wide = IMAGES[name](images.float().to(memory_format=cygrad.channels_last))
    assert found.dtype is dtype
    assert found.stride() == wide.stride()
    cygrad.testing.assert_close(found.detach(), wide.to(dtype), rtol=0, atol=0)
    found.sum().backward()
    expected.sum().backward()
    cygrad.testing.assert_close(last.grad, first.grad)
