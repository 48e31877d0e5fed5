"""Names in the scope of a case: the library, hostile objects, and tensors in all states."""

import contextlib
import copy
import gc
import io
import pickle
import weakref

import numpy as np

import cygrad as t
from tests.fuzz.hostile import (
    HostileError,
    Lies,
    Meddles,
    Refuses,
    Sequence,
    Shrinking,
    changing,
    clearing,
    endless,
    growing,
    structured,
)
from tests.fuzz.objects import bare, unbound
from tests.fuzz.surroundings import NAMES


def leaf(*shape, dtype=None):
    """A leaf that requires grad."""
    return t.arange(float(np.prod(shape, dtype=int)), dtype=dtype or t.float64).reshape(shape).detach().requires_grad_()


def freed():
    """The result of a graph that backward went through."""
    y = (leaf(2, 3).exp() * 2).sum()
    y.backward()
    return y


def outdated():
    """A result whose saved tensor has been changed."""
    x = leaf(3) * 1
    y = x.exp() * x
    with t.no_grad():
        x.zero_()
    return y


def inference(*shape):
    """An inference tensor."""
    with t.inference_mode():
        return t.ones(shape, dtype=t.float64)


def with_node(kind):
    """Views of something that requires grad: of each kind that is treated in its own way."""
    base = leaf(2, 3) * 1
    if kind == "no_grad":
        with t.no_grad():
            return base[0]
    if kind == "outdated":
        part = base.unbind(0)[0]
        base.mul_(2)
        return part
    return {
        "several": lambda: base.split(1)[0],
        "select": lambda: base[1],
        "flat": lambda: base.view(6),
        "expanded": lambda: base[0].expand(4, 3),
        "custom": lambda: Custom.apply(base),
    }[kind]()


def hook_that(result):
    """A tensor with a hook that gives that."""
    x = leaf(2) * 2
    x.register_hook(lambda grad: result)
    return x


class Custom(t.autograd.Function):
    """Gives back a view."""

    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.view(2, 3)


def function_that(forward, backward):
    """A custom function with these two."""
    return type("Made", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def damaged(seed):
    """A saved file with some bytes changed, and perhaps cut off."""
    file = io.BytesIO()
    t.save({"a": leaf(2, 3), "b": [t.arange(3), 1.5]}, file)
    data = bytearray(file.getvalue())
    generator = np.random.default_rng(seed)
    for _ in range(generator.integers(1, 4)):
        data[generator.integers(len(data))] = generator.integers(256)
    return io.BytesIO(bytes(data[: generator.integers(len(data)) if generator.random() < 0.3 else len(data)]))


def optimizer(kind, options):
    """Two steps of an optimizer over parameters of several kinds."""
    parameters = [leaf(2, 3), leaf(0), leaf()]
    made = getattr(t.optim, kind)(parameters, **options)
    for _ in range(2):
        made.zero_grad()
        sum((p * p).sum() for p in parameters).backward()
        made.step()
    return made.state_dict()


REFUSALS = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, OverflowError, HostileError)


def attempt(step):
    """Does something that may be refused."""
    with contextlib.suppress(*REFUSALS):
        step()


def setitem(x, key, value):
    """``x[key] = value`` as an expression."""
    x[key] = value


SCOPE = {
    **NAMES,
    "attempt": attempt,
    "setitem": setitem,
    "t": t,
    "np": np,
    "F": t.nn.functional,
    "inf": float("inf"),
    "nan": float("nan"),
    "leaf": leaf,
    "freed": freed,
    "outdated": outdated,
    "inference": inference,
    "with_node": with_node,
    "hook_that": hook_that,
    "io": io,
    "copy": copy,
    "pickle": pickle,
    "gc": gc,
    "weakref": weakref,
    "function_that": function_that,
    "damaged": damaged,
    "optimizer": optimizer,
    "HostileError": HostileError,
    "Lies": Lies,
    "Meddles": Meddles,
    "bare": bare,
    "changing": changing,
    "growing": growing,
    "unbound": unbound,
    "Refuses": Refuses,
    "Sequence": Sequence,
    "Shrinking": Shrinking,
    "clearing": clearing,
    "endless": endless,
    "structured": structured,
    "Custom": Custom,
}
