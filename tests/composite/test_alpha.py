"""``alpha=`` of add, sub and rsub, and dtypes of `float_power`, compared with PyTorch."""

import itertools

import pytest

import cygrad
from tests.reference import torch

VALUES = {"bool": [True, False], "int64": [1, 2], "float32": [1.0, 2.0], "complex64": [1 + 1j, 2.0]}
ALPHAS = [1, 2, 0, True, False, 1.5, 1.0, 1j]


def outcome(library, call):
    """Dtype and values of the result, or the base of the error's class."""
    try:
        result = call(library)
    except RuntimeError:
        return RuntimeError
    return str(result.dtype).rpartition(".")[2], result.tolist()


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", ["add", "sub", "rsub", "add_", "sub_"])
def test_alpha_has_to_fit_the_result(name, alpha):
    for left, right in itertools.product(VALUES, repeat=2):
        if "bool" in (left, right) and left != right and not name.startswith("add"):
            continue                                     # ours subtracts masks from numbers, PyTorch refuses to
        if left != right and name.endswith("_"):
            continue

        def call(library, left=left, right=right):
            a = library.tensor(VALUES[left], dtype=getattr(library, left))
            b = library.tensor(VALUES[right], dtype=getattr(library, right))
            return getattr(a, name)(b, alpha=alpha) if name.endswith("_") else getattr(library, name)(a, b, alpha=alpha)

        assert outcome(cygrad, call) == outcome(torch, call), (left, right)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_alpha_beside_numbers(alpha):
    for dtype, number in itertools.product(VALUES, [True, 3, 0.5]):
        def call(library, dtype=dtype, number=number):
            return library.add(library.tensor(VALUES[dtype], dtype=getattr(library, dtype)), number, alpha=alpha)
        assert outcome(cygrad, call) == outcome(torch, call), (dtype, number)


def test_alpha_message_says_what_does_not_fit():
    with pytest.raises(RuntimeError, match=(
            r"add: alpha must not be of a higher category .*\(got 1.5, which is real, expected whole\)")):
        cygrad.add(cygrad.tensor([1]), cygrad.tensor([1]), alpha=1.5)


def test_alpha_writes_to_out_and_has_a_gradient():
    out = cygrad.empty(2)
    assert cygrad.sub(cygrad.ones(2), cygrad.ones(2), alpha=3.0, out=out) is out
    assert out.tolist() == [-2, -2]
    x = cygrad.ones(2, requires_grad=True)
    cygrad.add(cygrad.ones(2), x, alpha=2.5).sum().backward()
    assert x.grad.tolist() == [2.5, 2.5]


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex64", "complex128"])
def test_float_power_refuses_what_is_narrower(dtype):
    def inplace(library):
        return library.tensor([1, 2]).to(getattr(library, dtype)).float_power_(2)

    def out(library):
        return library.float_power(library.tensor([1.0, 2.0]), 2, out=library.empty(2, dtype=getattr(library, dtype)))

    for call in (inplace, out):
        assert outcome(cygrad, call) == outcome(torch, call)
