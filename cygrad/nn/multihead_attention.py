"""Multi-head attention as a module."""

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_integer
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.layers import Linear
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]

ATTEND = F.multi_head_attention_forward


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention. Programs that replace layers of the class `Linear` skip it, as in PyTorch."""


class MultiheadAttention(Module):
    """
    Apply multi-head attention with input and output projections (Vaswani et al., 2017).

    Parameters
    ----------
    embed_dim, num_heads : int
        `num_heads` must divide `embed_dim`.
    dropout : float, default 0.0
        Probability of `dropout` of the weights in training.
    bias : bool, default True
    add_bias_kv : bool, default False
        Whether to append a learned key and value.
    add_zero_attn : bool, default False
        Whether to append a key and value of zeros.
    kdim, vdim : int, optional
        Features of keys and values; `embed_dim` by default.
    batch_first : bool, default False
        Whether tensors are (batch, steps, features) instead of (steps, batch, features).
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    in_proj_weight : Parameter of shape (3 * embed_dim, embed_dim), or None
        Projection of queries, keys and values, initialized by `init.xavier_uniform_`. With `kdim` or `vdim`,
        q_proj_weight, k_proj_weight and v_proj_weight replace it.
    in_proj_bias : Parameter of shape (3 * embed_dim,), or None
        Initialized to zero.
    bias_k, bias_v : Parameter of shape (1, 1, embed_dim), or None
    out_proj : Linear

    Examples
    --------
    >>> x = cygrad.ones(5, 2, 8)
    >>> output, weights = cygrad.nn.MultiheadAttention(8, 4)(x, x, x)
    >>> output.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        if min(as_integer("MultiheadAttention", name, value) for name, value in (
                ("embed_dim", embed_dim), ("num_heads", num_heads))) <= 0:
            raise ValueError(f"MultiheadAttention: embed_dim and num_heads must be positive (got {embed_dim} and "
                             f"{num_heads}).")
        if embed_dim % num_heads:
            raise AssertionError(f"MultiheadAttention: num_heads must divide embed_dim (got {embed_dim} and "
                                 f"{num_heads})")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        same = self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else
                                    Parameter(cygrad.empty(shape, device=device, dtype=dtype)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        """
        Compute the attention.

        Parameters
        ----------
        query, key, value : Tensor of shape (L, N, embed_dim), (S, N, kdim), (S, N, vdim)
            Or all without N; or (N, L, ...) and (N, S, ...) if `batch_first`.
        key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            As in `functional.multi_head_attention_forward`.

        Returns
        -------
        (Tensor, Tensor or None)
            The output in the shape of the query, and the weights.
        """
        attend, batch_first = F.multi_head_attention_forward, self.batch_first
        moved = batch_first and query.ndim == 3 and (type(query) is not Tensor or attend is not ATTEND)
        if moved:                               # replaced functions do not support batch_first
            batch_first, key_is_query, value_is_key = False, key is query, value is key
            query = query.transpose(0, 1)
            key = query if key_is_query else key.transpose(0, 1)
            value = key if value_is_key else value.transpose(0, 1)
        result, weights = attend(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
            **({"batch_first": True} if batch_first else {}))
        return result.transpose(0, 1) if moved else result, weights
