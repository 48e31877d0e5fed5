"""Embeddings: rows of a weight matrix by index, and sums, means or maxima of bags of rows."""

from itertools import pairwise

import cygrad
from cygrad._core.dispatch.tangents import paused
from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["embedding", "embedding_bag"]

_embedding, _bag, _bag_maximum = operators.embedding, operators.embedding_bag, operators.embedding_bag_maximum


def _check_padding(operation, padding_idx, rows):
    """Return the index of the padding row, or -1."""
    if padding_idx is None:
        return -1
    if not -rows <= as_integer(operation, "padding_idx", padding_idx) < rows:
        raise AssertionError(f"{operation}: padding_idx must be within the rows of weight (got {padding_idx}, expected "
                             f"less than {rows}).")
    return padding_idx % rows


def _limit_norms(operation, weight, index, max_norm, norm_type):
    """Scale the indexed rows of the weight to at most `max_norm`, in place."""
    if cygrad.is_grad_enabled() and weight.requires_grad and not weight.is_leaf:
        raise RuntimeError(f"{operation}: max_norm modifies weight in place, which must be a leaf (got a non-leaf "
                           "tensor). Pass a parameter.")
    with cygrad.no_grad(), paused():             # neither reverse nor forward mode differentiates this
        rows = cygrad.unique(index)
        chosen = weight.detach().index_select(0, rows)
        # In float64, so that rounding never makes a norm exceed max_norm.
        norms = cygrad.norm(chosen, norm_type, 1, keepdim=True).to(cygrad.float64)
        factor = cygrad.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        weight.index_copy_(0, rows, chosen * factor.to(chosen.dtype))


def _share_gradients(rows, index):
    """Divide gradients by the frequency of their row."""
    if rows.requires_grad:
        counts = cygrad.bincount(index.flatten())[index].to(rows.dtype)
        rows.register_hook(lambda gradient: gradient / counts.unsqueeze(-1))
    return rows


def _looked_up(weight, index, padding, sparse):
    """Return the indexed rows of the weight."""
    if sparse and weight.requires_grad and cygrad.is_grad_enabled():
        from cygrad.sparse.gradients import look_up
        return look_up(weight, index, padding)
    return _embedding(weight, index, padding)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """
    Look up rows of `weight` by index.

    Parameters
    ----------
    input : Tensor
        Integers of any shape, from 0 up to the number of rows.
    weight : Tensor of shape (rows, features)
    padding_idx : int, optional
        Index of a row that gets no gradient.
    max_norm : float, optional
        Indexed rows with a larger norm are scaled to it first, in place.
    norm_type : float, default 2.0
        Order of the norm.
    scale_grad_by_freq : bool, default False
        Whether the gradient of a row is divided by its frequency in `input`.
    sparse : bool, default False
        Whether the gradient of `weight` is a sparse tensor with the indexed rows.

    Returns
    -------
    Tensor
        Of shape ``(*input.shape, features)``.

    Raises
    ------
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> cygrad.nn.functional.embedding(cygrad.tensor([2, 0]), cygrad.tensor([[1.0], [2.0], [3.0]]))
    tensor([[3.],
            [1.]])
    """
    as_tensor_argument("embedding", "input", input)
    if as_tensor_argument("embedding", "weight", weight).ndim != 2:
        raise RuntimeError(f"embedding: 'weight' must be 2-D (got shape {tuple(weight.shape)}).")
    padding = _check_padding("embedding", padding_idx, weight.size(0))
    if max_norm is not None:
        _limit_norms("embedding", weight, input, max_norm, norm_type)
    rows = _looked_up(weight, input, padding, sparse)
    return _share_gradients(rows, input) if scale_grad_by_freq else rows


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """
    Compute sums, means or maxima of bags of rows of `weight`.

    Parameters
    ----------
    input : Tensor of shape (bags, size) or (n,)
        Row indices; in one dimension, `offsets` are the starts of the bags.
    weight : Tensor of shape (rows, features)
    offsets : Tensor of shape (bags,), optional
        Starts of the bags, in increasing order from 0.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As in `embedding`.
    mode : {"mean", "sum", "max"}
    per_sample_weights : Tensor of the shape of the input, optional
        Factors of the rows; requires ``mode="sum"``.
    include_last_offset : bool, default False
        Whether `offsets` has one more element, the end of the last bag.
    padding_idx : int, optional
        Index of a row that all bags ignore.

    Returns
    -------
    Tensor of shape (bags, features)
        Zeros for empty bags. The first of equal maxima gets the gradient.

    Raises
    ------
    ValueError
        If shapes, offsets or options are inconsistent.
    RuntimeError
        If an index is out of range.

    Examples
    --------
    >>> table = cygrad.tensor([[1.0], [2.0], [4.0]])
    >>> cygrad.nn.functional.embedding_bag(cygrad.tensor([0, 2, 1]), table, cygrad.tensor([0, 2]), mode="sum")
    tensor([[5.],
            [2.]])
    """
    as_tensor_argument("embedding_bag", "input", input)
    if isinstance(weight, cygrad.Tensor) and weight.dtype is cygrad.int64 and input.is_floating_point():
        warn_user("embedding_bag: the order (weight, input) is deprecated (got the indices second). Pass input first.")
        input, weight = weight, input
    if as_tensor_argument("embedding_bag", "weight", weight).ndim != 2:
        raise ValueError(f"embedding_bag: weight must be a matrix (got {weight.ndim} dimensions).")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: unknown mode (got {mode!r}, expected sum, mean or max).")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("embedding_bag: mode 'max' supports neither scale_grad_by_freq nor sparse (got one of them).")
    if per_sample_weights is not None:
        if input.shape != per_sample_weights.shape:
            raise ValueError("embedding_bag: per_sample_weights must have the shape of the input (got "
                             f"{tuple(per_sample_weights.shape)}, expected {tuple(input.shape)}).")
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(f"embedding_bag: per_sample_weights must have the dtype of weight (got "
                               f"{per_sample_weights.dtype} and {weight.dtype}).")
        if mode != "sum":
            raise NotImplementedError("embedding_bag: per_sample_weights is only supported for mode='sum' (got "
                                      f"mode={mode!r}).")
    padding = _check_padding("embedding_bag", padding_idx, weight.size(0))
    _check_bags(input, offsets, include_last_offset)
    sparse = sparse and weight.requires_grad and cygrad.is_grad_enabled()
    in_place = (weight.dtype in (cygrad.float32, cygrad.float64) and weight.numel() and not (
        sparse or scale_grad_by_freq))
    starts = None if in_place and max_norm is None else _starts(input, offsets, include_last_offset)
    if max_norm is not None:
        _limit_norms("embedding_bag", weight, input, max_norm, norm_type)
    if in_place:
        if mode == "max":
            return _bag_maximum(weight, input, offsets, include_last_offset, padding)[0]
        return _bag(weight, input, offsets, per_sample_weights, mode == "mean", include_last_offset, padding)
    index = input.flatten()
    try:
        rows = _looked_up(weight, index, padding, sparse)
    except IndexError as error:
        raise RuntimeError(str(error).replace("embedding:", "embedding_bag:", 1)) from None
    if scale_grad_by_freq:
        rows = _share_gradients(rows, index)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.flatten().unsqueeze(1)
    kept = None if padding < 0 else index != padding
    return _bags(rows, starts, kept, mode)


