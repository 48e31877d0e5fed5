"""Margin losses."""

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in, rounded_once
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.activation import logsigmoid
from cygrad.nn.functional.distance import pairwise_distance
from cygrad.nn.functional.loss import check_reduction, reduced, resolve_reduction

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
           "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss",
           "triplet_margin_with_distance_loss"]

_RETURNED = "Tensor\n    Derivative 0 at the margin."


@computes_in("float32")
@documented(returns=_RETURNED)
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """
    Compute `input` where the target is 1, ``max(0, margin - input)`` where it is -1, and the sum of the two
    elsewhere.

    Parameters
    ----------
    input : Tensor
        Distances.
    target : Tensor
        1 for similar and -1 for dissimilar pairs; broadcasts to the input.
    margin : float, default 1.0

    Examples
    --------
    >>> F.hinge_embedding_loss(cygrad.tensor([0.5, 0.2]), cygrad.tensor([1.0, -1.0]))
    tensor(0.6500)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "hinge_embedding_loss")
    as_tensor_argument("hinge_embedding_loss", "input", input)
    as_tensor_argument("hinge_embedding_loss", "target", target)
    as_number("hinge_embedding_loss", "margin", margin)
    apart = cygrad.where(target != 1, cygrad.clamp_min(margin - input, 0), 0)
    return reduced(apart + cygrad.where(target != -1, input, 0), reduction, "hinge_embedding_loss")


@rounded_once
@documented()
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """
    Compute ``log(1 + exp(-target * input))``, in a numerically stable way.

    Parameters
    ----------
    input, target : Tensor
        Scores, and 1 or -1; broadcast against each other.

    Examples
    --------
    >>> F.soft_margin_loss(cygrad.zeros(2), cygrad.tensor([1.0, -1.0]))
    tensor(0.6931)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "soft_margin_loss")
    as_tensor_argument("soft_margin_loss", "input", input)
    as_tensor_argument("soft_margin_loss", "target", target)
    return reduced(operators.log1p_exp(-target * input), reduction, "soft_margin_loss")


@rounded_once
@documented(returns=_RETURNED)
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """
    Compute ``max(0, margin - target * (input1 - input2))``: the first should rank higher where the target is 1.

    Parameters
    ----------
    input1, input2, target : Tensor
        Scores, and 1 or -1; with the same number of dimensions.
    margin : float, default 0

    Examples
    --------
    >>> F.margin_ranking_loss(cygrad.tensor([2.0, 0.0]), cygrad.tensor([0.5, 0.5]), cygrad.ones(2), margin=1.0)
    tensor(0.7500)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "margin_ranking_loss")
    for name, tensor in (("input1", input1), ("input2", input2), ("target", target)):
        as_tensor_argument("margin_ranking_loss", name, tensor)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss: all tensors must have the same number of dimensions (got shapes "
                           f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}).")
    return reduced(cygrad.clamp_min(margin - target * (input1 - input2), 0), reduction, "margin_ranking_loss")


@rounded_once
@documented(returns=_RETURNED)
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """
    Compute one minus the cosine of two vectors where the target is 1, ``max(0, cosine - margin)`` where it is -1.

    Parameters
    ----------
    input1, input2 : Tensor of shape (N, D) or (D,)
    target : Tensor of shape (N,) or ()
    margin : float, default 0

    Examples
    --------
    >>> a, b = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[0.0, 1.0]])
    >>> F.cosine_embedding_loss(a, b, cygrad.tensor([1.0]))
    tensor(1.)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "cosine_embedding_loss")
    for name, tensor in (("input1", input1), ("input2", input2), ("target", target)):
        as_tensor_argument("cosine_embedding_loss", name, tensor)
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError("cosine_embedding_loss: 0D or 1D target tensor expected, and inputs with one dimension more "
                           f"(got shapes {tuple(target.shape)}, {tuple(input1.shape)} and {tuple(input2.shape)}).")
    input1, input2 = (x if x.is_floating_point() else x.to(cygrad.get_default_dtype()) for x in (input1, input2))
    # Lengths are sqrt(norm**2 + 1e-12) as in PyTorch, unlike those of cosine_similarity, but do not overflow.
    first, second = (cygrad.norm(x, 2, -1, keepdim=True) for x in (input1, input2))
    first, second = (cygrad.hypot(norm, norm.new_full((), 1e-6)) for norm in (first, second))
    cosine = (operators.ratio(input1, first) * operators.ratio(input2, second)).sum(-1)
    losses = cygrad.where(target == 1, 1 - cosine, cygrad.where(target == -1, cygrad.clamp_min(cosine - margin, 0), 0))
    return reduced(losses, reduction, "cosine_embedding_loss")


