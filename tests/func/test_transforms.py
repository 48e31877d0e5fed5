"""grad, vjp, jvp, linearize, Jacobians and Hessians, nested, compared with PyTorch."""

import numpy as np
import pytest

import cygrad
from cygrad.utils.pytree import tree_leaves
from tests.reference import torch

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in (       # of PyTorch
    ".*torch.jit.script:DeprecationWarning", "Attempted to insert a get_attr:UserWarning")]
NUMBERS = np.random.default_rng(7).uniform(-1, 1, 60)


def numbers(library, *shape, start=0):
    count = int(np.prod(shape))
    return library.tensor(NUMBERS[start:start + count].reshape(shape).tolist(), dtype=library.float64)


def compare(program):
    """The program, a function of the library, gives the same tensors with both."""
    own, reference = tree_leaves(program(cygrad)), torch.utils._pytree.tree_leaves(program(torch))
    assert len(own) == len(reference)
    for found, expected in zip(own, reference, strict=True):
        assert tuple(found.shape) == tuple(expected.shape)
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-12)


def cubes(x):
    return (x ** 3).sum()


def mixed(x, y):
    return (x.sin() * y).sum() + (x * x * y.exp()).sum()


def curve(x):
    return x.sin() * x.sum()


@pytest.mark.parametrize(("name", "program"), {
    "grad": lambda t: t.func.grad(cubes)(numbers(t, 3)),
    "grad of grad": lambda t: t.func.grad(lambda x: t.func.grad(cubes)(x).sum())(numbers(t, 3)),
    "third derivative": lambda t: t.func.grad(t.func.grad(t.func.grad(t.sin)))(numbers(t, 1)[0]),
    "several arguments": lambda t: t.func.grad(mixed, argnums=(1, 0))(numbers(t, 3), numbers(t, 3, start=3)),
    "last argument": lambda t: t.func.grad(mixed, argnums=-1)(numbers(t, 3), numbers(t, 3, start=3)),
    "containers": lambda t: t.func.grad(lambda d: mixed(d["a"], d["b"][0]))(
        {"a": numbers(t, 3), "b": [numbers(t, 3, start=3)]}),
    "and value": lambda t: t.func.grad_and_value(cubes)(numbers(t, 3)),
    "and more": lambda t: t.func.grad(lambda x: (cubes(x), {"more": x * 2}), has_aux=True)(numbers(t, 3)),
    "value and more": lambda t: t.func.grad_and_value(lambda x: (cubes(x), x * 2), has_aux=True)(numbers(t, 3)),
    "perturbation confusion": lambda t: t.func.grad(
        lambda x: x * t.func.grad(lambda y: x + y)(t.ones((), dtype=t.float64)))(numbers(t, 1)[0]),
    "perturbation confusion forward": lambda t: t.func.jvp(lambda x: x * t.func.jvp(
        lambda y: x + y, (numbers(t, 1)[0],), (t.ones((), dtype=t.float64),))[1],
        (numbers(t, 1)[0],), (t.ones((), dtype=t.float64),)),
    "perturbation confusion both ways": lambda t: t.func.grad(lambda x: x * t.func.jvp(
        lambda y: x * y, (x,), (t.ones((), dtype=t.float64),))[1])(numbers(t, 1)[0]),
    "vjp": lambda t: t.func.vjp(mixed, numbers(t, 3), numbers(t, 3, start=3))[1](t.ones((), dtype=t.float64)),
    "vjp of several outputs": lambda t: t.func.vjp(lambda x: (x.sin(), {"b": x * 2}), numbers(t, 3))[1](
        (numbers(t, 3, start=3), {"b": numbers(t, 3, start=6)})),
    "vjp under vmap": lambda t: t.vmap(t.func.vjp(curve, numbers(t, 3))[1])(numbers(t, 4, 3, start=3)),
    "jvp": lambda t: t.func.jvp(mixed, (numbers(t, 3), numbers(t, 3, start=3)), (numbers(t, 3), numbers(t, 3))),
    "jvp of several outputs": lambda t: t.func.jvp(lambda x: (curve(x), [x * 2]), (numbers(t, 3),), (numbers(t, 3),)),
    "jvp and more": lambda t: t.func.jvp(lambda x: (curve(x), x + 1), (numbers(t, 3),), (numbers(t, 3),), has_aux=True),
    "jvp of jvp": lambda t: t.func.jvp(lambda x: t.func.jvp(curve, (x,), (x * x,))[1], (numbers(t, 3),),
                                       (numbers(t, 3, start=3),)),
    "linearize": lambda t: [t.func.linearize(curve, numbers(t, 3))[0],
                            t.func.linearize(curve, numbers(t, 3))[1](numbers(t, 3, start=3))],
    "linearize under vmap": lambda t: t.vmap(t.func.linearize(curve, numbers(t, 3))[1])(numbers(t, 4, 3, start=3)),
    "jacrev": lambda t: t.func.jacrev(curve)(numbers(t, 3)),
    "jacrev in chunks": lambda t: t.func.jacrev(curve, chunk_size=2)(numbers(t, 3)),
    "jacrev of containers": lambda t: t.func.jacrev(lambda x, y: {"a": x * y.sum(), "b": y.outer(x)}, argnums=(0, 1))(
        numbers(t, 3), numbers(t, 2)),
    "jacrev and more": lambda t: t.func.jacrev(lambda x: (curve(x), x + 1), has_aux=True)(numbers(t, 3)),
    "jacfwd": lambda t: t.func.jacfwd(curve)(numbers(t, 3)),
    "jacfwd of containers": lambda t: t.func.jacfwd(lambda x, y: {"a": x * y.sum(), "b": y.outer(x)}, argnums=(0, 1))(
        numbers(t, 3), numbers(t, 2)),
    "jacfwd and more": lambda t: t.func.jacfwd(lambda x: (curve(x), x + 1), has_aux=True)(numbers(t, 3)),
    "jacfwd of jacrev": lambda t: t.func.jacfwd(t.func.jacrev(curve))(numbers(t, 3)),
    "jacrev of jacfwd": lambda t: t.func.jacrev(t.func.jacfwd(curve))(numbers(t, 3)),
    "jacrev of jacrev": lambda t: t.func.jacrev(t.func.jacrev(curve))(numbers(t, 3)),
    "jacfwd of jacfwd": lambda t: t.func.jacfwd(t.func.jacfwd(curve))(numbers(t, 3)),
    "hessian": lambda t: t.func.hessian(cubes)(numbers(t, 3)),
    "hessian of two arguments": lambda t: t.func.hessian(mixed, argnums=(0, 1))(numbers(t, 3), numbers(t, 3, start=3)),
    "vmap of grad": lambda t: t.vmap(t.func.grad(cubes))(numbers(t, 4, 3)),
    "vmap of grad of what is the same for all": lambda t: t.vmap(t.func.grad(mixed), in_dims=(None, 0))(
        numbers(t, 3), numbers(t, 4, 3, start=3)),
    "vmap of vmap of grad": lambda t: t.vmap(t.vmap(t.func.grad(mixed), in_dims=(0, None)), in_dims=(None, 0))(
        numbers(t, 2, 3), numbers(t, 4, 3, start=3)),
    "vmap of hessian": lambda t: t.vmap(t.func.hessian(cubes))(numbers(t, 4, 3)),
    "vmap of jacrev of jacfwd": lambda t: t.vmap(t.func.jacrev(t.func.jacfwd(curve)))(numbers(t, 4, 3)),
    "vmap of jvp": lambda t: t.vmap(lambda x, v: t.func.jvp(curve, (x,), (v,)), in_dims=(None, 0))(
        numbers(t, 3), numbers(t, 4, 3, start=3)),
    "grad of vmap": lambda t: t.func.grad(lambda w: (t.vmap(mixed, in_dims=(None, 0))(
        w, numbers(t, 4, 3, start=3)) ** 2).sum())(numbers(t, 3)),
    "grad of vmap of grad": lambda t: t.func.grad(lambda w: (t.vmap(t.func.grad(mixed), in_dims=(None, 0))(
        w, numbers(t, 4, 3, start=3)) ** 2).sum())(numbers(t, 3)),
    "grad of vmap of hessian": lambda t: t.func.grad(lambda w: (t.vmap(t.func.hessian(mixed), in_dims=(None, 0))(
        w, numbers(t, 4, 3, start=3)) ** 2).sum())(numbers(t, 3)),
    "jacrev of vmap": lambda t: t.func.jacrev(t.vmap(curve))(numbers(t, 4, 3)),
    "jacfwd of vmap of grad": lambda t: t.func.jacfwd(t.vmap(t.func.grad(cubes)))(numbers(t, 4, 3)),
    "batch of what was captured": lambda t: t.vmap(lambda x: t.func.grad(lambda w: (w * x).sum() ** 2)(
        numbers(t, 3)))(numbers(t, 4, 3, start=3)),
    "independent of the input": lambda t: t.func.jacrev(lambda x: numbers(t, 2) + 0 * x.sum().detach())(numbers(t, 3)),
    "matrix products": lambda t: t.func.jacrev(lambda w: (w @ w.T).tanh())(numbers(t, 2, 3)),
}.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_transforms_give_what_the_peer_gives(name, program):
    compare(program)


def test_results_lead_to_tensors_outside():
    """Results of a transform are differentiable by tensors outside that require grad."""
    def program(t):
        x, w = numbers(t, 3).requires_grad_(), numbers(t, 3, start=3).requires_grad_()
        slope, value = t.func.grad_and_value(lambda y: (y ** 3 * w).sum())(x)
        (slope.sum() + value).backward()
        return x.grad, w.grad
    compare(program)


def test_results_that_lead_nowhere_require_nothing():
    slope, value = cygrad.func.grad_and_value(cubes)(numbers(cygrad, 3))
    assert not slope.requires_grad and not value.requires_grad
    with cygrad.no_grad():
        slope, value = cygrad.func.grad_and_value(cubes)(numbers(cygrad, 3).requires_grad_())
    assert not slope.requires_grad and not value.requires_grad
    np.testing.assert_allclose(slope.numpy(), 3 * NUMBERS[:3] ** 2)


def test_no_grad_inside_counts():
    def program(t):
        def func(x):
            with t.no_grad():
                constant = x * 2
            return (x * constant).sum()
        return t.func.grad(func)(numbers(t, 3))
    compare(program)


def test_modules_as_functions():
    def program(t):
        model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2)).double()
        parameters = {name: numbers(t, *value.shape) for name, value in model.named_parameters()}

        def loss(parameters, x, y):
            return ((t.func.functional_call(model, parameters, (x,)) - y) ** 2).mean()

        x, y = numbers(t, 5, 3), numbers(t, 5, 2)
        return t.func.grad(loss)(parameters, x, y), t.vmap(t.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    compare(program)


def test_several_modules_at_once():
    def program(t):
        t.manual_seed(0)
        models = [t.nn.Linear(3, 2).double() for _ in range(4)]
        for number, model in enumerate(models):
            model.weight.data = numbers(t, 2, 3, start=number)
            model.bias.data = numbers(t, 2, start=number)
        parameters, buffers = t.func.stack_module_state(models)
        assert parameters["weight"].is_leaf and parameters["weight"].requires_grad
        return t.vmap(lambda p, b, x: t.func.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(
            parameters, buffers, numbers(t, 5, 3))
    compare(program)


@pytest.mark.parametrize("call", [
    lambda t: t.func.grad(lambda x: x)(numbers(t, 3)),
    lambda t: t.func.grad(lambda x: "text")(numbers(t, 3)),
    lambda t: t.func.grad(cubes, argnums=1)(numbers(t, 3)),
    lambda t: t.func.grad(cubes, argnums=())(numbers(t, 3)),
    lambda t: t.func.grad(cubes, argnums=(0, 0))(numbers(t, 3)),
    lambda t: t.func.grad(cubes)(t.tensor([1, 2])),
    lambda t: t.func.grad(cubes, has_aux=True)(numbers(t, 3)),
    lambda t: t.func.vjp(curve, numbers(t, 3))[1](numbers(t, 2)),
    lambda t: t.func.vjp(curve, numbers(t, 3))[1]((numbers(t, 3),)),
    lambda t: t.func.jvp(curve, (numbers(t, 3),), (numbers(t, 2),)),
    lambda t: t.func.jvp(curve, (numbers(t, 3),), ()),
    lambda t: t.func.jvp(lambda x: numbers(t, 2), (numbers(t, 3),), (numbers(t, 3),), strict=True),
    lambda t: t.func.functionalize(cubes, remove="all"),
    lambda t: t.func.stack_module_state([]),
], ids=range(14))
def test_wrong_calls_are_refused_as_by_the_peer(call):
    with pytest.raises(RuntimeError):
        call(torch)
    with pytest.raises(RuntimeError):
        call(cygrad)


def test_transforms_free_their_tensors_without_the_garbage_collector():
    import gc

    x = cygrad.ones(5, requires_grad=True)

    def use():
        cygrad.func.jvp(lambda z: z.exp() * z, (x,), (cygrad.ones(5),))
        cygrad.func.hessian(lambda z: z.exp().sum())(x)
        cygrad.func.vmap(lambda z: z * 2)(x.detach())

    use()
    gc.collect()
    gc.disable()
    try:
        before = cygrad.memory_stats()["small_in_use"]
        for _ in range(20):
            use()
        assert cygrad.memory_stats()["small_in_use"] == before
    finally:
        gc.enable()


@pytest.mark.parametrize("mode", [cygrad.inference_mode, cygrad.no_grad])
@pytest.mark.parametrize("made_inside", [False, True])
def test_transforms_compute_derivatives_in_inference_mode(mode, made_inside):
    def cube(x):
        return (x ** 3).sum()

    y = cygrad.arange(3.0)
    with mode():
        x = cygrad.arange(3.0) if made_inside else y
        assert cygrad.func.grad(cube)(x).tolist() == [0, 3, 12]
        assert cygrad.func.grad(lambda v: cygrad.func.grad(cube)(v).sum())(x).tolist() == [0, 6, 12]
        assert cygrad.func.hessian(cube)(x).diagonal().tolist() == [0, 6, 12]
        assert cygrad.func.jacfwd(lambda v: v ** 3)(x).diagonal().tolist() == [0, 3, 12]
        assert cygrad.func.vjp(lambda v: v ** 3, x)[1](cygrad.ones(3))[0].tolist() == [0, 3, 12]
        assert cygrad.func.jvp(lambda v: v ** 3, (x,), (cygrad.ones(3),))[1].tolist() == [0, 3, 12]
        assert cygrad.is_inference_mode_enabled() is (mode is cygrad.inference_mode)
        assert not cygrad.is_grad_enabled()


def test_a_pullback_made_without_recording_has_a_graph_to_the_inputs_where_it_is_called():
    x = cygrad.tensor(3.0, requires_grad=True)
    with cygrad.no_grad():
        value, pull = cygrad.func.vjp(lambda x: x ** 2, x)
    (slope,) = pull(cygrad.tensor(1.0))
    assert not value.requires_grad and slope.requires_grad and slope.item() == 6
    assert cygrad.autograd.grad(slope, x)[0].item() == 2
    with cygrad.no_grad():
        assert not cygrad.func.grad(lambda x: x ** 3)(x).requires_grad
