"""Fast paths of `split`, `chunk` and `T`."""

import pytest
import torch

import cygrad

CALLS = [
    "x.chunk(2)", "x.chunk(3, 1)", "x.chunk(7, -1)", "x.chunk(100)", "x.chunk(1)", "x.chunk(2, dim=1)",
    "lib.chunk(x, 2)",
    "x[:0].chunk(2)", "x[:0].chunk(2, 1)", "big.chunk(30)", "x.split(2)", "x.split(4, 1)", "x.split(5, dim=-1)",
    "x.split(99)", "x.split([1, 3], 0)", "x[:0].split(1)", "x.split(2, -2)", "big.split(1)", "lib.split(x, 3, 1)",
    "x.half().chunk(2)",
    "[x.T]", "[x.T.T]", "[x.detach().T]", "[x.t().T]",
]


def evaluated(lib, text):
    """The values of a list of tensors and the gradient of a sum over them."""
    x = lib.arange(24.0).reshape(4, 6).requires_grad_()
    parts = eval(text, {"x": x, "lib": lib, "big": lib.arange(30.0)})
    total = sum((number + 1) * part.sum() for number, part in enumerate(parts))
    if total.requires_grad:
        total.backward()
    return ([(list(part.shape), part.stride(), part.storage_offset(), part.tolist()) for part in parts],
            None if x.grad is None else x.grad.tolist())


@pytest.mark.parametrize("text", CALLS)
def test_they_are_those_of_pytorch(text):
    assert evaluated(cygrad, text) == evaluated(torch, text)


@pytest.mark.parametrize("text", [
    "x.chunk(0)", "x.chunk(-1)", "x.chunk(2, 2)", "x.split(-1)", "x.split(0)", "x.split(2, 5)", "x.split(2.0)",
    "x.split(True)", "cygrad.tensor(1.0).chunk(2)", "cygrad.chunk(3, 2)"])
def test_what_does_not_fit_is_refused(text):
    with pytest.raises((RuntimeError, TypeError, IndexError), match=r"chunk|split"):
        eval(text, {"x": cygrad.ones(4, 6), "cygrad": cygrad})


def test_parts_may_not_be_changed_in_place():
    x = cygrad.ones(4, requires_grad=True) * 1.0
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        x.chunk(2)[0].add_(1.0)


def test_T_of_other_shapes_warns_and_reverses():
    assert cygrad.tensor(2.0).T.shape == ()
    for shape in [(3,), (2, 3, 4)]:
        with pytest.warns(UserWarning, match="deprecated"):
            assert cygrad.ones(shape).T.shape == shape[::-1]
    assert cygrad.ones(2, 3).as_subclass(type("Own", (cygrad.Tensor,), {})).T.shape == (3, 2)
