"""Tensor: construction, metadata, number protocol, .grad, .data, subclasses."""

import contextlib
import copy
import gc
import math
import weakref

import numpy as np
import pytest

import cygrad
from cygrad._core.graph.boxing import disabled_torch_function
from cygrad._core.graph.type_slots import make_subclass

Tensor = cygrad.Tensor
FLOAT = cygrad.float64


class Sub(Tensor):
    """A subclass that leaves everything to Python."""

    def __new__(cls, *arguments):
        return Tensor.__new__(cls)

    def __init__(self, *arguments):
        pass


def test_bare_construction_has_an_array():
    for made in (Tensor.__new__(Tensor), Tensor(), Sub(), Sub(1, 2)):
        assert made.shape == (0,)
        assert made.dtype is cygrad.float32
        assert not made.requires_grad
        assert (made + 1).shape == (0,)
        assert made.tolist() == []
        assert made.grad is None
        assert made.requires_grad_().requires_grad
    assert Tensor([1, 2]).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="expected sizes, or one argument"):
        Tensor([1], [2])
    with pytest.raises(TypeError, match="expected sizes, or one argument"):
        Tensor([1], dtype=FLOAT)


def test_make_subclass():
    x = cygrad.ones(2)
    made = make_subclass(Sub, x, True)
    assert type(made) is Sub
    assert made.requires_grad
    assert made.data_ptr() == x.data_ptr()
    for bad in ((None, x), (Sub, None), (int, x), (5, x)):
        with pytest.raises(TypeError):
            make_subclass(*bad)
    assert type(made * 2) is Sub
    node = (made * made).grad_fn
    assert node._saved_self is made


def test_metadata():
    x = cygrad.zeros(2, 3, 4)
    assert x.shape == x.size() == (2, 3, 4)
    assert x.size(1) == 3
    assert x.size(-1) == 4
    assert x.stride() == (12, 4, 1)
    assert x.stride(0) == 12
    assert (x.ndim, x.dim(), x.numel(), x.nelement()) == (3, 3, 24, 24)
    assert (x.itemsize, x.element_size(), x.nbytes) == (4, 4, 96)
    assert len(x) == 2
    assert x[1].storage_offset() == 12
    assert x.is_contiguous()
    assert not x.transpose(0, 1).is_contiguous()
    for bad in (3, -4):
        with pytest.raises(IndexError, match="dimension out of range"):
            x.size(bad)
        with pytest.raises(IndexError, match="dimension out of range"):
            x.stride(bad)
    with pytest.raises(IndexError):
        cygrad.ones(()).size(0)
    with pytest.raises(TypeError, match="len"):
        len(cygrad.ones(()))


def test_comparisons_with_strangers():
    x, nothing = cygrad.ones(2), None
    assert (x == nothing) is False
    assert (x != nothing) is True
    assert (nothing == x) is False
    assert (x == "a") is False
    for compare in (lambda: x < nothing, lambda: x >= "a", lambda: nothing < x):
        with pytest.raises(TypeError, match="not supported between"):
            compare()
    assert hash(x) == hash(x)
    assert {x: 1}[x] == 1


def test_operators_with_strangers():
    x = cygrad.ones(2)
    for operate in (lambda: x + "a", lambda: "a" - x, lambda: x - [1, 2], lambda: x * None, lambda: x @ "a",
                    lambda: x | {}, lambda: pow(x, 2, 3), lambda: pow(2, x, 3)):
        with pytest.raises(TypeError, match="unsupported operand"):
            operate()
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+="):
        x += "a"
    assert x.tolist() == [1.0, 1.0]
    number = 5
    number += x
    assert number.tolist() == [6.0, 6.0]
    assert (2 ** (x + 1)).tolist() == [4.0, 4.0]
    assert (np.float64(2) * x).tolist() == [2.0, 2.0]
    array = np.ones(2) * x
    assert isinstance(array, Tensor)
    assert (np.ones(2) + x).tolist() == [2.0, 2.0]


def test_strangers_that_know_tensors():
    class Friend:
        def __radd__(self, other):
            return "radd"

        def __eq__(self, other):
            return "eq"

        __hash__ = None

    assert cygrad.ones(2) + Friend() == "radd"
    assert (cygrad.ones(2) == Friend()) == "eq"


