"""The einops backend registers itself in either order of imports."""

import subprocess
import sys

import einops
import numpy as np
import pytest

import cygrad


@pytest.mark.parametrize("first", ["cygrad", "einops"])
def test_the_backend_registers_itself_in_either_order(first):
    second = {"cygrad": "einops", "einops": "cygrad"}[first]
    code = (f"import {first}, {second}, sys; assert 'torch' not in sys.modules; "
            "assert einops.rearrange(cygrad.ones(2, 3), 'a b -> (b a)').shape == (6,)")
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("call", [
    lambda x: einops.rearrange(x, "a b c -> (c a) b"), lambda x: einops.rearrange([x, 2 * x], "k a b c -> a (k b) c"),
    lambda x: einops.repeat(x, "a b c -> a r b c s", r=2, s=3), lambda x: einops.einsum(x, x, "a b c, a b d -> c d"),
    lambda x: einops.pack([x, x[:, :1]], "a * c")[0],
    *[lambda x, name=name: einops.reduce(x, "a b c -> b", name) for name in ("sum", "mean", "max", "min", "prod")],
])
def test_values_are_those_of_numpy_and_gradients_those_of_differences(call):
    values = np.random.default_rng(0).permutation(24).reshape(2, 3, 4) / 10 + 0.5
    x = cygrad.tensor(values, requires_grad=True)
    np.testing.assert_allclose(call(x).detach().numpy(), call(values))
    assert cygrad.autograd.gradcheck(call, [x])


def test_masks_are_reduced():
    mask = cygrad.tensor([[True, False], [True, True]])
    assert einops.reduce(mask, "a b -> a", "all").tolist() == [False, True]
    assert einops.reduce(mask, "a b -> ", "any").item() is True
