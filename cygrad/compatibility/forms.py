"""
Top-level functions of neural networks, whose parameters differ from those in ``nn.functional``.

Also copies of views (``view_copy``) and functions of lists of tensors (``_foreach_add``), created by name.
"""

import cygrad
from cygrad import Tensor
from cygrad.composite.out_forms import into
from cygrad.nn import functional as F
from cygrad.nn.functional.channel_dropout import drop_channels

__all__ = [
    "affine_grid_generator", "alpha_dropout", "alpha_dropout_", "batch_norm", "constant_pad_nd", "conv_tbc",
    "convolution", "detach", "dropout", "dropout_", "embedding", "embedding_bag", "embedding_renorm_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "frobenius_norm", "grid_sampler",
    "grid_sampler_2d", "grid_sampler_3d", "group_norm", "instance_norm", "kl_div", "layer_norm",
    "max_pool1d_with_indices", "native_batch_norm", "native_channel_shuffle", "native_dropout", "native_group_norm",
    "native_layer_norm", "norm_except_dim", "nuclear_norm",
]

REDUCTIONS = ("none", "mean", "sum")
PADDINGS = ("zeros", "border", "reflection")
INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
native_channel_shuffle, max_pool1d_with_indices = F.channel_shuffle, F.max_pool1d_with_indices


def _dropout(function, name, applied=None):
    applied = applied or function

    def drop(input, p, train):
        return applied(input, p, train)

    def drop_(input, p, train):
        return applied(input, p, train, True)

    for made, its_name in ((drop, name), (drop_, f"{name}_")):
        made.__name__ = its_name
        made.__doc__ = f"``nn.functional.{function.__name__}``{', in place' if made is drop_ else ''}."
    return drop, drop_


dropout, dropout_ = _dropout(F.dropout, "dropout")
alpha_dropout, alpha_dropout_ = _dropout(F.alpha_dropout, "alpha_dropout")
feature_dropout, feature_dropout_ = _dropout(F.dropout2d, "feature_dropout", drop_channels)     # of any rank
feature_alpha_dropout, feature_alpha_dropout_ = _dropout(F.feature_alpha_dropout, "feature_alpha_dropout")


