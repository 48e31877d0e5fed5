"""Results are bit-identical for any number of threads, for every operator and for training runs."""

import math
import zlib
from importlib import import_module
from itertools import chain, zip_longest

import numpy as np
import pytest

import cygrad
from tests.operator_cases import (
    REFUSALS,
    array,
    build,
    differentiable,
    numpy_dtype,
    results,
    tensors_in,
    vectors,
    with_gradients,
)
from tests.samples import COMPLEX, SAMPLES, Sample, find

pytestmark = pytest.mark.guarantee("T6")

# Families whose samples can be made larger by larger sizes; of the other families a few rows in LARGE stand for all.
FAMILIES = ("activation", "arithmetic", "combination", "comparison", "complex", "copy", "exponential", "extrema",
            "indexing", "logic", "losses", "ordering", "part", "power", "products", "reduction", "rounding", "scan",
            "trigonometric", "view")
SCALABLE = {name for family in FAMILIES for name in import_module(f"tests.samples.{family}").SAMPLES}
ENOUGH = 140_000              # elements of the largest operand: every kernel cuts them into several pieces
MOST = 700_000                # elements that a test can afford
SAMPLES_EACH = 2              # of one operator and dtype


def floats(*shape, seed=0):
    """Random numbers."""
    return cygrad.tensor(np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32))


def places(most, *shape):
    """Random positions, many of them several times."""
    return cygrad.tensor(np.random.default_rng(1).integers(0, most, shape))


def mask(*shape):
    """True at random places."""
    return cygrad.tensor(np.random.default_rng(2).random(shape) < 0.5)


# Arguments where a larger copy of a small sample would not do: indices, masks, shapes.
LARGE = {
    "__getitem__": lambda: [(floats(900, 300), places(900, 2000)), (floats(900, 300), mask(900, 300))],
    "as_strided": lambda: [(floats(400_000), (500, 700), (700, 1)), (floats(400_000), (600, 500), (2, 600))],
    "broadcast_to": lambda: [(floats(700, 1), (700, 500))],
    "cdist": lambda: [(floats(300, 40), floats(400, 40, seed=3))],
    "conv1d": lambda: [(floats(8, 4, 5000), floats(6, 4, 5, seed=3), floats(6))],
    "conv2d": lambda: [(floats(4, 8, 60, 60), floats(16, 8, 3, 3, seed=3), floats(16))],
    "conv_transpose2d": lambda: [(floats(4, 8, 60, 60), floats(8, 16, 3, 3, seed=3), floats(16))],
    "embedding": lambda: [(places(500, 4000), floats(500, 100))],
    "expand": lambda: [(floats(700, 1), (700, 500))],
    "gather": lambda: [(floats(600, 400), 0, places(600, 700, 400)), (floats(600, 400), 1, places(400, 600, 500))],
    "index_add": lambda: [(floats(300, 400), 0, places(300, 900), floats(900, 400, seed=3))],
    "index_select": lambda: [(floats(600, 400), 0, places(600, 900)), (floats(600, 400), 1, places(400, 900))],
    "masked_fill": lambda: [(floats(600, 400), mask(600, 400), 1.5), (floats(600, 400), mask(400), 1.5)],
    "masked_select": lambda: [(floats(600, 400), mask(600, 400))],
    "nonzero": lambda: [(mask(600, 400),)],
    "one_hot": lambda: [(places(50, 9000), 50)],
    "outer": lambda: [(floats(700), floats(500))],
    "scatter_add": lambda: [(floats(300, 400), 0, places(300, 900, 400), floats(900, 400, seed=3)),
                            (floats(300, 400), 1, places(400, 300, 900), floats(300, 900, seed=3))],
    "searchsorted": lambda: [(floats(100_000).sort()[0], floats(300_000, seed=4))],
    "split": lambda: [(floats(900, 400), 200), (floats(900, 400), [100, 300], 1)],
    "unflatten": lambda: [(floats(600, 400), 1, (20, 20))],
    "unique": lambda: [(places(1000, 300_000),)],
    "view_as_complex": lambda: [(floats(300, 400, 2),)],
    "where": lambda: [(mask(600, 400), floats(600, 400), floats(400, seed=5))],
}
LARGE = {name: arguments for name, arguments in LARGE.items() if name in SAMPLES}
LARGE |= {name: lambda: [(places(1000, 600, 400), places(7, 400))] for name in SAMPLES if name.startswith("bitwise")}
LARGE["bitwise_not"] = lambda: [(places(1000, 600, 400),)]


