"""Sizes passed as integers, without a tuple."""

import pytest
import torch

import cygrad
from cygrad import profiler

CALLS = [
    "x.view(2, 8)", "x.view(-1)", "x.view((2, 8))", "x.view([4, -1])", "x.view(size=(16,))", "x.view(2, 2, 2, 2)",
    "x.view(*[1] * 15, 16)",
    "x.view(*[1] * 20, 16)", "x.view(2, -1, 2)", "x.reshape(8, 2)",
    "x.t().reshape(16)", "x.t().reshape(2, 8)", "x.t().view(4, 4)", "x.permute(1, 0)", "x.permute(-1, 0)",
    "x.expand(3, 4, 4)",
    "x.expand(2, -1, 4)", "x.broadcast_to((2, 4, 4))", "x.repeat(2, 1)", "x.flip(0)", "x.flip(0, 1)",
    "x[:0].view(0, 7)",
    "x.half().view(2, 8)", "x.to(lib.complex64).view(2, 8)", "lib.reshape(x, (2, 8))", "lib.permute(x, (1, 0))",
]
REFUSED = ["x.view()", "x.view(3, 5)", "x.view(-1, -1)", "x.view(-2, 8)", "x.view(2.0, 8)",
           "x.view(2**62, 2**62)", "x.permute(0, 0)", "x.permute(0)", "x.permute(0, 2)", "x.expand(4)",
           "x.expand(5, 4)",
           "x.t().view(16)", "x.view(2, 8, size=(2, 8))"]


def evaluated(lib, text):
    """The value of an expression on a matrix and the gradient of its sum."""
    x = lib.arange(16.0).reshape(4, 4).requires_grad_()
    y = eval(text, {"x": x, "lib": lib})
    y.abs().sum().backward()
    return list(y.shape), y.stride(), y.detach().to(lib.complex128).tolist(), x.grad.tolist(), y._version


@pytest.mark.parametrize("text", CALLS)
def test_they_are_those_of_pytorch(text):
    assert evaluated(cygrad, text) == evaluated(torch, text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_is_refused(text):
    x = cygrad.arange(16.0).reshape(4, 4)
    with pytest.raises((RuntimeError, TypeError, IndexError)) as error:
        eval(text, {"x": x})
    assert error.value.args[0].startswith(text.split("(")[0].split(".")[-1] if ".t()" not in text else "view")


def test_others_are_asked_as_ever():
    """`__torch_function__`, profilers and patched functions are called, too."""
    calls = []

    class Noted(cygrad.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            calls.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    x = cygrad.ones(4, 4)
    assert type(x.as_subclass(Noted).view(2, 8)) is Noted and "view" in calls
    with profiler.profile() as profile:
        x.view(2, 8)
    assert any(event.key.endswith("view") for event in profile.key_averages())
    view = cygrad.Tensor.view
    assert view(x, 2, 8).shape == view(x, size=(2, 8)).shape == (2, 8)
    with pytest.raises(OverflowError):
        view(x, 2**70, 1)
    with pytest.raises(TypeError, match="argument"):
        view()
    with pytest.raises(TypeError, match="'input' must be a Tensor"):
        view(3, 2, 8)
