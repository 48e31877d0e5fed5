"""Transformer encoders and decoders (Vaswani et al., 2017)."""

import copy
import math

import cygrad
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.container import ModuleList
from cygrad.nn.dropout import Dropout
from cygrad.nn.layers import Linear
from cygrad.nn.module import Module
from cygrad.nn.multihead_attention import MultiheadAttention
from cygrad.nn.normalization import LayerNorm
from cygrad.nn.recurrent import check_layers

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]


def _causal_mask(size, dtype=None):
    """Return the mask that is -inf above the diagonal, else 0."""
    return cygrad.full((size, size), -math.inf, dtype=dtype).triu(1)


def _is_causal(mask, hint):
    """Return the hint if given, else whether the mask is causal."""
    if hint is not None or mask is None:
        return hint is True
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        return False
    causal = _causal_mask(mask.shape[0])
    return (mask == (causal < 0 if mask.dtype == cygrad.bool else causal)).all().item()


class _Layer(Module):
    """Base class of encoder and decoder layers."""

    def __init__(self, attentions, normalizations, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                 batch_first, norm_first, bias, device, dtype):
        super().__init__()
        new = {"device": device, "dtype": dtype}
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **new))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **new)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **new)
        self.norm_first = norm_first
        for number in range(1, normalizations + 1):
            setattr(self, f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **new))
        for number in range(1, normalizations + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"{type(self).__name__}: activation should be relu/gelu, not {activation}")
            activation = getattr(F, activation)
        self.activation = activation

    def _attend(self, attention, x, source, mask, padding, causal):
        return attention(x, source, source, attn_mask=mask, key_padding_mask=padding, is_causal=causal,
                         need_weights=False)[0]

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self._attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        dropout = self.dropout3 if hasattr(self, "dropout3") else self.dropout2
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _run(self, x, blocks):
        """Apply residual blocks to x, with normalization before or after each."""
        for block, norm in blocks:
            x = x + block(norm(x)) if self.norm_first else norm(x + block(x))
        return x


class TransformerEncoderLayer(_Layer):
    """
    Encoder layer: self-attention, then a feedforward network, each with a residual connection.

    Parameters
    ----------
    d_model, nhead : int
        Size of the features, and number of heads.
    dim_feedforward : int, default 2048
        Hidden size of the feedforward network.
    dropout : float, default 0.1
    activation : {"relu", "gelu"} or function
    layer_norm_eps : float, default 1e-5
    batch_first : bool, default False
    norm_first : bool, default False
        Whether `LayerNorm` is before attention and feedforward network instead of after the residual sum.
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> cygrad.nn.TransformerEncoderLayer(8, 2, 16)(cygrad.ones(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(["self_attn"], 2, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias, device, dtype)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        """
        Run the layer.

        Parameters
        ----------
        src : Tensor of shape (steps, batch, d_model), or (batch, steps, d_model) if `batch_first`, or (steps, d_model)
        src_mask, src_key_padding_mask, is_causal
            As `attn_mask`, `key_padding_mask` and `is_causal` of `functional.multi_head_attention_forward`.

        Returns
        -------
        Tensor
            Of the shape of `src`.
        """
        return self._run(src, (
            (lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal), self.norm1),
            (self._ff_block, self.norm2)))


class TransformerDecoderLayer(_Layer):
    """
    Decoder layer: self-attention, attention to the output of an encoder, then a feedforward network.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype
        As in `TransformerEncoderLayer`.

    Examples
    --------
    >>> cygrad.nn.TransformerDecoderLayer(8, 2, 16)(cygrad.ones(5, 3, 8), cygrad.ones(4, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(["self_attn", "multihead_attn"], 3, d_model, nhead, dim_feedforward, dropout, activation,
                         layer_norm_eps, batch_first, norm_first, bias, device, dtype)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        """
        Run the layer.

        Parameters
        ----------
        tgt : Tensor of shape (steps, batch, d_model), or (batch, steps, d_model) if `batch_first`, or (steps, d_model)
        memory : Tensor
            Output of the encoder; may have another number of steps.
        tgt_mask, tgt_key_padding_mask, tgt_is_causal : optional
            Of the self-attention.
        memory_mask, memory_key_padding_mask, memory_is_causal : optional
            Of the attention to `memory`.

        Returns
        -------
        Tensor
            Of the shape of `tgt`.
        """
        return self._run(tgt, (
            (lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal), self.norm1),
            (lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal), self.norm2),
            (self._ff_block, self.norm3)))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(self._attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))


