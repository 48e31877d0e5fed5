"""Pooling as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.convolution import spread
from cygrad.nn.module import Module

__all__ = [f"{kind}{n}d" for kind in ("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "LPPool", "MaxPool", "MaxUnpool")
           for n in (1, 2, 3)]


class _MaxPool(Module):
    """Base class of max pooling."""

    dimensions = 0

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to one element for each window."""
        function = getattr(F, f"max_pool{self.dimensions}d")
        return function(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
                        self.return_indices)

    def extra_repr(self):
        """Return the sizes."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class _MaxUnpool(Module):
    """Base class of max unpooling."""

    dimensions = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        name, n = type(self).__name__, self.dimensions
        self.kernel_size = spread(kernel_size, n, name, "kernel_size")
        self.stride = spread(stride if stride is not None else kernel_size, n, name, "stride")
        self.padding = spread(padding, n, name, "padding")

    def forward(self, input, indices, output_size=None):
        """Map values and indices of max pooling to the larger tensor."""
        function = getattr(F, f"max_unpool{self.dimensions}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        """Return the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """Base class of average pooling."""

    dimensions = 0

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                 divisor_override=None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to one element for each window."""
        function = getattr(F, f"avg_pool{self.dimensions}d")
        return function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                        self.divisor_override)

    def extra_repr(self):
        """Return the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPool(Module):
    """Base class of p-norm pooling."""

    dimensions = 0

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to one element for each window."""
        function = getattr(F, f"lp_pool{self.dimensions}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        """Return the sizes."""
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class _AdaptiveMaxPool(Module):
    """Base class of adaptive max pooling."""

    dimensions = 0

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to the given sizes."""
        return getattr(F, f"adaptive_max_pool{self.dimensions}d")(input, self.output_size, self.return_indices)

    def extra_repr(self):
        """Return the sizes."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Module):
    """Base class of adaptive average pooling."""

    dimensions = 0

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to the given sizes."""
        return getattr(F, f"adaptive_avg_pool{self.dimensions}d")(input, self.output_size)

    def extra_repr(self):
        """Return the sizes."""
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool):
    """
    Return the maximum of each window of sequences.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        Step between windows; the kernel size by default.
    padding : int or tuple, default 0
    dilation : int or tuple, default 1
    return_indices : bool, default False
        Whether the indices of the maxima are returned too.
    ceil_mode : bool, default False
        Whether windows that exceed the end of the input count.

    Examples
    --------
    >>> nn.MaxPool1d(2)(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    dimensions = 1


class MaxPool2d(_MaxPool):
    """
    Return the maximum of each window of images; parameters as for `MaxPool1d`.

    Examples
    --------
    >>> nn.MaxPool2d(2)(cygrad.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    dimensions = 2


class MaxPool3d(_MaxPool):
    """
    Return the maximum of each window of volumes; parameters as for `MaxPool1d`.

    Examples
    --------
    >>> nn.MaxPool3d(2)(cygrad.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    dimensions = 3


class MaxUnpool1d(_MaxUnpool):
    """
    Invert `MaxPool1d` partially: write elements to the indices of the maxima, and zeros elsewhere.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
    padding : int or tuple, default 0

    Examples
    --------
    >>> pool, unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)
    >>> unpool(*pool(cygrad.tensor([[1.0, 3.0, 2.0, 0.0]])))
    tensor([[0., 3., 2., 0.]])
    """

    dimensions = 1


class MaxUnpool2d(_MaxUnpool):
    """
    Invert `MaxPool2d` partially; parameters as for `MaxUnpool1d`.

    Examples
    --------
    >>> pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    >>> unpool(*pool(cygrad.arange(4.0).reshape(1, 2, 2)))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    dimensions = 2


class MaxUnpool3d(_MaxUnpool):
    """
    Invert `MaxPool3d` partially; parameters as for `MaxUnpool1d`.

    Examples
    --------
    >>> pool, unpool = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)
    >>> unpool(*pool(cygrad.arange(8.0).reshape(1, 2, 2, 2))).sum()
    tensor(7.)
    """

    dimensions = 3


