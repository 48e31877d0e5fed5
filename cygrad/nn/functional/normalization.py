"""Normalization layers as functions."""

import cygrad
from cygrad._core.dispatch.tangents import paused, tangent
from cygrad._core.graph.argument_errors import as_integer, as_number, as_sizes
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.convolution import in_order_of

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]

# Shared parameter descriptions.
_PARAMETERS = {"eps": "float, default 1e-5\n    Added to the variance."}
_RETURNED = "Tensor\n    Of the shape of the input."

_batch_norm, _layer_norm, _rms_norm = (getattr(operators, name) for name in ("batch_norm", "layer_norm", "rms_norm"))


def _per_channel(values, input):
    """Reshape values of channels so that they broadcast with the input."""
    return values.reshape((1, -1) + (1,) * (input.ndim - 2))


def _check_channels(operation, channels, **parameters):
    """Check that each parameter has one element for each channel."""
    for name, values in parameters.items():
        if values is not None and as_tensor_argument(operation, name, values).numel() != channels:
            raise RuntimeError(f"{operation}: {name} should contain {channels} elements, one for each channel (got "
                               f"shape {values.shape}).")


def _check_tangents(operation, **statistics):
    """Check that running statistics have no tangent."""
    for name, running in statistics.items():
        if running is not None and tangent(running) is not None:
            raise RuntimeError(f"{operation}: {name} cannot have a tangent (got a dual tensor). Pass the primal.")


def _update(running, batch, momentum):
    """Update a running statistic by that of a batch, in place."""
    if running is not None:
        with cygrad.no_grad(), paused():
            running.mul_(1 - momentum).add_(batch.to(running.dtype) * momentum)


