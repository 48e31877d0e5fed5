"""Views and bases whose memory ``.data =`` or ``set_`` has replaced."""

import gc

import numpy as np
import pytest

import cygrad
from tests.reference import torch

CHANGES = {
    "mul_": lambda v: v.mul_(2),
    "setitem": lambda v: v.__setitem__(0, 5.0),
    "exp_": lambda v: v.exp_(),
    "of a view": lambda v: v[1:].mul_(3),
}
# Memory for the view or the base, and what of it is put there.
MEMORIES = {
    "the same size": lambda t: t.ones(2),
    "more after it": lambda t: t.arange(10.0)[1:3],
    "double": lambda t: t.ones(2, dtype=t.float64),
    "backwards steps": lambda t: t.arange(3.0)[::2],
}


def gradient(library, prepare, change, create_graph=False):
    """Of the elements before, for weights that tell those of the base apart."""
    x = library.ones(4, requires_grad=True)
    base = x * 1
    view = base[1:3]
    prepare(library, base, view)
    change(view)
    total = (base * library.arange(1.0, base.numel() + 1)).sum()
    return library.autograd.grad(total, x, create_graph=create_graph)[0].tolist()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_view_with_other_memory_is_a_region_of_its_base(memory, change, create_graph):
    def prepare(library, base, view):
        view.data = MEMORIES[memory](library)

    found, expected = (gradient(library, prepare, CHANGES[change], create_graph) for library in (cygrad, torch))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("memory", [
    lambda: cygrad.ones(9), lambda: cygrad.arange(9.0)[5:7], lambda: cygrad.ones(3, 2),
    lambda: cygrad.ones(4, 2), lambda: cygrad.ones(5, dtype=cygrad.complex64),
])
def test_a_view_that_does_not_lie_in_its_base_is_refused(memory):
    x = cygrad.ones(4, requires_grad=True)
    base = x * 1
    view = base[1:3]
    view.data = memory()
    before = view.tolist()
    for change in (lambda: view.mul_(2), view.zero_, view[:].exp_, view.squeeze_):
        with pytest.raises(RuntimeError, match="no longer refers to the memory of its base"):
            change()
    assert view.tolist() == before
    base.sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("memory", [lambda: cygrad.ones(1), lambda: cygrad.ones(0), lambda: cygrad.ones(2, 1)])
def test_a_base_with_too_little_memory_is_refused(memory):
    base = cygrad.ones(4, requires_grad=True) * 1
    view = base[2:]
    base.data = memory()
    with pytest.raises(RuntimeError, match="no longer refers to the memory of its base"):
        view.mul_(2)


def test_a_base_of_another_shape_since_the_change_is_refused():
    base = cygrad.ones(3, requires_grad=True) * 1
    base[1:].mul_(2)
    base.data = cygrad.ones(10)
    with pytest.raises(RuntimeError, match="shape"):
        base.sum().backward()


def test_a_region_outside_of_a_base_that_is_a_part_is_refused():
    """The base is two of ten elements; CopySlices has capacity for those."""
    base = cygrad.ones(10)[2:4].detach()
    outside = base.as_strided((2,), (1,), 6)
    with pytest.raises(RuntimeError, match="no longer refers to the memory of its base"):
        outside.mul_(cygrad.ones(2, requires_grad=True))


def test_set_makes_a_view_independent():
    x = cygrad.ones(4, requires_grad=True)
    base = x * 1
    view = base[1:]
    with cygrad.no_grad():
        view.set_(cygrad.ones(50))
    view.mul_(3)
    base.sum().backward()
    assert x.grad.tolist() == [1, 1, 1, 1]


def test_the_history_of_a_view_does_not_depend_on_how_often_its_new_memory_was_changed():
    x = cygrad.ones(3, requires_grad=True)
    view = (x * 1)[1:]
    memory = cygrad.ones(2)
    memory.add_(1).add_(1)
    view.data = memory
    view.sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


@pytest.mark.parametrize("view", [
    lambda: (cygrad.ones(4, requires_grad=True) * 2).split(2)[1], lambda: (cygrad.ones(4, requires_grad=True) * 2)[1:],
    lambda: cygrad.ones(4, requires_grad=True), lambda: cygrad.ones(4)[1:],
])
def test_memory_of_an_inference_tensor_in_a_normal_one(view):
    tensor = view()
    with cygrad.inference_mode():
        memory = cygrad.ones(2)
    tensor.data = memory
    assert not tensor.is_inference()
    version = tensor._version
    with cygrad.no_grad():
        tensor.mul_(2)
    assert tensor._version == version + 1
    assert tensor.requires_grad in (True, False)
    assert memory.tolist() == [2, 2]


LENT = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "dlpack": np.from_dlpack,
    "buffer": lambda x: np.asarray(memoryview(x)),
    "tensor": lambda x: cygrad.from_dlpack(x).numpy(),
}
EXCHANGES = {
    "data": lambda x: setattr(x, "data", cygrad.zeros(5)),
    "set_": lambda x: x.set_(cygrad.zeros(4)),
    "resize_": lambda x: x.resize_(3 * x.numel()),
    "share_memory_": lambda x: x.share_memory_(),
}


@pytest.mark.parametrize("size", [3, 1000, 300_000])
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("lend", LENT)
def test_memory_that_is_lent_stays_while_the_tensor_gets_other_memory(lend, exchange, size):
    x = cygrad.full((size,), 7.0)
    seen = LENT[lend](x)
    EXCHANGES[exchange](x)
    others = [cygrad.full((size,), 3.0) for _ in range(20)]         # would be given what was freed
    assert (seen == 7).all()
    del others, x
    gc.collect()
    assert (seen == 7).all()


def with_gradient(given):
    """A leaf and its .grad, which backward made or a user has set."""
    x = cygrad.ones(2, requires_grad=True)
    if given:
        x.grad = cygrad.full((2,), 2.0)
    else:
        (x * 2).sum().backward()
    return x, x.grad


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("exchange", [
    lambda g, t: setattr(g, "data", t), lambda g, t: g.set_(t), lambda g, t: setattr(g, "data", t.clone().resize_(2))])
def test_a_gradient_that_gets_other_memory_stays_the_gradient(given, exchange):
    x, g = with_gradient(given)
    exchange(g, cygrad.tensor([7.0, 8.0]))
    assert x.grad is g
    assert x.grad.tolist() == [7.0, 8.0]
    (x * 2).sum().backward()
    assert x.grad is g
    assert g.tolist() == [9.0, 10.0]
    optimizer = cygrad.optim.SGD([x], lr=1)
    optimizer.step()
    assert x.tolist() == [-8.0, -9.0]


def test_a_recorded_gradient_that_is_detached_in_place_stays_the_gradient():
    x = cygrad.ones(2, requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    g.detach_()
    assert x.grad is g
    assert not x.grad.requires_grad
    (x * 2).sum().backward()
    assert g.tolist() == [5.0, 5.0]


def test_a_former_gradient_that_gets_other_memory_is_no_gradient():
    x, g = with_gradient(False)
    x.grad = None
    g.data = cygrad.zeros(2)
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad is not g
    assert g.tolist() == [0.0, 0.0]
