"""Adaptive softmax: frequent classes are scored directly, rare ones through clusters."""

from numbers import Number
from typing import NamedTuple

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_items
from cygrad.nn import functional as F
from cygrad.nn.container import ModuleList, Sequential
from cygrad.nn.layers import Linear
from cygrad.nn.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """
    Compute log-probabilities of classes ordered by frequency, faster than a full softmax (Grave et al., 2017).

    The head scores each frequent class and each cluster of rare classes. Each cluster scores its classes from a
    projection of the features, which has fewer features the rarer the classes are.

    Parameters
    ----------
    in_features, n_classes : int
    cutoffs : sequence of int
        First class of each cluster, in increasing order.
    div_value : float, default 4.0
        Ratio of the numbers of features of two successive clusters.
    head_bias : bool, default False
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    head : Linear
    tail : ModuleList of Sequential
        Two linear maps for each cluster.

    Examples
    --------
    >>> model = cygrad.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    >>> output, loss = model(cygrad.ones(3, 16), cygrad.tensor([0, 7, 19]))
    >>> output.shape, loss.shape
    ((3,), ())
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = as_items("AdaptiveLogSoftmaxWithLoss", "cutoffs", cutoffs, Number)
        if not cutoffs:
            raise ValueError("AdaptiveLogSoftmaxWithLoss: expected one cutoff or more (got none).")
        if (any(int(cutoff) != cutoff for cutoff in cutoffs) or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0
                or cutoffs[-1] > n_classes - 1):
            raise ValueError("AdaptiveLogSoftmaxWithLoss: cutoffs must be increasing integers from 1 to "
                             f"n_classes - 1 (got {cutoffs}).")
        new = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **new)
        self.tail = ModuleList()
        for number in range(self.n_clusters):
            size = int(in_features // div_value ** (number + 1))
            classes = self.cutoffs[number + 1] - self.cutoffs[number]
            self.tail.append(Sequential(Linear(in_features, size, bias=False, **new),
                                        Linear(size, classes, bias=False, **new)))

    def reset_parameters(self):
        """Initialize the parameters."""
        for module in (self.head, *(part for cluster in self.tail for part in cluster)):
            module.reset_parameters()

    def forward(self, input, target):
        """
        Return the log-probabilities of the target classes, and the negative of their mean.

        Parameters
        ----------
        input : Tensor of shape (N, in_features) or (in_features,)
        target : Tensor of shape (N,) or ()
            Target classes.

        Returns
        -------
        named tuple (output, loss)
        """
        if target.ndim not in (0, 1) or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise RuntimeError("AdaptiveLogSoftmaxWithLoss: expected one target for each row of the input (got shapes "
                               f"{tuple(input.shape)} and {tuple(target.shape)})")
        single = target.ndim == 0
        if single:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        if target.numel() and not (target.min().item() >= 0 and target.max().item() < self.n_classes):
            raise RuntimeError("AdaptiveLogSoftmaxWithLoss: Target values should be in the range [0, "
                               f"{self.n_classes - 1}], but values in range [{target.min().item()}, "
                               f"{target.max().item()}] were found")
        # The head scores the cluster of a rare class.
        place, parts = target, []
        for number, cluster in enumerate(self.tail):
            start, stop = self.cutoffs[number], self.cutoffs[number + 1]
            members = cygrad.nonzero((target >= start) & (target < stop)).squeeze(1)
            if members.numel():
                place = place.index_fill(0, members, self.shortlist_size + number)
                scores = F.log_softmax(cluster(input.index_select(0, members)), 1)
                parts.append((members, scores.gather(1, (target[members] - start).unsqueeze(1)).squeeze(1)))
        output = F.log_softmax(self.head(input), 1).gather(1, place.unsqueeze(1)).squeeze(1)
        for members, inside in parts:
            output = output.index_add(0, members, inside)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input):
        """Return the log-probabilities (N, n_classes) of all classes for an input (N, in_features)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, :self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            share = head[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), 1) + share)
        return cygrad.cat(parts, 1)

    def predict(self, input):
        """Return the most likely classes (N,) for an input (N, in_features)."""
        return self.log_prob(input).argmax(1)
