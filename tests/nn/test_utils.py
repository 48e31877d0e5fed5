"""nn.utils: clipping, vectors, parametrizations, stateless calls."""

import copy
import pickle

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.nn.utils import parametrize
from tests.reference import torch
from tests.tools import error_of


def same(ours, theirs, **tolerance):
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.detach().numpy(), **{"rtol": 1e-6, "atol": 1e-7, **tolerance}
    )


def gradients(library, dtype="float32"):
    random = np.random.default_rng(0)
    parameters = []
    for shape in (3, 4), (), (5,), (0,), (2, 1, 2):
        value = random.standard_normal(shape)
        if dtype.startswith("complex"):
            value = value + 1j * random.standard_normal(shape)
        value = np.array(value).astype(dtype)
        parameter = library.from_numpy(np.array(value)).requires_grad_()
        parameter.grad = library.from_numpy(np.array(value * 3))
        parameters.append(parameter)
    parameters.append(library.zeros(2, requires_grad=True))        # without gradient
    return parameters


@pytest.mark.parametrize(("order", "dtype"), [
    (order, dtype) for order in (2.0, 1, 3.5, float("inf"), float("-inf"), 0, 0.5)
    for dtype in ("float32", "float64", "complex64") if (order, dtype) != (0, "complex64")])     # PyTorch drops parts
