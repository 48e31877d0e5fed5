"""Elements overwritten by a non-differentiable operation get no gradient."""

import pytest

import cygrad
from cygrad.autograd import forward_ad, grad

COMPARISONS = ["gt_", "lt_", "ge_", "le_", "eq_", "ne_", "greater_", "less_", "not_equal_", "logical_and_",
               "logical_or_", "logical_xor_"]
CHANGES = {name: lambda t, name=name: getattr(t, name)(cygrad.zeros(2)) for name in COMPARISONS if
           hasattr(cygrad.Tensor, name)}
CHANGES |= {f"{name} of a number": lambda t, name=name: getattr(t, name)(0.0) for name in COMPARISONS[:6]}
CHANGES |= {name: lambda t, name=name: getattr(t, name)() for name in (
    "logical_not_", "zero_", "normal_", "uniform_", "bernoulli_", "exponential_", "random_", "sign_", "floor_")}


@pytest.mark.guarantee("I1")
@pytest.mark.parametrize("name", CHANGES)
def test_a_write_without_derivative_cuts_gradients(name):
    x = cygrad.ones(2, requires_grad=True)
    y = x * 3
    former = y.grad_fn
    assert CHANGES[name](y) is y
    assert y._version == 1
    assert y.requires_grad
    assert y.grad_fn is not former
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


@pytest.mark.guarantee("I3")
@pytest.mark.parametrize("name", CHANGES)
def test_and_of_a_region_only_there(name):
    x = cygrad.ones(3, requires_grad=True)
    y = x * 3
    CHANGES[name](y[1:])
    assert y.grad_fn.name() == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [3, 0, 0]


@pytest.mark.guarantee("I1")
@pytest.mark.parametrize("name", CHANGES)
def test_tangents_end_there_too(name):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(cygrad.ones(2), cygrad.ones(2)) * 3
        CHANGES[name](dual)
        tangent = forward_ad.unpack_dual(dual).tangent
        assert tangent is None or tangent.tolist() == [0, 0]


@pytest.mark.guarantee("I1")
def test_gradients_of_what_was_cut_can_be_asked_for():
    x = cygrad.ones(2, requires_grad=True)
    threshold = cygrad.zeros(2, dtype=cygrad.float64, requires_grad=True)
    y = (x * 3).gt_(threshold)
    first, second = grad(y.sum(), (x, threshold), create_graph=True)
    assert first.tolist() == [0, 0]
    assert second.tolist() == [0, 0]
    assert second.dtype == cygrad.float64


@pytest.mark.guarantee("I1")
def test_masks_and_integers_require_no_grad():
    x = cygrad.ones(2, requires_grad=True)
    for dtype in (cygrad.bool, cygrad.int64):
        y = cygrad.zeros(2, dtype=dtype)
        assert not y.gt_(x).requires_grad
        assert not y.logical_or_(x).requires_grad


@pytest.mark.guarantee("I1")
def test_no_recording_no_history():
    x = cygrad.ones(2, requires_grad=True)
    y = x * 3
    former = y.grad_fn
    with cygrad.no_grad():
        y.gt_(0)
    assert y.grad_fn is former
    with pytest.raises(RuntimeError, match="leaf"):
        x.gt_(0)


@pytest.mark.guarantee("I1")
@pytest.mark.parametrize("shift", ["__ilshift__", "__irshift__"])
def test_shifts_in_place(shift):
    x = y = cygrad.tensor([4, 8])
    if shift == "__ilshift__":
        x <<= 1
    else:
        x >>= 1
    assert x is y
    assert x._version == 1
    assert x.tolist() == ([8, 16] if shift == "__ilshift__" else [2, 4])
    assert getattr(x, shift)(None) is NotImplemented
    assert getattr(x, shift)("1") is NotImplemented
    with pytest.raises(NotImplementedError, match="shift"):
        getattr(cygrad.ones(2), shift)(1)