class AvgPool1d(_AvgPool):
    """
    Average each window of sequences.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        Step between windows; the kernel size by default.
    padding : int or tuple, default 0
    ceil_mode : bool, default False
        Whether windows that exceed the end of the input count.
    count_include_pad : bool, default True
        Whether padding counts in the divisor.

    Examples
    --------
    >>> nn.AvgPool1d(2)(cygrad.arange(6.0).reshape(1, 6))
    tensor([[0.5000, 2.5000, 4.5000]])
    """

    dimensions = 1

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__(spread(kernel_size, 1, "AvgPool1d", "kernel_size"),
                         spread(stride if stride is not None else kernel_size, 1, "AvgPool1d", "stride"),
                         spread(padding, 1, "AvgPool1d", "padding"), ceil_mode, count_include_pad)

    def forward(self, input):
        """Map shape (batch, channels, length), or the same without the batch, to one element for each window."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class AvgPool2d(_AvgPool):
    """
    Average each window of images.

    Parameters as for `AvgPool1d`, and `divisor_override`, the divisor of sums.

    Examples
    --------
    >>> nn.AvgPool2d(2)(cygrad.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    dimensions = 2


class AvgPool3d(_AvgPool):
    """
    Average each window of volumes.

    Parameters as for `AvgPool1d`, and `divisor_override`, the divisor of sums.

    Examples
    --------
    >>> nn.AvgPool3d(2)(cygrad.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    dimensions = 3


class LPPool1d(_LPPool):
    """
    Compute the p-norm of each window of sequences.

    Parameters
    ----------
    norm_type : float
        Order of the norm.
    kernel_size : int or tuple
    stride : int or tuple, optional
    ceil_mode : bool, default False

    Examples
    --------
    >>> nn.LPPool1d(2, 2)(cygrad.tensor([[3.0, 4.0, 0.0, 1.0]]))
    tensor([[5., 1.]])
    """

    dimensions = 1


class LPPool2d(_LPPool):
    """
    Compute the p-norm of each window of images; parameters as for `LPPool1d`.

    Examples
    --------
    >>> nn.LPPool2d(2, 2)(cygrad.ones(1, 4, 4))
    tensor([[[2., 2.],
             [2., 2.]]])
    """

    dimensions = 2


class LPPool3d(_LPPool):
    """
    Compute the p-norm of each window of volumes; parameters as for `LPPool1d`.

    Examples
    --------
    >>> nn.LPPool3d(1, 2)(cygrad.ones(1, 2, 2, 2))
    tensor([[[[8.]]]])
    """

    dimensions = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """
    Return the maxima of `output_size` windows of nearly equal size of sequences.

    Parameters
    ----------
    output_size : int or tuple
        None keeps a size of the input.
    return_indices : bool, default False

    Examples
    --------
    >>> nn.AdaptiveMaxPool1d(2)(cygrad.arange(6.0).reshape(1, 6))
    tensor([[2., 5.]])
    """

    dimensions = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """
    Return the maxima of `output_size` windows of nearly equal size of images; parameters as for `AdaptiveMaxPool1d`.

    Examples
    --------
    >>> nn.AdaptiveMaxPool2d((2, None))(cygrad.arange(8.0).reshape(1, 4, 2))
    tensor([[[2., 3.],
             [6., 7.]]])
    """

    dimensions = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """
    Return the maxima of `output_size` windows of nearly equal size of volumes; parameters as for `AdaptiveMaxPool1d`.

    Examples
    --------
    >>> nn.AdaptiveMaxPool3d(1)(cygrad.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    dimensions = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """
    Average sequences over `output_size` windows of nearly equal size.

    Parameters
    ----------
    output_size : int or tuple
        None keeps a size of the input.

    Examples
    --------
    >>> nn.AdaptiveAvgPool1d(2)(cygrad.arange(6.0).reshape(1, 6))
    tensor([[1., 4.]])
    """

    dimensions = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """
    Average images over `output_size` windows of nearly equal size; parameters as for `AdaptiveAvgPool1d`.

    Examples
    --------
    >>> nn.AdaptiveAvgPool2d((2, 1))(cygrad.arange(8.0).reshape(1, 4, 2))
    tensor([[[1.5000],
             [5.5000]]])
    """

    dimensions = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """
    Average volumes over `output_size` windows of nearly equal size; parameters as for `AdaptiveAvgPool1d`.

    Examples
    --------
    >>> nn.AdaptiveAvgPool3d(1)(cygrad.arange(8.0).reshape(1, 2, 2, 2))
    tensor([[[[3.5000]]]])
    """

    dimensions = 3
