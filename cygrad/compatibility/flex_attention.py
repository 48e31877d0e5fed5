"""``torch.nn.attention.flex_attention``: attention with functions that modify scores and masks."""

import math
from dataclasses import dataclass

import cygrad

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
           "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


@dataclass
class AuxRequest:
    """Requested auxiliary results."""

    lse: bool = False
    max_scores: bool = False


@dataclass
class AuxOutput:
    """Auxiliary results."""

    lse: cygrad.Tensor | None = None
    max_scores: cygrad.Tensor | None = None


def _places(batch, heads, queries, keys):
    """Return indices of batch, head, query and key that broadcast to the shape of the scores."""
    return [cygrad.arange(n).reshape([n if place == dim else 1 for place in range(4)])
            for dim, n in enumerate((batch, heads, queries, keys))]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None, **options):
    """Return the mask of a function ``(batch, head, query, key) -> bool``, of the shape (B, H, Q, K)."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    return cygrad.broadcast_to(cygrad.as_tensor(mod_fn(*_places(*sizes))).bool(), sizes)


class BlockMask:
    """
    Mask of the pairs of queries and keys.

    Parameters
    ----------
    mask : Tensor
        Of the shape (batch, heads, queries, keys), of type bool; the first two may be 1.
    mask_mod : callable
        The function that computed the mask.
    """

    def __init__(self, mask, mask_mod):
        self.mask, self.mask_mod, self.shape = mask, mask_mod, tuple(mask.shape)
        self.seq_lengths = self.shape[2:]

    def to_dense(self):
        """Return the mask as integers."""
        return self.mask.int()

    def to(self, *args, **options):
        """Return the mask itself."""
        return self

    def sparsity(self):
        """Return the percentage of masked pairs."""
        return 100 * (1 - self.mask.float().mean().item())

    def __getitem__(self, index):
        return BlockMask(self.mask[index], self.mask_mod)

    def __repr__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, **options):
    """Return the mask of a function ``(batch, head, query, key) -> bool`` of index tensors."""
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN), mask_mod)


def noop_mask(batch, head, q_idx, kv_idx):
    """Return True for all pairs."""
    return cygrad.ones((), dtype=cygrad.bool)


def and_masks(*mask_mods):
    """Return the intersection of masks."""
    def both(*places):
        found = noop_mask(*places)
        for function in mask_mods:
            found = found & function(*places)
        return found
    return both


def or_masks(*mask_mods):
    """Return the union of masks."""
    def either(*places):
        found = ~noop_mask(*places)
        for function in mask_mods:
            found = found | function(*places)
        return found
    return either


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
                   kernel_options=None, *, return_aux=None):
    """
    Attention with scores modified by a function of ``(score, batch, head, query, key)`` before the softmax.

    Parameters
    ----------
    query, key, value : Tensor
        Of the shape (batch, heads, length, size).
    score_mod : callable, optional
        Called once, with the scores of all pairs and index tensors that broadcast with them.
    block_mask : BlockMask, optional
    scale : float, optional
        Default: ``1 / sqrt(size)``.
    enable_gqa : bool
        Whether heads of queries share heads of keys (grouped-query attention).
    return_lse : bool
        Whether to return the logsumexp too.
    kernel_options : optional
        Ignored.
    return_aux : AuxRequest, optional
        Return the logsumexp and the largest scores as an `AuxOutput`.
    """
    if enable_gqa:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = (query @ key.mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_places(*scores.shape))
    if block_mask is not None:
        mask = block_mask.mask[..., :scores.shape[-2], :scores.shape[-1]]
        scores = scores.masked_fill(~mask, -cygrad.inf)
    top = cygrad.logsumexp(scores, -1, keepdim=True)
    weights = cygrad.exp(scores - cygrad.where(top == -cygrad.inf, 0.0, top))     # zero where all scores are masked
    result = weights.to(value.dtype) @ value
    lse = top.squeeze(-1)
    if return_aux is not None:
        largest = scores.detach().amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, largest)
    return (result, lse) if return_lse else result
