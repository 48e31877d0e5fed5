"""Fusion of layers with the batch norm that follows them, for evaluation."""

import copy

import cygrad
from cygrad.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """
    Fuse a convolution and a subsequent batch norm into one convolution.

    Parameters
    ----------
    conv, bn : Module
        Both in evaluation mode.
    transpose : bool, default False
        Whether it is a transposed convolution.

    Returns
    -------
    Module
        A copy of the convolution with fused parameters.

    Examples
    --------
    >>> conv, bn = cygrad.nn.Conv1d(2, 3, 1).eval(), cygrad.nn.BatchNorm1d(3).eval()
    >>> x = cygrad.ones(1, 2, 4)
    >>> cygrad.allclose(cygrad.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, fuse_conv_bn_weights, (transpose,))


def fuse_linear_bn_eval(linear, bn):
    """
    Fuse a linear layer and a subsequent batch norm into one linear layer.

    Parameters
    ----------
    linear, bn : Module
        Both in evaluation mode, with the same number of features.

    Returns
    -------
    Module
        A copy of the linear layer with fused parameters.

    Examples
    --------
    >>> linear, norm = nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval()
    >>> x = cygrad.ones(1, 3)
    >>> fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    >>> cygrad.allclose(fused(x), norm(linear(x)))
    True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("fuse_linear_bn_eval: num_features of the batch norm must be out_features of the layer "
                             f"(got {bn.num_features}, expected {linear.out_features}).")
    return _fused("fuse_linear_bn_eval", linear, bn, fuse_linear_bn_weights, ())


def _fused(operation, layer, bn, weights, options):
    if layer.training or bn.training:
        raise AssertionError(f"{operation}: only layers in evaluation mode can be fused (got one in training mode). "
                             "Call eval() first.")
    if bn.running_mean is None:
        raise AssertionError(f"{operation}: the batch norm has no running statistics. Create it with "
                             "track_running_stats=True.")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                                       bn.bias, *options)
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """
    Return weight and bias of a convolution fused with a batch norm.

    Parameters
    ----------
    conv_w, conv_b : Tensor
        Weight and bias of the convolution; the bias may be None.
    bn_rm, bn_rv, bn_eps, bn_w, bn_b
        Mean, variance, eps, weight and bias of the batch norm; the last two may be None.
    transpose : bool, default False

    Returns
    -------
    (Parameter, Parameter)

    Examples
    --------
    >>> conv, norm = nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2).eval()
    >>> weight, bias = nn.utils.fuse_conv_bn_weights(
    ...     conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    >>> weight.shape
    (2, 1, 1)
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """
    Return weight and bias of a linear layer fused with a batch norm; see `fuse_conv_bn_weights`.

    Examples
    --------
    >>> linear, norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
    >>> weight, bias = nn.utils.fuse_linear_bn_weights(
    ...     linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    >>> weight.shape
    (2, 3)
    """
    return _weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _weights(weight, bias, mean, variance, eps, scale, shift, shape):
    scale = cygrad.ones_like(mean) if scale is None else scale
    shift = cygrad.zeros_like(mean) if shift is None else shift
    factor = scale * cygrad.rsqrt(variance + eps)
    bias_before = cygrad.zeros_like(mean) if bias is None else bias
    new_bias = (bias_before - mean) * factor + shift
    return (Parameter((weight * factor.reshape(shape)).detach().to(weight.dtype), weight.requires_grad),
            Parameter(new_bias.detach().to(weight.dtype), True if bias is None else bias.requires_grad))
