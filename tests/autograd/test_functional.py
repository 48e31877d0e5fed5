"""Jacobian and Hessian products: values, structure of inputs and outputs, strict mode, PyTorch."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import functional, gradcheck

NAMES = ("vjp", "jvp", "jacobian", "hessian", "vhp", "hvp")
REAL = np.array([[0.3, -1.2, 0.8], [0.5, 0.7, -0.4]])
OTHER = np.array([0.9, -0.6, 1.1])
COMPLEX = np.array([0.4 - 0.3j, -0.8 + 1.1j, 0.2 + 0.9j])


def tensor(array, library=cygrad, requires_grad=False):
    return library.from_numpy(np.array(array)).requires_grad_(requires_grad)


def flat(value):
    """All arrays of a nested result, and how it is nested."""
    if isinstance(value, tuple):
        parts = [flat(entry) for entry in value]
        return [array for arrays, _ in parts for array in arrays], tuple(form for _, form in parts)
    return [value.detach().resolve_conj().numpy() if hasattr(value, "resolve_conj") else value.detach().numpy()], None


# Functions to differentiate; `m` is either library.
def one(m):
    return lambda x: x.sin() * x.sum()


def several(m):
    return lambda x, y: (x * y.exp(), (x.sum(0) * y).sum(), y)


def constant(m):
    return lambda x, y: (x * 2, m.ones(2, dtype=m.float64))


def scalar_of_one(m):
    return lambda x: (x.sin() * x.sum()).pow(3).sum()


def scalar_of_two(m):
    return lambda x, y: (x * y.exp()).pow(2).sum() + y.sum()


def linear(m):
    return lambda x, y: (3 * x).sum() + y.pow(3).sum()


def holomorphic(m):
    return lambda z: z.exp() * z.sum()


def mixed(m):
    return lambda z: (z * z.conj()).real * z.sum().abs()


def real_of_complex(m):
    return lambda z: (z * z * z.conj()).real.sum()


VECTORS = {
    one: [(REAL,), (REAL[::-1] * 2,)],
    several: [(REAL, OTHER), (REAL * 3, np.array(0.7), OTHER - 2)],
    constant: [(REAL, OTHER), (REAL * 3, np.ones(2))],
    holomorphic: [(COMPLEX,), (COMPLEX[::-1] * 1j,)],
    mixed: [(COMPLEX,), (OTHER,)],
}
SCALARS = {
    scalar_of_one: (REAL,), scalar_of_two: (REAL, OTHER), linear: (REAL, OTHER), real_of_complex: (COMPLEX,),
}


def alone(arrays, library):
    """One array as a Tensor, several as a tuple of them."""
    tensors = tuple(tensor(array, library) for array in arrays)
    return tensors if len(tensors) > 1 else tensors[0]


def compute(library, name, func, **options):
    """The call of a name of this suite, with the vectors that it needs."""
    namespace = library.autograd.functional
    if func in SCALARS:
        inputs = SCALARS[func]
        if name in ("hessian", "jacobian"):
            return getattr(namespace, name)(func(library), alone(inputs, library), **options)
        vector = [array * 0.5 + (0.1 if name != "vjp" else 0) for array in inputs]
        return getattr(namespace, name)(func(library), alone(inputs, library), alone(vector, library), **options)
    inputs, outputs = VECTORS[func]
    if name == "jacobian":
        return namespace.jacobian(func(library), alone(inputs, library), **options)
    vector = outputs if name == "vjp" else [array * (0.5 + (0.5j if np.iscomplexobj(array) else 0)) for array in inputs]
    return getattr(namespace, name)(func(library), alone(inputs, library), alone(vector, library), **options)


CASES = [(name, func) for func in VECTORS for name in ("vjp", "jvp", "jacobian")
         if (name, func) != ("jacobian", holomorphic)]
CASES += [(name, func) for func in SCALARS for name in ("hessian", "vhp", "hvp")
          if (name, func) != ("hessian", real_of_complex)]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("name", "func"), CASES, ids=[f"{name}-{func.__name__}" for name, func in CASES])
def test_as_the_peer(name, func, create_graph):
    torch = pytest.importorskip("torch")
    found, form = flat(compute(cygrad, name, func, create_graph=create_graph))
    expected, expected_form = flat(compute(torch, name, func, create_graph=create_graph))
    assert form == expected_form
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("func", [holomorphic, mixed, one, several])
def test_vectorize_as_the_peer(func):
    torch = pytest.importorskip("torch")
    found, form = flat(compute(cygrad, "jacobian", func, vectorize=True))
    expected, expected_form = flat(compute(torch, "jacobian", func, vectorize=True))
    assert form == expected_form
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------ forward mode

FORWARD = [("jacobian", func) for func in (one, several, constant)]
FORWARD += [("hessian", func) for func in (scalar_of_one, scalar_of_two, linear)]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("name", "func"), FORWARD, ids=[f"{name}-{func.__name__}" for name, func in FORWARD])
def test_forward_mode_gives_the_same(name, func, create_graph):
    strategy = {"strategy" if name == "jacobian" else "outer_jacobian_strategy": "forward-mode"}
    found, form = flat(compute(cygrad, name, func, create_graph=create_graph, **strategy))
    expected, expected_form = flat(compute(cygrad, name, func, create_graph=create_graph))
    assert form == expected_form
    for forward, reverse in zip(found, expected, strict=True):
        assert forward.dtype == reverse.dtype
        np.testing.assert_allclose(forward, reverse, rtol=1e-12, atol=1e-12)


def test_forward_mode_records_with_create_graph():
    x = tensor(OTHER, requires_grad=True)
    found = functional.jacobian(lambda x: x ** 3, x, create_graph=True, strategy="forward-mode")
    found.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * OTHER)
    assert not functional.jacobian(lambda x: x ** 3, x, strategy="forward-mode").requires_grad


# ---------------------------------------------------------------------------------------------- by themselves

@pytest.mark.parametrize("func", [one, several])
def test_products_are_those_with_the_jacobian(func):
    inputs, outputs = VECTORS[func]
    places = tuple(tensor(array) for array in inputs)
    matrix = functional.jacobian(lambda *x: func(cygrad)(*x) if func is several else (func(cygrad)(*x),), places)
    _, left = functional.vjp(func(cygrad), places, tuple(tensor(array) for array in outputs))
    _, right = functional.jvp(func(cygrad), places, tuple(tensor(array) for array in inputs))
    right = right if isinstance(right, tuple) else (right,)
    for j, place in enumerate(inputs):
        expected = sum(np.tensordot(outputs[i], matrix[i][j].numpy(), outputs[i].ndim) for i in range(len(outputs)))
        np.testing.assert_allclose(left[j].numpy(), expected, rtol=1e-12)
        assert expected.shape == place.shape
    for i, output in enumerate(outputs):
        expected = sum(np.tensordot(matrix[i][j].numpy(), inputs[j], inputs[j].ndim) for j in range(len(inputs)))
        np.testing.assert_allclose(right[i].numpy(), expected, rtol=1e-12)
        assert expected.shape == output.shape


def test_hessian_of_a_quadratic_form():
    matrix = tensor([[2.0, 1.0], [5.0, -3.0]])

    def form(x):
        return x @ matrix @ x

    x, v = tensor([0.3, 0.9]), tensor([1.0, -2.0])
    symmetric = matrix + matrix.T
    assert cygrad.allclose(functional.hessian(form, x), symmetric)
    assert cygrad.allclose(functional.hessian(form, x, vectorize=True), symmetric)
    for product in (functional.vhp, functional.hvp):
        output, found = product(form, x, v)
        assert output.item() == pytest.approx(form(x).item())
        assert cygrad.allclose(found, symmetric @ v)
        assert not found.requires_grad


def test_complex_product_is_the_real_linear_map():
    def mix(z):
        return z * z + 2j * z.conj()

    z, v = tensor(COMPLEX), tensor(COMPLEX[::-1])
    _, found = functional.jvp(mix, z, v)
    step = 1e-6
    expected = (mix(z + step * v) - mix(z - step * v)) / (2 * step)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_results_can_be_differentiated(name):
    def loss(x):
        func = one(cygrad) if name in ("vjp", "jvp", "jacobian") else scalar_of_one(cygrad)
        vector = () if name in ("jacobian", "hessian") else (x * 2,)
        found = getattr(functional, name)(func, x, *vector, create_graph=True)
        return found[1] if isinstance(found, tuple) else found

    assert gradcheck(loss, tensor(OTHER, requires_grad=True))


@pytest.mark.parametrize("name", NAMES)
def test_without_create_graph_there_is_no_history(name):
    x = tensor(OTHER, requires_grad=True)
    func = one(cygrad) if name in ("vjp", "jvp", "jacobian") else scalar_of_one(cygrad)
    vector = () if name in ("jacobian", "hessian") else (x.detach() * 2,)
    with cygrad.no_grad():
        found = getattr(functional, name)(func, x, *vector)
    for result in found if isinstance(found, tuple) else (found,):
        assert not result.requires_grad
    assert x.grad is None


def test_vector_may_be_left_out_for_one_element():
    x = tensor(2.0)
    assert functional.vjp(lambda x: x ** 3, x)[1].item() == 12
    assert functional.jvp(lambda x: x ** 3, x)[1].item() == 12
    assert functional.vhp(lambda x: x ** 3, x)[1].item() == 12
    assert functional.hvp(lambda x: x ** 3, x)[1].item() == 12


def test_no_elements():
    x = cygrad.zeros((0, 2))
    assert functional.jacobian(lambda x: x * 2, x).shape == (0, 2, 0, 2)
    assert functional.jacobian(lambda x: x.sum(), x).shape == (0, 2)
    assert functional.hessian(lambda x: x.sum(), x).shape == (0, 2, 0, 2)
    assert functional.vjp(lambda x: x * 2, x, x)[1].shape == (0, 2)


def test_a_tuple_of_one_stays_a_tuple():
    x = tensor(OTHER)
    assert isinstance(functional.jacobian(lambda x: x * 2, (x,)), tuple)
    assert functional.hessian(lambda x: x.pow(2).sum(), (x,))[0][0].shape == (3, 3)
    output, found = functional.vjp(lambda x: (x * 2,), (x,), (x,))
    assert isinstance(output, tuple)
    assert isinstance(found, tuple)


def test_inputs_that_func_knows_otherwise_are_constants():
    x = tensor(OTHER, requires_grad=True)
    assert cygrad.equal(functional.jacobian(lambda y: (x * y).sum(), x), x.detach())


# ---------------------------------------------------------------------------------------------------- refusals

STRICT = [
    # (func, description) for one input pair x, y
    ("output", lambda x, y: cygrad.ones((), dtype=cygrad.float64), NAMES),
    ("input", lambda x, y: x.pow(3).sum(), NAMES),
    ("gradient", lambda x, y: (2 * x).sum() + y.pow(3).sum(), ("hessian", "vhp", "hvp")),
]


@pytest.mark.parametrize(("name", "func"), [
    pytest.param(name, func, id=f"{name}-{what}") for what, func, names in STRICT for name in names])
def test_strict(name, func):
    places = (tensor(OTHER), tensor(OTHER))
    vector = () if name in ("jacobian", "hessian") else (tensor(1.0),) if name == "vjp" else (places,)
    getattr(functional, name)(func, places, *vector)
    with pytest.raises(RuntimeError, match=f"{name}: .* strict=True forbids"):
        getattr(functional, name)(func, places, *vector, strict=True)


def test_strict_with_create_graph_forbids_constant_jacobians():
    x = tensor(OTHER)
    functional.jacobian(lambda x: x * 2, x, strict=True)
    with pytest.raises(RuntimeError, match=r"jacobian: The jacobian of the .* is independent of input 0"):
        functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True)
    with pytest.raises(RuntimeError, match=r"vjp: The jacobian of the .* is independent of input 0"):
        functional.vjp(lambda x: x * 2, x, x, strict=True, create_graph=True)


def double(x):
    return x * 2


@pytest.mark.parametrize(("error", "text", "call"), [
    (TypeError, r"The inputs given to vjp must be .* \(got float", lambda x: functional.vjp(double, 1.0)),
    (TypeError, r"The inputs given to vjp must be .*int at index 1", lambda x: functional.vjp(double, (x, 2))),
    (TypeError, r"The outputs of the user-provided function given to jacobian must be .* \(got list",
     lambda x: functional.jacobian(lambda x: [x], x)),
    (TypeError, r"jvp: The v given to jvp must be .* \(got str", lambda x: functional.jvp(double, x, "v")),
    (RuntimeError, r"vjp: inputs is empty", lambda x: functional.vjp(double, ())),
    (RuntimeError, r"vjp: The vector v can only be None if the .* returns a single .* element \(got shape \(3,\)",
     lambda x: functional.vjp(double, x)),
    (RuntimeError, r"hvp: The vector v can only be None if the input to",
     lambda x: functional.hvp(lambda x: x.sum(), x)),
    (RuntimeError, r"vjp: v has invalid size: should be .*3.* but got .*2.* the output",
     lambda x: functional.vjp(double, x, x[:2])),
    (RuntimeError, r"jvp: The given v should contain a single Tensor \(got 2\), as the input",
     lambda x: functional.jvp(double, x, (x, x))),
    (RuntimeError, r"hessian: The Tensor returned by .* contain a single element \(got shape",
     lambda x: functional.hessian(double, x)),
    (RuntimeError, r"vhp: The function given to vhp should return a single Tensor \(got a tuple of 1",
     lambda x: functional.vhp(lambda x: (x.sum(),), x, x)),
    (RuntimeError, r"jacobian: output 0 is complex", lambda x: functional.jacobian(lambda x: x * 1j, x)),
    (RuntimeError, r"jacobian: `strict=True` and `vectorized=True` are not supported together",
     lambda x: functional.jacobian(double, x, strict=True, vectorize=True)),
    (RuntimeError, r'jacobian: `strict=True` and `strategy="forward-mode"` are not supported together',
     lambda x: functional.jacobian(double, x, strict=True, strategy="forward-mode")),
    (RuntimeError, r"jacobian: input 0 is complex",
     lambda x: functional.jacobian(double, x * 1j, strategy="forward-mode")),
    (ValueError, r"jacobian: Expected strategy to be either .*got strategy='sideways'",
     lambda x: functional.jacobian(double, x, strategy="sideways")),
])
def test_refusals(error, text, call):
    with pytest.raises(error, match=text):
        call(tensor(OTHER))


def test_integers_are_refused():
    with pytest.raises(RuntimeError, match="floating"):
        functional.jacobian(double, cygrad.tensor([1, 2]))


def test_errors_of_func_come_out():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        functional.vjp(fails, tensor(OTHER))
