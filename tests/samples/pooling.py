"""Samples: pooling and its inverse."""

import cygrad

from .sample import Sample, at, call, fails, only_floating


def distinct(shape, *arguments, **kwargs):
    """A builder: elements that are far from each other, so that finite differences keep to one maximum."""

    def build(make, dtype):
        values = make(shape)
        order = values.flatten().argsort().argsort()
        return Sample((order.reshape(shape).to(dtype) * 0.5, *arguments), kwargs)

    return build


def unpooling(kernel_size, shape, **kwargs):
    """Elements and places that no two of them share."""

    def build(make, dtype):
        n = len(shape) - 2
        small = [size // kernel_size for size in shape[2:]]
        grid = cygrad.arange(cygrad.tensor(small).prod().item()).reshape(small)
        places = cygrad.zeros(small, dtype=cygrad.int64)
        step = 1
        for dim in range(n - 1, -1, -1):
            where = grid // cygrad.tensor(small[dim + 1:] or [1]).prod().item() % small[dim]
            places = places + where * kernel_size * step
            step *= shape[2 + dim]
        places = places.expand(*shape[:2], *small).clone()
        return Sample((make((*shape[:2], *small)), places, kernel_size), kwargs)

    return build


def out_of_bounds(make, dtype):
    return Sample((make((1, 1, 2)), cygrad.tensor([[[0, 4]]]), 2), error=RuntimeError, match="invalid index")


def nowhere(make, dtype):
    return Sample((make((1, 1, 2)), cygrad.tensor([[[0, -1]]]), 2), error=RuntimeError, match="invalid index")


SAMPLES = {
    "max_pool1d": [
        distinct((2, 3, 7), 2),
        distinct((3, 7), 3, 1, 1, 2, ceil_mode=True),
        distinct((2, 1, 6), 3, stride=2, ceil_mode=True, return_indices=True),
        distinct((0, 2, 5), 2),
        at([[[[1.0, 2.0, 2.0, 0.0]]]], [[[0.0, 1.0, 0.0, 0.0]]], kernel_size=4),
        at([[[[1.0, float("nan"), 2.0]]]], [[[0.0, 1.0, 0.0]]], kernel_size=3),
        *only_floating([at([[[[5.0, 7.0]]]], [[[0.0, 0.0]]], kernel_size=2, stride=1, padding=1, dilation=3)]),
        fails(RuntimeError, "max_pool1d: expected 2D", (2,), 2),
        fails(RuntimeError, "max_pool1d: the output size is too small", (1, 1, 2), 3),
        fails(RuntimeError, "max_pool1d: padding should be at most half", (1, 1, 4), 2, padding=2),
        fails(RuntimeError, "non-positive stride", (1, 1, 4), 2, stride=0),
        fails(RuntimeError, "non-positive kernel_size", (1, 1, 4), 0),
        fails(RuntimeError, "non-zero sizes except for the batch", (1, 0, 4), 2),
    ],
    "max_pool2d": [
        distinct((2, 2, 5, 6), 2),
        distinct((2, 4, 4), (3, 2), (2, 1), (1, 0), return_indices=True),
        distinct((1, 1, 6, 6), 2, dilation=2),
        fails(RuntimeError, "kernel_size must be", (1, 1, 4, 4), [2, 2, 2]),
    ],
    "max_pool3d": [distinct((1, 2, 3, 4, 4), 2), distinct((2, 3, 3, 3), 2, 1, 1)],
    "avg_pool1d": [
        call((2, 3, 7), 2),
        call((3, 7), 3, 1, 1, True, False),
        call((2, 1, 6), 3, stride=2, padding=1, ceil_mode=True),
        call((0, 2, 5), 2),
        fails(RuntimeError, "avg_pool1d: the output size is too small", (1, 1, 2), 3),
    ],
    "avg_pool2d": [
        call((2, 2, 5, 6), 2),
        call((2, 4, 4), [3, 2], [2, 1], [1, 1], count_include_pad=False),
        call((1, 2, 5, 5), 2, ceil_mode=True, divisor_override=3),
        fails(RuntimeError, "divisor_override must not be zero", (1, 1, 4, 4), 2, divisor_override=0),
    ],
    "avg_pool3d": [call((1, 2, 3, 4, 4), 2), call((2, 3, 3, 3), 2, 1, 1, True)],
    "lp_pool1d": [call((2, 2, 5), 2.0, 2, low=0.5), call((2, 5), 3, 3, stride=1, low=0.5)],
    "lp_pool2d": [call((1, 2, 4, 5), 2.0, [2, 3], low=0.5), call((2, 5, 5), 1.0, 2, ceil_mode=True, low=0.5)],
    "lp_pool3d": [call((1, 2, 2, 4, 3), 2.0, 2, low=0.5)],
    "adaptive_max_pool1d": [distinct((2, 2, 7), 3), distinct((2, 5), 5, return_indices=True)],
    "adaptive_max_pool2d": [
        distinct((1, 2, 5, 4), (2, 3)),
        distinct((2, 4, 4), (None, 2)),
        fails(RuntimeError, "output_size must be", (1, 1, 4, 4), [2]),
    ],
    "adaptive_max_pool3d": [distinct((1, 1, 3, 4, 5), 2)],
    "adaptive_avg_pool1d": [call((2, 2, 7), 3), *only_floating([call((2, 5), 0)])],
    "adaptive_avg_pool2d": [
        call((1, 2, 5, 4), [2, 3]),
        call((2, 4, 4), [None, 7]),
        fails(RuntimeError, "negative output_size", (1, 1, 4, 4), -1),
    ],
    "adaptive_avg_pool3d": [call((1, 1, 3, 4, 5), [2, 1, 2])],
    "max_unpool1d": [
        unpooling(2, (2, 2, 6)),
        unpooling(2, (1, 1, 5), output_size=(5,)),
        out_of_bounds,
        nowhere,
        lambda make, dtype: Sample((make((1, 1, 2)), cygrad.tensor([[[0, 1]]]), 2), {"output_size": (9,)},
                                   error=ValueError, match="invalid output_size"),
    ],
    "max_unpool2d": [unpooling(2, (1, 2, 4, 6)), unpooling(2, (1, 1, 4, 4), output_size=(1, 1, 5, 4))],
    "max_unpool3d": [unpooling(2, (1, 2, 2, 4, 4))],
}
HELPERS = {
    "max_pool": "max_pool2d", "adaptive_max_pool": "adaptive_max_pool2d", "avg_pool": "avg_pool2d",
    "adaptive_avg_pool": "adaptive_avg_pool2d", "max_unpool": "max_unpool2d", "max_pool_backward": "max_pool2d",
    "max_pool_gather": "max_unpool2d", "avg_pool_backward": "avg_pool2d",
    "adaptive_avg_pool_backward": "adaptive_avg_pool2d",
}
