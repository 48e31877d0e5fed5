"""CTC loss compared with a sum over all alignments, PyTorch, and finite differences."""

import itertools
import math

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad import nn
from cygrad.autograd import gradcheck, gradgradcheck
from tests.reference import torch
from tests.twins import agree

RANDOM = np.random.default_rng(0)


def probabilities(steps, count, classes):
    scores = RANDOM.standard_normal((steps, count, classes))
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def by_enumeration(log_probs, labels, blank=0):
    """The sum over all paths of which repetitions and then blanks are left out."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        if [label for label, _ in itertools.groupby(path) if label != blank] == list(labels):
            total += math.exp(sum(log_probs[step, label] for step, label in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [1, 1], [2, 2, 1], [1, 2, 1, 2]], ids=str)
@pytest.mark.parametrize("steps", [1, 2, 4, 5])
def test_all_alignments(labels, steps):
    log_probs = probabilities(steps, 1, 3)
    targets = cygrad.tensor([labels], dtype=cygrad.int64).reshape(1, -1)
    found = F.ctc_loss(cygrad.from_numpy(log_probs), targets, [steps], [len(labels)], reduction="none")
    np.testing.assert_allclose(found.numpy(), [by_enumeration(log_probs[:, 0], labels)], rtol=1e-12)


@pytest.mark.parametrize("blank", [0, 4])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("form", ["rows", "joined"])
def test_as_pytorch(blank, reduction, form):
    scores = RANDOM.standard_normal((8, 4, 5))
    rows = RANDOM.integers(1, 4, (4, 3))
    lengths, steps = [3, 1, 2, 3], [8, 5, 4, 7]
    targets = rows if form == "rows" else np.concatenate([row[:n] for row, n in zip(rows, lengths, strict=True)])
    found = []
    for library in cygrad, torch:
        leaf = library.from_numpy(scores.copy()).requires_grad_()
        loss = library.nn.functional.ctc_loss(
            library.nn.functional.log_softmax(leaf, 2), library.from_numpy(targets), library.tensor(steps),
            library.tensor(lengths), blank=blank, reduction=reduction)
        (loss * loss).sum().backward()
        found.append([loss, leaf.grad])
    agree(*found)


def test_derivatives():
    log_probs = cygrad.from_numpy(probabilities(5, 2, 4)).requires_grad_()

    def function(log_probs):
        return F.ctc_loss(log_probs, cygrad.tensor([[1, 1], [2, 3]]), [5, 3], [2, 1], reduction="none")

    assert gradcheck(function, (log_probs,))
    assert gradgradcheck(function, (log_probs,))


@pytest.mark.parametrize("labels", [15, 16, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_more_states_than_a_block(labels, dtype):
    scores = RANDOM.standard_normal((100, 3, 7)).astype(dtype)
    targets = RANDOM.integers(1, 7, (3, labels))
    found = []
    for library in cygrad, torch:
        leaf = library.from_numpy(scores.copy()).requires_grad_()
        loss = library.nn.functional.ctc_loss(
            leaf.log_softmax(2), library.from_numpy(targets), library.tensor([100, 95, 1]),
            library.tensor([labels, labels - 1, 1]), reduction="sum")
        loss.backward()
        found.append([loss.detach().numpy(), leaf.grad.numpy()])
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_impossible_classes_and_nan():
    log_probs = probabilities(4, 2, 3)
    log_probs[1, 0, :2] = -math.inf
    log_probs[2, 1, 1] = math.nan
    leaf = cygrad.from_numpy(log_probs).requires_grad_()
    losses = F.ctc_loss(leaf, cygrad.tensor([[2, 1], [1, 2]]), [4, 4], [2, 2], reduction="none")
    np.testing.assert_allclose(losses[0].item(), by_enumeration(log_probs[:, 0], [2, 1]), rtol=1e-12)
    assert math.isnan(losses[1].item())
    losses[0].backward()
    assert leaf.grad[:, 0].isfinite().all().item()
    assert F.ctc_loss(cygrad.zeros(0, 1, 3), cygrad.zeros(1, 0, dtype=cygrad.int64), [0], [0]).item() == 0


def test_no_alignment():
    log_probs = cygrad.from_numpy(probabilities(2, 2, 3)).requires_grad_()
    targets = cygrad.tensor([[1, 1], [1, 2]])
    losses = F.ctc_loss(log_probs, targets, [2, 2], [2, 2], reduction="none")
    assert losses[0].item() == math.inf
    assert math.isfinite(losses[1].item())
    losses[0].backward()
    assert (log_probs.grad == 0).all().item()
    assert F.ctc_loss(log_probs, targets, [2, 2], [2, 2], reduction="none", zero_infinity=True)[0].item() == 0
    assert F.ctc_loss(log_probs, targets, [0, 2], [0, 2], reduction="none")[0].item() == 0
    assert F.ctc_loss(log_probs, targets, [0, 2], [1, 2], reduction="none")[0].item() == math.inf


def test_one_sample_and_the_module():
    log_probs = cygrad.from_numpy(probabilities(5, 1, 4))
    expected = F.ctc_loss(log_probs, cygrad.tensor([[1, 2]]), [5], [2])
    loss = nn.CTCLoss(reduction="none")
    single = loss(log_probs.squeeze(1), cygrad.tensor([1, 2]), cygrad.tensor(5), cygrad.tensor(2))
    assert single.shape == ()
    assert single.item() / 2 == pytest.approx(expected.item())


LOG = cygrad.zeros(4, 1, 3)


@pytest.mark.parametrize(("match", "arguments"), [
    (r"\(T, N, C\)", (LOG[0, 0], cygrad.tensor([[1]]), [4], [1])),
    ("must be integral", (LOG, cygrad.ones(1, 1), cygrad.tensor([4.0]), [1])),
    ("targets must be of shape", (LOG, cygrad.tensor([[1], [2]]), [4], [1])),
    ("blank must be in label range", (LOG, cygrad.tensor([[1]]), [4], [1], 3)),
    ("size batch_size", (LOG, cygrad.tensor([[1]]), [4, 4], [1])),
    ("input_lengths to have values from 0 to 4", (LOG, cygrad.tensor([[1]]), [5], [1])),
    ("target_lengths to have values from 0 to 1", (LOG, cygrad.tensor([[1]]), [4], [2])),
    ("as many targets", (LOG, cygrad.tensor([1, 2]), [4], [1])),
    ("other than the blank", (LOG, cygrad.tensor([[3]]), [4], [1])),
    ("other than the blank", (LOG, cygrad.tensor([[0]]), [4], [1])),
])
def test_errors(match, arguments):
    with pytest.raises(RuntimeError, match=match):
        F.ctc_loss(*arguments)