def test_grad_may_be_shared_and_replaced():
    x, w = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    g = cygrad.ones(2)
    x.grad = w.grad = g
    (x * 1).sum().backward()
    assert w.grad is g
    assert g.tolist() == [2.0, 2.0]
    del x.grad
    assert x.grad is None
    assert w.grad is g
    x.grad = None
    y = cygrad.ones(2)
    y.grad = g                                   # no need to require grad
    assert y.grad is g


def test_grad_that_cannot_be_added_to():
    x = cygrad.ones(2, requires_grad=True)
    x.grad = cygrad.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="share a memory location"):
        (x * 1).sum().backward()
    x.grad = None
    x.data = cygrad.ones(3)
    (x * 1).sum().backward()
    x.data = cygrad.ones(2)
    with pytest.raises(RuntimeError, match=r"does not match .grad \(got shape \(2,\), expected \(3,\).*None first"):
        (x * 1).sum().backward()


def test_grad_of_read_only_memory():
    array = np.ones(2, dtype=np.float32)
    array.flags.writeable = False
    x = cygrad.ones(2, requires_grad=True)
    try:
        x.grad = cygrad.from_numpy(array)
    except (RuntimeError, ValueError, UserWarning):
        return
    with pytest.raises(RuntimeError):
        (x * 1).sum().backward()
    assert array.tolist() == [1.0, 1.0]


def test_requires_grad_switched_off_after_recording():
    x, w = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    for create_graph in (False, True):
        y = (x * w).sum()
        x.requires_grad_(False)
        y.backward(create_graph=create_graph)
        assert x.grad is None
        x.requires_grad_()
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
        x.grad = w.grad = None
    y = (x * w).sum()
    x.detach_()
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == [1.0, 1.0]


def test_data_of_tensors_in_use():
    x = cygrad.ones(3)
    view = x[1:]
    x.data = cygrad.zeros(2)
    assert view.tolist() == [1.0, 1.0]
    assert x.tolist() == [0.0, 0.0]
    x.data = x
    assert x.tolist() == [0.0, 0.0]
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        x.data = "a"


def test_weak_references_and_attributes():
    x = cygrad.ones(2)
    x.label = "mine"
    assert x.label == "mine"
    assert (x * 1).__dict__ == {}
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_callbacks_while_a_tensor_dies():
    seen = []
    w = cygrad.ones(2, requires_grad=True) * 1
    y = (w * w).exp()
    x = cygrad.ones(2, requires_grad=True)
    (x * 1).sum().backward()
    first = weakref.ref(w, lambda _: seen.append(y.grad_fn.next_functions[0][0]._saved_self))
    second = weakref.ref(x.grad, lambda _: seen.append(x.grad))
    del w
    x.grad.mul_(2)
    gradient = x.grad
    x.grad = None
    del gradient
    assert first() is None
    assert second() is None
    gc.collect()
    assert seen[0].tolist() == [1.0, 1.0]
    assert seen[1] is None


def test_finalizers_that_resurrect():
    kept = []

    class Phoenix(Sub):
        __torch_function__ = disabled_torch_function      # results do not rise

        def __del__(self):
            kept.append(self)

    x = make_subclass(Phoenix, cygrad.ones(2), True)
    y = x * x
    del x
    assert kept == []                            # the graph keeps its leaf
    y.sum().backward()
    del y
    gc.collect()
    assert kept[0].grad.tolist() == [2.0, 2.0]
    assert (kept[0] * 2).tolist() == [2.0, 2.0]
    Phoenix.__del__ = lambda self: None


def test_every_attribute_survives_strange_values():
    """Calls with arbitrary arguments raise Python exceptions and do not crash."""
    strange = [None, -1, 2**70, math.nan, "a", (), [], {}, object(), Tensor, cygrad.ones(0), cygrad.tensor(True), 1j,
               ...]
    unsafe = {"__class__", "__del__", "__init_subclass__", "__subclasshook__"}
    for name in sorted(set(dir(Tensor)) - unsafe):
        for value in strange:
            x = cygrad.ones(3, requires_grad=True)
            for target in (x, (x * 1)[1:], cygrad.tensor([1, 2]), cygrad.ones(())):
                with contextlib.suppress(Exception):
                    getattr(target, name)(value)
                with contextlib.suppress(Exception):
                    getattr(target, name)(value, value)
                if not name.startswith("__"):
                    with contextlib.suppress(Exception):
                        setattr(target, name, value)


def test_copies():
    x = cygrad.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    shallow = copy.copy(x) if hasattr(Tensor, "__copy__") else None
    assert shallow is None or shallow.data_ptr() == x.data_ptr()
