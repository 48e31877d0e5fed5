"""Second derivatives by all combinations of forward and reverse mode, for all samples."""

import warnings

import numpy as np
import pytest

import cygrad
from cygrad.func import grad, jvp
from tests.operator_cases import (
    EXACT,
    REFUSALS,
    build,
    convert,
    differentiable,
    floating,
    tensors_in,
    vectors,
    with_gradients,
)
from tests.samples import COMPLEX, SAMPLES, find

# Second derivatives beyond this are ill-conditioned.
HUGE = 1e6


def bent(leaf):
    """Return the value of a leaf with first and second derivative 1; its tangent has a separate graph."""
    step = leaf - leaf.detach()
    return leaf + step * step / 2


def energy(outputs):
    """A number that is quadratic in all outputs; two additions in a row, which hand a tangent on."""
    total = cygrad.zeros((), dtype=cygrad.float64)
    for output in tensors_in(outputs):
        if floating(output):
            product = (output + 1 + 2) * vectors([output])[0]
            total = total + (product * product.conj()).real.sum()
    return total


def inner(first, second):
    return sum((a * b.conj()).real.sum() for a, b in zip(first, second, strict=True))


def hessian_products(function, leaves, directions):
    """H v in three orders, and v H v by forward over forward mode."""
    places = tuple(range(len(leaves)))

    def gradient(*values):
        return grad(function, argnums=places)(*values)

    def tangent(*values):
        return jvp(function, values, tuple(directions))[1]

    values = [leaf.detach().requires_grad_() for leaf in leaves]
    first = cygrad.autograd.grad(function(*values), values, create_graph=True, materialize_grads=True)
    reverse = [cygrad.zeros_like(value) for value in values]
    if inner(first, directions).requires_grad:
        reverse = cygrad.autograd.grad(inner(first, directions), values, retain_graph=True, materialize_grads=True)
    values = tuple(value.detach() for value in values)
    return {"reverse over reverse": reverse,
            "forward over reverse": jvp(gradient, values, tuple(directions))[1],
            "reverse over forward": grad(tangent, argnums=places)(*values),
            "forward over forward": [jvp(tangent, values, tuple(directions))[1]]}


def compare(function, leaves, directions):
    found = hessian_products(function, leaves, directions)
    expected = found["reverse over reverse"]
    scale = max([1, *(float(value.abs().max()) for value in expected if value.numel())])
    if scale >= HUGE or (any(value.isnan().any() for value in expected) and any(
            (value.abs() >= HUGE).any() for values in found.values() for value in values)):
        return                                 # one order may overflow to nan where another is huge
    for order, values in found.items():
        wanted = [inner(expected, directions)] if order == "forward over forward" else expected
        for value, right in zip(values, wanted, strict=True):
            np.testing.assert_allclose(value.detach().numpy(), right.detach().numpy(), rtol=1e-7, atol=1e-9 * scale,
                                       err_msg=order)


def forms(name, args, kwargs, leaves):
    """The operator, a chain of two, and in place: on a tensor, on a view, and twice."""
    function, method = find(name), getattr(cygrad.Tensor, name + "_", None)

    def arguments(values):
        new = {id(old): bent(value) for old, value in zip(leaves, values, strict=True)}
        return convert((args, kwargs), lambda tensor: new.get(id(tensor), tensor))

    def plain(*values):
        given, named = arguments(values)
        return energy(function(*given, **named))

    def chain(*values):
        given, named = arguments(values)
        return energy(function(function(*given, **named), *given[1:], **named))

    def inplace(*values):
        given, named = arguments(values)
        return energy(method(given[0].clone(), *given[1:], **named))

    def inplace_view(*values):
        (first, *given), named = arguments(values)
        base = cygrad.cat([first.reshape(-1), first.reshape(-1) * 3])
        before, view = base.tanh(), base[:first.numel()].view(first.shape)
        method(view, *given, **named)
        return energy([base, view, before])

    def inplace_twice(*values):
        (first, *given), named = arguments(values)
        result = first.clone()
        before = result.tanh()
        method(method(result, *given, **named).mul_(2), *given, **named)
        return energy([result, before])

    yield plain
    if args and isinstance(args[0], cygrad.Tensor):
        yield chain
        if method is not None:
            yield from (inplace, inplace_view, inplace_twice)


def check(name, number, dtype):
    sample = build(name, number, dtype)
    if sample is None or sample.error is not None or not sample.check_gradient:
        return
    args, kwargs, leaves = with_gradients(sample)
    try:
        if not any(leaf.numel() for leaf in leaves) or not differentiable(tensors_in(find(name)(*args, **kwargs))):
            return
    except REFUSALS:
        return
    for form in forms(name, args, kwargs, leaves):
        if form.__name__ != "plain":
            try:                               # whether it exists: shapes and domains fit, nothing needed is modified
                value = form(*leaves)
                if not value.requires_grad or not value.isfinite():
                    continue
                cygrad.autograd.grad(value, leaves, allow_unused=True)
            except (AttributeError, *REFUSALS):
                continue
        compare(form, leaves, vectors(leaves))


