"""In-place shape changes, compared with PyTorch: values, gradients, views, errors."""

import numpy as np
import pytest

import cygrad
from tests.reference import torch

CHANGES = {
    "unsqueeze": lambda x: x.unsqueeze_(1),
    "squeeze": lambda x: x.squeeze_(),
    "squeeze of one": lambda x: x.squeeze_(0),
    "transpose": lambda x: x.transpose_(0, 2),
    "swapaxes": lambda x: x.swapaxes_(0, 1),
    "swapdims": lambda x: x.swapdims_(-1, 1),
    "as_strided": lambda x: x.as_strided_((3, 2), (2, 1), 0),
    "two": lambda x: x.unsqueeze_(0).transpose_(0, 2),
}


def both(program):
    """Return the results of a program in both libraries, as arrays."""
    return [[tensor.detach().numpy() for tensor in program(library)] for library in (cygrad, torch)]


def leaf(library):
    values = np.arange(6.0).reshape(1, 3, 2)
    return library.tensor(values, requires_grad=True)


@pytest.mark.parametrize("name", CHANGES)
def test_values_and_gradients(name):
    def program(library):
        x = leaf(library)
        y = x * 2
        assert CHANGES[name](y) is y
        assert y._version >= 1
        (y * library.arange(y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
        return y, x.grad

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", CHANGES)
def test_without_gradients(name):
    def program(library):
        x = leaf(library).detach()
        view = x[:, 1:]
        CHANGES[name](x)
        x.mul_(2)
        return x, view

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_view_becomes_another_view_of_its_base():
    def program(library):
        x = leaf(library)
        base = x * 1
        view = base[0]
        view.transpose_(0, 1)
        view.mul_(library.arange(6, dtype=x.dtype).reshape(2, 3))
        (base * base).sum().backward()
        return view, base, x.grad

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_views_made_before_keep_their_shape_and_follow_changes():
    def program(library):
        x = leaf(library)
        base = x * 1
        view = base.view(6)
        base.squeeze_(0)
        base.mul_(3)
        (view * library.arange(6, dtype=x.dtype)).sum().backward()
        return view, base, x.grad

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_matrix_is_transposed():
    def program(library):
        x = library.tensor([[1.0, 2.0, 3.0]])
        return x.t_(), library.tensor(5.0).t_()

    for ours, theirs in zip(*both(program), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(RuntimeError, match="t_: expected at most two"):
        cygrad.zeros(1, 1, 1).t_()


def test_leaf_that_requires_grad_is_refused():
    for library in (cygrad, torch):
        with pytest.raises(RuntimeError, match="leaf"):
            leaf(library).unsqueeze_(0)
    x = leaf(cygrad)
    with cygrad.no_grad():
        assert x.unsqueeze_(0).shape == (1, 1, 3, 2)
    assert x.is_leaf and x.requires_grad


def test_wrong_dimensions_change_nothing():
    x = cygrad.zeros(2, 3)
    with pytest.raises(IndexError):
        x.unsqueeze_(5)
    with pytest.raises(IndexError):
        x.transpose_(0, 2)
    assert x.shape == (2, 3) and x._version == 0
