"""Assignments to ``.data``: the memory of a gradient, and of tensors that share theirs."""

import gc

import pytest

import cygrad


@pytest.fixture
def searches(monkeypatch):
    found = []
    referrers = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *objects: found.append(objects) or referrers(*objects))
    return found


def test_data_of_shared_memory_is_replaced_without_a_search_through_all_objects(searches):
    plain, leaf = cygrad.ones(3), cygrad.ones(3, requires_grad=True)
    others = plain.detach(), plain.numpy(), plain.view(3), leaf.detach()
    leaf.sum().backward()
    plain.data, leaf.data = cygrad.zeros(3), cygrad.full((3,), 2.0)
    assert plain.tolist() == [0, 0, 0]
    assert leaf.tolist() == [2, 2, 2]
    assert [other.tolist() for other in others] == [[1, 1, 1]] * 4
    assert not searches


@pytest.mark.parametrize("given", [False, True])
def test_backward_adds_to_the_data_that_was_assigned_to_a_gradient(searches, given):
    leaf = cygrad.ones(3, requires_grad=True)
    if given:
        leaf.grad = cygrad.ones(3)
    else:
        leaf.sum().backward()
    gradient = leaf.grad
    gradient.data = cygrad.full((3,), 5.0)
    assert leaf.grad is gradient
    leaf.sum().backward()
    assert leaf.grad.tolist() == gradient.tolist() == [6, 6, 6]
    leaf.grad.data = cygrad.zeros(3)                        # again: the new memory is a gradient as well
    leaf.sum().backward()
    assert leaf.grad.tolist() == [1, 1, 1]
    assert searches