def check_samples(name, numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in EXACT:
            for number in numbers:
                if not dtype.is_complex or name in COMPLEX:
                    check(name, number, dtype)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_second_derivatives_agree(name):
    check_samples(name, range(min(len(SAMPLES[name]), 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_second_derivatives_of_further_samples_agree(name):
    check_samples(name, range(1, len(SAMPLES[name])))


# ---- what the orders rest on

def tensor(*values, **options):
    return cygrad.tensor(values, dtype=cygrad.float64, **options)


def test_a_tangent_handed_on_twice_keeps_its_history():
    x = tensor(0.7)
    second = grad(lambda x: jvp(lambda x: (x * x + 1 + 2) ** 2, (x,), (cygrad.ones_like(x),))[1].sum())(x)
    np.testing.assert_allclose(second.tolist(), [12 * 0.7 ** 2 + 12])


def test_hessian_vector_products_reach_parameters():
    weight, bias = cygrad.ones(3, 3, dtype=cygrad.float64, requires_grad=True), tensor(1, 2, 3)
    x, direction = tensor(0.1, 0.2, 0.3), tensor(1, -1, 2)

    def net(x):
        return cygrad.tanh(x @ weight + bias - 1 + 2).sum()
    pushed, = cygrad.autograd.grad(jvp(net, (x,), (direction,))[1], weight)
    value = x.clone().requires_grad_()
    first, = cygrad.autograd.grad(net(value), value, create_graph=True)
    expected, = cygrad.autograd.grad((first * direction).sum(), weight)
    np.testing.assert_allclose(pushed.tolist(), expected.tolist())


def test_copying_a_view_whose_base_was_modified_keeps_its_history():
    x = tensor(2, requires_grad=True)
    view, target = cygrad.zeros(2, dtype=cygrad.float64)[:1], cygrad.zeros(1, dtype=cygrad.float64)
    view.copy_(x * 3)
    target.copy_(view)
    assert target.requires_grad
    assert cygrad.autograd.grad(target.sum(), x)[0].tolist() == [3]


@pytest.mark.parametrize("write", [
    lambda x, i, v: x.index_put((i,), v, accumulate=True),
    lambda x, i, v: x.clone().index_put_((i,), v, accumulate=True),
    lambda x, i, v: x.put(i, v, accumulate=True),
    lambda x, i, v: x.clone().put_(i, v, accumulate=True),
    lambda x, i, v: x.index_add(0, i, v),
    lambda x, i, v: x.scatter_add(0, i, v),
    lambda x, i, v: x.scatter_reduce(0, i, v, "prod"),
    lambda x, i, v: x.index_reduce(0, i, v, "prod"),
    lambda x, i, v: x.index_fill(0, i, v[0]),
    lambda x, i, v: x[i] * v,
    lambda x, i, v: x.take(i) * v,
], ids=["index_put", "index_put_", "put", "put_", "index_add", "scatter_add", "scatter_prod", "index_prod",
        "index_fill", "index", "take"])
def test_equal_indices(write):
    index, leaves = cygrad.tensor([1, 1, 0]), (tensor(1, 2, 3), tensor(4, -5, 6))
    found = jvp(lambda x, v: write(x, index, v), leaves, leaves)[0]
    np.testing.assert_array_equal(found.tolist(), write(leaves[0], index, leaves[1]).tolist())
    compare(lambda x, v: energy(write(bent(x), index, bent(v))), leaves, vectors(leaves))


@pytest.mark.parametrize("change", [
    lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0), lambda x: x[:1].squeeze_(0),
    lambda x: x.as_strided_((4,), (1,)), lambda x: x.swapaxes_(0, 1)])
def test_another_shape_in_place(change):
    def function(x):
        x = bent(x).clone()
        x = change(x)
        return energy(x * x.flatten()[0])
    compare(function, [tensor(1, 2, 3, 4).reshape(2, 2)], [tensor(1, -1, 2, 3).reshape(2, 2)])


def test_results_in_a_loop():
    def function(x):
        states, state = cygrad.zeros(3, dtype=cygrad.float64), cygrad.zeros((), dtype=cygrad.float64)
        for step in range(3):
            state = cygrad.tanh(state + x[step])
            states[step] = state
        return (states ** 3).sum()
    compare(function, [tensor(0.3, 0.5, 0.8)], [tensor(1, -2, 0.5)])


def test_modifying_a_tensor_leaves_the_direction_of_a_recorded_jvp_alone():
    direction = tensor(1, 2)
    leaf = tensor(3, 4, requires_grad=True)
    jvp(lambda x: (x * 1).mul_(leaf), (tensor(1, 2),), (direction,))
    assert direction.tolist() == [1, 2]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_real_result_in_a_complex_tensor_is_refused(requires_grad):
    x = cygrad.tensor([3 + 4j], requires_grad=requires_grad) * 1
    with pytest.raises(RuntimeError, match=r"abs_: in-place abs is not supported for complex tensors .*complex64"):
        x.abs_()
    assert x.tolist() == [3 + 4j]
