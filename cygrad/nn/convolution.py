"""Convolutions as modules."""

import math

import cygrad
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.functional.convolution import spread
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """Base class of convolutions: sizes, the kernel and the bias. Subclasses set `dimensions`."""

    dimensions = 0
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias,
                 padding_mode, device, dtype):
        super().__init__()
        name, n = type(self).__name__, self.dimensions
        if groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer (got {groups}).")
        for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name}: {what} must be divisible by groups (got {channels} and {groups}).")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"{name}: padding_mode must be one of {_PADDING_MODES} (got {padding_mode!r}).")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, n, name, "kernel_size")
        self.stride = spread(stride, n, name, "stride")
        self.padding = self._padding(padding)
        self.dilation = spread(dilation, n, name, "dilation")
        self.output_padding = spread(output_padding, n, name, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(cygrad.empty(first, second // groups, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(cygrad.empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _padding(self, padding):
        """Return the padding as integers; "same" and "valid" stay."""
        name = type(self).__name__
        if not isinstance(padding, str):
            return spread(padding, self.dimensions, name, "padding")
        if padding not in ("same", "valid"):
            raise ValueError(f"{name}: invalid padding string {padding!r}, should be one of 'valid' and 'same'.")
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"{name}: padding='same' requires a stride of 1 (got stride={self.stride}).")
        return padding

    def reset_parameters(self):
        """Initialize: uniform in ±1/sqrt(fan_in)."""
        if self.weight.numel() == 0:
            return
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.numel() // self.weight.shape[0]
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def _pads(self):
        """Return the padding in the form of `functional.pad`: pairs, last dimension first."""
        if self.padding == "valid":
            return (0,) * 2 * self.dimensions
        if self.padding == "same":
            total = [step * (size - 1) for step, size in zip(self.dilation, self.kernel_size, strict=True)]
            return tuple(part for pads in reversed(total) for part in (pads // 2, pads - pads // 2))
        return tuple(pad for pad in reversed(self.padding) for _ in range(2))

    def extra_repr(self):
        """Return sizes and non-default options."""
        n = self.dimensions
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_Convolution):
    """Base class of ordinary convolutions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
                         padding_mode, device, dtype)

    def forward(self, input):
        """Map shape (batch, in_channels, ...) or (in_channels, ...) to `out_channels` and new sizes."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        """Run `forward` with the given weight and bias; subclasses call and override it."""
        function, padding = getattr(F, f"conv{self.dimensions}d"), self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._pads(), mode=self.padding_mode), 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """
    Convolve sequences with a learned kernel.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride : int or tuple, default 1
    padding : int, tuple, "valid" or "same", default 0
    dilation : int or tuple, default 1
    groups : int, default 1
        Number of groups: output channels of a group depend on its input channels only.
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        How the input is padded.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (out_channels, in_channels / groups, kernel size)
    bias : Parameter of shape (out_channels,), or None

    Raises
    ------
    ValueError
        If `groups` does not divide the channels, or an option is unknown.

    Examples
    --------
    >>> cygrad.nn.Conv1d(3, 8, 5, padding=2)(cygrad.ones(4, 3, 100)).shape
    (4, 8, 100)
    """

    dimensions = 1


class Conv2d(_Conv):
    """
    Convolve images with a learned kernel; parameters as for `Conv1d`, numbers or pairs of them.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple of two
    stride : int or tuple of two, default 1
    padding : int, tuple of two, "valid" or "same", default 0
    dilation : int or tuple of two, default 1
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (out_channels, in_channels / groups, kernel height, kernel width)
    bias : Parameter of shape (out_channels,), or None

    Examples
    --------
    >>> cygrad.nn.Conv2d(3, 8, 3, stride=2)(cygrad.ones(4, 3, 9, 9)).shape
    (4, 8, 4, 4)
    """

    dimensions = 2


class Conv3d(_Conv):
    """
    Convolve volumes with a learned kernel; parameters as for `Conv1d`, numbers or triples of them.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple of three
    stride : int or tuple of three, default 1
    padding : int, tuple of three, "valid" or "same", default 0
    dilation : int or tuple of three, default 1
    groups : int, default 1
    bias : bool, default True
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> layer = nn.Conv3d(2, 4, kernel_size=3, padding=1)
    >>> layer(cygrad.ones(1, 2, 5, 5, 5)).shape
    (1, 4, 5, 5, 5)
    """

    dimensions = 3


class _ConvTranspose(_Convolution):
    """Base class of transposed convolutions."""

    transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: only 'zeros' padding mode is supported (got {padding_mode!r}).")
        if isinstance(padding, str):
            raise TypeError(f"{type(self).__name__}: padding must be an integer or integers (got {padding!r}).")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups,
                         bias, padding_mode, device, dtype)

    def forward(self, input, output_size=None):
        """Map shape (batch, in_channels, ...) or (in_channels, ...) to `out_channels` and larger sizes."""
        function = getattr(F, f"conv_transpose{self.dimensions}d")
        output_padding = self._output_padding(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups,
                        self.dilation)

    def _output_padding(self, input, output_size):
        """Return the output padding that results in `output_size`."""
        if output_size is None:
            return self.output_padding
        n = self.dimensions
        sizes = list(output_size)[-n:]
        if len(output_size) not in (n, input.ndim):
            raise ValueError(f"{type(self).__name__}: output_size must have {n} or {input.ndim} elements (got "
                             f"{len(output_size)}).")
        least = [(size - 1) * step - 2 * pad + reach * (kernel - 1) + 1
                 for size, step, pad, reach, kernel in zip(input.shape[-n:], self.stride, self.padding, self.dilation,
                                                           self.kernel_size, strict=True)]
        for size, low, step in zip(sizes, least, self.stride, strict=True):
            if not low <= size <= low + step - 1:
                raise ValueError(f"{type(self).__name__}: requested an output size of {sizes}, but valid sizes range "
                                 f"from {least} to {[a + b - 1 for a, b in zip(least, self.stride, strict=True)]} (for "
                                 f"an input of {list(input.shape[-n:])}).")
        return tuple(size - low for size, low in zip(sizes, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """
    Apply a transposed convolution to sequences: the transpose of `Conv1d`.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride : int or tuple, default 1
    padding, output_padding : int or tuple, default 0
    groups : int, default 1
    bias : bool, default True
    dilation : int or tuple, default 1
    padding_mode : "zeros"
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (in_channels, out_channels / groups, kernel size)
    bias : Parameter of shape (out_channels,), or None

    Examples
    --------
    >>> cygrad.nn.ConvTranspose1d(3, 8, 2, stride=2)(cygrad.ones(4, 3, 10)).shape
    (4, 8, 20)
    """

    dimensions = 1


class ConvTranspose2d(_ConvTranspose):
    """
    Apply a transposed convolution to images; parameters as for `ConvTranspose1d`, numbers or pairs of them.

    Examples
    --------
    >>> layer = nn.ConvTranspose2d(4, 2, kernel_size=2, stride=2)
    >>> layer(cygrad.ones(1, 4, 8, 8)).shape
    (1, 2, 16, 16)
    """

    dimensions = 2


class ConvTranspose3d(_ConvTranspose):
    """
    Apply a transposed convolution to volumes; parameters as for `ConvTranspose1d`, numbers or triples.

    Examples
    --------
    >>> layer = nn.ConvTranspose3d(4, 2, kernel_size=2, stride=2)
    >>> layer(cygrad.ones(1, 4, 2, 2, 2)).shape
    (1, 2, 4, 4, 4)
    """

    dimensions = 3


class Unfold(Module):
    """
    Extract patches of images as columns of matrices (im2col).

    Parameters
    ----------
    kernel_size : int or tuple of two
    dilation : int or tuple of two, default 1
    padding : int or tuple of two, default 0
    stride : int or tuple of two, default 1

    Examples
    --------
    >>> nn.Unfold(kernel_size=2)(cygrad.arange(9.0).reshape(1, 1, 3, 3)).shape
    (1, 4, 4)
    """

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input):
        """Map shape (batch, channels, height, width) to (batch, channels * elements of a patch, patches)."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        """Return the sizes."""
        return (f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
                f"stride={self.stride}")


class Fold(Module):
    """
    Sum columns of matrices into overlapping patches of images (col2im); the transpose of `Unfold`.

    Parameters
    ----------
    output_size, kernel_size : int or tuple of two
    dilation : int or tuple of two, default 1
    padding : int or tuple of two, default 0
    stride : int or tuple of two, default 1

    Examples
    --------
    >>> columns = cygrad.ones(1, 4, 4)
    >>> nn.Fold((3, 3), kernel_size=2)(columns)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input):
        """Map shape (batch, channels * elements of a patch, patches) to (batch, channels, height, width)."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        """Return the sizes."""
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")
