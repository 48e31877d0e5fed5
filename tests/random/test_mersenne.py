"""The algorithm "mt19937" gives PyTorch's numbers and leaves the same state."""

import importlib
import pickle

import numpy as np
import pytest

import cygrad
from cygrad._core.creation.factories import RandomStream

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def algorithm():
    cygrad.random.set_algorithm("mt19937")
    yield
    cygrad.random.set_algorithm("pcg64")


def data(library):
    return importlib.import_module(f"{library.__name__}.utils.data")


def batches(t):
    d = data(t)
    return t.cat([batch[0] for batch in d.DataLoader(d.TensorDataset(t.arange(20)), batch_size=4, shuffle=True)])


def encoder_layer(t):
    """Dropout draws for the result of attention in memory order."""
    return t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)


WEIGHTS = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]
EXACT = {
    "rand": lambda t: t.rand(5, 3),
    "rand float64": lambda t: t.rand(5, dtype=t.float64),
    "rand complex": lambda t: t.rand(3, dtype=t.complex64),
    "nothing": lambda t: t.rand(0),
    "uniform_": lambda t: t.empty(50).uniform_(-0.3, 0.7),
    "randint": lambda t: t.randint(-5, 10, (9,)),
    "randint to floats": lambda t: t.randint(0, 10, (9,), dtype=t.float32),
    "randint of a range just below that of two words": lambda t: t.randint(0, 2**28 - 1, (9,)),
    "randint of a wide range": lambda t: t.randint(-2**40, 2**40, (9,)),
    "randperm": lambda t: t.randperm(1000),
    "randperm of 0": lambda t: t.randperm(0),
    "random_": lambda t: t.empty(5, dtype=t.int64).random_(),
    "random_ of floats": lambda t: t.empty(5).random_(),
    "random_ of a range": lambda t: t.empty(5).random_(3, 9),
    "bernoulli_": lambda t: t.empty(1000).bernoulli_(0.3),
    "bernoulli": lambda t: t.bernoulli(t.full((300,), 0.4)),
    "bernoulli float64": lambda t: t.bernoulli(t.full((300,), 0.4, dtype=t.float64)),
    "multinomial": lambda t: t.multinomial(t.tensor(WEIGHTS), 1),
    "multinomial without replacement": lambda t: t.multinomial(t.tensor(WEIGHTS), 3),
    "multinomial with replacement": lambda t: t.multinomial(t.tensor(WEIGHTS), 8, replacement=True),
    **{f"poisson {dtype}": lambda t, dtype=dtype: t.poisson(t.tensor(
        [[0.0, 0.5, 9.99, 10.0, 50.0, 1e6]] * 200, dtype=getattr(t, dtype))) for dtype in ("float32", "float64")},
    **{f"binomial {dtype}": lambda t, dtype=dtype: t.binomial(*t.tensor(
        [[[5.0, 10, 0, 7, 7, 20, 100, 100, 1000, 1e5, 1e6, 40]] * 200,
         [[0.3, 0.9, 0.3, 0.0, 1.0, 0.5, 0.4, 0.7, 0.03, 0.3, 0.7, 0.999]] * 200], dtype=getattr(t, dtype)))
       for dtype in ("float32", "float64")},
    "samples of Poisson and Binomial": lambda t: t.distributions.Poisson(t.tensor([1.0, 20.0])).sample((9,))
    + t.distributions.Binomial(10, t.tensor([0.1, 0.8])).sample((9,)),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(50, 20), 0.3),
    "dropout with p=0": lambda t: t.nn.functional.dropout(t.ones(50, 20), 0.0),
    "dropout of all": lambda t: t.nn.functional.dropout(t.ones(50, 20), 1.0),
    "dropout2d": lambda t: t.nn.functional.dropout2d(t.ones(5, 20, 3, 3), 0.3),
    "Linear": lambda t: t.nn.Linear(7, 5).weight,
    "Conv2d": lambda t: t.nn.Conv2d(3, 5, 3).bias,
    "LSTM": lambda t: t.nn.LSTM(3, 5, 2, bidirectional=True).weight_hh_l1_reverse,
    "MultiheadAttention": lambda t: t.nn.MultiheadAttention(8, 2).in_proj_weight,
    "TransformerEncoderLayer": lambda t: t.nn.TransformerEncoderLayer(8, 2, 16).linear2.weight,
    "DataLoader": batches,
    "random_split": lambda t: t.tensor(list(data(t).random_split(range(20), [0.5, 0.5])[0])),
    **{f"randn of {n}": lambda t, n=n: t.randn(n) for n in (1, 3, 15, 16, 17, 31, 100, 10001)},
    **{f"randn float64 of {n}": lambda t, n=n: t.randn(n, dtype=t.float64) for n in (1, 3, 15, 16, 17, 100)},
    "randn complex": lambda t: t.randn(4, 5, dtype=t.complex64),
    "few randn complex": lambda t: t.randn(3, dtype=t.complex64),
    "normal_": lambda t: t.empty(3, 7).normal_(2, 0.5),
    "few normal_": lambda t: t.empty(5).normal_(2, 0.5),
    "normal of tensors": lambda t: t.normal(t.zeros(20), t.ones(20)),
    "randn_like": lambda t: t.randn_like(t.ones(4, 4)),
    "exponential_": lambda t: t.empty(100).exponential_(2.0),
    "Embedding": lambda t: t.nn.Embedding(30, 5).weight,
    "xavier_normal_": lambda t: t.nn.init.xavier_normal_(t.empty(5, 5)),
    "normal_ of a part": lambda t: t.zeros(6, 8)[:, ::2].normal_(),
    "normal_ transposed": lambda t: t.zeros(6, 8).t().normal_(),
    "uniform_ transposed": lambda t: t.empty(4, 5).t().uniform_(-2, 1),
    "uniform_ float64": lambda t: t.empty(50, dtype=t.float64).uniform_(-0.3, 1.2),
    "WeightedRandomSampler": lambda t: t.tensor(list(data(t).WeightedRandomSampler([0.1, 0.5, 0.4], 10))),
}
ROUNDED = {
    "orthogonal_": lambda t: t.nn.init.orthogonal_(t.empty(5, 5)),
    "trunc_normal_": lambda t: t.nn.init.trunc_normal_(t.empty(5, 5)),
    "gumbel_softmax": lambda t: t.nn.functional.gumbel_softmax(t.ones(5, 5)),
    "attention of batches": lambda t: encoder_layer(t)(t.randn(3, 5, 8)),
    "alpha_dropout": lambda t: t.nn.functional.alpha_dropout(t.ones(50, 20), 0.3, True),
}


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3, -1])
@pytest.mark.parametrize("draw", [*EXACT, *ROUNDED])
def test_the_same_numbers(draw, seed):
    torch.manual_seed(seed)
    cygrad.manual_seed(seed)
    make = EXACT.get(draw) or ROUNDED[draw]
    for _ in range(3):
        theirs, ours = make(torch).detach().numpy(), make(cygrad).detach().numpy()
        if draw in EXACT:
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert cygrad.rand(1).item() == torch.rand(1).item()