def native_dropout(input, p, train):
    """Return the result of dropout and its mask."""
    kept = cygrad.ones_like(input) if train is False else F.dropout(cygrad.ones_like(input), p, True)
    return input * kept, kept.bool()


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    """``nn.functional.batch_norm``."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    """``nn.functional.instance_norm``."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """``nn.functional.layer_norm``."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """``nn.functional.group_norm``."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def _moments(input, dims, eps):
    """Return mean and 1 / deviation along dimensions, which are kept."""
    return input.mean(dims, keepdim=True), (input.var(dims, unbiased=False, keepdim=True) + eps).rsqrt()


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Return the normalized input, means, and 1 / deviations."""
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    return F.layer_norm(input, normalized_shape, weight, bias, eps), *_moments(input, dims, eps)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Return the normalized input, and means and 1 / deviations of each group."""
    moments = _moments(input.reshape(N, group, input.shape[1] // group * HxW), -1, eps)
    return F.group_norm(input, group, weight, bias, eps), *(part.squeeze(-1) for part in moments)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Return the normalized input, and means and 1 / deviations of the batch."""
    dims = [dim for dim in range(input.ndim) if dim != 1]
    moments = [part.flatten() for part in _moments(input, dims, eps)] if training else [input.new_empty(0)] * 2
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps), *moments


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """``nn.functional.embedding`` with the table as first argument."""
    padding_idx = padding_idx if padding_idx >= 0 else None
    return F.embedding(indices, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """``nn.functional.embedding_bag`` and three empty results."""
    result = F.embedding_bag(indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq,
                             mode=("sum", "mean", "max")[mode], sparse=sparse, per_sample_weights=per_sample_weights,
                             include_last_offset=include_last_offset, padding_idx=padding_idx)
    return result, *(cygrad.empty(0, dtype=cygrad.int64) for _ in range(3))


def embedding_renorm_(weight, indices, max_norm, norm_type):
    """Scale rows of a table with a larger norm to `max_norm`."""
    F.embedding(indices, weight.detach(), max_norm=max_norm, norm_type=norm_type)
    return weight


def kl_div(input, target, reduction=1, *, log_target=False):
    """``nn.functional.kl_div`` with the reduction as a number."""
    return F.kl_div(input, target, reduction=REDUCTIONS[reduction], log_target=log_target)


def constant_pad_nd(input, pad, value=0):
    """``nn.functional.pad`` with a constant."""
    return F.pad(input, pad, value=value)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """``nn.functional.grid_sample`` with the modes as numbers."""
    return F.grid_sample(input, grid, INTERPOLATIONS[interpolation_mode], PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta, size, align_corners):
    """``nn.functional.affine_grid``."""
    return F.affine_grid(theta, size, align_corners)


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Compute a convolution or transposed convolution with the dimensions of the weight."""
    name = f"conv{'_transpose' if transposed else ''}{weight.ndim - 2}d"
    if transposed:
        return getattr(F, name)(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(F, name)(input, weight, bias, stride, padding, dilation, groups)


def detach(input):
    """Return the same memory outside the graph."""
    return input.detach()


def conv_tbc(input, weight, bias, pad=0):
    """Convolve a sequence (time, batch, channels) with a weight (time, in, out)."""
    return F.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def norm_except_dim(v, pow=2, dim=0):
    """Return the norms of the slices along one dimension, keeping the others with size 1; -1: the norm of all."""
    if dim == -1:
        return v.norm(pow)
    return cygrad.linalg.vector_norm(v, pow, [other for other in range(v.ndim) if other != dim % v.ndim], keepdim=True)


def frobenius_norm(input, dim=(), keepdim=False, *, out=None):
    """Return the root of the sum of squares, along dimensions or of all elements."""
    return cygrad.linalg.vector_norm(input, 2, dim=dim or None, keepdim=keepdim, out=out)


def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):
    """Return the sum of the singular values of matrices."""
    return cygrad.linalg.matrix_norm(input, "nuc", dim=dim, keepdim=keepdim, out=out)


def copy_of_view(name):
    """Return the function of a name such as ``view_copy``, or None."""
    view = getattr(cygrad, name, None) or getattr(Tensor, name, None)
    if view is None:
        return None

    def copied(input, *args, **options):
        out = options.pop("out", None)
        found = view(input, *args, **options)
        parts = [part.clone(memory_format=cygrad.contiguous_format) for part in (
            [found] if isinstance(found, Tensor) else found)]
        found = parts[0] if isinstance(found, Tensor) else tuple(parts)
        return into(f"{name}_copy", found, out)
    copied.__name__ = f"{name}_copy"
    copied.__doc__ = f"What `{name}` gives, with contiguous memory of its own."
    return copied


def foreach(name):
    """Return the function of a name such as ``_foreach_add_``, or None."""
    method = {"norm": cygrad.linalg.vector_norm, "copy_": Tensor.copy_, "zero_": Tensor.zero_, "max": Tensor.max,
              "maximum_": lambda x, y: x.copy_(cygrad.maximum(x, cygrad.as_tensor(y, dtype=x.dtype))),
              "minimum_": lambda x, y: x.copy_(cygrad.minimum(x, cygrad.as_tensor(y, dtype=x.dtype))),
              "maximum": lambda x, y: cygrad.maximum(x, cygrad.as_tensor(y, dtype=x.dtype)),
              "minimum": lambda x, y: cygrad.minimum(x, cygrad.as_tensor(y, dtype=x.dtype)),
              "clamp_max": lambda x, y: x.clamp(max=y), "clamp_min": lambda x, y: x.clamp(min=y),
              "clamp_max_": lambda x, y: x.clamp_(max=y), "clamp_min_": lambda x, y: x.clamp_(min=y),
              }.get(name) or getattr(Tensor, name, None)
    if method is None:
        return None

    def each(tensors, *others, **options):
        lists = {i: part for i, part in enumerate(others) if isinstance(part, (list, tuple))}
        named = {key: options.pop(key) for key in [key for key, part in options.items()
                                                   if isinstance(part, (list, tuple))]}
        if name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_") and (len(others) > 2 or "scalars" in named):
            values = named.pop("scalars", None) or others[2]         # `value` is not positional in the method
            values = values if isinstance(values, (list, tuple)) else [values] * len(tensors)
            named["value"], others, lists = values, others[:2], {i: part for i, part in lists.items() if i < 2}
        for i, part in [*lists.items(), *named.items()]:
            if len(part) != len(tensors):
                raise RuntimeError(f"_foreach_{name}: lists must have one length (got {len(part)} for argument {i!r}, "
                                   f"expected {len(tensors)}).")
        results = []
        for place, tensor in enumerate(tensors):
            own = [lists[i][place] if i in lists else part for i, part in enumerate(others)]
            results.append(method(tensor, *own, **options, **{key: part[place] for key, part in named.items()}))
        return None if name.endswith("_") else results
    each.__name__ = f"_foreach_{name}"
    each.__doc__ = f"`{name}` of each tensor of a list, with numbers or the tensors of other lists."
    return each