def _check_margin(operation, margin, anchor, positive, negative):
    if margin <= 0:
        raise ValueError(f"{operation}: the margin must be positive (got {margin}).")
    for name, tensor in (("anchor", anchor), ("positive", positive), ("negative", negative)):
        as_tensor_argument(operation, name, tensor)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(f"{operation}: anchor, positive and negative must have the same number of dimensions (got "
                           f"{anchor.ndim}, {positive.ndim} and {negative.ndim}).")


@rounded_once
@documented(returns=_RETURNED)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                        reduce=None, reduction="mean"):
    """
    Compute ``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with the distance `pairwise_distance`.

    Parameters
    ----------
    anchor, positive, negative : Tensor of shape (N, D) or (D,)
    margin : float, default 1.0
    p : float, default 2
        Order of the norm.
    eps : float, default 1e-6
        As in `pairwise_distance`.
    swap : bool, default False
        Whether ``d(positive, negative)`` replaces ``d(anchor, negative)`` where it is smaller (Balntas et al., 2016).

    Examples
    --------
    >>> F.triplet_margin_loss(cygrad.zeros(1, 2), cygrad.ones(1, 2), cygrad.tensor([[3.0, 4.0]]))
    tensor(0.)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "triplet_margin_loss")
    _check_margin("triplet_margin_loss", margin, anchor, positive, negative)
    return _triplet(lambda first, second: pairwise_distance(first, second, p, eps), anchor, positive, negative, margin,
                    swap, reduction, "triplet_margin_loss")


@documented(returns=_RETURNED)
def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """
    Compute ``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with any distance.

    Parameters
    ----------
    anchor, positive, negative : Tensor
    distance_function : function of two tensors, optional
        `pairwise_distance` by default.
    margin : float, default 1.0
    swap : bool, default False
        Whether ``d(positive, negative)`` replaces ``d(anchor, negative)`` where it is smaller.

    Examples
    --------
    >>> F.triplet_margin_with_distance_loss(cygrad.zeros(1, 2), cygrad.ones(1, 2), cygrad.tensor([[1.0, 1.5]]))
    tensor(0.6114)
    """
    _check_margin("triplet_margin_with_distance_loss", margin, anchor, positive, negative)
    return _triplet(distance_function or pairwise_distance, anchor, positive, negative, margin, swap, reduction,
                    "triplet_margin_with_distance_loss")


def _triplet(distance, anchor, positive, negative, margin, swap, reduction, operation):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = cygrad.minimum(far, distance(positive, negative))
    return reduced(cygrad.clamp_min(margin + near - far, 0), reduction, operation)


def _as_rows(operation, input, target, one_class):
    """Return scores (N, C), targets (N,) or (N, C), and whether the batch dimension was added."""
    as_tensor_argument(operation, "input", input)
    as_tensor_argument(operation, "target", target)
    single = input.ndim < 2
    rows = input.reshape(1, input.numel()) if single else input
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise RuntimeError(f"{operation}: expected input of shape (N, C) or (C,) (got {tuple(input.shape)}).")
    expected = rows.shape[:1] if one_class else rows.shape
    if single and target.ndim < 2 and target.numel() == (1 if one_class else rows.shape[1]):
        target = target.reshape(expected)
    if tuple(target.shape) != tuple(expected):
        raise RuntimeError(f"{operation}: inconsistent target size (got {tuple(target.shape)}, expected "
                           f"{tuple(expected)} for input of shape {tuple(input.shape)}).")
    if target.dtype != cygrad.int64:
        raise RuntimeError(f"{operation}: target must have dtype int64 (got {target.dtype}). Convert it with .long().")
    lowest = 0 if one_class else -1
    if target.numel():
        least, most = (bound.item() for bound in cygrad.aminmax(target))
        if not lowest <= least <= most < rows.shape[1]:
            raise RuntimeError(f"{operation}: target out of range (got {least} to {most}, expected {lowest} to "
                               f"{rows.shape[1] - 1}).")
    return rows, target, single


@computes_in("float32")
@documented(returns=_RETURNED)
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """
    Compute the mean over the other classes of ``max(0, margin - (score of the target class - score))**p``.

    Parameters
    ----------
    input : Tensor of shape (N, C) or (C,)
        Scores.
    target : Tensor of shape (N,) or ()
        Target classes, int64.
    p : {1, 2}
    margin : float, default 1.0
    weight : Tensor of shape (C,), optional
        Weight of each target class.

    Raises
    ------
    RuntimeError, ValueError
        If `p` is invalid, shapes do not match, or a target is out of range.

    Examples
    --------
    >>> F.multi_margin_loss(cygrad.tensor([[0.1, 0.2, 0.8]]), cygrad.tensor([2]))
    tensor(0.2333)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "multi_margin_loss")
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2 (got {p}).")
    check_reduction(reduction, "multi_margin_loss")
    if weight is not None and as_tensor_argument("multi_margin_loss", "weight", weight).ndim != 1:
        raise ValueError(f"multi_margin_loss: weight must be one-dimensional (got shape {tuple(weight.shape)}).")
    rows, classes, single = _as_rows("multi_margin_loss", input, target, True)
    if weight is not None and tuple(weight.shape) != (rows.shape[1],):
        raise RuntimeError(f"multi_margin_loss: inconsistent weight size (got {tuple(weight.shape)}, expected "
                           f"({rows.shape[1]},)).")
    right = classes.unsqueeze(1)
    short = cygrad.relu(margin - rows.gather(1, right) + rows)
    short = short if p == 1 else short * short
    if weight is not None:
        short = short * weight[classes].unsqueeze(1)
    losses = short.masked_fill(cygrad.arange(rows.shape[1]) == right, 0).sum(1) / rows.shape[1]
    return reduced(losses.reshape(target.shape) if single else losses, reduction, "multi_margin_loss")


