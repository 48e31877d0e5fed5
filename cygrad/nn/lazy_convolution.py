"""Lazy convolutions and normalization: the number of channels is that of the first input."""

from typing import Any

import cygrad
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn import convolution, normalization
from cygrad.nn.lazy import LazyModuleMixin
from cygrad.nn.parameter import UninitializedBuffer, UninitializedParameter

__all__ = [f"Lazy{kind}{n}d" for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)]


class _Lazy(LazyModuleMixin):
    """
    Base class of lazy modules, which inherit from one of its subclasses and from the class that they become.

    Parameters
    ----------
    example : tuple, optional
        Arguments as text, shape of the input and shape of the output, for the docstring.
    """

    channels = "num_features"

    def __init_subclass__(cls, example=None, **options):
        super().__init_subclass__(**options)
        if example is not None:
            arguments, shape, result = example
            cls.cls_to_become = cls.__bases__[1]
            name = cls.cls_to_become.__name__
            cls.__doc__ = (f"Lazy variant of `{name}`: ``{cls.channels}`` is that of the first input. Other arguments "
                           f"are the same.\n\nExamples\n--------\n>>> layer = nn.Lazy{name}({arguments})\n"
                           f">>> layer(cygrad.ones{shape}).shape\n{result}\n>>> layer.{cls.channels}\n{shape[1]}\n")


class _LazyConvolution(_Lazy):
    """Base class of lazy convolutions; inherited before the class that they become."""

    channels = "in_channels"
    in_channels: int
    weight: Any
    bias: Any

    def _make(self, out_channels, bias, dtype):
        """Replace empty parameters by uninitialized ones."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(dtype=dtype)

    def initialize_parameters(self, input, *args, **kwargs):
        """Take the number of channels from the input."""
        if not self.has_uninitialized_params():
            if self.in_channels == 0:                      # a state was loaded
                self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            return
        n, name = self.dimensions, self.cls_to_become.__name__
        if as_tensor_argument(f"Lazy{name}", "input", input).ndim not in (n + 1, n + 2):
            raise RuntimeError(f"Lazy{name}: expected {n + 1}D (unbatched) or {n + 2}D (batched) input (got shape "
                               f"{input.shape}).")
        channels = input.shape[-n - 1]
        if channels % self.groups or self.out_channels % self.groups:
            raise ValueError(f"Lazy{name}: groups must divide the channels (got {channels}, {self.out_channels} "
                             f"and {self.groups}).")
        first, second = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
        with cygrad.no_grad():
            self.in_channels = channels
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def reset_parameters(self):
        """Initialize, if materialized."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()  # type: ignore[misc]


class _LazyConv(_LazyConvolution):
    """The arguments of ordinary convolutions without ``in_channels``."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._make(out_channels, bias, dtype)


class _LazyConvTranspose(_LazyConvolution):
    """The arguments of transposed convolutions without ``in_channels``."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._make(out_channels, bias, dtype)


class _LazyStatistics(_Lazy):
    """Base class of lazy normalization; inherited before the class that it becomes."""

    num_features: int

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(dtype=dtype)
            self.running_var = UninitializedBuffer(dtype=dtype)
            self.num_batches_tracked = cygrad.tensor(0, dtype=cygrad.int64)

    def initialize_parameters(self, input):
        """Take the number of channels from the input."""
        self._check_input_dim(input)
        if not self.has_uninitialized_params():
            values = next((value for value in (self.weight, self.running_mean) if value is not None), None)
            if self.num_features == 0 and values is not None:      # a state was loaded
                self.num_features = values.shape[0]
            return
        self.num_features = input.shape[-self._spatial(input) - 1]
        with cygrad.no_grad():
            for values in (self.weight, self.bias, self.running_mean, self.running_var):
                if values is not None:
                    values.materialize((self.num_features,))
        self.reset_parameters()

    def reset_running_stats(self):
        """Set mean 0 and variance 1, if materialized."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_running_stats()  # type: ignore[misc]

    def reset_parameters(self):
        """Set weight 1 and bias 0, if materialized."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()  # type: ignore[misc]


class _LazyBatchNorm(_LazyStatistics):
    def _spatial(self, input):
        return input.ndim - 2


class _LazyInstanceNorm(_LazyStatistics):
    def _spatial(self, input):
        return self.ndims[-1] - 2


class LazyConv1d(_LazyConv, convolution.Conv1d, example=("4, kernel_size=3", (1, 2, 8), (1, 4, 6))):
    pass


class LazyConv2d(_LazyConv, convolution.Conv2d, example=("4, kernel_size=3", (1, 2, 8, 8), (1, 4, 6, 6))):
    pass


class LazyConv3d(_LazyConv, convolution.Conv3d, example=("4, kernel_size=3", (1, 2, 8, 8, 8), (1, 4, 6, 6, 6))):
    pass


class LazyConvTranspose1d(_LazyConvTranspose, convolution.ConvTranspose1d,
                          example=("4, kernel_size=2", (1, 2, 8), (1, 4, 9))):
    pass


class LazyConvTranspose2d(_LazyConvTranspose, convolution.ConvTranspose2d,
                          example=("4, kernel_size=2", (1, 2, 8, 8), (1, 4, 9, 9))):
    pass


class LazyConvTranspose3d(_LazyConvTranspose, convolution.ConvTranspose3d,
                          example=("4, kernel_size=2", (1, 2, 8, 8, 8), (1, 4, 9, 9, 9))):
    pass


class LazyBatchNorm1d(_LazyBatchNorm, normalization.BatchNorm1d, example=("", (4, 3, 2), (4, 3, 2))):
    pass


class LazyBatchNorm2d(_LazyBatchNorm, normalization.BatchNorm2d, example=("", (4, 3, 2, 2), (4, 3, 2, 2))):
    pass


class LazyBatchNorm3d(_LazyBatchNorm, normalization.BatchNorm3d, example=("", (4, 3, 2, 2, 2), (4, 3, 2, 2, 2))):
    pass


class LazyInstanceNorm1d(_LazyInstanceNorm, normalization.InstanceNorm1d, example=("", (2, 3, 5), (2, 3, 5))):
    pass


class LazyInstanceNorm2d(_LazyInstanceNorm, normalization.InstanceNorm2d, example=("", (2, 3, 5, 5), (2, 3, 5, 5))):
    pass


class LazyInstanceNorm3d(_LazyInstanceNorm, normalization.InstanceNorm3d,
                         example=("", (2, 3, 5, 5, 5), (2, 3, 5, 5, 5))):
    pass