def _copies(operation, layer, count):
    """Return copies of a layer, each with its own parameters."""
    if not isinstance(layer, Module):
        raise TypeError(f"{operation}: the layer must be a Module (got {type(layer).__name__}).")
    check_layers(operation, count)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """
    Stack of transformer encoder layers.

    Parameters
    ----------
    encoder_layer : Module
        Layer to copy.
    num_layers : int
    norm : Module, optional
        Applied to the result.
    enable_nested_tensor, mask_check : bool
        Accepted and ignored.

    Examples
    --------
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), num_layers=2)
    >>> encoder(cygrad.randn(1, 5, 8)).shape
    (1, 5, 8)
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """
        Run all layers.

        Parameters
        ----------
        src, mask, src_key_padding_mask
            As in `TransformerEncoderLayer.forward`.
        is_causal : bool, optional
            Whether the mask is causal; detected by default.

        Returns
        -------
        Tensor
            Of the shape of `src`.
        """
        causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """
    Stack of transformer decoder layers.

    Parameters
    ----------
    decoder_layer : Module
        Layer to copy.
    num_layers : int
    norm : Module, optional
        Applied to the result.

    Examples
    --------
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, batch_first=True), num_layers=2)
    >>> decoder(cygrad.randn(1, 3, 8), cygrad.randn(1, 5, 8)).shape
    (1, 3, 8)
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        """
        Run all layers.

        Parameters
        ----------
        tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, memory_is_causal
            As in `TransformerDecoderLayer.forward`.
        tgt_is_causal : bool, optional
            Whether `tgt_mask` is causal; detected by default.

        Returns
        -------
        Tensor
            Of the shape of `tgt`.
        """
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                        tgt_is_causal=causal, memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """
    Apply a transformer: an encoder, and a decoder that attends to its output.

    Parameters
    ----------
    d_model, nhead : int, default 512 and 8
    num_encoder_layers, num_decoder_layers : int, default 6
    dim_feedforward, dropout, activation
        As in `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        Used instead of the default encoder and decoder.
    layer_norm_eps, batch_first, norm_first, bias, device, dtype
        As in `TransformerEncoderLayer`.

    Attributes
    ----------
    encoder, decoder : Module
        All matrices are initialized by `init.xavier_uniform_`.

    Examples
    --------
    >>> model = cygrad.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(cygrad.ones(5, 3, 8), cygrad.ones(4, 3, 8)).shape
    (4, 3, 8)
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                   device, dtype)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm())
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm())
        for weight in self.parameters():
            if weight.ndim > 1:
                init.xavier_uniform_(weight)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        """
        Encode `src`, and decode `tgt` with it.

        Parameters
        ----------
        src, tgt : Tensor of shape (steps, batch, d_model), or (batch, steps, d_model) if `batch_first`
            Or both without the batch.
        src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask : optional
            As in ``forward`` of the layers.
        src_is_causal, tgt_is_causal : bool, optional
            Whether masks are causal; detected by default.
        memory_is_causal : bool, default False

        Returns
        -------
        Tensor
            Of the shape of `tgt`.

        Raises
        ------
        RuntimeError
            If batch sizes or features do not match.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(f"Transformer: src and tgt must have the same batch size (got {src.shape[batch]} and "
                               f"{tgt.shape[batch]})")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(f"Transformer: src and tgt must have d_model features (got {src.shape[-1]} and "
                               f"{tgt.shape[-1]}, expected {self.d_model})")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """Return the causal mask of `sz` steps: -inf above the diagonal, else 0."""
        return _causal_mask(sz, dtype)
