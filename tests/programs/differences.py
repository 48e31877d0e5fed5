"""Intended differences between cygrad and PyTorch, with reasons."""

from tests.programs.refusal import Refusal

# What only torch refuses: a part of its message, and why we do not.
ONLY_TORCH_REFUSES = (
    ("derivative for aten::", "torch has no derivative, here it is zero almost everywhere"),
    ("expected dtype", "operands of several dtypes are promoted by every operator"),
    ("In-place abs is not supported for complex", "real results fit into complex memory"),
    ("topk does not support bool", "masks are sorted as zeros and ones"),
    ("view size is not compatible", "results are contiguous, whatever the strides of the arguments"),
    ("value tensor of shape [1,", "leading dimensions of size 1 do not count, as in an assignment"),
    ("on a bool tensor is not supported", "a mask counts as zeros and ones in arithmetic"),
    ("with a bool tensor is not supported", "a mask counts as zeros and ones in arithmetic"),
    ("refer to a single memory location", "operands that overlap the result are copied first"),
    ("where expected condition to be a boolean", "what is not zero is true, as for logical operators"),
    ("Index put requires the source and destination dtypes match", "values of a lower kind are converted"),
    ("Integer division with addcdiv", "true division, as everywhere"),
    ("Expected both inputs to be Half, Float or Double", "operands of several dtypes are promoted by every operator"),
    ("Expected object of scalar type", "operands of several dtypes are promoted by every operator"),
    ("Found dtype", "out= takes every dtype that holds the result"),
    ("cumprod_out_cpu", "products of masks are counts, and any count is true"),
    ("old_fn INTERNAL ASSERT FAILED", "a failure of torch's own"),
    ("cumsum_out_cpu", "sums of masks are counts, and any count is true"),
    ("does not support automatic differentiation for outputs with complex dtype", "our formula is for them too"),
    ("backward through the graph a second time", "nothing was kept that could be missing"),
    ("ZeroTensors are immutable", "a failure of torch's own"),
    ("that has been detached in-place", "what was saved has the history that it had then"),
    ("Trying to resize storage that is not resizable", "a result of another size is given memory of its own"),
    ("Inference tensors do not track version counter", "a failure of torch's own: memory exchanged in inference mode"),
    ("Inference tensors cannot be saved", "our formula does not read what cannot be saved"),
    ("Expected isFloatingType(grad.scalar_type())", "a failure of torch's own: the real part is what the gradient is"),
)

# The same for errors of backward.
ONLY_TORCH_CANNOT_DIFFERENTIATE = (
    ("modified by an inplace operation", "our formula does not read what was changed"),
    ("moved into the graph interior", "a leaf that no longer requires grad may be changed in place"),
    ("view was created inside a custom Function", "our formula does not read what was changed"),
    ("is a view and its base or another view", "our formula does not read what was changed"),
    ("must have a stride divisible by 2", "a failure of torch's own: it takes a view of a gradient of any strides"),
    ("can't be cast to the desired output type", "a failure of torch's own: it writes into masks or integers"),
    ("more than one element of the written-to tensor", "our gradient is written into memory of its own"),
    ("a storage size of", "a failure of torch's own: a view of a base that was given less memory"),
    ("\" not implemented for '", "our formula is for every dtype of the argument"),
    ("must have a last dimension with stride 1", "a failure of torch's own: it needs other strides"),
)

# What only cygrad refuses.
ONLY_CYGRAD_REFUSES = (
    ("share a memory location", "the result would depend on the order of writing"),
    ("as_strided: out of bounds of the memory", "torch reads memory that belongs to others"),
    ("saved as 'indices'", "masks are kept as they are, not as the positions in them"),
    ("pow: not implemented for bool", "powers of masks are no masks"),
    ("L1ElementwiseBackward0: a tensor that backward needs was changed", "one pass over the arguments, which are kept"),
    ("MatmulBackward0: a tensor that backward needs was changed", "one formula for all shapes"),
    ("DivBackward0: a tensor that backward needs was changed", "torch divides numbers by way of the reciprocal"),
    ("abs: not implemented for bool", "a mask is no weight"),
    ("roll: dimension out of range", "torch looks at the dimension only where there are elements"),
    ("softmax: needs float32 or float64", "torch looks at the dtype only where there are elements"),
    ("was removed from the graph by detach_()", "the history of what was saved is gone; formulas of torch's save less"),
    ("l1_elementwise: an inference tensor cannot be saved", "one pass over the arguments, which are kept"),
    ("no longer refers to the memory of its base", "torch writes where the view does not lie"),
    ("matmul: not implemented for bool", "torch multiplies masks only with vectors"),
)