@pytest.fixture
def number_of_threads():
    """set_num_threads, undone after the test."""
    before = cygrad.get_num_threads()
    yield cygrad.set_num_threads
    cygrad.set_num_threads(before)


# ---- every operator

class TooLarge(Exception):
    """The operands of a sample, or what broadcasting makes of them, would take too long."""


def enlarged(name, number, dtype, factor):
    """A sample with every size but 0 and 1 multiplied, and the most elements that one tensor has."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {number}".encode()))
    joint, most = (), 0

    def make(shape, low=-2, high=2):
        nonlocal joint, most
        shape = tuple(size if size < 2 else size * factor for size in shape)
        most = max(most, math.prod(shape))
        # What the shapes would be broadcast to, if they were.
        joint = tuple(max(pair) for pair in zip_longest(reversed(joint), reversed(shape), fillvalue=1))[::-1]
        if max(most, math.prod(joint)) > MOST:
            raise TooLarge
        values = rng.uniform(low, high, shape)
        if dtype.is_complex:
            values = values + 1j * rng.uniform(low, high, shape)
        return cygrad.tensor(np.asarray(values).astype(numpy_dtype(dtype)))

    return SAMPLES[name][number](make, dtype), most


def large_samples(name, dtype):
    """Samples of an operator that are large enough to be split."""
    if name in LARGE:
        yield from (Sample(arguments) for arguments in LARGE[name]())
        return
    for number in range(len(SAMPLES[name]) if name in SCALABLE else 0):
        for factor in (6, 12, 25, 40, 60, 100, 160, 250, 50_000):
            try:
                sample, most = enlarged(name, number, dtype, factor)
            except (TooLarge, *REFUSALS):          # or a shape among the arguments that does not fit any more
                break
            if sample is None or sample.error is not None:
                break
            if most >= ENOUGH:
                yield sample
                break


def small_samples(name, dtype):
    """Run the samples unchanged if none can be enlarged."""
    found = (build(name, number, dtype) for number in range(len(SAMPLES[name])))
    yield from (sample for sample in found if sample is not None and sample.error is None)


def outcome(function, sample):
    """The bytes of the results and gradients."""
    cygrad.manual_seed(0)
    args, kwargs, leaves = with_gradients(sample)
    found = results(function(*args, **kwargs))
    outputs = differentiable(found)
    grads = []
    if outputs and leaves:
        grads = cygrad.autograd.grad(outputs, leaves, vectors(outputs), allow_unused=True)
    return [array(tensor).tobytes() for tensor in tensors_in([*found, *grads])]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*reduction.*batchmean", "ignore:Casting complex values to real",
                            "ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_operator(name, number_of_threads):
    number_of_threads(3)
    function = find(name)
    for dtype in (cygrad.float32, cygrad.complex64) if name in COMPLEX and name not in LARGE else (cygrad.float32,):
        done = 0
        for sample in chain(large_samples(name, dtype), small_samples(name, dtype)):
            try:
                with cygrad.threads(1):
                    expected = outcome(function, sample)
            except REFUSALS:              # the enlarged arguments do not fit each other
                continue
            assert outcome(function, sample) == expected
            done += 1
            if done == SAMPLES_EACH:
                break
        assert done or dtype.is_complex or name not in LARGE


# ---- training

def train(optimizer, **options):
    """The parameters after 200 steps, and the losses, as bytes."""
    rng = np.random.default_rng(7)
    images = cygrad.tensor(rng.standard_normal((192, 200)).astype(np.float32))
    classes = cygrad.tensor(rng.integers(0, 10, 192))
    layers = []
    for inputs, outputs in [(200, 320), (320, 130), (130, 10)]:
        layer = cygrad.nn.Linear(inputs, outputs)
        with cygrad.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(cygrad.tensor(rng.uniform(-0.06, 0.06, tuple(parameter.shape)).astype(np.float32)))
        layers += [layer, cygrad.nn.Tanh()]
    model = cygrad.nn.Sequential(*layers[:-1])
    optimizer = getattr(cygrad.optim, optimizer)(model.parameters(), **options)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = cygrad.nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    return np.array(losses).tobytes() + b"".join(p.detach().numpy().tobytes() for p in model.parameters())


@pytest.mark.parametrize(("optimizer", "options"), [
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adam", {"lr": 0.001})], ids=["momentum", "Adam"])
def test_training(optimizer, options, number_of_threads):
    found = {}
    for n in (1, 2, 3, 8):
        number_of_threads(n)
        found[n] = train(optimizer, **options)
    assert found[2] == found[1]
    assert found[3] == found[1]
    assert found[8] == found[1]
