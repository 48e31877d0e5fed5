"""Losses: element-wise operators, weighted and reduced."""

from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import SHORT, in_float32, rounded_once
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.composite.shapes import broadcast_tensors

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div",
           "l1_loss", "mse_loss", "nll_loss", "reduced", "resolve_reduction", "smooth_l1_loss"]

# Shared parameter descriptions.
_PARAMETERS = {"input, target": "Tensor\n    Of the same shape."}

_REDUCTIONS = ("none", "mean", "sum")
_log_softmax, _cross_entropy, _nll_loss = operators.log_softmax, operators.cross_entropy, operators.nll_loss
_mse, _l1, _smooth_l1, _huber, _kl_div, _bce, _bce_with_logits = (
    getattr(operators, f"{name}_elementwise") for name in (
        "mse", "l1", "smooth_l1", "huber", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits"))
_bce_unweighted = operators.binary_cross_entropy_with_logits_unweighted


def resolve_reduction(size_average, reduce, reduction, operation):
    """Return the reduction of the deprecated arguments `size_average` and `reduce`."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "sum" if size_average is not None and not size_average else "mean"
    warn_user(f"{operation}: size_average and reduce are deprecated, please use reduction={reduction!r} instead.")
    return reduction


def check_reduction(reduction, operation, known=_REDUCTIONS):
    if reduction not in known:
        raise ValueError(f"{operation}: unknown reduction (got {reduction}, expected one of {', '.join(known)}).")


def reduced(losses, reduction, operation):
    """Return the mean or sum of the losses, or the losses; raise ValueError for another reduction."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    check_reduction(reduction, operation)
    return losses


def _same_sizes(input, target, operation):
    """Warn of different shapes; broadcast tensors without dimensions, which then decide about the dtype, too."""
    as_tensor_argument(operation, "input", input)
    as_tensor_argument(operation, "target", target)
    if input.shape == target.shape:
        return input, target
    warn_user(f"{operation}: input and target differ in shape and are broadcast (got {input.shape} and "
              f"{target.shape}), which is probably a mistake. Reshape one of them.")
    return (input, target) if input.ndim and target.ndim else broadcast_tensors(input, target)


def _weighted(losses, weight, reduction, operation):
    """Reduce weighted losses; the mean is weighted."""
    if weight.shape != losses.shape:
        raise ValueError(f"{operation}: weight must have the shape of the losses (got {weight.shape} and "
                         f"{losses.shape}).")
    total = reduced(losses * weight, "sum" if reduction == "mean" else reduction, operation)
    return total / weight.sum() if reduction == "mean" else total


@documented(_PARAMETERS)
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """
    Compute the squared difference.

    Parameters
    ----------
    weight : Tensor, optional
        Weight of each element; "mean" divides by their sum.

    Examples
    --------
    >>> F.mse_loss(cygrad.tensor([1.0, 3.0]), cygrad.zeros(2))
    tensor(5.)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "mse_loss")
    input, target = _same_sizes(input, target, "mse_loss")
    losses = _mse(input, target)
    if weight is not None:
        return _weighted(losses, weight, reduction, "mse_loss")
    return reduced(losses, reduction, "mse_loss")


@documented(_PARAMETERS)
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """
    Compute the absolute difference.

    Parameters
    ----------
    weight : Tensor, optional
        Weight of each element; "mean" divides by their sum.

    Returns
    -------
    Tensor
        Derivative 0 where they are equal.

    Examples
    --------
    >>> F.l1_loss(cygrad.tensor([1.0, 4.0]), cygrad.zeros(2))
    tensor(2.5000)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "l1_loss")
    input, target = _same_sizes(input, target, "l1_loss")
    losses = _l1(input, target)
    if weight is not None:
        return _weighted(losses, weight, reduction, "l1_loss")
    return reduced(losses, reduction, "l1_loss")


@documented(_PARAMETERS)
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """
    Compute the absolute difference; where it is less than `beta`, ``0.5 * difference**2 / beta``.

    Parameters
    ----------
    beta : float, default 1.0
        0 is `l1_loss`.

    Raises
    ------
    RuntimeError
        If `beta` is negative.

    Examples
    --------
    >>> F.smooth_l1_loss(cygrad.tensor([0.5, 4.0]), cygrad.zeros(2))
    tensor(1.8125)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "smooth_l1_loss")
    input, target = _same_sizes(input, target, "smooth_l1_loss")
    try:
        if beta < 0:
            raise RuntimeError(f"smooth_l1_loss: beta must not be negative (got {beta}).")
    except TypeError:
        as_number("smooth_l1_loss", "beta", beta)
        raise
    losses = _l1(input, target) if beta == 0 else _smooth_l1(input, target, beta)
    return reduced(losses, reduction, "smooth_l1_loss")


@documented(_PARAMETERS)
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """
    Compute half the squared difference; beyond `delta`, ``delta * (|difference| - delta / 2)``.

    Parameters
    ----------
    delta : float, default 1.0
    weight : Tensor, optional
        Of the same shape.

    Raises
    ------
    RuntimeError
        If `delta` is not positive.

    Examples
    --------
    >>> F.huber_loss(cygrad.tensor([0.5, 4.0]), cygrad.zeros(2))
    tensor(1.8125)
    """
    input, target = _same_sizes(input, target, "huber_loss")
    try:
        if delta <= 0:
            raise RuntimeError(f"huber_loss: delta must be positive (got {delta}).")
    except TypeError:
        as_number("huber_loss", "delta", delta)
        raise
    losses = _huber(input, target, delta)
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError(f"huber_loss: weight must have the shape of the losses (got {weight.shape} and "
                             f"{input.shape}).")
        losses = losses * weight
    return reduced(losses, reduction, "huber_loss")


@documented(_PARAMETERS)
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """
    Compute the Kullback-Leibler divergence of `target` from the distribution whose logarithm is `input`.

    Parameters
    ----------
    reduction : {"mean", "batchmean", "sum", "none"}
        "batchmean" divides the sum by the batch size, which is the mathematical definition.
    log_target : bool, default False
        Whether `target` is a log-probability too.

    Examples
    --------
    >>> p, q = cygrad.tensor([0.5, 0.5]), cygrad.tensor([0.25, 0.75])
    >>> F.kl_div(q.log(), p, reduction="sum")
    tensor(0.1438)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "kl_div")
    losses = target.exp() * (target - input) if log_target else _kl_div(input, target)
    if reduction == "batchmean":
        return losses.sum() / (input.size(0) if input.ndim else 1)
    if reduction == "mean":
        warn_user("kl_div: reduction 'mean' divides by the number of elements, but the divergence is a sum over each "
                  "distribution. Use 'batchmean', which divides by the batch size.")
    return reduced(losses, reduction, "kl_div")


