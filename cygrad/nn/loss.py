"""Losses as modules."""

from math import prod
from numbers import Integral, Real

from cygrad.nn import functional as F
from cygrad.nn.functional.loss import resolve_reduction
from cygrad.nn.layers import Linear
from cygrad.nn.module import Module

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss",
           "LinearCrossEntropyLoss", "Loss", "MSELoss", "NLLLoss", "SmoothL1Loss", "WeightedLoss"]


class Loss(Module):
    """
    Base class of losses.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}
        Reduction of the losses.
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = resolve_reduction(size_average, reduce, reduction, type(self).__name__)


class WeightedLoss(Loss):
    """A loss with a buffer ``weight``, which may be None."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(Loss):
    """
    Compute the mean squared difference.

    Examples
    --------
    >>> loss = nn.MSELoss()
    >>> prediction = cygrad.tensor([1.0, 3.0], requires_grad=True)
    >>> loss(prediction, cygrad.zeros(2)).backward()
    >>> prediction.grad
    tensor([1., 3.])
    """

    def forward(self, input, target):
        """Return the loss of two tensors of the same shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """
    Compute the mean absolute difference.

    Examples
    --------
    >>> nn.L1Loss()(cygrad.tensor([1.0, 4.0]), cygrad.zeros(2))
    tensor(2.5000)
    """

    def forward(self, input, target):
        """Return the loss of two tensors of the same shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """
    Compute the absolute difference, quadratic below `beta`.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}
    beta : float, default 1.0

    Examples
    --------
    >>> nn.SmoothL1Loss()(cygrad.tensor([0.5, 4.0]), cygrad.zeros(2))
    tensor(1.8125)
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        """Return the loss of two tensors of the same shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """
    Compute the Huber loss: half the squared difference, linear beyond `delta`.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    delta : float, default 1.0

    Examples
    --------
    >>> nn.HuberLoss()(cygrad.tensor([0.5, 4.0]), cygrad.zeros(2))
    tensor(1.8125)
    """

    def __init__(self, reduction="mean", delta=1.0):
        if not isinstance(delta, Real):
            raise TypeError(f"HuberLoss: delta must be a float or int, got: {type(delta).__name__}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input, target):
        """Return the loss of two tensors of the same shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(Loss):
    """
    Compute the Kullback-Leibler divergence of log-probabilities from `target`.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "batchmean", "sum", "none"}
    log_target : bool, default False
        Whether the target is given as a logarithm as well.

    Examples
    --------
    >>> loss = nn.KLDivLoss(reduction="sum")
    >>> p, q = cygrad.tensor([0.5, 0.5]), cygrad.tensor([0.25, 0.75])
    >>> loss(q.log(), p)
    tensor(0.1438)
    """

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target):
        """Return the loss of log-probabilities and target of the same shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(WeightedLoss):
    """
    Compute the negative log-likelihood of class indices, given log-probabilities.

    Parameters
    ----------
    weight : Tensor of shape (C,), optional
        Weight of each class.
    size_average : bool, optional
        Deprecated name of `reduction`.
    ignore_index : int, default -100
        Targets of this value are ignored.
    reduce : bool, optional
        Deprecated name of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> log_probs = cygrad.zeros(2, 4).log_softmax(1)
    >>> nn.NLLLoss()(log_probs, cygrad.tensor([0, 3]))
    tensor(1.3863)
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        """Return the loss of log-probabilities (N, C, ...) and classes (N, ...)."""
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """
    Compute the cross entropy of unnormalized scores (logits) and class indices or probabilities.

    Parameters
    ----------
    weight : Tensor of shape (C,), optional
        Weight of each class.
    size_average : bool, optional
        Deprecated name of `reduction`.
    ignore_index : int, default -100
        Targets of this value are ignored.
    reduce : bool, optional
        Deprecated name of `reduction`.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float, default 0.0
        How much of the target's probability is shared equally by all classes.

    Examples
    --------
    >>> loss = nn.CrossEntropyLoss()
    >>> logits = cygrad.zeros(2, 4, requires_grad=True)
    >>> loss(logits, cygrad.tensor([0, 3])).backward()
    >>> logits.grad
    tensor([[-0.3750,  0.1250,  0.1250,  0.1250],
            [ 0.1250,  0.1250,  0.1250, -0.3750]])
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        """Return the loss of scores (N, C, ...), and classes (N, ...) or probabilities (N, C, ...)."""
        return F.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)


class LinearCrossEntropyLoss(CrossEntropyLoss):
    """
    Compute the cross entropy of classes, and logits that a linear layer returns for the input.

    Parameters
    ----------
    in_features, num_classes : int
    out_features : tuple of int
        Further dimensions of the logits, of shape (N, C, ...).
    bias : bool, default False
    device, dtype : optional
    reduction, weight, label_smoothing : optional
        As for `CrossEntropyLoss`.
    ignore_index : int, optional
        As for `CrossEntropyLoss`, for targets that are classes.
    options : None
        Not supported.

    Examples
    --------
    >>> loss = nn.LinearCrossEntropyLoss(5, 10)
    >>> loss(cygrad.zeros(2, 5), cygrad.tensor([0, 3]))
    tensor(2.3026, grad_fn=<CrossEntropyBackward0>)
    """

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,
                 reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0, options=None):
        if not isinstance(num_classes, Integral):
            raise TypeError(f"LinearCrossEntropyLoss: num_classes must be an integer (got {num_classes!r})")
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"LinearCrossEntropyLoss: expected weight shape to be {(num_classes,)}, got "
                               f"{tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError("LinearCrossEntropyLoss: expected label_smoothing to be in range [0, 1], got "
                               f"{label_smoothing}")
        super().__init__(weight, None, ignore_index, None, reduction, label_smoothing)
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        self.linear = Linear(in_features, num_classes * prod(out_features), bias, device, dtype)

    def forward(self, input, target):
        """Return the loss of inputs (N, in_features), and classes (N, ...) or probabilities (N, C, ...)."""
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, -1), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self):
        """Return the options."""
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features="
                f"{self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index="
                f"{self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}")


class BCELoss(WeightedLoss):
    """
    Compute the binary cross entropy of probabilities.

    Parameters
    ----------
    weight : Tensor, optional
        Weight of each element; must broadcast to the input.
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> loss = nn.BCELoss()
    >>> loss(cygrad.tensor([0.5, 0.9]), cygrad.tensor([1.0, 1.0]))
    tensor(0.3993)
    """

    def forward(self, input, target):
        """Return the loss of probabilities and targets in [0, 1] of the same shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """
    Compute the binary cross entropy of logits, in a numerically stable way.

    Parameters
    ----------
    weight : Tensor, optional
        Weight of each element; must broadcast to the input.
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}
    pos_weight : Tensor, optional
        Weight of the elements whose target is 1; must broadcast to the input.

    Examples
    --------
    >>> loss = nn.BCEWithLogitsLoss()
    >>> loss(cygrad.tensor([0.0, 2.0]), cygrad.tensor([1.0, 1.0]))
    tensor(0.4100)
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        """Return the loss of logits and targets in [0, 1] of the same shape."""
        return F.binary_cross_entropy_with_logits(input, target, self.weight, reduction=self.reduction,
                                                  pos_weight=self.pos_weight)
