"""
Per-sample gradients by operator: one batched product for each layer, or for all steps of a recurrent one.

A rule returns the contribution of a node that uses a parameter, with samples as first dimension. Nodes without a rule
use `vmap` of their formula.
"""

from cygrad import arange
from cygrad._core.table.operator import operators

__all__ = ["PRODUCTS", "RULES", "product_of"]

# Operators that multiply rows by a transposed matrix from the right: all uses together are one product.
PRODUCTS = {("linear", "weight"), ("linear_in_panels", "weight")}


def _call(name, *arguments):
    return getattr(operators, name)(*arguments)


def product_of(pairs):
    """
    Sum the outer products of gradients and inputs over uses and steps.

    Parameters
    ----------
    pairs : list of (Tensor, Tensor)
        Gradients (n, ..., out) and inputs (n, ..., in).

    Returns
    -------
    Tensor
        Of the shape (n, out, in).
    """
    gradient, values = pairs[0]
    if len(pairs) == 1 and gradient.ndim == 2:
        return _call("matmul", gradient.unsqueeze(2), values.unsqueeze(1))
    rows = [[part.reshape(part.shape[0], -1, part.shape[-1]) for part in pair] for pair in pairs]
    gradient, values = (side[0] if len(side) == 1 else _call("cat", list(side), 1) for side in zip(*rows, strict=True))
    return _call("matmul", gradient.mT, values)


def _summed(product, like):
    """Sum to the shape of a broadcast parameter, for each sample."""
    shape = (1,) * (product.ndim - like.ndim) + tuple(like.shape)
    dims = [dim for dim in range(1, product.ndim) if shape[dim] == 1 and product.shape[dim] != 1]
    return (product.sum(dims, keepdim=True) if dims else product).reshape(product.shape[0], *like.shape)


def _gradient_alone(gradient, saved, like):
    return _summed(gradient, like) if gradient.ndim > like.ndim else None


def _of_scale(gradient, saved, like):
    deviation = (saved("self") - saved("mean")) * saved("rstd")
    return _summed(gradient * deviation, like) if gradient.ndim > like.ndim else None


def _of_root_mean_square(gradient, saved, like):
    return _summed(gradient * (saved("self") * saved("rstd")), like)


def _of_kernel(gradient, saved, like):
    """Multiply the patches of each image by the gradients of the outputs."""
    images, groups = saved("self"), saved("groups")
    options = [list(saved(name)) for name in ("dilation", "padding", "stride")]
    kernel, n = list(like.shape[2:]), gradient.shape[0]
    if images.ndim == 3:                                  # of one row
        images, kernel = images.unsqueeze(2), [1, *kernel]
        options = [[neutral, *option] for neutral, option in zip((1, 0, 1), options, strict=True)]
    if images.ndim != 4 or images.is_complex():
        return None
    patches = _call("im2col", images, kernel, *options)
    patches = patches.reshape(n, groups, -1, patches.shape[-1])
    gradient = gradient.reshape(n, groups, like.shape[0] // groups, -1)
    return _call("matmul", gradient, patches.mT).reshape(n, *like.shape)


def _of_shift(gradient, saved, like):
    return gradient.flatten(2).sum(2)


def _of_table(gradient, saved, like):
    """Scatter into rows of a table of all samples' tables."""
    index, padding, n = saved("index"), saved("padding_idx"), gradient.shape[0]
    if padding >= 0:
        gradient = gradient.masked_fill((index == padding).unsqueeze(-1), 0)
    first = like.shape[0] * arange(n).reshape(n, *(1,) * (index.ndim - 1))
    return _call("embedding_backward", gradient.contiguous(), index + first, n * like.shape[0], -1).reshape(
        n, *like.shape)


# (operator, argument) -> function of the gradient, the saved values by name, and the parameter; None: not here.
RULES = {
    ("linear", "bias"): _gradient_alone, ("linear_in_panels", "bias"): _gradient_alone,
    ("layer_norm", "weight"): _of_scale, ("layer_norm", "bias"): _gradient_alone,
    ("rms_norm", "weight"): _of_root_mean_square, ("convolution", "weight"): _of_kernel,
    ("convolution", "bias"): _of_shift, ("convolution_input_backward", "bias"): _of_shift,
    ("embedding", "weight"): _of_table,
}
