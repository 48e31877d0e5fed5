"""Steps of the optimizers, compared with formulas written in NumPy and with PyTorch."""

import itertools

import numpy as np
import pytest

import cygrad
from cygrad import optim

SGD_OPTIONS = [
    {"momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
     "maximize": maximize}
    for momentum, dampening, weight_decay, nesterov, maximize in itertools.product(
        (0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True))
    if not (nesterov and (momentum == 0 or dampening)) and not (dampening and not momentum)
]
ADAM_OPTIONS = [
    {"weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize, "betas": betas}
    for weight_decay, amsgrad, maximize, betas in itertools.product(
        (0, 0.1), (False, True), (False, True), ((0.9, 0.999), (0.3, 0.6)))
]
CASES = ([("SGD", options) for options in SGD_OPTIONS] + [("Adam", options) for options in ADAM_OPTIONS]
         + [("AdamW", options) for options in ADAM_OPTIONS])
DTYPES = ["float32", "float64", "complex64", "complex128"]
STEPS = 20


def draw(random, shape, dtype):
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def problem(dtype, seed=0):
    """Start values of three parameters and their gradients for each step."""
    random = np.random.default_rng(seed)
    shapes = [(3, 5), (), (130,)]
    start = [draw(random, shape, dtype) for shape in shapes]
    return start, [[draw(random, shape, dtype) for shape in shapes] for _ in range(STEPS)]


def steps(library, make, start, gradients, tensor):
    """Values of all parameters after the last step."""
    parameters = [tensor(value) for value in start]
    optimizer = make(parameters)
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = library.from_numpy(np.array(gradient))
        optimizer.step()
    return [parameter.detach().numpy() for parameter in parameters], optimizer


def ours(value):
    return cygrad.from_numpy(np.array(value)).requires_grad_()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_same_values_as_pytorch(name, options, dtype):
    torch = pytest.importorskip("torch")
    start, gradients = problem(dtype)
    expected, _ = steps(torch, lambda p: getattr(torch.optim, name)(p, lr=0.05, **options), start, gradients,
                        lambda value: torch.from_numpy(np.array(value)).requires_grad_())
    result, _ = steps(cygrad, lambda p: getattr(optim, name)(p, lr=0.05, **options), start, gradients, ours)
    single = dtype in ("float32", "complex64")
    for value, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-4 if single else 1e-12, atol=2e-5 if single else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sgd_formula(dtype):
    (start, *_), gradients = problem(dtype)
    gradients = [step[0] for step in gradients]
    p, v = start.astype(complex), 0
    for number, gradient in enumerate(gradients):
        g = gradient + 0.1 * p
        v = g if number == 0 else 0.9 * v + 0.5 * g
        p = p - 0.05 * v
    result, _ = steps(cygrad, lambda q: optim.SGD(q, lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.1),
                      [start], [[gradient] for gradient in gradients], ours)
    np.testing.assert_allclose(result[0], p if "complex" in dtype else p.real, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adam_formula(dtype, decoupled):
    (start, *_), gradients = problem(dtype)
    gradients = [step[0] for step in gradients]
    p, m, v = start.astype(float), 0, 0
    for number, gradient in enumerate(gradients, start=1):
        if decoupled:
            p = p * (1 - 0.05 * 0.1)
        g = gradient + (0 if decoupled else 0.1) * p
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        p = p - 0.05 * (m / (1 - 0.9 ** number)) / (np.sqrt(v / (1 - 0.99 ** number)) + 1e-8)
    make = optim.AdamW if decoupled else optim.Adam
    result, _ = steps(cygrad, lambda q: make(q, lr=0.05, betas=(0.9, 0.99), weight_decay=0.1),
                      [start], [[gradient] for gradient in gradients], ours)
    np.testing.assert_allclose(result[0], p, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)


LAYOUTS = {
    "transposed": lambda value: cygrad.from_numpy(np.array(value.T, order="C")).t(),
    "reversed": lambda value: cygrad.from_numpy(np.array(value)).flip(0).flip(0),
    "strided": lambda value: cygrad.from_numpy(np.repeat(value, 2, axis=1))[:, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_layouts_give_the_same_values(name, layout):
    start, gradients = problem("float64")
    start, gradients = start[:1], [step[:1] for step in gradients]
    options = {"momentum": 0.9} if name == "SGD" else {"amsgrad": True}
    plain, _ = steps(cygrad, lambda p: getattr(optim, name)(p, lr=0.05, **options), start, gradients, ours)
    other, _ = steps(cygrad, lambda p: getattr(optim, name)(p, lr=0.05, **options), start, gradients,
                     lambda value: LAYOUTS[layout](value).requires_grad_())
    np.testing.assert_array_equal(other[0], plain[0])


def test_dtypes_may_be_mixed_in_a_group():
    a = cygrad.ones(3, dtype=cygrad.float32, requires_grad=True)
    b = cygrad.ones(3, dtype=cygrad.complex128, requires_grad=True)
    a.grad, b.grad = cygrad.ones(3), cygrad.ones(3, dtype=cygrad.complex128)
    optim.SGD([a, b], lr=0.5).step()
    assert a.tolist() == [0.5] * 3
    assert b.tolist() == [0.5 + 0j] * 3


def test_parameters_without_gradient_and_without_elements_are_left_alone():
    a, b = cygrad.ones(2, requires_grad=True), cygrad.ones(0, requires_grad=True)
    b.grad = cygrad.ones(0)
    for optimizer in optim.SGD([a, b], lr=1.0, momentum=0.5), optim.Adam([a, b]):
        optimizer.step()
        assert a.tolist() == [1, 1]
        assert a not in optimizer.state


def test_infinite_values_stay_what_they_are():
    a = cygrad.tensor([float("inf"), 1.0, 1.0], requires_grad=True)
    a.grad = cygrad.tensor([1.0, float("nan"), 0.0])
    optim.SGD([a], lr=0.1).step()
    assert a[0].item() == float("inf")
    assert np.isnan(a[1].item())
    assert a[2].item() == 1


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_same_bits_for_any_number_of_threads(name):
    random = np.random.default_rng(0)
    start, gradient = random.standard_normal(300_001), random.standard_normal(300_001)
    results = []
    before = cygrad.get_num_threads()
    try:
        for count in (1, 2, 4):
            cygrad.set_num_threads(count)
            result, _ = steps(cygrad, lambda p: getattr(optim, name)(p, lr=0.1), [start, start[:7]],
                              [[gradient, gradient[:7]]] * 3, ours)
            results.append(result)
    finally:
        cygrad.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(other[0], results[0][0])
        np.testing.assert_array_equal(other[1], results[0][1])


def test_a_step_counts_as_an_in_place_change():
    w = cygrad.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    w.grad = cygrad.ones(2)
    before = w._version
    optimizer.step()
    assert w._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_read_only_memory_is_refused():
    values = np.ones(3)
    values.flags.writeable = False
    with pytest.warns(UserWarning, match="not writ|read-only|non-writ"):
        w = cygrad.from_numpy(values).requires_grad_()
    w.grad = cygrad.ones(3, dtype=cygrad.float64)
    with pytest.raises(RuntimeError, match="read-only"):
        optim.SGD([w], lr=0.1).step()
    assert values.tolist() == [1, 1, 1]


def test_expanded_parameters_are_refused():
    w = cygrad.ones(1).expand(3).requires_grad_()
    w.grad = cygrad.ones(3)
    with pytest.raises(RuntimeError, match="share a memory location"):
        optim.SGD([w], lr=0.1).step()


def test_state_that_does_not_fit_is_refused():
    w = cygrad.ones(3, requires_grad=True)
    w.grad = cygrad.ones(3)
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9)
    optimizer.state[w]["momentum_buffer"] = cygrad.ones(4)
    with pytest.raises(RuntimeError, match="does not match"):
        optimizer.step()
    optimizer.state[w]["momentum_buffer"] = "abc"
    with pytest.raises(TypeError, match="must be a Tensor"):
        optimizer.step()


def test_gradient_of_another_shape_is_refused():
    w = cygrad.ones(3, requires_grad=True)
    w.grad = cygrad.ones(3)
    w.data = cygrad.ones(4)
    with pytest.raises(RuntimeError, match="must have the shape"):
        optim.SGD([w], lr=0.1).step()


def test_a_large_first_moment_weight_interpolates_from_the_other_end():
    w = cygrad.zeros(1, dtype=cygrad.float64, requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1, betas=(0.0, 0.9))
    w.grad = cygrad.full((1,), 3.0, dtype=cygrad.float64)
    optimizer.step()
    assert optimizer.state[w]["exp_avg"].item() == 3
    assert optimizer.state[w]["step"].item() == 1
