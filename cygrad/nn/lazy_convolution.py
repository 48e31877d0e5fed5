"""Lazy convolutions and normalization: their first input decides the number of channels."""

import cygrad
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn import convolution, normalization
from cygrad.nn.lazy import LazyModuleMixin
from cygrad.nn.parameter import UninitializedBuffer, UninitializedParameter

__all__ = [f"Lazy{kind}{n}d" for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)]


class _LazyConvolution(LazyModuleMixin):
    """Base class of lazy convolutions; inherited before the class that they become."""

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


class _LazyStatistics(LazyModuleMixin):
    """Base class of lazy normalization; inherited before the class that it becomes."""

    def _make(self, affine, track_running_stats, bias, dtype):
        """Set uninitialized parameters and buffers."""
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
            super().reset_running_stats()

    def reset_parameters(self):
        """Set weight 1 and bias 0, if materialized."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()


class _LazyBatchNorm(_LazyStatistics):
    """The arguments of batch normalization without ``num_features``."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self._make(affine, track_running_stats, bias, dtype)

    def _spatial(self, input):
        return input.ndim - 2


class _LazyInstanceNorm(_LazyStatistics):
    """The arguments of instance normalization without ``num_features``."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self._make(affine, track_running_stats, bias, dtype)

    def _spatial(self, input):
        return self.ndims[-1] - 2


class LazyConv1d(_LazyConv, convolution.Conv1d):
    """
    A `Conv1d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConv1d(4, kernel_size=3)
    >>> layer(cygrad.ones(1, 2, 8)).shape
    (1, 4, 6)
    >>> layer.in_channels
    2
    """

    cls_to_become = convolution.Conv1d


class LazyConv2d(_LazyConv, convolution.Conv2d):
    """
    A `Conv2d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConv2d(4, kernel_size=3)
    >>> layer(cygrad.ones(1, 2, 8, 8)).shape
    (1, 4, 6, 6)
    >>> layer.in_channels
    2
    """

    cls_to_become = convolution.Conv2d


class LazyConv3d(_LazyConv, convolution.Conv3d):
    """
    A `Conv3d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConv3d(4, kernel_size=3)
    >>> layer(cygrad.ones(1, 2, 8, 8, 8)).shape
    (1, 4, 6, 6, 6)
    """

    cls_to_become = convolution.Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, convolution.ConvTranspose1d):
    """
    A `ConvTranspose1d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConvTranspose1d(4, kernel_size=2)
    >>> layer(cygrad.ones(1, 2, 8)).shape
    (1, 4, 9)
    """

    cls_to_become = convolution.ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, convolution.ConvTranspose2d):
    """
    A `ConvTranspose2d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConvTranspose2d(4, kernel_size=2)
    >>> layer(cygrad.ones(1, 2, 8, 8)).shape
    (1, 4, 9, 9)
    """

    cls_to_become = convolution.ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, convolution.ConvTranspose3d):
    """
    A `ConvTranspose3d` whose ``in_channels`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> layer = nn.LazyConvTranspose3d(4, kernel_size=2)
    >>> layer(cygrad.ones(1, 2, 3, 3, 3)).shape
    (1, 4, 4, 4, 4)
    """

    cls_to_become = convolution.ConvTranspose3d


class LazyBatchNorm1d(_LazyBatchNorm, normalization.BatchNorm1d):
    """
    A `BatchNorm1d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyBatchNorm1d()(cygrad.randn(4, 3)).shape
    (4, 3)
    """

    cls_to_become = normalization.BatchNorm1d


class LazyBatchNorm2d(_LazyBatchNorm, normalization.BatchNorm2d):
    """
    A `BatchNorm2d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyBatchNorm2d()(cygrad.randn(4, 3, 2, 2)).shape
    (4, 3, 2, 2)
    """

    cls_to_become = normalization.BatchNorm2d


class LazyBatchNorm3d(_LazyBatchNorm, normalization.BatchNorm3d):
    """
    A `BatchNorm3d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyBatchNorm3d()(cygrad.randn(4, 3, 2, 2, 2)).shape
    (4, 3, 2, 2, 2)
    """

    cls_to_become = normalization.BatchNorm3d


class LazyInstanceNorm1d(_LazyInstanceNorm, normalization.InstanceNorm1d):
    """
    A `InstanceNorm1d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyInstanceNorm1d()(cygrad.randn(2, 3, 5)).shape
    (2, 3, 5)
    """

    cls_to_become = normalization.InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm, normalization.InstanceNorm2d):
    """
    A `InstanceNorm2d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyInstanceNorm2d()(cygrad.randn(2, 3, 5, 5)).shape
    (2, 3, 5, 5)
    """

    cls_to_become = normalization.InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm, normalization.InstanceNorm3d):
    """
    A `InstanceNorm3d` whose ``num_features`` is that of its first input; the other arguments are the same.

    Examples
    --------
    >>> nn.LazyInstanceNorm3d()(cygrad.randn(2, 3, 5, 5, 5)).shape
    (2, 3, 5, 5, 5)
    """

    cls_to_become = normalization.InstanceNorm3d
