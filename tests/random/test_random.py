"""Random numbers: distributions, seeds and states, dtypes, strides, threads and errors."""

import pickle
import threading

import numpy as np
import pytest

import cygrad
from cygrad import random as cygrad_random

FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws the same numbers each time."""
    cygrad.manual_seed(0)


# ---- generators

def test_a_seed_repeats_all_numbers():
    draws = [lambda: cygrad.rand(5), lambda: cygrad.randn(5), lambda: cygrad.randint(100, (5,)),
             lambda: cygrad.randperm(10), lambda: cygrad.zeros(5).normal_(), lambda: cygrad.zeros(5).exponential_(),
             lambda: cygrad.bernoulli(cygrad.full((9,), 0.5)), lambda: cygrad.multinomial(cygrad.ones(9), 3)]
    cygrad.manual_seed(5)
    first = [draw() for draw in draws]
    cygrad.manual_seed(5)
    assert all(cygrad.equal(a, draw()) for a, draw in zip(first, draws, strict=False))
    assert cygrad.initial_seed() == 5


def test_states():
    state = cygrad.get_rng_state()
    a = cygrad.randint(3, (7,), dtype=cygrad.int8)     # leaves half a draw waiting
    b = cygrad.rand(3)
    cygrad.set_rng_state(state)
    assert cygrad.equal(cygrad.randint(3, (7,), dtype=cygrad.int8), a) and cygrad.equal(cygrad.rand(3), b)
    with cygrad_random.fork_rng():
        c = cygrad.rand(3)
    assert cygrad.equal(cygrad.rand(3), c)
    with pytest.raises(TypeError, match="set_state: a state is a uint8 tensor"):
        cygrad.set_rng_state(cygrad.zeros(3))
    with pytest.raises(RuntimeError, match="not a state of this generator"):
        cygrad.set_rng_state(cygrad.zeros(3, dtype=cygrad.uint8))


def test_generators():
    a, b = cygrad.Generator(), cygrad.Generator()
    assert a.initial_seed() == 67280421310721
    assert cygrad.equal(cygrad.rand(3, generator=a), cygrad.rand(3, generator=b))
    assert a.manual_seed(-1) is a and a.initial_seed() == 2**64 - 1
    assert a.seed() == a.initial_seed() != b.seed()
    c = pickle.loads(pickle.dumps(a))
    d = a.clone_state()
    assert cygrad.equal(cygrad.rand(3, generator=a), cygrad.rand(3, generator=c))
    assert cygrad.equal(cygrad.rand(3, generator=c), cygrad.zeros(6).uniform_(generator=d)[3:])
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        a.manual_seed(2**64)
    with pytest.raises(RuntimeError, match="must be an integer"):
        a.manual_seed(1.5)
    with pytest.raises(RuntimeError, match="no such device"):
        cygrad.Generator("cuda")
    with pytest.raises(TypeError, match="generator must be a Generator"):
        cygrad.rand(2, generator=3)


def test_threads_draw_different_numbers():
    results = []
    threads = [threading.Thread(target=lambda: results.append(cygrad.rand(10000).numpy())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.concatenate(results)
    assert len(np.unique(together)) > 0.99 * together.size


# ---- distributions

@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("shape", [(), (0,), (3, 2), (2, 0)])
def test_shapes_and_dtypes(dtype, shape):
    d = getattr(cygrad, dtype)
    model = cygrad.zeros(shape, dtype=d)
    for x in (cygrad.rand(shape, dtype=d), cygrad.randn(shape, dtype=d), cygrad.rand_like(model),
              cygrad.randn_like(model)):
        assert tuple(x.shape) == shape and x.dtype is d and x.is_leaf and not x.requires_grad


def moments(x):
    """Mean and variance."""
    values = x.numpy()
    return values.mean(), values.var()


@pytest.mark.parametrize("dtype", FLOATS)
def test_moments(dtype):
    d, n = getattr(cygrad, dtype), 200000
    near = {"abs": 0.02}
    assert moments(cygrad.rand(n, dtype=d)) == pytest.approx((1 / 2, 1 / 12), **near)
    assert moments(cygrad.randn(n, dtype=d)) == pytest.approx((0, 1), **near)
    x = cygrad.zeros(n, dtype=d)
    assert moments(x.uniform_(-1, 3)) == pytest.approx((1, 4 / 3), **near)
    assert x.min() >= -1 and x.max() < 3
    assert moments(x.normal_(2, 0.5)) == pytest.approx((2, 0.25), **near)
    assert moments(x.exponential_(2)) == pytest.approx((0.5, 0.25), **near)
    assert x.min() > 0
    assert moments(x.bernoulli_(0.3)) == pytest.approx((0.3, 0.21), **near)
    assert moments(x.random_(10)) == pytest.approx((4.5, 8.25), abs=0.1)
    assert moments(cygrad.normal(1.0, 2.0, (n,))) == pytest.approx((1, 4), abs=0.05)
    assert moments(cygrad.normal(cygrad.full((n,), 3.0), cygrad.tensor(0.5))) == pytest.approx((3, 0.25), **near)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(dtype):
    d = getattr(cygrad, dtype)
    z = cygrad.randn(200000, dtype=d).numpy()
    assert np.abs(z.mean()) < 0.02 and z.var() == pytest.approx(1, abs=0.02)
    assert z.real.var() == pytest.approx(0.5, abs=0.02)
    u = cygrad.zeros(10000, dtype=d).uniform_().numpy()
    assert 0 <= u.imag.min() < u.imag.max() < 1


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_integers(dtype):
    d = getattr(cygrad, dtype)
    high = 2 if dtype == "bool" else 7
    x = cygrad.randint(high, (5000,), dtype=d)
    assert x.dtype is d and set(x.tolist()) == set(range(high))
    y = cygrad.zeros(5000, dtype=d).random_()
    assert y.min() >= 0
    assert cygrad.randint_like(y, 1, 2).numpy().all()
    assert sorted(cygrad.randperm(2 if dtype == "bool" else 100, dtype=d).tolist()) == list(
        range(2 if dtype == "bool" else 100))
    assert set(cygrad.zeros(500, dtype=d).bernoulli_(0.5).tolist()) == {0, 1}


def test_randint_spellings():
    assert set(cygrad.randint(2, 4, (99,)).tolist()) == {2, 3}
    assert set(cygrad.randint(high=2, size=(99,)).tolist()) == {0, 1}
    assert set(cygrad.randint(-2, high=0, size=(99,)).tolist()) == {-2, -1}
    assert cygrad.randint(3, (2,)).dtype is cygrad.int64
    x = cygrad.zeros(99)
    assert set(x.random_(2, 4).tolist()) == {2, 3} and set(x.random_(2).tolist()) == {0, 1}
    assert x.uniform_(to=-1, **{"from": -2}).max() <= -1


def test_bernoulli():
    assert cygrad.bernoulli(cygrad.tensor([0.0, 1.0])).tolist() == [0, 1]
    assert cygrad.bernoulli(cygrad.tensor([0, 1]), 1.0).tolist() == [1, 1]
    p = cygrad.full((4,), 0.5, requires_grad=True)
    drawn = cygrad.bernoulli(p)                # as the result of an operation whose derivative is zero
    drawn.sum().backward()
    assert p.grad.tolist() == [0] * 4 and not cygrad.bernoulli(p.detach()).requires_grad
    assert cygrad.zeros(2, 3).bernoulli_(cygrad.tensor([1.0, 0.0, 1.0])).tolist() == [[1, 0, 1]] * 2
    assert cygrad.tensor([0.0, 1.0]).bernoulli().tolist() == [0, 1]


def test_multinomial():
    weights = cygrad.tensor([[0.0, 1.0, 3.0, 0.0], [5.0, 0.0, 5.0, 10.0]])
    drawn = cygrad.multinomial(weights, 40000, replacement=True)
    shares = np.stack([np.bincount(row, minlength=4) / 40000 for row in drawn.numpy()])
    np.testing.assert_allclose(shares, [[0, 0.25, 0.75, 0], [0.25, 0, 0.25, 0.5]], atol=0.02)
    counts = np.zeros(4)
    for _ in range(500):
        row = cygrad.multinomial(weights, 2)[1].tolist()
        assert len(set(row)) == 2 and 1 not in row
        counts[row[0]] += 1
    np.testing.assert_allclose(counts / 500, [0.25, 0, 0.25, 0.5], atol=0.08)
    assert cygrad.multinomial(weights[0], 1).shape == (1,)


def test_dropout_mask():
    x = cygrad.ones(100000, dtype=cygrad.float64)
    mask = cygrad_random.dropout_mask(x, 0.25)
    assert mask.dtype is x.dtype and set(mask.tolist()) == {0.0, 1 / 0.75}
    assert mask.numpy().mean() == pytest.approx(1, abs=0.02)
    assert cygrad_random.dropout_mask(x, 1.0).numpy().sum() == 0
    with pytest.raises(ValueError, match="dropout: the probability"):
        cygrad_random.dropout_mask(x, 1.5)


# ---- in place

FILLS = {
    "normal_": (), "uniform_": (), "random_": (5,), "bernoulli_": (0.5,), "exponential_": (),
}


@pytest.mark.parametrize("name", FILLS)
def test_any_strides(name):
    for view in (lambda x: x.T, lambda x: x[::2, 1::3], lambda x: x[1], lambda x: x[:0]):
        x = cygrad.full((6, 8), -7.0)
        target = view(x)
        assert getattr(target, name)(*FILLS[name]) is target
        assert (target.numpy() != -7).all()
        assert (x.numpy() != -7).sum() == target.numel()
    array = np.full((4, 6), -7.0)
    getattr(cygrad.from_numpy(array[::-1, ::-2]), name)(*FILLS[name])
    assert (array != -7).sum() == 12


@pytest.mark.parametrize("name", FILLS)
def test_versions_and_histories(name):
    x = cygrad.zeros(3)
    getattr(x, name)(*FILLS[name])
    assert x._version == 1
    leaf = cygrad.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(leaf, name)(*FILLS[name])
    with cygrad.no_grad():
        getattr(leaf, name)(*FILLS[name])
    y = leaf * 2
    getattr(y, name)(*FILLS[name])
    y.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0]


def test_requires_grad_and_out():
    assert cygrad.rand(2, requires_grad=True).requires_grad and cygrad.randn(2, requires_grad=True).is_leaf
    out = cygrad.empty(2, 3)
    assert cygrad.rand(2, 3, out=out) is out
    with pytest.warns(UserWarning, match="was resized"):
        assert cygrad.rand(3, out=out).shape == out.shape == (3,)
    with cygrad.inference_mode():
        assert cygrad.rand(2).is_inference()


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: cygrad.rand(2, dtype=cygrad.int64), NotImplementedError, "rand: not implemented for int64"),
    (lambda: cygrad.randn(2, dtype=cygrad.bool), NotImplementedError, "randn: not implemented"),
    (lambda: cygrad.randn_like(cygrad.tensor([1])), NotImplementedError, "randn: not implemented"),
    (lambda: cygrad.rand(-1), RuntimeError, "sizes must not be negative"),
    (lambda: cygrad.rand(1.5), TypeError, "sizes must be integers"),
    (lambda: cygrad.rand(), TypeError, "missing sizes"),
    (lambda: cygrad.rand(2, device="cuda"), RuntimeError, "no such device"),
    (lambda: cygrad.randint(5, 2), TypeError, "the size"),
    (lambda: cygrad.randint(5, 5, (2,)), RuntimeError, "below the upper"),
    (lambda: cygrad.randint(0, 300, (2,), dtype=cygrad.uint8), RuntimeError, "outside the range of uint8"),
    (lambda: cygrad.randint(0, 3, (2,), dtype=cygrad.complex64), NotImplementedError, "not implemented for complex64"),
    (lambda: cygrad.randint(0.5, 3, (2,)), TypeError, "integers"),
    (lambda: cygrad.randperm(-1), RuntimeError, "negative"),
    (lambda: cygrad.randperm(300, dtype=cygrad.uint8), RuntimeError, "too large for uint8"),
    (lambda: cygrad.normal(0.0, -1.0, (2,)), RuntimeError, "std must not be negative"),
    (lambda: cygrad.normal(0.0, cygrad.tensor([-1.0])), RuntimeError, "must not be negative"),
    (lambda: cygrad.normal(0.0, 1.0), TypeError, "need a size"),
    (lambda: cygrad.bernoulli(cygrad.tensor([2.0])), RuntimeError, r"in \[0, 1\]"),
    (lambda: cygrad.bernoulli(cygrad.tensor([1])), NotImplementedError, "must be floating"),
    (lambda: cygrad.multinomial(cygrad.tensor([0.0, 1.0]), 3), RuntimeError, "3 different positions of 2"),
    (lambda: cygrad.multinomial(cygrad.tensor([0.0, 1.0]), 2), RuntimeError, "only 1"),
    (lambda: cygrad.multinomial(cygrad.tensor([-1.0, 1.0]), 1), RuntimeError, "not negative"),
    (lambda: cygrad.multinomial(cygrad.tensor([0.0]), 1), RuntimeError, "add up to zero"),
    (lambda: cygrad.multinomial(cygrad.tensor([1]), 1), RuntimeError, "must be floating"),
    (lambda: cygrad.multinomial(cygrad.tensor([1.0]), 0), RuntimeError, "must be positive"),
    (lambda: cygrad.zeros(2).normal_(0, -1), RuntimeError, "std must not be negative"),
    (lambda: cygrad.zeros(2).uniform_(2, 1), RuntimeError, "above the upper"),
    (lambda: cygrad.zeros(2, dtype=cygrad.int64).uniform_(), NotImplementedError, "uniform_: not implemented"),
    (lambda: cygrad.zeros(2, dtype=cygrad.complex64).random_(), NotImplementedError, "random_: not implemented"),
    (lambda: cygrad.zeros(2, dtype=cygrad.int8).random_(300), RuntimeError, "outside the range"),
    (lambda: cygrad.zeros(2).bernoulli_(2), RuntimeError, r"in \[0, 1\] \(got 2\)"),
    (lambda: cygrad.zeros(2).exponential_(-1), RuntimeError, "rate must be positive"),
    (lambda: cygrad.zeros(2, dtype=cygrad.int64).exponential_(), RuntimeError, "continuous"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_set_state_returns_the_generator():
    generator = cygrad.Generator()
    assert generator.set_state(generator.get_state()) is generator


@pytest.mark.parametrize(("method", "arguments"), [("cauchy_", ()), ("log_normal_", ()), ("geometric_", (0.5,))])
def test_continuous_distributions_fill_bfloat16_with_rounded_numbers(method, arguments):
    exact = getattr(cygrad.zeros(100, dtype=cygrad.float64), method)(*arguments)
    cygrad.manual_seed(0)
    assert getattr(cygrad.zeros(100, dtype=cygrad.bfloat16), method)(*arguments).equal(exact.to(cygrad.bfloat16))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("bounds", [(0, float("inf")), (float("nan"), 1), (-float("inf"), 0)])
def test_uniform_bounds_must_be_finite(dtype, bounds):
    with pytest.raises(RuntimeError, match="out of bounds"):
        cygrad.zeros(2, dtype=getattr(cygrad, dtype)).uniform_(*bounds)


@pytest.mark.parametrize(("dtype", "bound"), [("float16", 6e4), ("bfloat16", 3e38), ("float32", 3e38),
                                              ("float64", 1e308)])
def test_uniform_bounds_must_not_be_further_apart_than_the_largest_number(dtype, bound):
    with pytest.raises(RuntimeError, match="to - from is out of bounds"):
        cygrad.zeros(2, dtype=getattr(cygrad, dtype)).uniform_(-bound, bound)


@pytest.mark.parametrize("algorithm", ["pcg64", "mt19937"])
def test_multinomial_of_no_rows_is_empty(algorithm):
    generator = cygrad.Generator(algorithm=algorithm)
    for replacement in (False, True):
        assert cygrad.multinomial(cygrad.ones(0, 3), 2, replacement, generator=generator).shape == (0, 2)


@pytest.mark.parametrize("dtype", [cygrad.bool, cygrad.int64, cygrad.float64])
def test_bernoulli_is_written_to_an_out_of_any_dtype(dtype):
    out = cygrad.empty(0, dtype=dtype)
    assert cygrad.bernoulli(cygrad.tensor([0.0, 1.0, 1.0]), out=out) is out
    assert out.tolist() == [0, 1, 1] and out.dtype is dtype


def test_bounds_beyond_exact_integers_warn_and_beyond_the_dtype_are_errors():
    x = cygrad.zeros(1000, dtype=cygrad.bfloat16)
    with pytest.warns(UserWarning, match="are rounded"):
        x.random_(1000, 2000)
    assert (x >= 1000).all() and (x <= 2000).all() and len(set(x.tolist())) > 50
    half = cygrad.zeros(4, dtype=cygrad.float16)
    with pytest.warns(UserWarning, match="are rounded"):
        half.random_(60000)
    for call in (lambda: half.random_(70000), lambda: half.random_(-70000, 0), lambda: half.byte().random_(257)):
        with pytest.raises(RuntimeError, match="bounds outside the range"):
            call()
