"""Sizes whose product is zero or exceeds 64 bits."""

import os
import resource
from contextlib import contextmanager

import numpy as np
import pytest

import cygrad
from tests.reference import torch

F = cygrad.nn.functional
MASK = cygrad.ones(1, dtype=cygrad.bool)
TOO_MANY = r"too many elements for 64-bit arithmetic|too large"


@contextmanager
def little_memory():
    """Limit memory to 2 GiB more than now, except under the address sanitizer, which maps its shadow memory."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        yield
        return
    with open("/proc/self/statm") as facts:
        now = int(facts.read().split()[0]) * resource.getpagesize()
    former = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (2 << 30), former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, former)


def pair(size, **options):
    """Two operands without memory to speak of, whose common shape has size * size elements."""
    return cygrad.ones(1, **options).expand(size, 1), cygrad.ones(1, **options).expand(1, size)


CALLS = {
    "+": lambda a, b: a + b,
    "where": lambda a, b: cygrad.where(MASK.expand(a.shape), a, b),
    "lerp": lambda a, b: cygrad.lerp(a, b, 0.5),
    "clamp": lambda a, b: cygrad.clamp(a, b),
    "pow": lambda a, b: a ** b,
    "mse_loss": lambda a, b: F.mse_loss(a, b),
    "kron": lambda a, b: cygrad.kron(a, b),
    "outer": lambda a, b: cygrad.outer(a[:, 0], b[0]),
    "matmul": lambda a, b: a @ b,
    "bmm": lambda a, b: cygrad.bmm(a.expand(2, *a.shape), b.expand(2, *b.shape)),
    "batches": lambda a, b: a[..., None, None] @ b[..., None, None],
    "addmm": lambda a, b: cygrad.addmm(cygrad.ones(1), a, b),
    "linear": lambda a, b: F.linear(a, b.t()),
    "out": lambda a, b: cygrad.add(a, b, out=cygrad.ones(0)),
    "out of that size": lambda a, b: cygrad.add(a, b, out=cygrad.ones(1)),
    "maximum": lambda a, b: cygrad.maximum(a, b),
    "==": lambda a, b: a == b,
    "masked_fill": lambda a, b: a.masked_fill(MASK.expand(b.shape), 0),
    "masked_select": lambda a, b: a.masked_select(MASK.expand(b.shape)),
    "broadcast_tensors": lambda a, b: cygrad.broadcast_tensors(a, b),
    "addcmul": lambda a, b: cygrad.addcmul(a, b, b),
    "cdist": lambda a, b: cygrad.cdist(a, b.t()),
    "expand": lambda a, b: a.expand(*a.shape[:1], *b.shape[1:]),
    "repeat": lambda a, b: a.repeat(2, b.shape[1]),
    "huber_loss": lambda a, b: F.huber_loss(a, b),
    "multiply, then sum": lambda a, b: (a * b).sum(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [2**31, 2**32, 2**40], ids=["2**31", "2**32", "2**40"])
@pytest.mark.parametrize("call", CALLS)
def test_products_of_sizes_are_checked(call, size):
    with pytest.raises(RuntimeError, match=TOO_MANY), little_memory():
        CALLS[call](*pair(size))


def test_the_gradient_of_what_is_summed_is_checked_too():
    a, b = (operand.requires_grad_() for operand in pair(2**32))
    with pytest.raises(RuntimeError, match=TOO_MANY):
        (a * b).sum().backward()


def test_empty_arrays_may_have_huge_sizes():
    x = cygrad.ones(0).expand(2**40, 2**40, 0)
    assert x.numel() == 0
    assert (x + 1).shape == x.shape
    with pytest.raises(RuntimeError, match=TOO_MANY):
        x.sum(2)


EMPTY = [
    lambda t: t.ones(4, 0, 2).transpose(0, 1),
    lambda t: t.ones(5, 4, 3, 2)[:, :0],
    lambda t: t.ones(2, 0, 2, 2),
    lambda t: t.ones(3, 5, 0, 2).permute(2, 0, 1, 3),
    lambda t: t.ones(0, 3, 2).transpose(0, 1),
    lambda t: t.ones(1, 0, 2).expand(7, 0, 2),
]


@pytest.mark.parametrize("number", range(len(EMPTY)))
@pytest.mark.parametrize("weight", [(100, 2), (2,), (0, 2)])
def test_linear_of_empty_batches_in_any_layout(number, weight):
    shapes = []
    for library in (cygrad, torch):
        x = EMPTY[number](library).detach().requires_grad_()
        w = library.ones(*weight, requires_grad=True)
        bias = library.ones(weight[0], requires_grad=True) if len(weight) == 2 else None
        y = library.nn.functional.linear(x, w, bias) if bias is not None else library.nn.functional.linear(x, w)
        y.sum().backward()
        shapes.append((tuple(y.shape), x.grad.numel(), w.grad.tolist()))
        assert (x @ w.t()).shape == y.shape
    assert shapes[0] == shapes[1]


def test_average_pooling_of_integers_divides_by_whole_numbers():
    x = cygrad.full((1, 1, 2, 2), -2**61, dtype=cygrad.int64)
    with pytest.raises(TypeError, match="divisor_override"):
        F.avg_pool2d(x, 2, divisor_override=0.5)
    assert F.avg_pool2d(x, 2, divisor_override=-1).item() == -2**63
    assert F.avg_pool2d(x, 2, divisor_override=3).item() == -(2**63 // 3)


def test_more_parts_than_anybody_can_hold_are_refused():
    x = cygrad.ones(4)
    for split in (cygrad.tensor_split, cygrad.hsplit):
        with pytest.raises(RuntimeError, match=r"too many parts|equal parts"):
            split(x, 2**31)
    wide = cygrad.ones(1).expand(2**31)
    for call in (lambda: wide.unbind(), lambda: wide.hsplit(2**31), lambda: wide.split(1), lambda: wide.chunk(2**31),
                 lambda: tuple(cygrad.tensor_split(wide, 2**30))):
        with pytest.raises(RuntimeError, match="too many"), little_memory():
            call()
    with pytest.raises(ValueError, match="too many workers"):
        cygrad.utils.data.DataLoader(x, num_workers=2**31)


def test_strided_arrays_in_a_sequence_can_be_interrupted_or_refused():
    wide = np.lib.stride_tricks.as_strided(np.ones(1), (2**40,), (0,))
    with pytest.raises((MemoryError, RuntimeError)), little_memory():
        cygrad.tensor([wide, wide])


@pytest.mark.parametrize("call", [
    lambda: cygrad.combinations(cygrad.ones(1).expand(2**40), 2),
    lambda: cygrad.combinations(cygrad.ones(1).expand(2**40), 2**39),
    lambda: cygrad.combinations(cygrad.ones(1), 2**62, True),
    lambda: cygrad.repeat_interleave(cygrad.ones(5), cygrad.tensor([2**62] * 4 + [3])),
    lambda: cygrad.repeat_interleave(cygrad.tensor([2**62] * 4 + [3])),
])
def test_numbers_that_are_added_up_or_counted(call):
    """Not their sum without its upper bits, and no loop over them."""
    with pytest.raises(RuntimeError, match="64-bit"):
        call()


def test_combinations_ask_for_memory_first():
    with pytest.raises(MemoryError):
        cygrad.combinations(cygrad.ones(1).expand(2**28), 2)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_batches_of_nothing_are_not_gone_through(mode):
    for columns in (0, 1):
        Q, R = cygrad.linalg.qr(cygrad.ones(1).expand(2**40, 0, columns), mode)
        assert R.shape == (2**40, 0, columns)
        assert Q.shape == ((0,) if mode == "r" else (2**40, 0, 0))
