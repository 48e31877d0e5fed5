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
    ("refer to a single memory location", "cygrad copies operands that overlap the result"),
    ("where expected condition to be a boolean", "nonzero elements are true, as for logical operators"),
    ("Index put requires the source and destination dtypes match", "values of a lower kind are converted"),
    ("Integer division with addcdiv", "true division, as everywhere"),
    ("Expected both inputs to be Half, Float or Double", "operands of several dtypes are promoted by every operator"),
    ("Expected object of scalar type", "operands of several dtypes are promoted by every operator"),
    ("Found dtype", "out= takes every dtype that holds the result"),
    ("cumprod_out_cpu", "products of masks are counts, and any count is true"),
    ("old_fn INTERNAL ASSERT FAILED", "an internal error of PyTorch"),
    ("cumsum_out_cpu", "sums of masks are counts, and any count is true"),
    ("does not support automatic differentiation for outputs with complex dtype", "cygrad's formula supports them"),
    ("backward through the graph a second time", "cygrad's formula reads no saved tensor"),
    ("ZeroTensors are immutable", "an internal error of PyTorch"),
    ("that has been detached in-place", "a saved tensor keeps its graph in cygrad"),
    ("Trying to resize storage that is not resizable", "cygrad allocates memory for a result of another size"),
    ("Inference tensors do not track version counter", "an error of PyTorch: memory replaced in inference mode"),
    ("Inference tensors cannot be saved", "cygrad's formula does not read the inference tensor"),
    ("Expected isFloatingType(grad.scalar_type())", "an internal error of PyTorch: the gradient is the real part"),
)

# The same for errors of backward.
ONLY_TORCH_CANNOT_DIFFERENTIATE = (
    ("modified by an inplace operation", "cygrad's formula does not read the modified tensor"),
    ("moved into the graph interior", "a leaf that no longer requires grad may be modified in place"),
    ("view was created inside a custom Function", "cygrad's formula does not read the modified tensor"),
    ("is a view and its base or another view", "cygrad's formula does not read the modified tensor"),
    ("must have a stride divisible by 2", "an internal error of PyTorch: it views a gradient of arbitrary strides"),
    ("can't be cast to the desired output type", "an internal error of PyTorch: it writes into masks or integers"),
    ("more than one element of the written-to tensor", "cygrad writes the gradient into separate memory"),
    ("a storage size of", "an internal error of PyTorch: a view of a base whose memory became smaller"),
    ("\" not implemented for '", "cygrad's formula supports every dtype of the argument"),
    ("must have a last dimension with stride 1", "an internal error of PyTorch: it requires other strides"),
)

# What only cygrad refuses.
ONLY_CYGRAD_REFUSES = (
    ("share a memory location", "the result would depend on the order of writing"),
    ("as_strided: out of bounds of the memory", "PyTorch reads out of bounds"),
    ("saved as 'indices'", "cygrad saves masks, PyTorch their indices"),
    ("pow: not implemented for bool", "powers of masks are no masks"),
    ("L1ElementwiseBackward0: one of the variables needed for gradient computation", "one pass over saved arguments"),
    ("MatmulBackward0: one of the variables needed for gradient computation", "one formula for all shapes"),
    ("DivBackward0: one of the variables needed for gradient computation", "PyTorch divides by the reciprocal"),
    ("abs: not implemented for bool", "a mask is no weight"),
    ("roll: dimension out of range", "PyTorch does not check the dimension of empty tensors"),
    ("softmax: needs float32 or float64", "PyTorch does not check the dtype of empty tensors"),
    ("detached in-place, by detach_()", "the history of the saved tensor is gone; formulas of torch's save less"),
    ("l1_elementwise: an inference tensor cannot be saved", "one pass over the arguments, which are kept"),
    ("no longer refers to the memory of its base", "PyTorch writes to memory outside of the view"),
    ("matmul: not implemented for bool", "torch multiplies masks only with vectors"),
)

# The same where something has happened to the tensors before (`Machine.past`), of which either may complain.
AFTER = (
    ("exchanged", "", "invalid gradient at index", "memory of another shape was put under a tensor with a history"),
    ("resized", "", "invalid gradient at index", "memory of another shape was put under a tensor with a history"),
    ("exchanged", "sum_to: the shape does not broadcast", "", "memory of another shape was put under the tensor"),
    ("exchanged", "dimension out of range", "", "memory of another shape was put under the tensor"),
    ("resized", "dimension out of range", "", "memory of another shape was put under the tensor"),
    ("failed", "after they have already been freed", "", "a failed backward may have freed different nodes"),
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
