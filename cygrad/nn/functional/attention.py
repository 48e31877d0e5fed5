"""Attention: weighted means of values, with weights from the similarity of queries and keys."""

import math

import cygrad
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.layers import dropout, linear
from cygrad.random.generator import current

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_weights, _matmul = operators.attention_weights, operators.matmul

LONG = 1 << 12              # elements of a query from which chunks are considered
CACHED = 1 << 18            # scores of a chunk


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """
    Compute ``softmax(query @ key.T * scale + mask) @ value`` (Vaswani et al., 2017).

    Parameters
    ----------
    query : Tensor of shape (..., L, E)
    key : Tensor of shape (..., S, E)
    value : Tensor of shape (..., S, F)
    attn_mask : Tensor, optional
        Broadcasts to (..., L, S): bool, False for masked pairs; or floating point, added to the scores, of the dtype of
        the query or float32.
    dropout_p : float, default 0.0
        Probability of `dropout` of the weights; applied in evaluation too.
    is_causal : bool, default False
        Whether query i attends to keys 0 to i only; combined with `attn_mask`.
    scale : float, optional
        ``1 / sqrt(E)`` by default.
    enable_gqa : bool, default False
        Whether key and value may have fewer heads (dimension -3) than the query (grouped-query attention).

    Returns
    -------
    Tensor of shape (..., L, F)
        Zeros where all keys are masked.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> x = cygrad.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> cygrad.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    operation = "scaled_dot_product_attention"
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        as_tensor_argument(operation, name, tensor)
    dims, dtypes = [tensor.ndim for tensor in (query, key, value)], [tensor.dtype for tensor in (query, key, value)]
    if min(dims) < 2:
        raise RuntimeError(f"{operation}: query, key and value need at least two dimensions (got {dims}).")
    if len(set(dtypes)) > 1:
        raise RuntimeError(f"{operation}: query, key and value must have the same dtype (got "
                           f"{', '.join(map(str, dtypes))}).")
    if attn_mask is not None:
        as_tensor_argument(operation, "attn_mask", attn_mask)
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"{operation}: dropout_p must be from 0 to 1 (got {dropout_p}).")
    if enable_gqa:
        heads = [tensor.shape[-3] if tensor.ndim > 2 else 1 for tensor in (query, key, value)]
        if 0 in heads or heads[0] % heads[1] or heads[0] % heads[2]:
            raise RuntimeError(f"{operation}: with enable_gqa the heads of query must be a multiple of those of key "
                               f"and value (got key, value and query: {heads[1]}, {heads[2]} and {heads[0]}).")
        if max(heads) > 1:
            key = key.repeat_interleave(heads[0] // heads[1], -3)
            value = value.repeat_interleave(heads[0] // heads[2], -3)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if dropout_p or query.numel() < LONG:
        return _attend(query, key, value, attn_mask, dropout_p, is_causal, float(scale))[0]
    chunks, dim = _chunks(query, key, value, attn_mask)
    parts = [_attend(q, k, v, mask, 0.0, is_causal, float(scale))[0] for q, k, v, mask in chunks]
    return parts[0] if len(parts) == 1 else cygrad.cat(parts, dim)


def _chunks(query, key, value, mask):
    """Return the arguments in parts of a batch dimension, whose scores stay in a cache, and the dimension."""
    recorded = cygrad.is_grad_enabled() and any(t is not None and t.requires_grad for t in (query, key, value, mask))
    scores = query.numel() // query.shape[-1] * key.shape[-2]
    dim = next((k - query.ndim for k, size in enumerate(query.shape[:-2]) if size > 1), 0)
    if recorded or scores <= CACHED or dim == 0 or not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return [(query, key, value, mask)], dim            # derivatives need all scores, or there is one part
    step = max(1, CACHED * query.shape[dim] // scores)
    tensors = [query, key, value] + ([mask] if mask is not None and mask.ndim >= -dim and mask.shape[dim] > 1 else [])
    return [(*part, mask)[:4] for part in zip(*(tensor.split(step, dim) for tensor in tensors), strict=True)], dim


def _attend(query, key, value, mask, dropout_p, causal, scale):
    """Return the result, and the weights."""
    if mask is not None and mask.dtype == cygrad.float32 and query.dtype == cygrad.float64:
        mask = mask.to(query.dtype)
    dtype = query.dtype
    if dtype.itemsize < 4:                # compute in float32 and round once
        query, key, value = query.float(), key.float(), value.float()
        mask = mask if mask is None or mask.dtype == cygrad.bool else mask.float()
    weights = _weights(_matmul(query, key.transpose(-2, -1)), mask, scale, causal)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return _matmul(weights, value).to(dtype), weights.to(dtype)


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k,
                                 bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
                                 key_padding_mask=None, need_weights=True, attn_mask=None,
                                 use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
                                 v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True,
                                 is_causal=False, *, batch_first=False):
    """
    Compute multi-head attention, with projections before and after, as `nn.MultiheadAttention` does.

    Parameters
    ----------
    query, key, value : Tensor of shape (L, N, E), (S, N, E), (S, N, E)
        Or all without N; or (N, L, E) and (N, S, E) with `batch_first`.
    embed_dim_to_check : int
        E.
    num_heads : int
        Must divide E.
    in_proj_weight, in_proj_bias : Tensor of shape (3 * E, E) and (3 * E,), or None
        Projections of query, key and value.
    bias_k, bias_v : Tensor of shape (1, 1, E), or None
        Appended to the keys and values.
    add_zero_attn : bool
        Whether zeros are appended to the keys and values.
    dropout_p : float
        Probability of `dropout` of the weights in training.
    out_proj_weight, out_proj_bias : Tensor of shape (E, E) and (E,)
    training : bool, default True
    key_padding_mask : Tensor of shape (N, S), optional
        True for keys to be ignored, or floating, to be added to the scores.
    need_weights : bool, default True
        Whether the weights are returned too.
    attn_mask : Tensor of shape (L, S) or (N * num_heads, L, S), optional
        True for pairs to be ignored, or floating, to be added to the scores.
    use_separate_proj_weight : bool, default False
        Whether the next three are used instead of `in_proj_weight`.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
    static_k, static_v : Tensor of shape (N * num_heads, S, E / num_heads), optional
        Used instead of the projections of key and value.
    average_attn_weights : bool, default True
        Whether the weights are averaged over heads.
    is_causal : bool, default False
        Hint that `attn_mask` is the causal mask.
    batch_first : bool, default False

    Returns
    -------
    (Tensor, Tensor or None)
        The output in the shape of the query, and weights of shape (N, L, S) or (N, num_heads, L, S). Weights are 0
        where all keys are masked.

    Raises
    ------
    AssertionError, RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> layer = nn.MultiheadAttention(4, 2)
    >>> x = cygrad.randn(3, 1, 4)
    >>> y, weights = F.multi_head_attention_forward(
    ...     x, x, x, 4, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
    ...     layer.out_proj.weight, layer.out_proj.bias)
    >>> y.shape, weights.shape
    ((3, 1, 4), (1, 3, 3))
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        place = 0 if batch_first else 1
        query, key, value = ((query.unsqueeze(place),) * 3 if key is query and value is query
                             else (tensor.unsqueeze(place) for tensor in (query, key, value)))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if is_causal and attn_mask is None:
        raise RuntimeError("multi_head_attention_forward: Need attn_mask if specifying the is_causal hint. Make one "
                           "with Transformer.generate_square_subsequent_mask.")
    size = query.shape[-1]
    if size != embed_dim_to_check or size % num_heads:
        raise AssertionError("multi_head_attention_forward: was expecting embedding dimension of "
                             f"{embed_dim_to_check}, divisible by {num_heads} heads, but got {size}.")
    if key.shape[:2] != value.shape[:2] or (not use_separate_proj_weight and key.shape != value.shape):
        raise AssertionError(f"multi_head_attention_forward: key and value must have the same shape (got "
                             f"{tuple(key.shape)} and {tuple(value.shape)}).")
    keys = tuple(key.shape[:2]) if batch_first else (key.shape[1], key.shape[0])
    if key_padding_mask is not None and tuple(key_padding_mask.shape) != keys:
        raise AssertionError("multi_head_attention_forward: key_padding_mask must have an entry for each key (got "
                             f"{tuple(key_padding_mask.shape)}, expected {keys if batched else keys[1:]}).")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    heads = _Heads(num_heads, batch_first)
    q, k, v = heads.project(query, key, value, weights, in_proj_bias)
    causal = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal else heads.check_mask(attn_mask, q, key.shape[0 if not batch_first else 1])
    if static_k is not None:
        k = heads.static("static_k", static_k, q)
    if static_v is not None:
        v = heads.static("static_v", static_v, q)
    extra = 0
    if bias_k is not None or bias_v is not None:
        if bias_k is None or bias_v is None or static_k is not None or static_v is not None:
            raise AssertionError("multi_head_attention_forward: bias_k and bias_v are given together, and not with "
                                 "static keys or values.")
        k, v = heads.append(k, bias_k), heads.append(v, bias_v)
        extra += 1
    if add_zero_attn:
        zero = cygrad.zeros(size, dtype=k.dtype)
        k, v = heads.append(k, zero), heads.append(v, zero)
        extra += 1
    mask = _merged(mask, key_padding_mask, extra, q.dtype)
    found, weights = _attend(q, k, v, mask, dropout_p if training else 0.0, causal, 1 / math.sqrt(q.shape[-1]))
    # Dropout draws in memory order, so PyTorch's random stream requires PyTorch's layout in each step.
    by_steps = batch_first and current().algorithm == "mt19937"
    found = linear(heads.join(found, by_steps), out_proj_weight, out_proj_bias)
    if by_steps:
        found = found.transpose(0, 1)
    if not batched:
        found = found.squeeze(0 if batch_first else 1)
    if not need_weights:
        return found, None
    if average_attn_weights:
        weights = weights.mean(1)
    return found, weights if batched else weights.squeeze(0)


