"""
Connectionist temporal classification: the probability of a label sequence, summed over all alignments.

The states are the labels with a blank before, between and after them. An alignment starts in the first or second state
and ends in the last or second to last one; at each step it stays, moves to the next state, or skips a blank between two
different labels (Graves et al., 2006). The recursion over steps is an operator, whose derivative is a linear recurrence
over the same steps, so derivatives of any order are exact.
"""

import math

import cygrad
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.loss import reduced

__all__ = ["ctc_loss"]

_states, _scores = operators.alignment_states, operators.alignment_scores

# log(0): finite, so that differences have derivatives, and far below any sum of log-probabilities.
_LOG_ZERO = -1e30


def _lengths(operation, name, lengths, count, longest):
    if isinstance(lengths, cygrad.Tensor) and (lengths.is_floating_point() or lengths.is_complex()):
        raise RuntimeError(f"{operation}: {name} must be integral (got {lengths.dtype}). Convert with .long().")
    lengths = lengths.flatten().tolist() if isinstance(lengths, cygrad.Tensor) else list(lengths)
    if len(lengths) != count:
        raise RuntimeError(f"{operation}: {name} must be of size batch_size (got {len(lengths)}, expected {count}).")
    for length in lengths:
        if not hasattr(length, "__index__"):
            raise TypeError(f"{operation}: {name} must be integers (got {type(length).__name__}).")
        if not 0 <= length <= longest:
            raise RuntimeError(f"{operation}: Expected {name} to have values from 0 to {longest} (got {length}).")
    return [int(length) for length in lengths]


@computes_in("float32")
@documented()
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """
    Compute the negative log-probability of sequences of labels, summed over all alignments to the steps.

    Parameters
    ----------
    log_probs : Tensor of shape (T, N, C) or (T, C)
        Logarithms of the probabilities of classes at each step, as from `log_softmax`.
    targets : Tensor of shape (N, S) or (sum of target_lengths,)
        Labels, integers; of shape (S,) for one sample.
    input_lengths, target_lengths : Tensor or sequence of N int
        Numbers of steps and of labels of each sample.
    blank : int, default 0
        Index of the blank label.
    reduction : {"mean", "sum", "none"}
        "mean" divides each loss by its number of labels, then averages.
    zero_infinity : bool, default False
        Whether the loss of samples without an alignment is 0 instead of inf; its derivative is 0 in both cases.

    Raises
    ------
    RuntimeError
        If lengths or labels are out of range.

    Notes
    -----
    Derivative with respect to `log_probs`, which need not be normalized: minus the probability that an alignment passes
    through the state.

    Examples
    --------
    >>> even = cygrad.full((2, 1, 3), 1 / 3).log()
    >>> cygrad.nn.functional.ctc_loss(even, cygrad.tensor([[1]]), [2], [1], reduction="none").exp()
    tensor([3.])
    """
    as_tensor_argument("ctc_loss", "log_probs", log_probs)
    as_tensor_argument("ctc_loss", "targets", targets)
    if log_probs.ndim not in (2, 3) or not log_probs.is_floating_point():
        raise RuntimeError("ctc_loss: log_probs must be floating, of shape (T, N, C) or (T, C) (got shape "
                           f"{tuple(log_probs.shape)} of {log_probs.dtype}).")
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1) if targets.ndim == 1 else targets
    steps, count, classes = log_probs.shape
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.shape[0] != count):
        raise RuntimeError(f"ctc_loss: targets must be of shape ({count}, S) or concatenated (got shape "
                           f"{tuple(targets.shape)}).")
    targets = targets.long()
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range (got {blank}, expected 0 to {classes - 1}).")
    input_lengths = [input_lengths] if isinstance(input_lengths, int) else input_lengths
    target_lengths = [target_lengths] if isinstance(target_lengths, int) else target_lengths
    input_lengths = _lengths("ctc_loss", "input_lengths", input_lengths, count, steps)
    length = targets.shape[-1]
    target_lengths = _lengths("ctc_loss", "target_lengths", target_lengths, count, length)
    if targets.ndim == 1 and sum(target_lengths) != length:
        raise RuntimeError(f"ctc_loss: Expected as many targets as target_lengths add up to (got {length} and "
                           f"{sum(target_lengths)}).")
    losses = -_log_likelihood(log_probs, targets, input_lengths, target_lengths, blank)
    losses = cygrad.where(losses > -_LOG_ZERO / 2, 0.0 if zero_infinity else math.inf, losses)
    if reduction == "mean":
        losses = losses / cygrad.tensor([max(length, 1) for length in target_lengths], dtype=losses.dtype)
    elif single and reduction == "none":
        losses = losses.squeeze(0)
    return reduced(losses, reduction, "ctc_loss")


def _log_likelihood(log_probs, targets, steps, labels, blank):
    """Return the log-likelihood of each sample; _LOG_ZERO or less without an alignment."""
    longest, count, classes = log_probs.shape
    states, skip = _states(targets, labels, classes, blank)
    size = states.shape[1]
    shares = cygrad.gather(log_probs, 2, states.unsqueeze(0).expand(longest, -1, -1))
    scores = _scores(shares.float() if shares.dtype.itemsize < 4 else shares, skip, steps)
    if longest == 0:
        scores = cygrad.full((1, count, size), _LOG_ZERO, dtype=scores.dtype)
    # An alignment ends at the last step, in the last label or in the blank after it. Without steps, the likelihood is 1
    # for no labels and 0 otherwise.
    places, counts, certain = [], [], []
    for number, (step, label) in enumerate(zip(steps, labels, strict=True)):
        place = (max(step - 1, 0) * count + number) * size + 2 * label
        places.append((place, place - (label > 0)))
        counts.append((step > 0, step > 0 and label > 0))
        certain.append((0.0 if label == 0 and step == 0 else _LOG_ZERO, _LOG_ZERO))
    ends = cygrad.take(scores, cygrad.tensor(places, dtype=cygrad.int64).reshape(count, 2))
    ends = cygrad.where(cygrad.tensor(counts, dtype=cygrad.bool).reshape(count, 2), ends,
                        cygrad.tensor(certain, dtype=scores.dtype).reshape(count, 2))
    return cygrad.logsumexp(ends, 1).to(log_probs.dtype)
