"""Private functions of PyTorch that compute Jacobians, and variants of unique."""

import pytest

import cygrad
from cygrad.autograd import Function
from cygrad.compatibility import internal, jacobians


def pair():
    return [cygrad.rand(2, 2, dtype=cygrad.float64, requires_grad=True) for _ in range(2)]


def test_analytical_jacobians_tell_whether_backward_is_deterministic():
    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * (1 + cygrad.rand(()))
    x, y = pair()
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        found, same, shapes, dtypes = jacobians.get_analytical_jacobian((x, 3, y), 2 * x + y.t())
    assert found[0].tolist() == (2 * cygrad.eye(4)).tolist() and (same, shapes, dtypes) == (True, True, True)
    assert found[1].tolist() == cygrad.eye(4)[[0, 2, 1, 3]].tolist()
    with pytest.warns(FutureWarning):
        assert not jacobians.get_analytical_jacobian((x,), Noisy.apply(x))[1]
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1"):
        jacobians.get_analytical_jacobian((x,), x * 2, grad_out=2.0)


def test_numerical_jacobians_are_those_of_the_first_output():
    x, y = pair()
    for target, expected in ((None, [3, 1]), (y, [1])):
        with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
            found = jacobians.get_numerical_jacobian(lambda inputs: (3 * inputs[0] + inputs[1], inputs[0]), (x, y),
                                                     target, eps=1e-6)
        for jacobian, factor in zip(found, expected, strict=True):
            assert cygrad.allclose(jacobian, factor * cygrad.eye(4, dtype=cygrad.float64), atol=1e-7)


def test_the_standard_basis_is_split_by_tensors():
    first, second = jacobians._construct_standard_basis_for((cygrad.ones(2), cygrad.ones((), dtype=cygrad.float64)),
                                                            (2, 1))
    assert first.tolist() == [[1, 0], [0, 1], [0, 0]] and second.tolist() == [[0], [0], [1]]
    assert second.dtype is cygrad.float64


def test_variants_of_unique_return_empty_tensors_for_what_is_not_asked():
    x = cygrad.tensor([3.0, 1.0, 3.0], requires_grad=True)
    values, inverse = internal._unique(x)
    assert values.tolist() == [1, 3] and values.requires_grad and inverse.numel() == 0
    values, inverse, counts = internal._unique2(x, return_inverse=True, return_counts=True)
    assert inverse.tolist() == [1, 0, 1] and counts.tolist() == [1, 2]
    rows, inverse, counts = internal.unique_dim(cygrad.tensor([[1, 2], [1, 2]]), 0, return_counts=True)
    assert rows.tolist() == [[1, 2]] and inverse.numel() == 0 and counts.tolist() == [2]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("mask", [(True, True, True), (False, True, False), (True, False, True), (False, False, False)])
def test_gradients_of_a_convolution_are_those_of_backward_and_have_gradients(mask, transposed):
    x = cygrad.rand(2, 4, 5, 5, dtype=cygrad.float64, requires_grad=True)
    w = cygrad.rand(4, 2, 3, 3, dtype=cygrad.float64, requires_grad=True)
    b = cygrad.rand(4, dtype=cygrad.float64, requires_grad=True)
    options = [2, 2], [1, 1], [1, 1], transposed, [0, 0], 2
    y = cygrad.convolution(x, w, b, *options)
    gradient = cygrad.rand(*y.shape, dtype=cygrad.float64)
    expected = cygrad.autograd.grad(y, (x, w, b), gradient)
    found = internal.convolution_backward(gradient, x, w, [4], *options, mask)
    for asked, ours, wanted in zip(mask, found, expected, strict=True):
        assert ours is None if not asked else cygrad.allclose(ours, wanted)
    if mask[0]:
        assert cygrad.autograd.grad(found[0].sum(), w)[0].shape == w.shape