@computes_in("float32")
@documented(returns=_RETURNED)
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """
    Compute, for samples with several target classes, the sum of ``max(0, 1 - (score of a target class - score))`` over
    C.

    Parameters
    ----------
    input : Tensor of shape (N, C) or (C,)
        Scores.
    target : Tensor of the same shape
        Target classes, int64; those after the first -1 are ignored.

    Raises
    ------
    RuntimeError
        If shapes do not match, or a target is out of range.

    Examples
    --------
    >>> F.multilabel_margin_loss(cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "multilabel_margin_loss")
    check_reduction(reduction, "multilabel_margin_loss")
    rows, classes, single = _as_rows("multilabel_margin_loss", input, target, False)
    counts = (classes >= 0).long().cumprod(1)
    classes = classes * counts                               # ignored targets are class 0 with count 0
    right = cygrad.zeros(rows.shape, dtype=cygrad.int64).scatter_add(1, classes, counts) > 0
    short = cygrad.relu(1 - rows.gather(1, classes).unsqueeze(2) + rows.unsqueeze(1))
    short = short.masked_fill(right.unsqueeze(1) | (counts == 0).unsqueeze(2), 0)
    losses = short.sum((1, 2)) / rows.shape[1]
    return reduced(losses.reshape(()) if single else losses, reduction, "multilabel_margin_loss")


@rounded_once
@documented()
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """
    Compute the mean over classes of `binary_cross_entropy_with_logits`.

    Parameters
    ----------
    input, target : Tensor of shape (N, C) or (C,)
        Logits, and 1 for target classes, else 0.
    weight : Tensor of shape (C,), optional

    Examples
    --------
    >>> F.multilabel_soft_margin_loss(cygrad.zeros(1, 3), cygrad.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "multilabel_soft_margin_loss")
    as_tensor_argument("multilabel_soft_margin_loss", "input", input)
    as_tensor_argument("multilabel_soft_margin_loss", "target", target)
    if input.ndim == 0:
        raise IndexError("multilabel_soft_margin_loss: expected input with a class dimension (got shape ()).")
    if input.shape != target.shape:
        warn_user(f"multilabel_soft_margin_loss: input and target differ in shape (got {tuple(input.shape)} and "
                  f"{tuple(target.shape)}).")
    if weight is not None:
        as_tensor_argument("multilabel_soft_margin_loss", "weight", weight)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    losses = losses if weight is None else losses * weight
    return reduced(losses.mean(-1), reduction, "multilabel_soft_margin_loss")
