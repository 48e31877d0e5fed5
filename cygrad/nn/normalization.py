"""Normalization as modules."""

import cygrad
from cygrad._core.graph.argument_errors import as_integer, as_sizes
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
           "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Statistics(Module):
    """Base class of batch and instance normalization: parameters and running statistics of channels."""

    ndims: tuple[int, ...]     # valid numbers of dimensions of the input
    _version = 2               # 2: has num_batches_tracked

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *lists):
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own is not None and not own.is_meta else cygrad.tensor(0, dtype=cygrad.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype, bias):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(cygrad.empty(num_features, **options)) if affine else None)
        self.register_parameter("bias", Parameter(cygrad.empty(num_features, **options)) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", cygrad.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", cygrad.ones(num_features, **options) if tracked else None)
        self.register_buffer("num_batches_tracked", cygrad.tensor(0, dtype=cygrad.int64) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Reset the running statistics: mean 0, variance 1, 0 batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Initialize weight to 1 and bias to 0, and reset the statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        if as_tensor_argument(type(self).__name__, "input", input).ndim not in self.ndims:
            expected = " or ".join(f"{n}D" for n in self.ndims)
            raise ValueError(f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input).")

    def extra_repr(self):
        """Return the options."""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class _BatchNorm(_Statistics):
    """Batch normalization."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):
        """Map shape (batch, channels, ...) to the same; training updates the running statistics."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / self.num_batches_tracked.item()
        from_batch = self.training or self.running_mean is None
        tracked = self.track_running_stats or not self.training
        return F.batch_norm(input, self.running_mean if tracked else None, self.running_var if tracked else None,
                            self.weight, self.bias, from_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """
    Normalize each channel over the batch, or by running statistics in evaluation mode.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps : float, default 1e-5
        Added to the variance.
    momentum : float or None, default 0.1
        Weight of a batch in the running statistics; None averages all batches.
    affine : bool, default True
        Whether there is a learned weight and bias for each channel.
    track_running_stats : bool, default True
        Whether evaluation uses running statistics instead of those of the batch.
    device : "cpu", optional
    dtype : dtype, optional
    bias : bool, default True
        Whether an affine module has a bias.

    Attributes
    ----------
    weight, bias : Parameter of shape (num_features,), or None
    running_mean, running_var : Tensor of shape (num_features,), or None
    num_batches_tracked : Tensor, or None

    Examples
    --------
    >>> cygrad.nn.BatchNorm1d(3)(cygrad.ones(4, 3)).shape
    (4, 3)
    """

    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """
    Normalize each channel of images (batch, channels, height, width); parameters as for `BatchNorm1d`.

    Examples
    --------
    >>> layer = nn.BatchNorm2d(3)
    >>> y = layer(cygrad.randn(8, 3, 4, 4))
    >>> cygrad.allclose(y.mean((0, 2, 3)), cygrad.zeros(3), atol=1e-6)
    True
    """

    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """
    Normalize each channel of volumes (batch, channels, depth, height, width); parameters as for `BatchNorm1d`.

    Examples
    --------
    >>> nn.BatchNorm3d(2)(cygrad.randn(4, 2, 3, 3, 3)).shape
    (4, 2, 3, 3, 3)
    """

    ndims = (5,)


class _InstanceNorm(_Statistics):
    """Instance normalization."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input):
        """Apply the layer to an input of shape (batch, channels, ...), or without the batch."""
        self._check_input_dim(input)
        single = input.ndim == self.ndims[0]
        if input.shape[0 if single else 1] != self.num_features and self.affine:
            raise ValueError(f"{type(self).__name__}: expected input's size at the dimension of channels to match "
                             f"num_features ({self.num_features}) (got {input.shape[0 if single else 1]}).")
        result = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var,
                                 self.weight, self.bias, self.training or not self.track_running_stats,
                                 0.0 if self.momentum is None else self.momentum, self.eps)
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """
    Normalize each channel of each sequence.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps : float, default 1e-5
    momentum : float, default 0.1
    affine : bool, default False
    track_running_stats : bool, default False
        Whether evaluation uses running statistics.
    device : "cpu", optional
    dtype : dtype, optional
    bias : bool, default True
        Whether an affine module has a bias.

    Examples
    --------
    >>> nn.InstanceNorm1d(3)(cygrad.randn(2, 3, 5)).shape
    (2, 3, 5)
    """

    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """
    Normalize each channel of each image; parameters as for `InstanceNorm1d`.

    Examples
    --------
    >>> y = nn.InstanceNorm2d(3)(cygrad.randn(2, 3, 5, 5))
    >>> cygrad.allclose(y.mean((2, 3)), cygrad.zeros(2, 3), atol=1e-6)
    True
    """

    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """
    Normalize each channel of each volume; parameters as for `InstanceNorm1d`.

    Examples
    --------
    >>> nn.InstanceNorm3d(3)(cygrad.randn(2, 3, 4, 4, 4)).shape
    (2, 3, 4, 4, 4)
    """

    ndims = (4, 5)


class LayerNorm(Module):
    """
    Normalize over the last dimensions.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dimensions.
    eps : float, default 1e-5
    elementwise_affine : bool, default True
        Whether there is a learned weight and bias for each element.
    bias : bool, default True
        Whether an affine module has a bias.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight, bias : Parameter of shape normalized_shape, or None

    Examples
    --------
    >>> cygrad.nn.LayerNorm(3)(cygrad.ones(4, 3)).shape
    (4, 3)
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = as_sizes(type(self).__name__, "normalized_shape", normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(
                name, Parameter(cygrad.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize: weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        """Apply the layer to an input of shape ``(..., *normalized_shape)``."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """Return the options."""
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """
    Divide the last dimensions by their root mean square.

    Parameters
    ----------
    normalized_shape : int or sequence of int
    eps : float, optional
        Added to the mean of squares; the machine epsilon by default.
    elementwise_affine : bool, default True
        Whether there is a learned weight for each element.
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> nn.RMSNorm(2)(cygrad.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]], grad_fn=<RmsNormBackward0>)
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = as_sizes(type(self).__name__, "normalized_shape", normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(cygrad.empty(self.normalized_shape, device=device, dtype=dtype))
                                if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize: weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        """Apply the layer to an input of shape ``(..., *normalized_shape)``."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        """Return the options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """
    Normalize groups of channels of each sample.

    Parameters
    ----------
    num_groups, num_channels : int
    eps : float, default 1e-5
    affine : bool, default True
        Whether there is a learned weight and bias for each channel.
    device : "cpu", optional
    dtype : dtype, optional
    bias : bool, default True
        Whether an affine module has a bias.

    Raises
    ------
    ValueError
        If `num_groups` does not divide `num_channels`.

    Examples
    --------
    >>> nn.GroupNorm(2, 6)(cygrad.randn(4, 6, 5)).shape
    (4, 6, 5)
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        as_integer("GroupNorm", "num_channels", num_channels)
        if (num_groups := as_integer("GroupNorm", "num_groups", num_groups)) < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels must be divisible by num_groups (got {num_channels} and "
                             f"{num_groups}).")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(
                name, Parameter(cygrad.empty(num_channels, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize: weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        """Apply the layer to an input of shape (batch, num_channels, ...)."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """Return the options."""
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class LocalResponseNorm(Module):
    """
    Divide by the average square of neighboring channels.

    Parameters
    ----------
    size : int
        Number of channels that are averaged.
    alpha, beta, k : float, default 1e-4, 0.75 and 1.0

    Examples
    --------
    >>> nn.LocalResponseNorm(2)(cygrad.ones(1, 4, 2)).shape
    (1, 4, 2)
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        """Apply the layer to an input of shape (batch, channels, ...)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        """Return the options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
