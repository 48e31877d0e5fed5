"""AdaptiveLogSoftmaxWithLoss compared with PyTorch, and consistency with its log-probabilities."""

import numpy as np
import pytest

import cygrad
from cygrad import nn
from tests.twins import agree, both, gradients_agree, twins

RANDOM = np.random.default_rng(0)
TARGET = np.array([0, 11, 4, 7, 8, 3, 1])


@pytest.mark.parametrize("options", [{}, {"div_value": 2.0, "head_bias": True}], ids=str)
@pytest.mark.parametrize("target", [TARGET, TARGET[:1], np.array([11, 10])], ids=["all", "head", "tail"])
def test_as_pytorch(options, target):
    ours, theirs = twins("AdaptiveLogSoftmaxWithLoss", 16, 12, [4, 8], **options)
    assert repr(ours) == repr(theirs)
    x, target = both(RANDOM.standard_normal((len(target), 16))), both(target, False)
    found, expected = ours(x[0], target[0]), theirs(x[1], target[1])
    agree(found, expected)
    gradients_agree((found.loss, None), (expected.loss, None), [x])
    agree(ours.head.weight.grad, theirs.head.weight.grad)
    agree(ours.log_prob(x[0]), theirs.log_prob(x[1]))
    assert ours.predict(x[0]).tolist() == theirs.predict(x[1]).tolist()


def test_probabilities():
    model = nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 5], dtype=cygrad.float64)
    x = cygrad.randn(4, 16, dtype=cygrad.float64)
    logarithms = model.log_prob(x)
    np.testing.assert_allclose(logarithms.exp().sum(1).tolist(), 1)
    target = cygrad.tensor([1, 9, 3, 6])
    output, loss = model(x, target)
    agree(output, logarithms.gather(1, target.unsqueeze(1)).squeeze(1))
    assert loss.item() == pytest.approx(-output.mean().item())
    single = model(x[1], target[1])
    assert single.output.item() == pytest.approx(output[1].item())
    model.reset_parameters()
    assert not cygrad.equal(model.log_prob(x), logarithms)


def test_errors():
    for cutoffs in ([], [0, 3], [3, 3], [5, 2], [10], [1.5]):
        with pytest.raises(ValueError, match="cutoff"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs)
    model = nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 5])
    with pytest.raises(RuntimeError, match=r"range \[0, 9\], but values in range \[1, 10\]"):
        model(cygrad.ones(2, 16), cygrad.tensor([1, 10]))
    with pytest.raises(RuntimeError, match="one target for each row"):
        model(cygrad.ones(2, 16), cygrad.tensor([1]))
