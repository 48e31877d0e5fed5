"""Names with an underscore that programs for PyTorch use all the same: base classes, mostly, by which they ask."""

import cygrad
from cygrad.nn import normalization, pooling
from cygrad.nn.convolution import _Conv, _Convolution, _ConvTranspose
from cygrad.nn.dropout import _Dropout
from cygrad.nn.loss import Loss, WeightedLoss
from cygrad.optim.lr_scheduler import LRScheduler

_ConvNd, _ConvTransposeNd, _ConvTransposeMixin = _Convolution, _ConvTranspose, _ConvTranspose
_BatchNorm, _InstanceNorm, _NormBase = normalization._BatchNorm, normalization._InstanceNorm, normalization._Statistics
_MaxPoolNd, _AvgPoolNd, _LPPoolNd = pooling._MaxPool, pooling._AvgPool, pooling._LPPool
_AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd, _MaxUnpoolNd = (
    pooling._AdaptiveAvgPool, pooling._AdaptiveMaxPool, pooling._MaxUnpool)
_Loss, _WeightedLoss, _LRScheduler = Loss, WeightedLoss, LRScheduler
_Conv = _Conv


class _Either(type):
    """A question with `isinstance` that several classes answer."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.classes)


class _DropoutNd(metaclass=_Either):
    """Layers that leave elements or channels out."""

    classes = (_Dropout,)


def _ntuple(n, name="parse"):
    """A function that repeats a number n times and makes a tuple of what is iterable."""
    def parse(value):
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n
    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = map(_ntuple, (1, 2, 3, 4))


def _reverse_repeat_tuple(values, n):
    """The values in reverse, each n times."""
    return tuple(value for value in reversed(values) for _ in range(n))


def _list_with_default(sizes, defaults):
    """Sizes, with those of `defaults` from the end for None."""
    return [default if size is None else size
            for size, default in zip(sizes, defaults[-len(sizes):], strict=True)]


def factory_kwargs(kwargs):
    """Those of the keyword arguments that factories take: device, dtype, memory_format."""
    unknown = set(kwargs) - {"device", "dtype", "factory_kwargs", "memory_format"}
    if unknown:
        raise TypeError(f"factory_kwargs: unexpected keyword arguments (got {', '.join(sorted(unknown))}).")
    given = dict(kwargs.get("factory_kwargs") or {})
    return given | {name: value for name, value in kwargs.items() if name != "factory_kwargs"}


class NonDynamicallyQuantizableLinear(cygrad.nn.Linear):
    """A linear layer."""