@documented(_PARAMETERS, returns=_RETURNED)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """
    Normalize each channel by its mean and standard deviation (Ioffe and Szegedy, 2015).

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, ...).
    running_mean, running_var : Tensor or None
        One element for each channel. Training updates them in place; evaluation normalizes by them.
    weight, bias : Tensor, optional
        Scale and shift of each channel.
    training : bool, default False
        Whether to normalize by the statistics of the batch.
    momentum : float, default 0.1
        Weight of the batch in the running statistics, whose variance is unbiased.

    Raises
    ------
    ValueError
        If `training` and there is only one value for each channel.
    RuntimeError
        If sizes do not match, or running statistics are missing.

    Notes
    -----
    Derivative: in training, through the mean and standard deviation too.

    Examples
    --------
    >>> x = cygrad.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> cygrad.nn.functional.batch_norm(x, None, None, training=True, eps=1e-9)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """
    try:
        rank = input.ndim
    except AttributeError:
        as_tensor_argument("batch_norm", "input", input)
        raise
    if rank < 2 and rank and not input.numel():           # empty
        for part, combine in ((weight, cygrad.mul), (bias, cygrad.add)):
            input = input if part is None else combine(input, part[0])
        return input.clone()
    if rank < 2:
        raise RuntimeError(f"batch_norm: expected input with at least two dimensions (got shape {input.shape}, "
                           "expected (batch, channels, ...)).")
    channels = input.shape[1]
    _check_channels("batch_norm", channels, running_mean=running_mean, running_var=running_var, weight=weight,
                    bias=bias)
    _check_tangents("batch_norm", running_mean=running_mean, running_var=running_var)
    if type(eps) is complex or eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm: eps must be positive during training, and not negative otherwise (got {eps}).")
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("batch_norm: evaluation mode needs running_mean and running_var (got None). "
                               "Pass them, or training=True.")
        return _with_statistics(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // channels if channels else 0
    if count == 1:
        raise ValueError(f"batch_norm: Expected more than 1 value per channel when training (got input size "
                         f"{input.shape}).")
    result, mean, _, variance = _batch_norm(input, weight, bias, 0, eps)
    if count and (running_mean is not None or running_var is not None):
        _update(running_mean, mean.reshape(channels), momentum)
        _update(running_var, variance.reshape(channels) * (count / (count - 1)), momentum)
    return result


def _with_statistics(input, mean, variance, weight, bias, eps):
    """Normalize channels by given statistics."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"batch_norm: needs float32 or float64 (got {input.dtype}). Convert with to() first.")
    dtype = input.dtype
    input = input.float() if dtype.itemsize == 2 else input          # rounded once
    scale = cygrad.rsqrt(variance.to(input.dtype) + eps)
    if weight is not None:
        scale = scale * weight
    shift = -mean.to(input.dtype) * scale
    if bias is not None:
        shift = shift + bias
    # One pass over the input, with scale and shift of each channel.
    return cygrad.addcmul(_per_channel(shift, input), input, _per_channel(scale, input)).to(dtype)


def _row_dimensions(operation, input, normalized_shape, **parameters):
    """Return the number of normalized dimensions."""
    shape = normalized_shape if type(normalized_shape) is tuple else as_sizes(
        operation, "normalized_shape", normalized_shape, 1)
    if not shape:
        raise RuntimeError(f"{operation}: normalized_shape must have at least one dimension (got {shape}).")
    try:
        found = tuple(input.shape[-len(shape):])
    except AttributeError:
        as_tensor_argument(operation, "input", input)
        raise
    if found != shape:
        raise RuntimeError(f"{operation}: given normalized_shape={list(shape)}, expected input with shape [*, "
                           f"{', '.join(map(str, shape))}] (got input of size {input.shape}).")
    try:
        for name, values in parameters.items():
            if values is not None and tuple(values.shape) != shape:
                raise RuntimeError(f"{operation}: {name} must have the shape normalized_shape (got {values.shape} and "
                                   f"{list(shape)}).")
    except AttributeError:
        as_tensor_argument(operation, name, values)
        raise
    return len(shape)


@documented(_PARAMETERS, returns=_RETURNED)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """
    Normalize the last dimensions by their mean and standard deviation (Ba, Kiros and Hinton, 2016).

    Parameters
    ----------
    input : Tensor
        Floating point, of shape ``(..., *normalized_shape)``.
    normalized_shape : sequence of int
        The sizes of the last dimensions, which are normalized together.
    weight, bias : Tensor, optional
        Scale and shift of each element, of shape `normalized_shape`.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Derivative: through the mean and standard deviation too.

    Examples
    --------
    >>> cygrad.nn.functional.layer_norm(cygrad.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    dims = _row_dimensions("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return _layer_norm(input, weight, bias, dims, eps)[0]


@documented(_PARAMETERS, returns=_RETURNED)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """
    Divide the last dimensions by their root mean square (Zhang and Sennrich, 2019).

    Parameters
    ----------
    input : Tensor
        Of shape ``(..., *normalized_shape)``.
    normalized_shape : sequence of int
        The sizes of the last dimensions, which are normalized together.
    weight : Tensor, optional
        Scale of each element, of shape `normalized_shape`.
    eps : float, optional
        Added to the mean of squares; the machine epsilon by default.

    Raises
    ------
    RuntimeError
        If shapes do not match; NotImplementedError for integers.

    Notes
    -----
    Derivative: through the root mean square too.

    Examples
    --------
    >>> cygrad.nn.functional.rms_norm(cygrad.tensor([[1.0, 7.0]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    dims = _row_dimensions("rms_norm", input, normalized_shape, weight=weight)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise NotImplementedError(f"rms_norm: not implemented for {input.dtype}. Convert with to() first.")
    if eps is None:
        eps = 2.0 ** -52 if input.dtype in (cygrad.float64, cygrad.complex128) else 2.0 ** -23
    if input.dtype.is_floating_point and (weight is None or weight.dtype is input.dtype):
        return _rms_norm(input, weight, dims, eps)[0]
    result = input * cygrad.rsqrt(cygrad.square(input).mean(tuple(range(-dims, 0)), keepdim=True) + eps)
    return result if weight is None else (result * weight).to(input.dtype)


@documented(_PARAMETERS, returns=_RETURNED)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """
    Normalize groups of channels of each sample by their mean and standard deviation (Wu and He, 2018).

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, ...).
    num_groups : int
        Number of groups of channels.
    weight, bias : Tensor, optional
        Scale and shift of each channel.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match, or num_groups does not divide the channels.
    ValueError
        If there is only one value in each group.

    Examples
    --------
    >>> cygrad.nn.functional.group_norm(cygrad.tensor([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    if as_tensor_argument("group_norm", "input", input).ndim < 2:
        raise RuntimeError(f"group_norm: expected input with at least two dimensions (got {input.ndim}).")
    batch, channels = input.shape[:2]
    if (num_groups := as_integer("group_norm", "num_groups", num_groups)) < 1 or channels % num_groups:
        raise RuntimeError(f"group_norm: num_groups must divide the channels (got input of shape {input.shape} and "
                           f"num_groups={num_groups}).")
    for name, values in (("weight", weight), ("bias", bias)):
        if values is not None and values.shape != (channels,):
            raise RuntimeError(f"group_norm: {name} must be a vector with one element for each channel "
                               f"(got {values.shape} and input of shape {input.shape}).")
    numel = input.numel()
    rows = operators.reshape(input, (batch, num_groups, channels // num_groups,
                                     numel // (batch * channels) if batch and channels else 0))
    if numel == num_groups:                # a batch of one value for each group
        raise ValueError(f"group_norm: Expected more than 1 value per channel when training (got input size "
                         f"{input.shape}).")
    return in_order_of(input, _normalize_groups(rows, weight, bias, eps)[0].reshape(input.shape))


def _normalize_groups(rows, weight, bias, eps):
    """Normalize rows of shape (batch, groups, channels of a group, elements) with parameters for each channel."""
    shape = (*rows.shape[1:3], 1)
    return _layer_norm(rows, None if weight is None else weight.reshape(shape), None if bias is None else
                       bias.reshape(shape), 2, eps)


@documented(_PARAMETERS, returns=_RETURNED)
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    """
    Normalize each channel of each sample by its mean and standard deviation (Ulyanov, Vedaldi and Lempitsky, 2016).

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, ...).
    running_mean, running_var : Tensor, optional
        One element for each channel, updated in place.
    weight, bias : Tensor, optional
        Scale and shift of each channel.
    use_input_stats : bool, default True
        If False, the running statistics are used.
    momentum : float, default 0.1
        Weight of this batch in the running statistics.

    Raises
    ------
    ValueError
        If a channel of a sample has only one element.
    RuntimeError
        If sizes do not match, or running statistics are missing.

    Examples
    --------
    >>> cygrad.nn.functional.instance_norm(cygrad.tensor([[[1.0, 3.0], [10.0, 30.0]]]), eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    if as_tensor_argument("instance_norm", "input", input).ndim < 2:
        raise RuntimeError(f"instance_norm: expected input with at least two dimensions (got shape {input.shape}, "
                           "expected (batch, channels, ...)).")
    batch, channels = input.shape[:2]
    _check_channels("instance_norm", channels, running_mean=running_mean, running_var=running_var, weight=weight,
                    bias=bias)
    _check_tangents("instance_norm", running_mean=running_mean, running_var=running_var)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("instance_norm: use_input_stats=False needs running_mean and running_var (got None). "
                               "Pass them, or use_input_stats=True.")
        return _with_statistics(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // (batch * channels) if batch and channels else 0
    if count == 1 or (input.ndim == 2 and input.numel()):
        raise ValueError(f"instance_norm: Expected more than 1 spatial element when training (got input size "
                         f"{input.shape}).")
    rows = input.reshape(batch, channels, 1, count)
    result, mean, _, variance = _normalize_groups(rows, weight, bias, eps)
    if count and (running_mean is not None or running_var is not None):
        _update(running_mean, mean.reshape(batch, channels).mean(0), momentum)
        _update(running_var, variance.reshape(batch, channels).mean(0) * (count / (count - 1)), momentum)
    return result.reshape(input.shape)


@documented(_PARAMETERS, returns=_RETURNED)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """
    Divide by the average square of neighboring channels: ``input / (k + alpha * average)**beta``.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length, ...).
    size : int
        Number of channels that are averaged.
    alpha, beta, k : float, default 1e-4, 0.75 and 1.0

    Raises
    ------
    ValueError
        If the input has less than three dimensions.

    Notes
    -----
    Formula: Krizhevsky, Sutskever and Hinton, 2012, with the average in place of the sum. Squares are taken in the
    dtype of the input: float32 elements beyond 1e19 become 0.

    Examples
    --------
    >>> cygrad.nn.functional.local_response_norm(cygrad.ones(1, 2, 1), 2, alpha=6.0, beta=1.0)
    tensor([[[0.2500],
             [0.1429]]])
    """
    as_integer("local_response_norm", "size", size)
    for name, value in (("alpha", alpha), ("beta", beta), ("k", k)):
        as_number("local_response_norm", name, value)
    if as_tensor_argument("local_response_norm", "input", input).ndim < 3:
        raise ValueError(f"local_response_norm: expected input with at least three dimensions (got {input.ndim}).")
    if input.dtype is cygrad.bool:
        raise NotImplementedError("local_response_norm: not implemented for bool. Convert with to() first.")
    if input.numel() == 0:
        return input
    squares = cygrad.square(input).unsqueeze(1).flatten(3)
    pads = (0, 0, size // 2, (size - 1) // 2)
    averages = cygrad.nn.functional.avg_pool2d(cygrad.nn.functional.pad(squares, pads), (size, 1), stride=1)
    return input / (averages.reshape(input.shape) * alpha + k) ** beta
