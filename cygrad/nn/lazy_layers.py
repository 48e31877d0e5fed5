"""Convolutions and normalisations that learn how many channels there are from their first input."""

import cygrad
from cygrad.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from cygrad.nn.lazy import LazyModuleMixin
from cygrad.nn.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from cygrad.nn.parameter import UninitializedBuffer, UninitializedParameter

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
           "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d",
           "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _LazyChannels(LazyModuleMixin):
    """What all lazy convolutions share."""

    def _begin(self, out_channels, bias, dtype):
        """Parameters without shape in place of those that were made for no channels."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(dtype=dtype)

    def reset_parameters(self):
        """Draw new values, if there is room for them."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Take the number of channels from the first input."""
        if input.ndim not in (self.dimensions + 1, self.dimensions + 2):
            raise RuntimeError(f"Expected {self.dimensions + 1}D (unbatched) or {self.dimensions + 2}D (batched) input "
                               f"to {type(self).__name__}, but got input of size: {tuple(input.shape)}")
        self.in_channels = input.shape[-self.dimensions - 1]
        if self.in_channels % self.groups:
            raise ValueError(f"{type(self).__name__}: in_channels must be divisible by groups (got {self.in_channels} "
                             f"and {self.groups}).")
        if self.has_uninitialized_params():
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            with cygrad.no_grad():
                self.weight.materialize((first, second // self.groups, *self.kernel_size))
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()


class _LazyConv(_LazyChannels):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._begin(out_channels, bias, dtype)


class _LazyConvTranspose(_LazyChannels):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._begin(out_channels, bias, dtype)


class _LazyNorm(LazyModuleMixin):
    """What all lazy normalisations share."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(dtype=dtype)
            self.running_var = UninitializedBuffer(dtype=dtype)
            self.num_batches_tracked = cygrad.tensor(0)

    def reset_parameters(self):
        """Fresh values, if there is room for them."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Take the number of channels from the first input."""
        self._check_input_dim(input)
        without_batch = isinstance(self, _Instances) and input.ndim == self.ndims[0]
        self.num_features = n = input.shape[0 if without_batch else 1]
        if self.has_uninitialized_params():
            with cygrad.no_grad():
                for parameter in self._parameters.values():
                    if parameter is not None:
                        parameter.materialize((n,))
                if self.track_running_stats:
                    self.running_mean = cygrad.zeros(n, dtype=self.running_mean.dtype)
                    self.running_var = cygrad.ones(n, dtype=self.running_var.dtype)
                self.reset_parameters()


class _Instances(_LazyNorm):
    """Instance normalisation also takes inputs without a batch."""


class LazyConv1d(_LazyConv, Conv1d):
    """
    A convolution that learns the number of input channels from its first input; then it is a `Conv1d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype : optional
        As for `Conv1d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConv1d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5)).shape
    (1, 4, 3)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """
    A convolution that learns the number of input channels from its first input; then it is a `Conv2d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype : optional
        As for `Conv2d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConv2d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5, 5)).shape
    (1, 4, 3, 3)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """
    A convolution that learns the number of input channels from its first input; then it is a `Conv3d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype : optional
        As for `Conv3d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConv3d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5, 5, 5)).shape
    (1, 4, 3, 3, 3)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """
    A transposed convolution that learns the number of channels from its first input; then it is a `ConvTranspose1d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, output_padding, groups, bias : optional
    dilation, padding_mode : optional
    device, dtype : optional
        As for `ConvTranspose1d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConvTranspose1d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5)).shape
    (1, 4, 7)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """
    A transposed convolution that learns the number of channels from its first input; then it is a `ConvTranspose2d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, output_padding, groups, bias : optional
    dilation, padding_mode : optional
    device, dtype : optional
        As for `ConvTranspose2d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConvTranspose2d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5, 5)).shape
    (1, 4, 7, 7)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """
    A transposed convolution that learns the number of channels from its first input; then it is a `ConvTranspose3d`.

    Parameters
    ----------
    out_channels, kernel_size, stride, padding, output_padding, groups, bias : optional
    dilation, padding_mode : optional
    device, dtype : optional
        As for `ConvTranspose3d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyConvTranspose3d(4, 3)
    >>> layer(cygrad.ones(1, 3, 5, 5, 5)).shape
    (1, 4, 7, 7, 7)
    """

    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """
    Batch normalisation that learns the number of channels from its first input; then it is a `BatchNorm1d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `BatchNorm1d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyBatchNorm1d()
    >>> layer(cygrad.ones(2, 3, 5)).shape
    (2, 3, 5)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """
    Batch normalisation that learns the number of channels from its first input; then it is a `BatchNorm2d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `BatchNorm2d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyBatchNorm2d()
    >>> layer(cygrad.ones(2, 3, 5, 5)).shape
    (2, 3, 5, 5)
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """
    Batch normalisation that learns the number of channels from its first input; then it is a `BatchNorm3d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `BatchNorm3d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyBatchNorm3d()
    >>> layer(cygrad.ones(2, 3, 5, 5, 5)).shape
    (2, 3, 5, 5, 5)
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_Instances, InstanceNorm1d):
    """
    Instance normalisation that learns the number of channels from its first input; then it is a `InstanceNorm1d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `InstanceNorm1d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyInstanceNorm1d()
    >>> layer(cygrad.ones(2, 3, 5)).shape
    (2, 3, 5)
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_Instances, InstanceNorm2d):
    """
    Instance normalisation that learns the number of channels from its first input; then it is a `InstanceNorm2d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `InstanceNorm2d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyInstanceNorm2d()
    >>> layer(cygrad.ones(2, 3, 5, 5)).shape
    (2, 3, 5, 5)
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_Instances, InstanceNorm3d):
    """
    Instance normalisation that learns the number of channels from its first input; then it is a `InstanceNorm3d`.

    Parameters
    ----------
    eps, momentum, affine, track_running_stats, device, dtype, bias : optional
        As for `InstanceNorm3d`.

    Examples
    --------
    >>> import cygrad
    >>> layer = cygrad.nn.LazyInstanceNorm3d()
    >>> layer(cygrad.ones(2, 3, 5, 5, 5)).shape
    (2, 3, 5, 5, 5)
    """

    cls_to_become = InstanceNorm3d
