"""Embeddings as modules: lookups in a weight matrix by index."""

import cygrad
from cygrad._core.graph.argument_errors import as_integer
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base class of embeddings: the weight and the lookup options."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                 weight, freeze, device, dtype):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            as_integer(type(self).__name__, "padding_idx", padding_idx)
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"{type(self).__name__}: padding_idx must be within num_embeddings (got "
                                     f"{padding_idx}, expected less than {num_embeddings}).")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            self.weight = Parameter(cygrad.empty(num_embeddings, embedding_dim, device=device, dtype=dtype),
                                    requires_grad=not freeze)
            self.reset_parameters()
        else:
            if tuple(weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(f"{type(self).__name__}: the shape of the weight does not match num_embeddings "
                                     f"and embedding_dim (got {tuple(weight.shape)}, expected "
                                     f"{(num_embeddings, embedding_dim)}).")
            self.weight = Parameter(weight, requires_grad=not freeze and weight.is_floating_point())

    def reset_parameters(self):
        """Initialize; set the padding row to zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with cygrad.no_grad():
                self.weight[self.padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                        scale_grad_by_freq=False, sparse=False, **options):
        """
        Create a module from a given weight.

        Parameters
        ----------
        embeddings : Tensor of shape (num_embeddings, embedding_dim)
        freeze : bool, default True
            Whether the weight does not require grad.
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, **options
            As in the constructor.
        """
        if embeddings.ndim != 2:
            raise AssertionError(f"{cls.__name__}.from_pretrained: embeddings must have two dimensions "
                                 f"(got shape {tuple(embeddings.shape)}).")
        options |= {"padding_idx": padding_idx, "max_norm": max_norm, "norm_type": norm_type,
                    "scale_grad_by_freq": scale_grad_by_freq, "sparse": sparse, "_weight": embeddings}
        module = cls(*embeddings.shape, **options)
        module.weight.requires_grad_(not freeze)
        return module

    def _options(self, mode=None):
        """Return the non-default options, for `extra_repr`."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if mode is None and self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if mode is not None:
            text += f", mode={mode!r}"
            if self.padding_idx is not None:
                text += f", padding_idx={self.padding_idx}"
        elif self.sparse is not False:
            text += ", sparse=True"
        return text


class Embedding(_Table):
    """
    Look up rows of `weight` by index.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Shape of the weight.
    padding_idx : int, optional
        Index of the row that is initialized to zero and gets no gradient.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As in `functional.embedding`.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (num_embeddings, embedding_dim)
        Initialized from the standard normal distribution.

    Examples
    --------
    >>> cygrad.nn.Embedding(10, 3)(cygrad.tensor([[1, 2], [4, 1]])).shape
    (2, 2, 3)
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                         _weight, _freeze, device, dtype)

    def forward(self, input):
        """Map indices of any shape to (..., embedding_dim)."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                           self.sparse)

    def extra_repr(self):
        """Return sizes and non-default options."""
        return self._options()


class EmbeddingBag(_Table):
    """
    Compute sums, means or maxima of bags of rows of `weight`.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Shape of the weight.
    max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx
        As in `functional.embedding_bag`.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (num_embeddings, embedding_dim)
        Initialized from the standard normal distribution.

    Examples
    --------
    >>> cygrad.nn.EmbeddingBag(10, 3)(cygrad.tensor([[1, 2], [4, 1]])).shape
    (2, 3)
    """

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None,
                 dtype=None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                         _weight, False, device, dtype)
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        """Map indices (bags, size), or (n,) with `offsets`, to (bags, embedding_dim)."""
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        """Return sizes and non-default options."""
        return self._options(self.mode)
