"""Losses with a margin as modules."""

from typing import Any

from cygrad._core.graph.argument_errors import as_number
from cygrad.nn import functional as F
from cygrad.nn.distance import PairwiseDistance
from cygrad.nn.loss import Loss, WeightedLoss

__all__ = ["CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss",
           "MultiLabelSoftMarginLoss", "MultiMarginLoss", "SoftMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss"]


class _WithMargin(Loss):
    """Base class of losses with the option `margin`; subclasses set its default and the function."""

    default: float = 0.0
    function: Any = None

    def __init__(self, margin=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = self.default if margin is None else margin

    def forward(self, *inputs):
        """Apply the function to its tensors."""
        return type(self).function(*inputs, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_WithMargin):
    """
    Compute the hinge embedding loss; see `functional.hinge_embedding_loss`. The default margin is 1.

    Examples
    --------
    >>> nn.HingeEmbeddingLoss()(cygrad.tensor([0.5, 0.2]), cygrad.tensor([1.0, -1.0]))
    tensor(0.6500)
    """

    default, function = 1.0, staticmethod(F.hinge_embedding_loss)


class CosineEmbeddingLoss(_WithMargin):
    """
    Compute the cosine embedding loss; see `functional.cosine_embedding_loss`. The default margin is 0.

    Examples
    --------
    >>> loss = nn.CosineEmbeddingLoss()
    >>> a, b = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[0.0, 1.0]])
    >>> loss(a, b, cygrad.tensor([1.0]))
    tensor(1.)
    """

    default, function = 0.0, staticmethod(F.cosine_embedding_loss)


class MarginRankingLoss(_WithMargin):
    """
    Compute the margin ranking loss; see `functional.margin_ranking_loss`. The default margin is 0.

    Examples
    --------
    >>> loss = nn.MarginRankingLoss(margin=1.0)
    >>> loss(cygrad.tensor([2.0, 0.0]), cygrad.tensor([0.5, 0.5]), cygrad.tensor([1.0, 1.0]))
    tensor(0.7500)
    """

    default, function = 0.0, staticmethod(F.margin_ranking_loss)


class SoftMarginLoss(Loss):
    """
    Compute ``log(1 + exp(-target * input))``.

    Examples
    --------
    >>> nn.SoftMarginLoss()(cygrad.zeros(2), cygrad.tensor([1.0, -1.0]))
    tensor(0.6931)
    """

    def forward(self, input, target):
        """Return the loss of scores and targets 1 or -1."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """
    Compute the margin loss of samples with several classes; see `functional.multilabel_margin_loss`.

    Examples
    --------
    >>> loss = nn.MultiLabelMarginLoss()
    >>> loss(cygrad.tensor([[0.1, 0.2, 0.4, 0.8]]), cygrad.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    def forward(self, input, target):
        """Return the loss of scores (N, C) and classes (N, C) up to a -1."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """
    Compute the mean over classes of `BCEWithLogitsLoss`.

    Parameters
    ----------
    weight : Tensor of shape (C,), optional
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> nn.MultiLabelSoftMarginLoss()(cygrad.zeros(1, 3), cygrad.tensor([[1.0, 0.0, 1.0]]))
    tensor(0.6931)
    """

    def forward(self, input, target):
        """Return the loss of scores and targets (N, C)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """
    Compute the multi-class margin loss; see `functional.multi_margin_loss`.

    Parameters
    ----------
    p : {1, 2}
    margin : float, default 1.0
    weight : Tensor of shape (C,), optional
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> nn.MultiMarginLoss()(cygrad.tensor([[0.1, 0.2, 0.8]]), cygrad.tensor([2]))
    tensor(0.2333)
    """

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p must be 1 or 2 (got {p}).")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: weight must be 1-dimensional (got {weight.ndim} dimensions)")
        self.p = p
        self.margin = margin

    def forward(self, input, target):
        """Return the loss of scores (N, C) and classes (N,)."""
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class TripletMarginLoss(Loss):
    """
    Compute the triplet margin loss; see `functional.triplet_margin_loss`.

    Parameters
    ----------
    margin, p, eps, swap
        As in the function.
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> loss = nn.TripletMarginLoss()
    >>> loss(cygrad.zeros(1, 2), cygrad.ones(1, 2), cygrad.tensor([[3.0, 4.0]]))
    tensor(0.)
    """

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        if as_number("TripletMarginLoss", "margin", margin) <= 0:
            raise ValueError(f"TripletMarginLoss: the margin must be positive (got {margin}).")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Return the loss of three tensors (N, D)."""
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """
    Compute the triplet margin loss with a given distance function.

    Parameters
    ----------
    distance_function : function of two tensors, optional
    margin, swap, reduction
        As in `functional.triplet_margin_with_distance_loss`.

    Examples
    --------
    >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(cygrad.zeros(1, 2), cygrad.ones(1, 2), cygrad.tensor([[1.0, 1.5]]))
    tensor(0.5000)
    """

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: the margin must be positive (got {margin}).")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Return the loss of three tensors."""
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function,
                                                   margin=self.margin, swap=self.swap, reduction=self.reduction)
