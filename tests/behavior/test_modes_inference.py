"""Inference mode: kinds of tensors, operations, and where they run."""

import threading

import pytest

import cygrad
from tests.behavior.two_libraries import Program
from tests.reference import torch

pytestmark = pytest.mark.guarantee("M3")

TENSORS = {
    "normal": lambda p: p.lib.tensor([1.0, 2.0]),
    "leaf": lambda p: p.leaf(1.0, 2.0),
    "non-leaf": lambda p: p.leaf(1.0, 2.0) * 2,
    "inference": lambda p: p.in_inference_mode(lambda: p.lib.tensor([1.0, 2.0])),
    "inference result": lambda p: inside(p, p.leaf(1.0, 2.0), lambda x: x * 2),
    "view of normal": lambda p: inside(p, p.lib.tensor([1.0, 2.0, 3.0]), lambda x: x[:2]),
    "view of leaf": lambda p: inside(p, p.leaf(1.0, 2.0, 3.0), lambda x: x[:2]),
    "clone": lambda p: p.in_inference_mode(lambda: p.lib.tensor([1.0, 2.0])).clone(),
}


def inside(p, x, function):
    return p.in_inference_mode(lambda: function(x))


def flags(t):
    return t.is_inference(), t.requires_grad, t.is_leaf


def saved(p, t):
    """Multiply by what requires grad, which saves `t`, and run backward."""
    w = p.leaf(1.0, 2.0)
    y = w * t
    if not y.requires_grad:
        return flags(y)
    y.sum().backward()
    return w.grad


def assign(t):
    t[0] = 5.0
    return flags(t)


ACTIONS = {
    "flags": lambda p, t: flags(t),
    "operation": lambda p, t: flags(t * 2),
    "view": lambda p, t: (*flags(t[:1]), t[:1]._is_view()),
    "in place": lambda p, t: flags(t.mul_(2)),
    "in place on a view": lambda p, t: t[:1].mul_(2).is_inference(),
    "in place with a leaf": lambda p, t: flags(t.mul_(p.leaf(1.0, 2.0))),
    "copy_": lambda p, t: flags(t.copy_(p.lib.ones(2))),
    "assignment": lambda p, t: assign(t),
    "out": lambda p, t: flags(p.lib.add(p.lib.ones(2), 1, out=t)),
    "saved for backward": saved,
    "added to a leaf": lambda p, t: flags(p.leaf(1.0, 2.0) + t),
    "detach": lambda p, t: flags(t.detach()),
    "clone": lambda p, t: flags(t.clone()),
    "requires_grad_": lambda p, t: flags(t.requires_grad_()),
    "has a version": lambda p, t: t._version >= 0,
    "backward": lambda p, t: t.sum().backward(),
}
PLACES = {"inside": Program.in_inference_mode, "under no_grad": Program.under_no_grad,
          "outside": lambda p, action: action()}


def outcome(library, tensor, action, place):
    program = Program(library)
    tensor = TENSORS[tensor](program)
    return program.run(lambda p: PLACES[place](p, lambda: ACTIONS[action](p, tensor)))[1]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("tensor", TENSORS)
def test_the_whole_table(tensor, action, place):
    assert outcome(cygrad, tensor, action, place) == outcome(torch, tensor, action, place)


# inference, requires_grad, is_leaf; or the exception.
EXPECTED = {
    ("normal", "operation", "inside"): (True, False, True),
    ("normal", "view", "inside"): (False, False, True, True),
    ("normal", "in place", "inside"): (False, False, True),
    ("normal", "in place with a leaf", "inside"): (False, False, True),
    ("leaf", "operation", "inside"): (True, False, True),
    ("leaf", "view", "inside"): (False, True, True, True),
    ("leaf", "in place", "inside"): (False, True, True),
    ("leaf", "in place", "outside"): RuntimeError,
    ("leaf", "saved for backward", "inside"): (True, False, True),
    ("inference", "operation", "inside"): (True, False, True),
    ("inference", "operation", "outside"): (False, False, True),
    ("inference", "view", "inside"): (True, False, True, False),
    ("inference", "view", "outside"): (True, False, True, False),
    ("inference", "in place", "inside"): (True, False, True),
    ("inference", "in place", "outside"): RuntimeError,
    ("inference", "in place", "under no_grad"): RuntimeError,
    ("inference", "in place with a leaf", "outside"): RuntimeError,
    ("inference", "copy_", "outside"): RuntimeError,
    ("inference", "assignment", "outside"): RuntimeError,
    ("inference", "out", "outside"): RuntimeError,
    ("inference", "saved for backward", "outside"): RuntimeError,
    ("inference", "added to a leaf", "outside"): (False, True, False),
    ("inference", "clone", "outside"): (False, False, True),
    ("inference", "detach", "outside"): (True, False, True),
    ("inference", "requires_grad_", "outside"): RuntimeError,
    ("inference", "has a version", "inside"): RuntimeError,
    ("view of normal", "in place", "inside"): (False, False, True),
    ("view of normal", "in place", "outside"): (False, False, True),
    ("view of normal", "in place with a leaf", "outside"): RuntimeError,
    ("view of leaf", "operation", "inside"): (True, False, True),
    ("view of leaf", "in place", "inside"): RuntimeError,
    ("view of leaf", "in place", "under no_grad"): RuntimeError,
    ("view of leaf", "in place", "outside"): RuntimeError,
    ("view of leaf", "operation", "outside"): (False, True, False),
    ("view of leaf", "backward", "outside"): None,
    ("clone", "in place", "outside"): (False, False, True),
    ("clone", "in place with a leaf", "outside"): (False, True, False),
    ("clone", "saved for backward", "outside"): (1.0, 2.0),
    ("clone", "requires_grad_", "outside"): (False, True, True),
}


@pytest.mark.parametrize(("tensor", "action", "place"), EXPECTED)
def test_rows_of_the_table(tensor, action, place):
    found = outcome(cygrad, tensor, action, place)
    assert (tuple(found) if isinstance(found, list) else found) == EXPECTED[tensor, action, place]


def test_threads_have_modes_of_their_own():
    answers = {}

    def work(name, mode):
        with cygrad.inference_mode(mode):
            start.wait()
            answers[name] = (cygrad.is_inference_mode_enabled(), cygrad.ones(2).is_inference())

    start = threading.Barrier(2)
    with cygrad.inference_mode():
        threads = [threading.Thread(target=work, args=(mode, mode)) for mode in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cygrad.is_inference_mode_enabled()
    assert answers == {True: (True, True), False: (False, False)}