@documented(_PARAMETERS)
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """
    Compute the negative log-likelihood of the target class, given log-probabilities.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...) or (C,)
        Log-probabilities.
    target : Tensor of shape (N, ...) or ()
        Classes, int64 or uint8.
    weight : Tensor of shape (C,), optional
        Weight of each class; the mean divides by the sum of the weights of the targets.
    ignore_index : int, default -100
        Targets of this value are ignored.

    Raises
    ------
    IndexError
        If a target is not a class.

    Examples
    --------
    >>> F.nll_loss(cygrad.zeros(2, 4).log_softmax(1), cygrad.tensor([0, 3]))
    tensor(1.3863)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "nll_loss")
    check_reduction(reduction, "nll_loss")
    return _nll_loss(input, target, weight, ignore_index, reduction)[0]


@documented(_PARAMETERS)
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """
    Compute the negative log-likelihood of the target class, given logits.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...) or (C,)
        Scores.
    target : Tensor
        Classes, int64 or uint8, of shape (N, ...) or (); or probabilities of the shape of `input`.
    weight : Tensor of shape (C,), optional
        Weight of each class; for classes, the mean divides by the sum of the weights of the targets.
    ignore_index : int, default -100
        Targets of this value are ignored.
    label_smoothing : float, default 0.0
        Part of the target probability that is distributed uniformly over all classes.

    Raises
    ------
    IndexError
        If a target is not a class.
    RuntimeError
        If shapes or dtypes do not match, or `label_smoothing` is not in [0, 1].

    Examples
    --------
    >>> cygrad.nn.functional.cross_entropy(cygrad.tensor([[2.0, 0.0]]), cygrad.tensor([0]))
    tensor(0.1269)
    """
    if size_average is not None or reduce is not None:
        reduction = resolve_reduction(size_average, reduce, reduction, "cross_entropy")
    check_reduction(reduction, "cross_entropy")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"cross_entropy: label_smoothing must be from 0 to 1 (got {label_smoothing}).")
    try:
        probabilities = target.is_floating_point()
    except AttributeError:
        as_tensor_argument("cross_entropy", "target", target)
        raise
    if not probabilities:
        return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)[0]
    if target.shape != as_tensor_argument("cross_entropy", "input", input).shape:
        raise RuntimeError("cross_entropy: a floating point target holds class probabilities and must have the shape "
                           f"of the input (got {target.shape}, expected {input.shape}). Convert classes with .long().")
    if ignore_index >= 0:
        raise RuntimeError("cross_entropy: ignore_index is not supported for class probabilities (got "
                           f"{ignore_index}).")
    return _of_probabilities(input, target, weight, reduction, label_smoothing)


@rounded_once
def _of_probabilities(input, target, weight, reduction, label_smoothing):
    """Compute `cross_entropy` for class probabilities."""
    classes = 1 if input.ndim > 1 else 0
    if input.ndim == 0:
        raise RuntimeError("cross_entropy: expected an input with a class dimension (got shape ()).")
    n_classes = input.shape[classes]
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / n_classes
    terms = _log_softmax(input, classes) * target
    if weight is not None:
        if as_tensor_argument("cross_entropy", "weight", weight).shape != (n_classes,):
            raise RuntimeError(f"cross_entropy: weight must have one element for each of the {n_classes} classes (got "
                               f"shape {weight.shape}).")
        terms = terms * (weight.reshape(-1, *[1] * (input.ndim - 2)) if classes else weight)
    return reduced(-terms.sum(classes), reduction, "cross_entropy")


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """
    Compute the negative log-likelihood of binary targets, given probabilities.

    Parameters
    ----------
    input : Tensor
        Probabilities of class 1.
    target : Tensor
        Of the same shape, in [0, 1].
    weight : Tensor, optional
        Weight of each element; must broadcast to the input.
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor
        Logarithms are clamped to at least -100, so that the loss is finite.

    Raises
    ------
    ValueError
        If the shapes differ.
    RuntimeError
        If an element of the input is not in [0, 1].

    Examples
    --------
    >>> F.binary_cross_entropy(cygrad.tensor([0.5, 0.9]), cygrad.tensor([1.0, 1.0]))
    tensor(0.3993)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "binary_cross_entropy")
    as_tensor_argument("binary_cross_entropy", "input", input)
    as_tensor_argument("binary_cross_entropy", "target", target)
    if input.shape != target.shape:
        raise ValueError(f"binary_cross_entropy: the target must have the shape of the input (got {target.shape}, "
                         f"expected {input.shape}).")
    if not ((input >= 0) & (input <= 1)).all().item():
        raise RuntimeError("binary_cross_entropy: all elements of input should be between 0 and 1 (got others). "
                           "Use binary_cross_entropy_with_logits for unnormalized scores.")
    losses = _bce(input, target)
    if weight is not None:
        as_tensor_argument("binary_cross_entropy", "weight", weight)
    return reduced(losses if weight is None else losses * weight, reduction, "binary_cross_entropy")


