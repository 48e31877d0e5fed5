"""Losses with a margin, of densities, and of aligned sequences, as modules."""

from cygrad.nn import functional as F
from cygrad.nn.distance import PairwiseDistance
from cygrad.nn.loss import Loss, WeightedLoss
from cygrad.nn.module import Module

__all__ = ["CTCLoss", "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
           "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss",
           "TripletMarginLoss", "TripletMarginWithDistanceLoss"]


class _WithMargin(Loss):
    """A loss with the parameter `margin`, of which the subclass sets the default and the function."""

    default, function = 0.0, None

    def __init__(self, margin=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = self.default if margin is None else margin

    def forward(self, *inputs):
        """The tensors of the function of this name -> the loss."""
        return type(self).function(*inputs, margin=self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_WithMargin):
    """Distances and targets 1 or -1: see `functional.hinge_embedding_loss`; the margin is 1 if left out."""

    default, function = 1.0, staticmethod(F.hinge_embedding_loss)


class CosineEmbeddingLoss(_WithMargin):
    """Two vectors and the target 1 or -1: see `functional.cosine_embedding_loss`; the margin is 0 if left out."""

    default, function = 0.0, staticmethod(F.cosine_embedding_loss)


class MarginRankingLoss(_WithMargin):
    """Two scores and the target 1 or -1: see `functional.margin_ranking_loss`; the margin is 0 if left out."""

    default, function = 0.0, staticmethod(F.margin_ranking_loss)


class SoftMarginLoss(Loss):
    """``log(1 + exp(-target * input))``."""

    def forward(self, input, target):
        """Scores and targets 1 or -1 -> the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """Samples with several right classes: see `functional.multilabel_margin_loss`."""

    def forward(self, input, target):
        """Scores (N, C) and classes (N, C) up to a -1 -> the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """
    The mean over classes of `BCEWithLogitsLoss`.

    Parameters
    ----------
    weight : Tensor of shape (C,), optional
    size_average, reduce : bool, optional
        Old names for `reduction`.
    reduction : {"mean", "sum", "none"}
    """

    def forward(self, input, target):
        """Scores and targets (N, C) -> the loss."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(WeightedLoss):
    """
    How far other classes come near the right one: see `functional.multi_margin_loss`.

    Parameters
    ----------
    p : {1, 2}
    margin : float, default 1.0
    weight : Tensor of shape (C,), optional
    size_average, reduce : bool, optional
        Old names for `reduction`.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: only p == 1 and p == 2 supported (got {p})")
        if weight is not None and weight.ndim != 1:
            raise ValueError(f"MultiMarginLoss: weight must be 1-dimensional (got {weight.ndim} dimensions)")
        self.p = p
        self.margin = margin

    def forward(self, input, target):
        """Scores (N, C) and classes (N,) -> the loss."""
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class TripletMarginLoss(Loss):
    """
    Nearer to one than to the other, by a margin: see `functional.triplet_margin_loss`.

    Parameters
    ----------
    margin, p, eps, swap
        As there.
    size_average, reduce : bool, optional
        Old names for `reduction`.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Three tensors (N, D) -> the loss."""
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """
    The same with any distance.

    Parameters
    ----------
    distance_function : function of two tensors, optional
    margin, swap, reduction
        As in `functional.triplet_margin_with_distance_loss`.
    """

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError("TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                             f"{margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Three tensors -> the loss."""
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function,
                                                   margin=self.margin, swap=self.swap, reduction=self.reduction)


class PoissonNLLLoss(Loss):
    """
    Counts under Poisson distributions: see `functional.poisson_nll_loss`.

    Parameters
    ----------
    log_input, full, eps
        As there.
    size_average, reduce : bool, optional
        Old names for `reduction`.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input, target):
        """Logarithms of expected counts, and counts -> the loss."""
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(Loss):
    """
    Values under normal distributions: see `functional.gaussian_nll_loss`.

    Parameters
    ----------
    full, eps, reduction
        As there.
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input, target, var):
        """Expected values, values and variances -> the loss."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(Module):
    """
    Sequences of labels, whatever their alignment to steps: see `functional.ctc_loss`.

    Parameters
    ----------
    blank, reduction, zero_infinity
        As there.
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__()
        self.blank = blank
        self.reduction = reduction
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        """Log-probabilities (T, N, C), labels (N, S) and lengths (N,) -> the loss."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)