def _check_bags(input, offsets, include_last_offset):
    """Check shapes and dtypes of input and offsets."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: offsets must be None for 2D input, whose rows are the bags (got offsets).")
    elif input.ndim != 1:
        raise ValueError(f"embedding_bag: input must be a vector or a matrix (got {input.ndim} dimensions).")
    elif not isinstance(offsets, cygrad.Tensor) or offsets.ndim != 1 or offsets.is_floating_point():
        raise ValueError("embedding_bag: offsets must be a vector of integers (got "
                         f"{'None' if offsets is None else tuple(getattr(offsets, 'shape', ()))}).")
    elif include_last_offset and not offsets.numel():
        raise ValueError("embedding_bag: include_last_offset requires at least one offset (got none).")


def _starts(input, offsets, include_last_offset):
    """Return the starts of the bags, and the end of the last one."""
    if offsets is None:
        return [row * input.shape[1] for row in range(input.shape[0] + 1)]
    starts = offsets.tolist()
    if (starts and starts[0] != 0) or starts != sorted(starts) or (starts and starts[-1] > input.shape[0]):
        raise RuntimeError(f"embedding_bag: offsets[0] has to be 0, and offsets must increase up to {input.shape[0]}, "
                           f"the length of the input (got {starts}).")
    bags = starts[:-1] if include_last_offset else starts
    return [*bags, input.shape[0]] if bags else [0]


def _bags(rows, starts, kept, mode):
    """Reduce rows within bags; `kept` is False for ignored rows, None if no row is ignored."""
    pairs = list(pairwise(starts))
    count, rows = len(pairs), rows[:starts[-1]]
    sizes = members = [stop - start for start, stop in pairs]
    if kept is not None:
        kept = kept[:starts[-1]]
        members = [kept[start:stop].sum().item() for start, stop in pairs]
        rows = rows.masked_fill(~kept.unsqueeze(1), -cygrad.inf if mode == "max" else 0)
    counts = cygrad.tensor(members, dtype=cygrad.int64).unsqueeze(1)
    if mode == "max":
        # Pad bags to one length, with an extra row of -inf.
        longest = max(1, *sizes, 1)
        places = [[start + k if start + k < stop else starts[-1] for k in range(longest)] for start, stop in pairs]
        rows = cygrad.cat((rows, cygrad.full((1, rows.shape[1]), -cygrad.inf, dtype=rows.dtype)))
        index = cygrad.tensor(places, dtype=cygrad.int64).flatten()
        lines = rows.index_select(0, index).reshape(count, longest, rows.shape[1])
        return lines.max(1)[0].masked_fill(counts == 0, 0)
    if len(set(sizes)) == 1:
        total = rows.reshape(count, sizes[0], rows.shape[1]).sum(1)
    else:
        bag = cygrad.tensor([number for number, size in enumerate(sizes) for _ in range(size)], dtype=cygrad.int64)
        total = cygrad.zeros(count, rows.shape[1], dtype=rows.dtype).index_add(0, bag, rows)
    return total if mode == "sum" else total / cygrad.clamp_min(counts, 1).to(rows.dtype)