def _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Return whether there is a batch dimension; raise AssertionError if the arguments disagree."""
    if query.ndim not in (2, 3):
        raise AssertionError(f"multi_head_attention_forward: query must have two dimensions, or three with a batch "
                             f"(got {query.ndim}).")
    found = f"(got query {query.ndim}-D, key {key.ndim}-D and value {value.ndim}-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError("multi_head_attention_forward: query, key and value must have the same number of "
                             f"dimensions {found}.")
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertionError(f"multi_head_attention_forward: For {query.ndim}-D query, expected key_padding_mask to be "
                             f"{query.ndim - 1}-D (got {key_padding_mask.ndim}-D).")
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(f"multi_head_attention_forward: attn_mask's dimension {attn_mask.ndim} is not "
                             "supported (expected 2 or 3).")
    expected = num_heads, query.shape[0], key.shape[0]
    if attn_mask is not None and query.ndim == 2 and attn_mask.ndim == 3 and tuple(attn_mask.shape) != expected:
        raise AssertionError("multi_head_attention_forward: Expected attn_mask shape to be one matrix for each head "
                             f"(got {tuple(attn_mask.shape)}, expected {expected}).")
    for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is not None and mask.dtype != cygrad.bool and not mask.is_floating_point():
            raise AssertionError(f"multi_head_attention_forward: only bool and floating types of {name} are supported "
                                 f"(got {mask.dtype}).")
    return query.ndim == 3


class _Heads:
    """Split tensors (L, N, E), or (N, L, E) if `batch_first`, into heads (N, heads, L, E / heads), and join them."""

    def __init__(self, number, batch_first):
        self.number, self.batch_first = number, batch_first

    def split(self, tensor):
        """Return the heads as a view."""
        tensor = tensor.unflatten(-1, (self.number, tensor.shape[-1] // self.number))
        return tensor.transpose(1, 2) if self.batch_first else tensor.permute(1, 2, 0, 3)

    def join(self, tensor, by_steps):
        """Invert `split`; always return (L, N, E) if `by_steps`."""
        tensor = tensor.transpose(1, 2) if self.batch_first and not by_steps else tensor.permute(2, 0, 1, 3)
        return tensor.flatten(-2)

    def project(self, query, key, value, weights, bias):
        """Return the heads of the three projections; inputs that are the same tensor are projected together."""
        if isinstance(weights, tuple) or weights is None:
            biases = bias.chunk(3) if bias is not None else (None,) * 3
            if weights is None or any(weight is None for weight in weights):
                raise AssertionError("multi_head_attention_forward: in_proj_weight, or the three separate weights with "
                                     "use_separate_proj_weight=True, must be given.")
            return tuple(self.split(linear(tensor, weight, part)) for tensor, weight, part in
                         zip((query, key, value), weights, biases, strict=True))
        if query is key and key is value:
            return self._several(query, 3, weights, bias)
        size = query.shape[-1]
        first, rest = weights.split([size, 2 * size])
        ours, theirs = bias.split([size, 2 * size]) if bias is not None else (None, None)
        q = self.split(linear(query, first, ours))
        if key is value:
            return q, *self._several(key, 2, rest, theirs)
        of_key, of_value = rest.chunk(2)
        key_bias, value_bias = theirs.chunk(2) if theirs is not None else (None, None)
        return q, self.split(linear(key, of_key, key_bias)), self.split(linear(value, of_value, value_bias))

    def _several(self, tensor, n, weights, bias):
        """Return the heads of n projections of one tensor, as views of one product."""
        product = linear(tensor, weights, bias)
        product = product.unflatten(-1, (n, self.number, product.shape[-1] // (n * self.number)))
        return product.permute(*((2, 0, 3, 1, 4) if self.batch_first else (2, 1, 3, 0, 4))).unbind(0)

    def append(self, heads, row):
        """Append one more key or value, the same for each sequence."""
        row = row.reshape(1, self.number, 1, -1).expand(heads.shape[0], -1, -1, -1)
        return cygrad.cat((heads, row), 2)

    def static(self, name, tensor, like):
        """Return given keys or values as heads."""
        batch, size = like.shape[0], like.shape[-1]
        if tensor.ndim != 3 or tensor.shape[0] != batch * self.number or tensor.shape[2] != size:
            raise AssertionError(f"multi_head_attention_forward: expecting {name} of shape ({batch * self.number}, S, "
                                 f"{size}), but got {tuple(tensor.shape)}.")
        return tensor.unflatten(0, (batch, self.number))

    def check_mask(self, mask, query, sources):
        """Return the mask in a shape that broadcasts to (N, heads, L, S)."""
        if mask is None:
            return None
        batch, _, targets, _ = query.shape
        expected = (targets, sources) if mask.ndim == 2 else (batch * self.number, targets, sources)
        if tuple(mask.shape) != expected:
            raise RuntimeError(f"multi_head_attention_forward: The shape of the {mask.ndim}D attn_mask is "
                               f"{tuple(mask.shape)}, but should be {expected}.")
        return mask if mask.ndim == 2 else mask.unflatten(0, (batch, self.number))


def _merged(mask, padding, extra, dtype):
    """
    Combine both masks; the last `extra` keys are never masked. True in a bool result means attend.
    """
    masks = [part for part in (mask, None if padding is None else padding[:, None, None, :]) if part is not None]
    if not masks:
        return None
    if all(part.dtype == cygrad.bool for part in masks):
        merged = ~masks[0] if len(masks) == 1 else ~(masks[0] | masks[1])
        return cygrad.nn.functional.pad(merged, (0, extra), value=True) if extra else merged
    masks = [cygrad.zeros(part.shape, dtype=dtype).masked_fill(part, -math.inf) if part.dtype == cygrad.bool else part
             for part in masks]
    merged = masks[0] if len(masks) == 1 else masks[0] + masks[1]
    return cygrad.nn.functional.pad(merged, (0, extra)) if extra else merged
