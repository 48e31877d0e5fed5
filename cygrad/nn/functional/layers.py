"""Linear maps, dropout and normalization of vectors."""

import math

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import SHORT, computes_in, in_float32, rounded_once
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.random.generator import per_entry

__all__ = ["bilinear", "dropout", "linear", "normalize", "one_hot", "pad"]

linear = operators.linear
one_hot = operators.one_hot
pad = operators.pad


def check_probability(p, operation):
    """Raise ValueError unless p is in [0, 1]."""
    if type(p) is not float:
        as_number(operation, "p", p)
    if not 0 <= p <= 1:
        raise ValueError(f"{operation}: p must be from 0 to 1 (got {p}).")


@documented()
def dropout(input, p=0.5, training=True, inplace=False):
    """
    Set elements to zero with probability `p` and scale the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    training : bool, default True
        If False, the result is the input itself.

    Raises
    ------
    ValueError
        If `p` is not a probability.

    Examples
    --------
    >>> sorted(set(F.dropout(cygrad.ones(100), 0.5).tolist()))
    [0.0, 2.0]
    >>> F.dropout(cygrad.ones(2), training=False)
    tensor([1., 1.])
    """
    check_probability(p, "dropout")
    as_tensor_argument("dropout", "input", input)
    if not training or p == 0 or input.numel() == 0:
        return input
    with cygrad.no_grad():
        noise = (cygrad.zeros_like(input) if p == 1 else
                 operators.div_(per_entry(cygrad.empty_like(input)).bernoulli_(1 - p), 1 - p))
    return input.mul_(noise) if inplace else input * noise


@documented()
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """
    Divide by the norm along `dim`, or by `eps` if it is larger.

    Parameters
    ----------
    p : float, default 2.0
        Order of the norm.
    dim : int or tuple of int, default 1
    eps : float, default 1e-12
    out : Tensor, optional

    Examples
    --------
    >>> F.normalize(cygrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if getattr(input, "dtype", None) in SHORT:
        return in_float32(normalize, input, p, dim, eps, out=out)
    length = cygrad.clamp_min(cygrad.norm(input, p, dim, keepdim=True), eps)
    return operators.ratio(input, length) if out is None else cygrad.div(input, length, out=out)


@computes_in("float32")
@rounded_once
def bilinear(input1, input2, weight, bias=None):
    """
    Compute ``sum_ij weight[k, i, j] * input1[i] * input2[j] + bias[k]``.

    Parameters
    ----------
    input1, input2 : Tensor of shape (..., n) and (..., m)
        Of equal shape except for the last dimension.
    weight : Tensor of shape (k, n, m)
    bias : Tensor of shape (k,), optional

    Returns
    -------
    Tensor of shape (..., k)

    Raises
    ------
    RuntimeError
        If shapes do not match.

    Examples
    --------
    >>> x = cygrad.tensor([1.0, 2.0])
    >>> cygrad.nn.functional.bilinear(x, x, cygrad.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    tensor([5.])
    """
    for name, tensor in (("input1", input1), ("input2", input2), ("weight", weight)):
        as_tensor_argument("bilinear", name, tensor)
    shapes = f"(got {tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(weight.shape)})"
    if min(input1.ndim, input2.ndim) == 0 or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear: input1 and input2 must have equal shapes except for the last dimension "
                           f"{shapes}.")
    if weight.ndim != 3 or tuple(weight.shape[1:]) != (input1.shape[-1], input2.shape[-1]):
        raise RuntimeError(f"bilinear: input size does not match weight size {shapes}.")
    outputs, first, second = weight.shape
    count = math.prod(input1.shape[:-1])
    forms = linear(input1.reshape(count, first), weight.transpose(1, 2).reshape(outputs * second, first))
    result = cygrad.bmm(forms.unflatten(-1, (outputs, second)), input2.reshape(count, second, 1))
    result = result.reshape(*input1.shape[:-1], outputs)
    return result if bias is None else result + bias