def test_states():
    generator = cygrad.Generator(algorithm="mt19937").manual_seed(3)
    cygrad.randn(3, generator=generator)                     # one number waits
    state = generator.get_state()
    expected = cygrad.randn(4, generator=generator)
    generator.set_state(state)
    for twin in generator.clone_state(), pickle.loads(pickle.dumps(generator)), generator:
        assert twin.initial_seed() == 3
        assert cygrad.equal(cygrad.randn(4, generator=twin), expected)
    with pytest.raises(RuntimeError, match="not a state of this generator"):
        generator.set_state(cygrad.Generator(algorithm="pcg64").get_state())
    with pytest.raises(ValueError, match="unknown algorithm"):
        cygrad.random.set_algorithm("xorshift")


def test_the_algorithm_is_that_of_new_generators():
    assert cygrad.Generator().algorithm == "mt19937"
    cygrad.random.set_algorithm("pcg64")
    assert cygrad.Generator().algorithm == "pcg64"


@pytest.mark.parametrize(("method", "dtypes", "arguments"), [
    ("uniform", "fd", (0.0, 1.0)), ("normal", "fd", (0.0, 1.0, True)), ("exponential", "d", (1.0,)),
    ("integers", "q", (0, 9, False)), ("permutation", "q", (False,)),
])
def test_streams_refuse_arrays_of_other_formats_and_layouts(method, dtypes, arguments):
    fill = getattr(RandomStream(1), method)
    for dtype in "fdqiB":
        if dtype in dtypes:
            fill(np.zeros(20, dtype), *arguments)
            with pytest.raises((ValueError, BufferError), match="contiguous"):
                fill(np.zeros(40, dtype)[::2], *arguments)
        else:
            with pytest.raises(TypeError, match="expected an array of one of the formats"):
                fill(np.zeros(20, dtype), *arguments)


def test_counts_need_one_parameter_for_each():
    stream, out = RandomStream(1), np.zeros(4)
    with pytest.raises(ValueError, match=r"poisson: expected 4 parameters \(got 3\)"):
        stream.poisson(out, np.ones(3))
    with pytest.raises(ValueError, match=r"binomial: expected 4 parameters \(got 5\)"):
        stream.binomial(out, np.ones(4), np.ones(5), False)
    with pytest.raises(TypeError, match="got float32"):
        stream.binomial(out, np.ones(4, np.float32), np.ones(4), False)
