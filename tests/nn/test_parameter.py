"""Parameter: a leaf whose operations return plain tensors."""

import copy
import pickle

import pytest

import cygrad
from cygrad import nn


def test_a_parameter_is_a_leaf_that_requires_grad_and_shares_memory():
    data = cygrad.ones(3, requires_grad=True) * 2
    parameter = nn.Parameter(data)
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert isinstance(parameter, cygrad.Tensor)
    assert parameter.data_ptr() == data.data_ptr()
    assert not nn.Parameter(data, requires_grad=False).requires_grad


def test_operations_give_plain_tensors():
    parameter = nn.Parameter(cygrad.ones(2))
    for result in parameter * 2, 2 * parameter, parameter.sum(), parameter[0], parameter.detach(), -parameter:
        assert type(result) is cygrad.Tensor
    (parameter * 3).sum().backward()
    assert type(parameter.grad) is cygrad.Tensor
    assert parameter.grad.tolist() == [3, 3]


def test_repr():
    assert repr(nn.Parameter(cygrad.tensor([1.0, 2.0]))) == (
        "Parameter containing:\ntensor([1., 2.], requires_grad=True)")


def test_without_data_it_is_empty():
    parameter = nn.Parameter()
    assert parameter.shape == (0,)
    assert parameter.requires_grad
    assert not nn.Parameter(requires_grad=False).requires_grad
    assert nn.Buffer().shape == (0,)


def test_data_is_checked():
    with pytest.raises(TypeError, match="expected a Tensor"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(cygrad.ones(2, dtype=cygrad.int64))
    assert nn.Parameter(cygrad.ones(2, dtype=cygrad.int64), requires_grad=False).dtype == cygrad.int64


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["deepcopy", "pickle"])
def test_copies(duplicate):
    class Special(nn.Parameter):
        """A subclass survives."""

    for cls in nn.Parameter, Special:
        original = cls(cygrad.ones(2), requires_grad=False)
        if cls is Special and duplicate is not copy.deepcopy:
            continue       # local classes cannot be pickled
        first, second = duplicate([original, original])
        assert first is second
        assert type(first) is cls
        assert not first.requires_grad
        assert first.data_ptr() != original.data_ptr()
        assert first.tolist() == [1, 1]
    buffer = duplicate(nn.Buffer(cygrad.ones(2), persistent=False))
    assert isinstance(buffer, nn.Buffer)
    assert not buffer.persistent


def test_deepcopy_leaves_the_gradient_behind():
    parameter = nn.Parameter(cygrad.ones(2))
    parameter.sum().backward()
    assert copy.deepcopy(parameter).grad is None


def test_parameters_are_keys():
    a, b = nn.Parameter(cygrad.ones(1)), nn.Parameter(cygrad.ones(1))
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1
