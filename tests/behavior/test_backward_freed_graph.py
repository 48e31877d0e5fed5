"""A second backward through a freed graph raises an error that names the node and the call that freed it."""

import re
import threading
from inspect import currentframe

import pytest

import cygrad
from cygrad.autograd import Function, backward, grad
from cygrad.autograd.graph import saved_tensors_hooks

pytestmark = pytest.mark.guarantee("B3")


def line():
    """The line of the caller."""
    return currentframe().f_back.f_lineno


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g


def in_place_on_a_view(x):
    y = x * 1
    y[0].exp_()
    return y.sum()


def packed(x):
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        return x.exp().sum()


NODES = {"native": (lambda x: x.exp().sum(), "ExpBackward0"),
         "custom": (lambda x: Square.apply(x).sum(), "SquareBackward"),
         "view": (in_place_on_a_view, "ExpBackward0"),
         "packed": (packed, "ExpBackward0")}

CALLS = {"method": lambda y, x: y.backward(), "function": lambda y, x: backward(y), "grad": grad,
         "recorded": lambda y, x: grad(y, x, create_graph=True, retain_graph=False)}


def freed_at(frees, node):
    return rf"{node}.*freed.* at {re.escape(__file__)}:{frees}, in test_.*retain_graph=True"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", NODES)
def test_error_names_the_call_that_freed(name, call):
    function, node = NODES[name]
    x = cygrad.ones(2, requires_grad=True)
    y = function(x)
    y.backward(retain_graph=True)
    if call == "method":
        frees = line() + 1
        y.backward()
    elif call == "function":
        frees = line() + 1
        backward(y)
    else:
        frees = line() + 1
        grad(y, x, create_graph=call == "recorded", retain_graph=False)
    for again in CALLS.values():
        with pytest.raises(RuntimeError, match=freed_at(frees, node)) as caught:
            again(y, x)
        assert "thread" not in str(caught.value)


def test_error_of_a_look_at_what_was_saved():
    x = cygrad.ones(2, requires_grad=True)
    y, z = x.exp(), Square.apply(x)
    frees = line() + 1
    (y + z).sum().backward()
    with pytest.raises(RuntimeError, match=freed_at(frees, "ExpBackward0")):
        _ = y.grad_fn._saved_result
    with pytest.raises(RuntimeError, match=freed_at(frees, "SquareBackward")):
        _ = z.grad_fn.saved_tensors


def test_error_names_another_thread():
    x = cygrad.ones(2, requires_grad=True)
    y = x.exp().sum()
    thread = threading.Thread(target=y.backward, name="the other one")
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*freed.*in the thread 'the other one'"):
        y.backward()


def test_error_in_another_thread_names_this_one():
    x = cygrad.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    caught = []

    def body():
        try:
            y.backward()
        except RuntimeError as error:
            caught.append(str(error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert f"in the thread '{threading.current_thread().name}'" in caught[0]


def test_error_in_a_team():
    x = cygrad.ones(1000, 1000, requires_grad=True)
    with cygrad.threads(2):
        y = x.exp().sin().sum()
        frees = line() + 1
        y.backward()
        with pytest.raises(RuntimeError, match=freed_at(frees, "SinBackward0")) as caught:
            y.backward()
    assert "thread" not in str(caught.value)


def test_freed_by_a_hook_of_the_same_graph():
    """The outer call has claimed the node, and the one inside the hook frees it."""
    x = cygrad.ones(2, requires_grad=True)
    y = x.exp()
    total, z = y.sum(), y * 2
    inner = []

    def hook(gradient):
        inner.append(line() + 1)
        grad(total, x)

    z.register_hook(hook)
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*freed") as caught:
        z.sum().backward()
    assert f"{__file__}:{inner[0]}, in" in str(caught.value)


def test_calls_long_ago_are_forgotten():
    x = cygrad.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    for _ in range(2000):
        (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*already been freed by backward\. Specify"):
        y.backward()
