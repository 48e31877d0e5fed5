"""One set of arguments, and builders that many operators share.

A builder gives None for a dtype that its arguments are not meant for.
"""

from dataclasses import dataclass, field

import cygrad


@dataclass
class Sample:
    """Arguments of a call, and its expected results.

    Attributes
    ----------
    args, kwargs : the arguments.
    check_gradient : compare derivatives with finite differences (False at kinks and jumps).
    gradients : expected gradients of the sum of the result with respect to the floating tensors in `args`, as
        nested lists; for points where finite differences say nothing.
    fixed : positions and keywords of floating tensors that have no derivative.
    any_layout : the result depends on the elements only, not on where in memory they lie.
    error, match : the exception that the call must raise, and what its text must match.
    """

    args: tuple
    kwargs: dict = field(default_factory=dict)
    check_gradient: bool = True
    gradients: tuple | None = None
    fixed: tuple = ()
    any_layout: bool = True
    error: type | None = None
    match: str = ""


def call(*shapes, low=-2, high=2, **kwargs):
    """Return a builder: tuples become tensors of these shapes, other arguments are passed on."""

    def build(make, dtype):
        return Sample(tuple(make(shape, low, high) if isinstance(shape, tuple) else shape for shape in shapes), kwargs)

    return build


def unary(low=-2, high=2, **kwargs):
    """Builders for functions of one tensor: normal, transposed, strided, 0-dim and without elements."""
    return [
        call((2, 3), low=low, high=high, **kwargs),
        lambda make, dtype: Sample((make((3, 2), low, high).t(),), kwargs),
        lambda make, dtype: Sample((make((6,), low, high)[::2],), kwargs),
        call((), low=low, high=high, **kwargs),
        call((0, 3), low=low, high=high, **kwargs),
    ]


def binary(low=-2, high=2, other_low=None, other_high=None, number=None, **kwargs):
    """Builders for functions of two tensors: normal, broadcast, transposed, 0-dim, without elements, with a number."""
    second = (low if other_low is None else other_low, high if other_high is None else other_high)

    def pair(first_shape, second_shape):
        return lambda make, dtype: Sample((make(first_shape, low, high), make(second_shape, *second)), kwargs)

    builders = [
        pair((2, 3), (2, 3)),
        pair((2, 1, 3), (4, 1)),
        pair((), (3,)),
        pair((2, 2), ()),
        pair((), ()),
        pair((0, 3), (1, 3)),
        lambda make, dtype: Sample((make((3, 2), low, high).t(), make((2, 3), *second)), kwargs),
    ]
    if number is not None:
        builders.append(lambda make, dtype: Sample((make((2, 3), low, high), number), kwargs))
    return builders


def at(values, *expected, **kwargs):
    """A builder: real tensors with these elements, where the gradients of the sum must be `expected`."""

    def build(make, dtype):
        if dtype.is_complex:
            return None
        tensors = tuple(cygrad.tensor(value, dtype=dtype) for value in values)
        return Sample(tensors, kwargs, check_gradient=False, gradients=expected)

    return build


def fails(error, match, *arguments, **kwargs):
    """A builder: a call that must raise; arguments that are tuples become tensors of that shape."""

    def build(make, dtype):
        made = tuple(make(value) if isinstance(value, tuple) else value for value in arguments)
        return Sample(made, kwargs, error=error, match=match)

    return build


def without_gradient(builders):
    """The same samples, with nothing to be differentiated."""

    def wrapped(builder):
        def build(make, dtype):
            sample = builder(make, dtype)
            if sample is not None:
                sample.check_gradient = False
            return sample

        return build

    return [wrapped(builder) for builder in builders]


def only_real(builders):
    """The same samples, for real tensors only."""
    return [
        lambda make, dtype, builder=builder: None if dtype.is_complex else builder(make, dtype) for builder in builders
    ]


def only_floating(builders):
    """The same samples, not for integers."""

    def wrapped(builder):
        return lambda make, dtype: builder(make, dtype) if dtype.is_floating_point or dtype.is_complex else None

    return [wrapped(builder) for builder in builders]


def integers(values):
    """An int64 tensor."""
    return cygrad.tensor(values, dtype=cygrad.int64)


def of_one_layout(builders):
    """Mark samples whose result depends on the layout of their tensors."""

    def wrapped(builder):
        def build(make, dtype):
            sample = builder(make, dtype)
            if sample is not None:
                sample.any_layout = False
            return sample

        return build

    return [wrapped(builder) for builder in builders]