# The same where something has happened to the tensors before (`Machine.past`), of which either may complain.
AFTER = (
    ("exchanged", "", "invalid gradient at index", "memory of another shape was put under a tensor with a history"),
    ("resized", "", "invalid gradient at index", "memory of another shape was put under a tensor with a history"),
    ("exchanged", "sum_to: the shape does not broadcast", "", "memory of another shape was put under the tensor"),
    ("exchanged", "dimension out of range", "", "memory of another shape was put under the tensor"),
    ("resized", "dimension out of range", "", "memory of another shape was put under the tensor"),
    ("failed", "after they have already been freed", "", "how far a pass got before it failed is its own affair"),
    ("forced", "", "requires grad has been used in an in-place", "nothing is recorded in inference mode"),
    ("forced", "", "requires grad is being used in an in-place", "nothing is recorded in inference mode"),
)


# What both refuse, torch when it has already written or resized: nothing can be compared from there on.
WRITTEN_IN_SPITE = ("Inplace update to inference tensor", "index_put: index")


def excuse(title, mine, other, different, past):
    """The reason why two notes differ; None if there is none.

    Parameters
    ----------
    title : str
        The line, or what was computed at the end.
    mine, other : dict
        What cygrad and torch showed.
    different : set of str
        The facts that differ.
    past : set of str
        What happened before: `Machine.past`.
    """
    here, there = mine.get("outcome", mine.get("values")), other.get("outcome", other.get("values"))
    reason = next((reason for event, ours, theirs, reason in AFTER if event in past
                   and (ours in refusal_text(here) if ours else theirs in refusal_text(there))), None)
    if reason is not None:
        return reason
    if "unnoticed" in past and ("grad of" in title or title.startswith("backward of")) \
            and not any(isinstance(outcome, Refusal) for outcome in (here, there)):
        return "elements were changed without the version counter, and other formulas read them"
    if isinstance(there, Refusal):
        reason = reason_for(there, ONLY_TORCH_REFUSES)
        if reason is None and ("grad of" in title or title.startswith(("backward of", "m.grad", "m.backward"))
                               or title.endswith(".backward()")):
            reason = reason_for(there, ONLY_TORCH_CANNOT_DIFFERENTIATE)
        if reason is not None:
            return reason
    if isinstance(there, Refusal) and isinstance(here, dict) and not here["requires_grad"] \
            and "is a view and its base or another view" in str(there.error):
        return "there is no derivative, so the graph of the argument is not checked"
    if isinstance(here, Refusal) and isinstance(there, Refusal) and two_mistakes(str(here.error), str(there.error)):
        return "of two mistakes in one line either may be told"
    if isinstance(here, Refusal) and isinstance(there, str) and "its history" in str(here.error):
        return "a view without history is refused even by what gives the tensor itself"
    if isinstance(here, Refusal):
        return reason_for(here, ONLY_CYGRAD_REFUSES)
    if "forced" in past and title.startswith("m.call(") and not isinstance(there, Refusal):
        return "nothing is recorded in inference mode, by custom Functions neither"
    if "exchanged" in past and title == "at the end" and any(
            "as_strided: out of bounds of the memory" in refusal_text(value["is_leaf"]) for value in here):
        return "a view that no longer refers to the memory of its base has no history"
    if "out=" in title and "doesn't match the broadcast shape" in refusal_text(there):
        return "out= may be an argument, whatever the size of the result"
    if "out=" in title and different == {"versions"}:
        return "torch counts the steps of a resize"
    if seen_through_base(here, there):
        return "results of no-grad and inference mode do not require grad, not even if they are views"
    return None


def refusal_text(outcome):
    """What the error says; nothing if there is none."""
    return str(outcome.error) if isinstance(outcome, Refusal) else ""


# Mistakes that messages report, for lines with several mistakes: the first match.
BLAMED = (
    ("its history",),
    ("a leaf Variable that requires grad",),
    ("shape mismatch", "number of dimensions", "shape of the mask"),
    ("is out of bounds",),
    ("imension", "reduction dim"),
    ("dtype", "support", "implemented", "complex"),
)


def two_mistakes(here, there):
    """Return whether the messages report different mistakes."""
    mine, other = (next((words for words in BLAMED if any(word in text for word in words)), None)
                   for text in (here, there))
    return mine is not None and other is not None and mine != other


def reason_for(refusal, table):
    """Return the reason listed for a message."""
    return next((reason for text, reason in table if text in str(refusal.error)), None)


def seen_through_base(here, there):
    """Return whether this is a view without graph that requires grad in PyTorch because its base does."""
    if isinstance(here, list) and isinstance(there, list):
        return any(map(seen_through_base, here, there))
    if not (isinstance(here, dict) and isinstance(there, dict)):
        return False
    return (here.get("base") is not None and here["is_leaf"] and there["is_leaf"] and there["requires_grad"]
            and not here["requires_grad"])