@documented(_PARAMETERS)
def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    """
    Compute `binary_cross_entropy` of ``sigmoid(input)``, in a numerically stable way.

    Parameters
    ----------
    input : Tensor
        Logits.
    target : Tensor
        Of the same shape, in [0, 1].
    weight : Tensor, optional
        Weight of each element; must broadcast to the input.
    pos_weight : Tensor, optional
        Weight of the elements whose target is 1; must broadcast to the input.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> F.binary_cross_entropy_with_logits(cygrad.tensor([0.0, 2.0]), cygrad.tensor([1.0, 1.0]))
    tensor(0.4100)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "binary_cross_entropy_with_logits")
    as_tensor_argument("binary_cross_entropy_with_logits", "input", input)
    as_tensor_argument("binary_cross_entropy_with_logits", "target", target)
    if input.shape != target.shape:
        raise ValueError("binary_cross_entropy_with_logits: the target must have the shape of the input "
                         f"(got {target.shape}, expected {input.shape}).")
    if weight is not None:
        as_tensor_argument("binary_cross_entropy_with_logits", "weight", weight)
    if input.dtype in SHORT:
        return in_float32(binary_cross_entropy_with_logits, input, target, weight, reduction=reduction,
                          pos_weight=pos_weight)
    losses = _bce_unweighted(input, target) if pos_weight is None else _bce_with_logits(input, target, pos_weight)
    return reduced(losses if weight is None else losses * weight, reduction, "binary_cross_entropy_with_logits")
