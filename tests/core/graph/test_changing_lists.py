"""Lists that shrink while they are read."""

import contextlib
import gc

import numpy as np
import pytest

import cygrad


class Shortens:
    """When it is read, the list that holds it loses all but its first entry."""

    def __init__(self, owner):
        self.owner = owner

    def shorten(self):
        del self.owner[1:]
        gc.collect()

    def __index__(self):
        self.shorten()
        return 1

    def __float__(self):
        self.shorten()
        return 1.0

    def __array__(self, dtype=None, copy=None):
        self.shorten()
        return np.ones(2, np.float32)


def list_with(place, others):
    entries = []
    entries += [*others[:place], Shortens(entries), *others[place:]]
    return entries


SIZES = {
    "reshape": lambda x, sizes: x.reshape(sizes), "permute": lambda x, sizes: x.permute(sizes),
    "sum": lambda x, sizes: x.sum(sizes), "flip": lambda x, sizes: x.flip(sizes),
    "expand": lambda x, sizes: x.expand(sizes), "view": lambda x, sizes: x.view(sizes),
    "pad": cygrad.nn.functional.pad, "roll": lambda x, sizes: cygrad.roll(x, sizes, sizes),
    "zeros": lambda x, sizes: cygrad.zeros(sizes), "index": lambda x, sizes: x[sizes],
}
TENSORS = {"stack": cygrad.stack, "cat": cygrad.cat, "tensor": cygrad.tensor, "as_tensor": cygrad.as_tensor,
           "backward": cygrad.autograd.backward, "grad": lambda tensors: cygrad.autograd.grad(tensors, tensors),
           "broadcast_tensors": lambda tensors: cygrad.broadcast_tensors(*tensors),
           "einsum": lambda tensors: cygrad.einsum("i,i->i", tensors)}


def survives(function, *arguments):
    with contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
        function(*arguments)
    x = cygrad.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("place", [0, 1, 5])
@pytest.mark.parametrize("name", SIZES)
def test_sizes(name, place):
    survives(SIZES[name], cygrad.ones(2, 2), list_with(place, [object() for _ in range(20)]))
    survives(SIZES[name], cygrad.ones(2, 2), list_with(place, [1] * 20))


@pytest.mark.parametrize("place", [0, 1, 5])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name, place):
    survives(TENSORS[name], list_with(place, [cygrad.ones(2, requires_grad=True) for _ in range(20)]))
