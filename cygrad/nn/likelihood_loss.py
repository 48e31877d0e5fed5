"""Negative log-likelihood losses as modules."""

from cygrad.nn import functional as F
from cygrad.nn.loss import Loss
from cygrad.nn.module import Module

__all__ = ["CTCLoss", "GaussianNLLLoss", "PoissonNLLLoss"]


class PoissonNLLLoss(Loss):
    """
    Compute the negative log-likelihood of Poisson distributions; see `functional.poisson_nll_loss`.

    Parameters
    ----------
    log_input, full, eps
        As in the function.
    size_average, reduce : bool, optional
        Deprecated names of `reduction`.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> nn.PoissonNLLLoss()(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input, target):
        """Return the loss of logarithms of expected counts, and counts."""
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(Loss):
    """
    Compute the negative log-likelihood of normal distributions; see `functional.gaussian_nll_loss`.

    Parameters
    ----------
    full, eps, reduction
        As in the function.

    Examples
    --------
    >>> nn.GaussianNLLLoss()(cygrad.tensor([1.0]), cygrad.tensor([2.0]), cygrad.tensor([1.0]))
    tensor(0.5000)
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input, target, var):
        """Return the loss of expected values, values and variances."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(Module):
    """
    Compute the connectionist temporal classification loss; see `functional.ctc_loss`.

    Parameters
    ----------
    blank, reduction, zero_infinity
        As in the function.

    Examples
    --------
    >>> log_probs = cygrad.zeros(4, 1, 3).log_softmax(2)
    >>> targets = cygrad.tensor([[1, 2]])
    >>> nn.CTCLoss()(log_probs, targets, cygrad.tensor([4]), cygrad.tensor([2]))
    tensor(0.8432)
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__()
        self.blank = blank
        self.reduction = reduction
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        """Return the loss of log-probabilities (T, N, C), labels (N, S) and lengths (N,)."""
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)
