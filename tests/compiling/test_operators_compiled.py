"""Every sample of every operator is bit-identical under `compile`: results, gradients, second order."""

import zlib

import numpy as np
import pytest

import cygrad
from cygrad.compiling import explain
from tests.operator_cases import INTEGERS, REFUSALS, differentiable, numpy_dtype, results, vectors, with_gradients
from tests.samples import COMPLEX, SAMPLES, find

pytestmark = pytest.mark.filterwarnings("ignore")
# Reasons not to trace; everything else must be traced.
NOT_TRACED = (
    "depends on elements", "went to Python or NumPy", "a view of a tensor", "it returns a",
    "in place in a way that cannot be traced", "without memory", "referenced by other objects",
    "whose backward cannot be traced",
    "which may return different values in each call", "forward mode", "out= has no native form",
    "has strides that a copy cannot have", "cannot be rebuilt in each call", "the memory layout of its tensor",
    "which has side effects")


# A recorded backward creates some intermediate matrices in another layout than a native one; products of
# these add up in another order.
OTHER_ORDER = ("corrcoef", "cov")


def drawn(name, number, dtype, turn):
    """The sample of that number with the elements of a turn; None if it is not meant for the dtype."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {number} {turn}".encode()))

    def make(shape, low=-2, high=2):
        values = rng.uniform(low, high, shape)
        if dtype in INTEGERS:
            values = np.round(values)
        if dtype.is_complex:
            values = values + 1j * rng.uniform(low, high, shape)
        return cygrad.tensor(np.asarray(values).astype(numpy_dtype(dtype)))

    try:
        return SAMPLES[name][number](make, dtype)
    except RuntimeError:
        return None


def same(a, b):
    """Return whether two results have the same type, layout and bits."""
    if not isinstance(a, cygrad.Tensor):
        return type(a) is type(b) and (a == b or a != a)
    if a.dtype != b.dtype or a.shape != b.shape or a.requires_grad != b.requires_grad:
        return False
    x, y = np.ascontiguousarray(a.detach().numpy()), np.ascontiguousarray(b.detach().numpy())
    return x.tobytes() == y.tobytes() or bool(np.all((x == y) | ((x != x) & (y != y))))


def outcome(function, args, kwargs, leaves, weights):
    """Return the result of a call and its gradients if it requires grad, or the class of its exception."""
    try:
        found = function(args, kwargs, leaves, weights)
        outputs = differentiable(found)
        gradients = cygrad.autograd.grad(outputs, leaves, weights, allow_unused=True) if outputs and leaves else ()
    except REFUSALS as error:
        return type(error)
    return [*results(found), *gradients]


def agree(a, b, close=False):
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    a, b = results(a), results(b)
    if close:
        return len(a) == len(b) and all(map(cygrad.allclose, a, b))
    return len(a) == len(b) and all(
        agree(x, y) if isinstance(x, (tuple, list)) else same(x, y) for x, y in zip(a, b, strict=True))


def forward(function):
    def call(args, kwargs, leaves, weights):
        with cygrad.no_grad():
            return function(*args, **kwargs)
    return call


def with_gradient(function):
    def call(args, kwargs, leaves, weights):
        outputs = differentiable(function(*args, **kwargs))
        return list(cygrad.autograd.grad(outputs, leaves, weights, allow_unused=True)) if outputs and leaves else []
    return call


def with_graph(function):
    """Return the results with their graph; `outcome` runs backward through it."""
    def call(args, kwargs, leaves, weights):
        return function(*args, **kwargs)
    return call


def with_second_order(function):
    def call(args, kwargs, leaves, weights):
        outputs = differentiable(function(*args, **kwargs))
        if not outputs or not leaves:
            return []
        first = cygrad.autograd.grad(outputs, leaves, weights, create_graph=True, allow_unused=True)
        again = differentiable(list(first))
        return list(cygrad.autograd.grad(again, leaves, again, allow_unused=True)) if again else []
    return call


def weights_of(function, sample):
    """Vectors for the results that require grad; None if the sample is refused."""
    args, kwargs, _ = with_gradients(sample)
    try:
        return [vector.detach() for vector in vectors(differentiable(function(*args, **kwargs)))]
    except REFUSALS:
        return None


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_operator_is_replayed_bit_for_bit(name):
    function = find(name)
    for number in range(len(SAMPLES[name])):
        for dtype in (cygrad.float32, cygrad.complex128 if name in COMPLEX else cygrad.float64):
            samples = [drawn(name, number, dtype, turn) for turn in range(3)]
            if any(sample is None or sample.error is not None for sample in samples):
                continue
            weights = weights_of(function, samples[0])
            if weights is None:
                continue
            for kind in (forward, with_gradient, with_graph, with_second_order):
                compiled = cygrad.compile(kind(function))
                for sample in samples:
                    state = cygrad.get_rng_state()
                    expected = outcome(kind(function), *with_gradients(sample), weights)
                    cygrad.set_rng_state(state)
                    found = outcome(compiled, *with_gradients(sample), weights)
                    close = name in OTHER_ORDER and kind is with_second_order
                    assert agree(found, expected, close), (name, number, dtype, kind.__name__, str(explain(compiled)))
                report = explain(compiled)
                assert report.executions or isinstance(expected, type) or any(
                    known in reason for reason in report.reasons for known in NOT_TRACED) or (
                        len(report.programs) > 1), (name, number, dtype, kind.__name__, str(report))
