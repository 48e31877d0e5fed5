"""Every sample of every operator under vmap equals the loop over entries."""

import warnings
import zlib

import numpy as np
import pytest

import cygrad
from cygrad.func import vmap
from cygrad.utils.pytree import tree_flatten, tree_unflatten
from tests.operator_cases import REFUSALS, ROWS, differentiable, floating, numpy_dtype, results, with_gradients
from tests.samples import COMPLEX, SAMPLES, find

# Operators whose result or shape depends on elements: refused with separate messages.
DEPENDENT = {"histc", "histogram", "histogramdd", "masked_select", "nonzero", "unique", "unique_consecutive"}
# The imaginary parts of this number of samples are enough.
COMPLEX_SAMPLES = 3


def entries(name, number, dtype, count=3):
    """The samples of that number with several sets of random elements; None if they are not meant for the dtype."""
    made = []
    for salt in range(count):
        rng = np.random.default_rng(zlib.crc32(f"{name} {number} {salt}".encode()))

        def make(shape, low=-2, high=2, rng=rng):
            values = rng.uniform(low, high, shape)
            if dtype.is_complex:
                values = values + 1j * rng.uniform(low, high, shape)
            return cygrad.tensor(np.asarray(values).astype(numpy_dtype(dtype)))

        made.append(SAMPLES[name][number](make, dtype))
    return None if made[0] is None or made[0].error is not None else made



def weights(tensor):
    """Numbers that tell elements apart."""
    values = cygrad.linspace(0.5, 1.5, max(tensor.numel(), 1), dtype=cygrad.float64)[:tensor.numel()]
    return values.reshape(tensor.shape).to(tensor.dtype)


def run(function, leaves):
    """Results as tensors, and the gradients of a weighted sum of them."""
    leaves = [leaf.detach().requires_grad_() if floating(leaf) else leaf for leaf in leaves]
    results = [result for result in tree_flatten(function(leaves))[0] if isinstance(result, cygrad.Tensor)]
    outputs = [result for result in results if result.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    gradients = []
    if outputs and wanted:
        products = [result * weights(result) for result in outputs]
        total = sum((product.abs() if product.dtype.is_complex else product).sum() for product in products)
        gradients = cygrad.autograd.grad(total, wanted, allow_unused=True, materialize_grads=True)
    return results, list(gradients)


def same(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-7, atol=1e-9)


def batch(samples, batched):
    """The tensors of all samples: those that `batched` says side by side, of the others the first."""
    leaves = [tree_flatten((list(sample.args), sample.kwargs))[0] for sample in samples]
    places = [place for place, leaf in enumerate(leaves[0]) if isinstance(leaf, cygrad.Tensor)]
    dims = {place: 0 if batched(number, leaves[0][place]) else None for number, place in enumerate(places)}
    return leaves, places, dims


def every_tensor(number, tensor):
    return True


def first_tensor(number, tensor):
    return number == 0


def all_but_the_first(number, tensor):
    return number != 0


def compare(name, number, dtype, batched):
    """Values and gradients of one sample; whether there was anything to compare."""
    samples = entries(name, number, dtype)
    if samples is None:
        return False
    function = find(name)
    _, spec = tree_flatten((list(samples[0].args), samples[0].kwargs))
    leaves, places, dims = batch(samples, batched)
    if not any(dim == 0 for dim in dims.values()):
        return False
    if any(leaf[place].shape != leaves[0][place].shape for leaf in leaves for place in places):
        return False
    together = [cygrad.stack([leaf[place] for leaf in leaves]) if dims[place] == 0 else leaves[0][place]
                for place in places]

    def whole(tensors):
        values = list(leaves[0])
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        args, kwargs = tree_unflatten(values, spec)
        return [result for result in tree_flatten(function(*args, **kwargs))[0] if isinstance(result, cygrad.Tensor)]

    def looped(tensors):
        rows = [whole([tensor[entry].clone() if dims[place] == 0 else tensor
                       for place, tensor in zip(places, tensors, strict=True)]) for entry in range(len(samples))]
        return [cygrad.stack(list(column)) for column in zip(*rows, strict=True)]

    def vmapped(tensors):
        return vmap(lambda *given: whole(given), in_dims=tuple(dims.values()))(*tensors)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected, gradients = run(looped, together)
        except REFUSALS:
            return False
        try:
            found, own = run(vmapped, together)
        except RuntimeError as error:
            if name in DEPENDENT and "vmap" in str(error):
                return False
            raise
    assert len(found) == len(expected) and len(own) == len(gradients)
    for pair in zip([*found, *own], [*expected, *gradients], strict=True):
        same(*pair)
    return True


@pytest.mark.parametrize("batched", [every_tensor, first_tensor, all_but_the_first], ids=lambda chosen: chosen.__name__)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_batch_is_its_entries(name, batched):
    for number in range(len(SAMPLES[name])):
        compare(name, number, cygrad.float64, batched)
        if name in COMPLEX and number < COMPLEX_SAMPLES:
            compare(name, number, cygrad.complex128, batched)


def compare_vectors(name, number, dtype):
    """Vector-Jacobian products of one sample, batched and one by one."""
    samples = entries(name, number, dtype, 1)
    if samples is None:
        return
    try:
        args, kwargs, leaves = with_gradients(samples[0])
        outputs = differentiable(results(find(name)(*args, **kwargs)))
    except REFUSALS:
        return
    for output in outputs:
        vectors = [weights(output), weights(output).flip(tuple(range(output.ndim))) * 2 - 1]
        try:
            single = [cygrad.autograd.grad(output, leaves, vector, retain_graph=True, allow_unused=True)
                      for vector in vectors]
        except REFUSALS:
            continue
        batch = cygrad.autograd.grad(output, leaves, cygrad.stack(vectors), retain_graph=True, allow_unused=True,
                                     is_grads_batched=True)
        for found, *expected in zip(batch, *single, strict=True):
            assert (found is None) == (expected[0] is None)
            if found is not None:
                same(found, cygrad.stack(expected))


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_several_vectors_at_once_are_those_one_by_one(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(len(SAMPLES[name])):
            compare_vectors(name, number, cygrad.float64)
            if name in COMPLEX and number < COMPLEX_SAMPLES:
                compare_vectors(name, number, cygrad.complex128)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_row_has_a_rule_for_batches(name):
    """A kind, a function next to the family, or entry by entry with the reason; the same for per-sample gradients."""
    from cygrad._core.table.operator import operators
    from cygrad._core.table.signature import PER_SAMPLE, VMAP
    from cygrad.func.batching import row_function
    row = getattr(operators, name).row
    kind, _, reason = row["vmap"].partition(": ")
    assert kind in VMAP or (kind == "loop" and len(reason.split()) > 2) or callable(row_function(kind))
    rules = row["per_sample"]
    if isinstance(rules, str):
        assert len(rules.split()) > 2
    else:
        assert all(rule in PER_SAMPLE or callable(row_function(rule)) for rule in (rules or {}).values())
