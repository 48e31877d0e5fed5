"""Initializers: distributions, and no trace in the graph."""

import math

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.nn import init


def drawn(function, *args, shape=(400, 300), **options):
    cygrad.manual_seed(0)
    tensor = nn.Parameter(cygrad.empty(*shape))
    assert function(tensor, *args, **options) is tensor
    assert tensor.is_leaf
    assert tensor.requires_grad
    return tensor.detach().numpy()


def test_constants():
    assert (drawn(init.zeros_) == 0).all()
    assert (drawn(init.ones_) == 1).all()
    assert (drawn(init.constant_, 2.5) == 2.5).all()
    assert (drawn(init.eye_, shape=(2, 3)) == np.eye(2, 3)).all()
    with pytest.raises(ValueError, match="expected a matrix"):
        init.eye_(cygrad.empty(3))


@pytest.mark.parametrize(("function", "args", "options", "bound"), [
    (init.uniform_, (-2.0, 2.0), {}, 2.0),
    (init.xavier_uniform_, (), {}, math.sqrt(6 / 700)),
    (init.xavier_uniform_, (2.0,), {}, 2 * math.sqrt(6 / 700)),
    (init.kaiming_uniform_, (), {}, math.sqrt(6 / 300)),
    (init.kaiming_uniform_, (), {"a": math.sqrt(5)}, 1 / math.sqrt(300)),
    (init.kaiming_uniform_, (), {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(6 / 400)),
])
def test_uniform(function, args, options, bound):
    values = drawn(function, *args, **options)
    assert values.min() >= -bound
    assert values.max() <= bound
    assert abs(values.mean()) < 0.02 * bound
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.01)


@pytest.mark.parametrize(("function", "args", "options", "deviation"), [
    (init.normal_, (0.0, 3.0), {}, 3.0),
    (init.xavier_normal_, (), {}, math.sqrt(2 / 700)),
    (init.kaiming_normal_, (), {}, math.sqrt(2 / 300)),
    (init.kaiming_normal_, (), {"nonlinearity": "tanh"}, 5 / 3 / math.sqrt(300)),
])
def test_normal(function, args, options, deviation):
    values = drawn(function, *args, **options)
    assert abs(values.mean()) < 0.02 * deviation
    assert values.std() == pytest.approx(deviation, rel=0.01)


def test_truncated_normal():
    values = drawn(init.trunc_normal_, 0.0, 1.0, -0.5, 1.0)
    assert values.min() >= -0.5
    assert values.max() <= 1
    assert (values > 0).mean() == pytest.approx(0.3413 / (0.3413 + 0.1915), abs=0.01)
    with pytest.raises(ValueError, match="interval is empty"):
        init.trunc_normal_(cygrad.empty(2), a=1.0, b=1.0)
    far = drawn(init.trunc_normal_, 0.0, 1.0, 30.0, 31.0, shape=(2,))
    assert ((far >= 30) & (far <= 31)).all()


def test_kernels_count_in_the_fans():
    assert init.fans(cygrad.empty(5, 4, 3, 2), "fans") == (24, 30)
    with pytest.raises(ValueError, match="at least two dimensions"):
        init.xavier_normal_(cygrad.empty(3))


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("leaky_relu", 1.0) == pytest.approx(1.0)
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match="unknown nonlinearity"):
        init.calculate_gain("other")
    with pytest.raises(ValueError, match="must be a number"):
        init.calculate_gain("leaky_relu", "a")
    with pytest.raises(ValueError, match="unknown mode"):
        init.kaiming_normal_(cygrad.empty(2, 2), mode="other")


def test_nothing_to_fill():
    with pytest.warns(UserWarning, match="nothing is initialized"):
        init.kaiming_uniform_(cygrad.empty(0, 3))


def test_linear_starts_as_documented():
    cygrad.manual_seed(0)
    layer = nn.Linear(100, 500)
    for values in layer.weight.detach().numpy(), layer.bias.detach().numpy():
        assert abs(values).max() <= 0.1
        assert values.std() == pytest.approx(0.1 / math.sqrt(3), rel=0.05)
    assert nn.Linear(3, 2, bias=False).bias is None
    assert nn.Linear(3, 2, dtype=cygrad.float64).weight.dtype == cygrad.float64


def test_embedding_starts_normal_with_zero_padding():
    cygrad.manual_seed(0)
    table = nn.Embedding(300, 100, padding_idx=-1)
    assert table.padding_idx == 299
    assert table.weight[299].abs().sum().item() == 0
    assert table.weight[:299].detach().numpy().std() == pytest.approx(1, rel=0.02)
    assert table.weight.is_leaf


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (5, 2, 2), (0, 2)])
def test_orthogonal(shape):
    tensor = init.orthogonal_(cygrad.empty(shape, dtype=cygrad.float64), gain=2)
    matrix = tensor.reshape(shape[0], math.prod(shape[1:])).numpy()
    product = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)
    # All orthogonal matrices are equally likely: the diagonal has both signs.
    if shape == (3, 3):
        signs = {init.orthogonal_(cygrad.empty(2, 2))[0, 0].sign().item() for _ in range(50)}
        assert signs == {-1, 1}
    with pytest.raises(ValueError, match="at least two dimensions"):
        init.orthogonal_(cygrad.ones(2))


def test_dirac():
    weight = init.dirac_(cygrad.ones(4, 2, 3), groups=2)
    x = cygrad.randn(1, 4, 5)
    assert (nn.functional.conv1d(x, weight, padding=1, groups=2) == x).all().item()
    assert init.dirac_(cygrad.ones(3, 5, 3, 1)).sum().item() == 3
    with pytest.raises(ValueError, match="3 to 5"):
        init.dirac_(cygrad.ones(2, 2))
    with pytest.raises(ValueError, match="groups must divide"):
        init.dirac_(cygrad.ones(3, 2, 3), groups=2)


def test_sparse():
    tensor = init.sparse_(cygrad.ones(10, 6), 0.25, std=2.0)
    assert (tensor == 0).sum(0).tolist() == [3] * 6
    assert 1 < tensor[tensor != 0].std().item() < 3
    with pytest.raises(ValueError, match="must be a matrix"):
        init.sparse_(cygrad.ones(2), 0.5)


def test_names_without_underscore_are_old():
    with pytest.warns(FutureWarning, match=r"nn\.init\.eye is deprecated; use nn\.init\.eye_"):
        assert init.eye(cygrad.zeros(2, 2)).tolist() == [[1, 0], [0, 1]]