@pytest.mark.parametrize("bound", [0.5, 1000.0])
def test_clip_grad_norm(order, bound, dtype):
    ours, theirs = gradients(cygrad, dtype), gradients(torch, dtype)
    if order in (float("inf"), float("-inf")):
        ours, theirs = ([p for p in parameters if p.numel()] for parameters in (ours, theirs))
    a, b = (library.nn.utils.clip_grad_norm_(parameters, bound, order) for library, parameters in
            ((cygrad, ours), (torch, theirs)))
    same(a, b, rtol=2e-6)
    for p, q in zip(ours, theirs, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            same(p.grad, q.grad, rtol=1e-5)


def test_clipping_in_its_forms():
    w = cygrad.zeros(2, requires_grad=True)
    assert nn.utils.clip_grad_norm_([w], 1.0).item() == 0
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    with pytest.warns(UserWarning, match="generator of parameters is empty"):
        nn.utils.clip_grad_norm_((p for p in []), 1.0)
    w.grad = cygrad.tensor([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(w, 1.0, error_if_nonfinite=True)
    assert w.grad.tolist() == [float("inf"), 1.0]
    assert nn.utils.clip_grad_norm_(w, 1.0).item() == float("inf")
    assert w.grad[1].item() == 0
    w.grad = cygrad.tensor([-4.0, 0.25])
    before = w.grad
    nn.utils.clip_grad_value_(w, 0.5)
    assert w.grad is before
    assert w.grad.tolist() == [-0.5, 0.25]
    w.grad = cygrad.tensor([3.0, 4.0])
    nn.utils.clip_grads_with_norm_([w], 1.0, cygrad.tensor(10.0))
    assert w.grad.tolist() == pytest.approx([0.3, 0.4], rel=1e-5)


def test_total_norm_is_differentiable():
    x = cygrad.tensor([3.0, 4.0], requires_grad=True)
    nn.utils.get_total_norm([x, x * 0]).backward()
    assert x.grad.tolist() == pytest.approx([0.6, 0.8])


def test_vectors():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (13,)
    assert vector.requires_grad
    new = cygrad.arange(13, dtype=cygrad.float32)
    nn.utils.vector_to_parameters(new, model.parameters())
    assert model[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert model[1].bias.tolist() == [12]
    assert model[1].bias.requires_grad
    with pytest.raises(TypeError, match="expected torch"):
        nn.utils.vector_to_parameters([1.0], model.parameters())


# ------------------------------------------------------------------------------------------------- parametrizations

def make_classes(library):
    class Symmetric(library.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    class Double(library.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, x):
            return x / 2

    class Product(library.nn.Module):
        def forward(self, a, b):
            return a @ b

        def right_inverse(self, x):
            return x.clone(), library.eye(x.shape[1])

    class OneWay(library.nn.Module):
        def forward(self, x):
            return x ** 2

    class Wrong(library.nn.Module):
        def forward(self, x):
            return x[:1]
    return Symmetric, Double, Product, OneWay, Wrong


def layer(library, n=3, m=3):
    random = np.random.default_rng(1)
    made = library.nn.Linear(m, n)
    with library.no_grad():
        made.weight.copy_(library.from_numpy(random.standard_normal((n, m)).astype("float32")))
        made.bias.zero_()
    return made


def both(work):
    return [work(library, library.nn.utils.parametrize, *make_classes(library)) for library in (cygrad, torch)]


def test_registration_is_that_of_pytorch():
    def work(library, module, Symmetric, Double, Product, OneWay, Wrong):
        seen = []
        made = layer(library)
        before = made.weight
        module.register_parametrization(made, "weight", Symmetric())
        seen += [made.weight, made.parametrizations.weight.original, list(made.state_dict()),
                 [name for name, _ in made.named_parameters()], repr(made), type(made).__name__,
                 made.parametrizations.weight.original is before, isinstance(made, library.nn.Linear)]
        module.register_parametrization(made, "weight", Double())
        seen += [made.weight, list(made.state_dict())]
        made.weight = library.ones(3, 3) * 6
        seen += [made.weight, made.parametrizations.weight.original, made(library.ones(1, 3))]
        made(library.ones(1, 3)).sum().backward()
        seen += [made.parametrizations.weight.original.grad]
        module.register_parametrization(made, "bias", OneWay())
        seen += [made.bias, module.is_parametrized(made), module.is_parametrized(made, "bias"),
                 module.is_parametrized(made, "x"), module.type_before_parametrizations(made) is library.nn.Linear]
        twin = copy.deepcopy(made)
        with library.no_grad():
            twin.parametrizations.weight.original.fill_(1)
        seen += [twin.weight, made.weight]
        module.remove_parametrizations(made, "bias", leave_parametrized=False)
        module.remove_parametrizations(made, "weight")
        seen += [type(made) is library.nn.Linear, made.weight, [name for name, _ in made.named_parameters()],
                 module.is_parametrized(made), isinstance(made.weight, library.nn.Parameter), made.weight is before]
        several = module.register_parametrization(layer(library), "weight", Product())
        seen += [several.weight, sorted(several.state_dict()), several.parametrizations.weight.ntensors]
        module.remove_parametrizations(several, "weight")
        seen += [several.weight, [name for name, _ in several.named_parameters()]]
        return seen

    for ours, theirs in zip(*both(work), strict=True):
        if isinstance(ours, cygrad.Tensor):
            same(ours, theirs)
        else:
            assert ours == theirs


def test_what_registration_refuses():
    def work(library, module, Symmetric, Double, Product, OneWay, Wrong):
        seen = []
        for attempt in (
            lambda: module.register_parametrization(layer(library), "weight", Wrong()),
            lambda: module.register_parametrization(layer(library), "nothing", Double()),
            lambda: module.remove_parametrizations(layer(library), "weight"),
            lambda: module.remove_parametrizations(
                module.register_parametrization(layer(library), "weight", Product()), "weight", leave_parametrized=False
            ),
            lambda: setattr(
                module.register_parametrization(layer(library), "weight", OneWay()), "weight", library.ones(3, 3)
            ),
            lambda: pickle.dumps(module.register_parametrization(layer(library), "weight", Double())),
            lambda: module.register_parametrization(
                module.register_parametrization(layer(library), "weight", Double()), "weight", Wrong()
            ),
            lambda: setattr(
                module.register_parametrization(layer(library), "weight", Double()),
                "weight",
                library.ones(3, 3, dtype=library.float64),
            ),
        ):
            seen.append(error_of(attempt))
        module.register_parametrization(layer(library), "weight", Wrong(), unsafe=True)
        return seen

    ours, theirs = both(work)
    assert ours == theirs


def test_cached_tensors():
    made = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    assert made.weight is not made.weight
    with parametrize.cached():
        with parametrize.cached():
            first = made.weight
        assert made.weight is first
        loss = (made.weight + made.weight).sum()
    assert made.weight is not first
    loss.backward()
    assert made.parametrizations.weight.original0.grad is not None


def test_transfer():
    Symmetric, Double, *_ = make_classes(cygrad)
    source = parametrize.register_parametrization(layer(cygrad), "weight", Double())
    parametrize.register_parametrization(source, "weight", Symmetric())
    target = parametrize.transfer_parametrizations_and_params(source, nn.Linear(3, 3))
    assert cygrad.equal(source.weight, target.weight)
    assert target.parametrizations.weight.original is not source.parametrizations.weight.original
    assert type(target.parametrizations.weight[1]).__name__ == "Symmetric"


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm(dim):
    def work(library, module, *_):
        seen = []
        made = library.nn.utils.parametrizations.weight_norm(layer(library, 3, 4), dim=dim)
        seen += [made.weight, made.parametrizations.weight.original0, made.parametrizations.weight.original1]
        made(library.ones(2, 4)).square().sum().backward()
        seen += [p.grad for p in made.parameters()]
        with pytest.warns(FutureWarning):
            older = library.nn.utils.weight_norm(layer(library, 3, 4), dim=dim)
        older(library.ones(2, 4)).square().sum().backward()
        seen += [older.weight, older.weight_g, older.weight_v, older.weight_g.grad, older.weight_v.grad]
        with library.no_grad():
            older.weight_g.mul_(2)
        older(library.ones(1, 4))
        seen += [older.weight]
        library.nn.utils.remove_weight_norm(older)
        seen += [older.weight, library.tensor(float(len(list(older.parameters()))))]
        return seen

    for ours, theirs in zip(*both(work), strict=True):
        same(ours, theirs, rtol=1e-5, atol=1e-6)


def test_older_weight_norm_is_checked():
    with pytest.warns(FutureWarning):
        made = nn.utils.weight_norm(nn.Linear(2, 2))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="has a weight norm hook"):
        nn.utils.weight_norm(made)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no parameter or buffer"):
        nn.utils.parametrizations.weight_norm(nn.Linear(2, 2), "x")


def test_spectral_norm_divides_by_the_largest_singular_value():
    for make in nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm:
        for dim in 0, 1:
            made = make(layer(cygrad, 4, 6), n_power_iterations=30, dim=dim)
            made(cygrad.ones(1, 6))
            assert np.linalg.norm(made.weight.detach().numpy(), 2) == pytest.approx(1, rel=1e-4)
    plain = layer(cygrad, 4, 6)
    vector = nn.utils.parametrizations.spectral_norm(plain, "bias")
    vector.parametrizations.bias.original.data = cygrad.tensor([3.0, 0.0, 4.0, 0.0])
    assert vector.bias.tolist() == pytest.approx([0.6, 0, 0.8, 0])


@pytest.mark.parametrize("kind", ["new", "old"])
def test_spectral_norm_is_that_of_pytorch(kind):
    def work(library, module, *_):
        make = library.nn.utils.parametrizations.spectral_norm if kind == "new" else library.nn.utils.spectral_norm
        made = make(layer(library, 3, 4))
        owner, names = (
            (made.parametrizations.weight[0], ("_u", "_v")) if kind == "new" else (made, ("weight_u", "weight_v"))
        )
        for name in names:
            getattr(owner, name).copy_(library.ones_like(getattr(owner, name)) / 2)
        seen = []
        for _ in range(2):
            out = made(library.ones(2, 4))
            out.square().sum().backward()
            seen += [out, *(getattr(owner, name).clone() for name in names), next(
                p.grad.clone() for name, p in made.named_parameters() if "orig" in name)]
        made.eval()
        seen += [made(library.ones(2, 4)), made(library.ones(2, 4))]
        assert sorted(made.state_dict()) == (["bias", "weight_orig", "weight_u", "weight_v"] if kind == "old" else [
            "bias", "parametrizations.weight.0._u", "parametrizations.weight.0._v", "parametrizations.weight.original"])
        return seen

    for ours, theirs in zip(*both(work), strict=True):
        same(ours, theirs, rtol=1e-4, atol=1e-5)


def test_spectral_norm_is_checked_and_removed():
    made = nn.utils.spectral_norm(layer(cygrad))
    with pytest.raises(RuntimeError, match="has a spectral norm hook"):
        nn.utils.spectral_norm(made)
    nn.utils.remove_spectral_norm(made)
    assert list(made.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_spectral_norm(made)
    with pytest.raises(ValueError, match="n_power_iterations"):
        nn.utils.parametrizations.spectral_norm(layer(cygrad), n_power_iterations=0)
    with pytest.raises(IndexError, match="out of range"):
        nn.utils.parametrizations.spectral_norm(layer(cygrad), dim=5)


# ------------------------------------------------------------------------------------------------------------- calls

def test_functional_call():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model.register_buffer("shift", cygrad.zeros(1))
    w = cygrad.ones(1, 2, requires_grad=True)
    call = nn.utils.stateless.functional_call
    before = model[1].weight
    x = cygrad.ones(3, 2)
    out = call(model, {"1.weight": w}, (x,))
    assert model[1].weight is before
    assert cygrad.allclose(out, model[0](x) @ w.t() + model[1].bias)
    out.sum().backward()
    assert w.grad is not None
    assert before.grad is None
    with pytest.raises(RuntimeError, match="missing key"):
        call(model, {"1.weight": w}, x, strict=True)
    with pytest.raises(AttributeError):
        call(model, {"1.nothing": w}, x)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        call(model, ({"1.weight": w}, {"1.weight": w}), x)
    with pytest.raises(RuntimeError):
        call(model, {"1.weight": cygrad.ones(5, 5)}, x)
    assert model[1].weight is before
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    zero = {"0.weight": cygrad.zeros(2, 2), "0.bias": cygrad.zeros(2), "1.bias": cygrad.zeros(2)}
    assert call(tied, zero, x).abs().sum().item() == 0
    assert call(tied, {**zero, "0.bias": cygrad.ones(2)}, x, tie_weights=False).abs().sum().item() > 0
    with pytest.raises(ValueError, match="two values"):
        call(tied, {"0.weight": zero["0.weight"], "1.weight": cygrad.ones(2, 2)}, x)


def test_skip_init():
    class Layer(nn.Module):
        def __init__(self, n, device=None):
            super().__init__()
            self.weight = nn.Parameter(cygrad.empty(n))

    assert nn.utils.skip_init(Layer, 3).weight.shape == (3,)
    with pytest.raises(RuntimeError, match="expected a Module"):
        nn.utils.skip_init(dict)


def test_spectral_norm_of_a_complex_matrix_is_real_and_one():
    cygrad.manual_seed(0)
    layer = nn.Linear(2, 2, dtype=cygrad.complex64)
    with cygrad.no_grad():
        layer.weight.copy_(cygrad.tensor([[1, 0], [0, 0.5j]]))
    nn.utils.parametrizations.spectral_norm(layer)
    cygrad.testing.assert_close(layer.weight.detach(), cygrad.tensor([[1, 0], [0, 0.5j]], dtype=cygrad.complex64))


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class OfDoubled(nn.Module):
    """Parametrization of even matrices only."""

    def forward(self, x):
        return x - x % 2

    def right_inverse(self, x):
        if (x % 2 != 0).any():
            raise ValueError("odd")
        return x


class WithoutInverse(nn.Module):
    def forward(self, x):
        return x + 1

    def right_inverse(self, x):
        raise NotImplementedError


def test_right_inverse_of_a_further_parametrization_gets_a_value_in_its_range():
    layer = nn.Linear(2, 2)
    with cygrad.no_grad():
        layer.weight.copy_(cygrad.tensor([[1.0, 2], [3, 5]]))
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", OfDoubled())
    assert layer.weight.tolist() == [[0, 2], [2, 4]]
    parametrize.register_parametrization(layer, "weight", WithoutInverse())
    assert layer.weight.tolist() == [[1, 3], [3, 5]]
