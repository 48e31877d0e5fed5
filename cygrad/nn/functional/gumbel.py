"""Differentiable sampling."""

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.user_warnings import warn_user
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.activation import softmax

__all__ = ["gumbel_softmax"]


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """
    Draw differentiable samples from categorical distributions (Jang, Gu and Poole, 2017).

    Parameters
    ----------
    logits : Tensor
        Unnormalized log-probabilities along `dim`.
    tau : float, default 1
        Temperature; for small values samples approach one-hot vectors.
    hard : bool, default False
        Whether the result is one-hot; derivatives are those of the soft sample (straight-through).
    eps : float
        Ignored.
    dim : int, default -1

    Returns
    -------
    Tensor
        Of the shape of `logits`; sums to 1 along `dim`.

    Examples
    --------
    >>> F.gumbel_softmax(cygrad.zeros(3), hard=True).sum()
    tensor(1.)
    """
    as_tensor_argument("gumbel_softmax", "logits", logits)
    as_number("gumbel_softmax", "tau", tau)
    if eps != 1e-10:
        warn_user("gumbel_softmax: eps is deprecated and has no effect. Omit it.")
    with cygrad.no_grad():
        noise = -cygrad.empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = cygrad.zeros_like(soft).scatter(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft
