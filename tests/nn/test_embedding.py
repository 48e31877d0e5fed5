"""Embedding and EmbeddingBag compared with PyTorch."""

import math

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn
from cygrad.autograd import gradcheck, gradgradcheck
from tests.reference import torch
from tests.twins import agree, both, gradients_agree, twins

RANDOM = np.random.default_rng(0)
INDEX = np.array([3, 1, 3, 0, 4, 3, 1])
OFFSETS = np.array([0, 3, 3, 5])
OPTIONS = [{}, {"padding_idx": 3}, {"padding_idx": -2, "scale_grad_by_freq": True}, {"max_norm": 1.0},
           {"max_norm": 0.7, "norm_type": 1.0, "scale_grad_by_freq": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows(options):
    ours, theirs = twins("Embedding", 5, 3, **options)
    assert repr(ours) == repr(theirs)
    index = both(INDEX.reshape(1, 7), False)
    found, expected = ours(index[0]), theirs(index[1])
    agree(found, expected, 1e-7 if "max_norm" in options else 1e-10)
    agree(ours.weight, theirs.weight, 1e-7 if "max_norm" in options else 1e-10)
    gradients_agree((found, ours), (expected, theirs), tolerance=1e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [*OPTIONS[:2], *OPTIONS[3:4], {"scale_grad_by_freq": True}], ids=str)
@pytest.mark.parametrize("form", ["rows", "offsets", "last"])
def test_bags(mode, options, form):
    if mode == "max" and "scale_grad_by_freq" in options:
        with pytest.raises(ValueError, match="mode 'max'"):
            nn.EmbeddingBag(5, 3, mode=mode, **options)(cygrad.tensor([[1]]))
        return
    ours, theirs = twins("EmbeddingBag", 5, 3, mode=mode, include_last_offset=form == "last", **options)
    assert repr(ours) == repr(theirs)
    index = both(INDEX if form != "rows" else INDEX[:6].reshape(3, 2), False)
    offsets = [] if form == "rows" else [both(np.append(OFFSETS, 7) if form == "last" else OFFSETS, False)]
    found, expected = (module(index[i], *(pair[i] for pair in offsets)) for i, module in enumerate((ours, theirs)))
    tolerance = 1e-6 if "max_norm" in options else 1e-10
    agree(found, expected, tolerance)
    if "scale_grad_by_freq" not in options:          # for which PyTorch divides by counts of other rows
        gradients_agree((found, ours), (expected, theirs), tolerance=tolerance)


def test_gradients_divided_by_frequency():
    table = cygrad.ones(5, 3, requires_grad=True)
    F.embedding_bag(cygrad.from_numpy(INDEX), table, cygrad.from_numpy(OFFSETS), mode="sum",
                    scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1] * 3, [1] * 3, [0] * 3, [1] * 3, [1] * 3]


@pytest.mark.parametrize("padding", [None, 3])
def test_weights_of_samples(padding):
    table, factors = both(RANDOM.standard_normal((5, 3))), both(RANDOM.standard_normal(7))
    index, offsets = both(INDEX, False), both(OFFSETS, False)
    found, expected = (functional.embedding_bag(index[i], table[i], offsets[i], mode="sum", padding_idx=padding,
                                                per_sample_weights=factors[i])
                       for i, functional in enumerate((F, torch.nn.functional)))
    agree(found, expected)
    gradients_agree((found, None), (expected, None), [table, factors])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_derivatives(mode):
    table = cygrad.randn(5, 3, dtype=cygrad.float64, requires_grad=True)

    def function(table):
        return F.embedding_bag(cygrad.from_numpy(INDEX), table, cygrad.from_numpy(OFFSETS), mode=mode, padding_idx=1)

    assert gradcheck(function, (table,))
    assert gradgradcheck(function, (table,))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("features", [1, 70, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_bags_of_wide_rows(mode, features, dtype):
    table = RANDOM.standard_normal((40, features)).astype(dtype)
    index, offsets = RANDOM.integers(0, 40, 400), np.array([0, 0, 150, 151, 390])
    tables = both(table), both(np.asfortranarray(table))
    grad = RANDOM.standard_normal((5, features)).astype(dtype)
    for ours, theirs in tables:
        found = F.embedding_bag(cygrad.from_numpy(index).int(), ours, cygrad.from_numpy(offsets).int(), mode=mode,
                                padding_idx=7)
        expected = torch.nn.functional.embedding_bag(torch.from_numpy(index), theirs, torch.from_numpy(offsets),
                                                     mode=mode, padding_idx=7)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance)
        found.backward(cygrad.from_numpy(grad))
        expected.backward(torch.from_numpy(grad))
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=tolerance, atol=10 * tolerance)


def test_second_derivatives_of_weights():
    table, factors = (cygrad.randn(*shape, dtype=cygrad.float64, requires_grad=True) for shape in ((5, 3), (7,)))

    def function(table, factors):
        return F.embedding_bag(cygrad.from_numpy(INDEX), table, cygrad.from_numpy(OFFSETS), mode="sum",
                               per_sample_weights=factors, padding_idx=1)

    assert gradcheck(function, (table, factors))
    assert gradgradcheck(function, (table, factors))


def test_maxima_hand_on_nan():
    table = cygrad.tensor([[1.0], [math.nan], [-math.inf]])
    index = cygrad.tensor([[0, 1], [1, 0], [2, 2]])
    np.testing.assert_array_equal(F.embedding_bag(index, table, mode="max"), [[math.nan], [math.nan], [-math.inf]])


def test_short_floats_of_bags():
    table = RANDOM.standard_normal((5, 3))
    for mode in ("sum", "mean", "max"):
        short = F.embedding_bag(cygrad.from_numpy(INDEX), cygrad.from_numpy(table).half(),
                                cygrad.from_numpy(OFFSETS), mode=mode)
        assert short.dtype == cygrad.float16
        long = F.embedding_bag(cygrad.from_numpy(INDEX), cygrad.from_numpy(table), cygrad.from_numpy(OFFSETS),
                               mode=mode)
        np.testing.assert_allclose(short.double().numpy(), long.numpy(), atol=1e-2)


def test_empty_bags():
    table = cygrad.tensor([[-1.0], [-2.0]], requires_grad=True)
    for mode in ("sum", "mean", "max"):
        found = F.embedding_bag(cygrad.tensor([1, 0]), table, cygrad.tensor([0, 0, 2, 2]), mode=mode)
        assert found[[0, 2, 3]].tolist() == [[0], [0], [0]]
        only_padding = F.embedding_bag(cygrad.tensor([[1, 1]]), table, mode=mode, padding_idx=1)
        assert only_padding.tolist() == [[0]]
        assert F.embedding_bag(cygrad.zeros(0, 2, dtype=cygrad.int64), table, mode=mode).shape == (0, 1)
        assert F.embedding_bag(cygrad.zeros(2, 0, dtype=cygrad.int64), table, mode=mode).tolist() == [[0], [0]]


def test_given_tables():
    table = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    module = nn.Embedding.from_pretrained(table, padding_idx=0)
    assert module(cygrad.tensor([1, 0])).tolist() == [[3, 4], [1, 2]]
    assert not module.weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum")
    assert bag(cygrad.tensor([[1, 0]])).tolist() == [[4, 6]]
    assert bag.weight.requires_grad
    assert (nn.EmbeddingBag(3, 2, padding_idx=1).weight[1] == 0).all().item()
    with pytest.raises(AssertionError, match="does not match num_embeddings"):
        nn.Embedding(3, 2, _weight=table)


def test_table_must_be_a_leaf_to_be_changed():
    table = cygrad.ones(2, 2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="must be a leaf"):
        F.embedding(cygrad.tensor([0]), table, max_norm=1.0)


TABLE = cygrad.ones(3, 2)


@pytest.mark.parametrize(("error", "match", "arguments", "options"), [
    (ValueError, "unknown mode", ([[1]], TABLE), {"mode": "min"}),
    (ValueError, "must be a matrix", ([[1]], TABLE[0]), {}),
    (ValueError, "whose rows are the bags", ([[1]], TABLE, [0]), {}),
    (ValueError, "vector of integers", ([1], TABLE), {}),
    (ValueError, "vector or a matrix", ([[[1]]], TABLE), {}),
    (RuntimeError, r"offsets\[0\] has to be 0", ([1], TABLE, [1]), {}),
    (RuntimeError, r"offsets\[0\] has to be 0", ([1, 2], TABLE, [0, 3]), {}),
    (ValueError, "at least one offset", ([1], TABLE, []), {"include_last_offset": True}),
    (ValueError, "must have the shape of the input", ([[1]], TABLE), {"mode": "sum", "per_sample_weights":
    cygrad.ones(1)}),
    (NotImplementedError, "only supported for mode='sum'", ([[1]], TABLE), {"per_sample_weights": cygrad.ones(1, 1)}),
    (AssertionError, "must be within", ([[1]], TABLE), {"padding_idx": 3}),
    (RuntimeError, "index 3|range", ([[3]], TABLE), {}),
])
def test_errors(error, match, arguments, options):
    arguments = [cygrad.tensor(value, dtype=cygrad.int64) if isinstance(value, list) else value for value in arguments]
    with pytest.raises(error, match=match):
        F.embedding_bag(*arguments, **options)


def test_a_gradient_of_bags_has_the_dtype_of_the_table():
    """Saved tensors replaced by hooks are not read out of bounds."""
    products = cygrad.operators.operators.embedding_bag_products
    table, index, offsets = cygrad.ones(5, 3), cygrad.tensor([1, 2]), cygrad.tensor([0, 1])
    assert products(cygrad.ones(2, 3), table, index, offsets, False, False, -1).tolist() == [3.0, 3.0]
    for dtype in (cygrad.float64, cygrad.int8):
        with pytest.raises(RuntimeError, match="dtype of the table"):
            products(cygrad.ones(2, 3, dtype=dtype), table, index, offsets, False, False, -1)


def test_sparse_gradient_of_a_table_without_columns():
    table = nn.Embedding(3, 0, sparse=True)
    for shape in ((2,), (0,), (0, 4)):
        table.weight.grad = None
        table(cygrad.zeros(shape, dtype=cygrad.int64)).sum().backward()
        assert table.weight.grad.to_dense().shape == (3, 0)
