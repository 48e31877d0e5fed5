"""Padded and packed sequences of different lengths."""

from typing import NamedTuple

import cygrad
from cygrad import Tensor
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.graph.boxing import check_numbers
from cygrad._core.table.docstrings import documented

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]
__dir__ = _public_dir(__name__)


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _conversion(dtype):
    """Return a method that converts elements to a dtype."""
    def convert(self):
        return self.to(getattr(cygrad, dtype))
    convert.__doc__ = f"Convert to {dtype}."
    return convert


class PackedSequence(_Packed):
    """
    Sequences of different lengths without padding: the first elements of all, then the second elements, and so on.

    Create it by `pack_padded_sequence` or `pack_sequence`.

    Attributes
    ----------
    data : Tensor
        The elements along the first dimension.
    batch_sizes : Tensor
        Number of sequences with an element at each step.
    sorted_indices : Tensor or None
        Permutation that sorts the sequences by length; None if they were sorted.
    unsorted_indices : Tensor or None
        Inverse of `sorted_indices`.

    Examples
    --------
    >>> packed = nn.utils.rnn.pack_sequence([cygrad.tensor([1.0, 2.0]), cygrad.tensor([4.0])])
    >>> packed.batch_sizes
    tensor([2, 1])
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if isinstance(data, tuple) and batch_sizes is None:
            data, batch_sizes = data
        if not isinstance(batch_sizes, Tensor) or batch_sizes.ndim != 1 or batch_sizes.dtype != cygrad.int64:
            raise ValueError("PackedSequence: batch_sizes must be a 1-dimensional int64 tensor. Use "
                             "pack_padded_sequence.")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """Convert the elements to another dtype; see ``Tensor.to``."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    double, float, half = _conversion("float64"), _conversion("float32"), _conversion("float16")
    long, int, short = _conversion("int64"), _conversion("int32"), _conversion("int16")
    char, byte = _conversion("int8"), _conversion("uint8")

    def cpu(self):
        """Return self."""
        return self

    def pin_memory(self):
        """Return self."""
        return self

    def is_pinned(self):
        """Return False."""
        return False

    @property
    def is_cuda(self):
        """Return False."""
        return False


def invert_permutation(permutation):
    """
    Return the inverse of a permutation.

    Parameters
    ----------
    permutation : Tensor or None

    Returns
    -------
    Tensor or None

    Examples
    --------
    >>> nn.utils.rnn.invert_permutation(cygrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else cygrad.argsort(permutation)


def _lengths(lengths, n, operation):
    """Return the lengths as a list of integers."""
    values = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if len(values) != n:
        raise RuntimeError(f"{operation}: expected one length for each sequence (got {len(values)} "
                           f"lengths and a batch of {n}).")
    if any(value != int(value) or value <= 0 for value in values):
        raise RuntimeError(f"{operation}: lengths must be positive (got {values}).")
    return [int(value) for value in tuple(values)]


@names_arguments
def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """
    Pack padded sequences.

    Parameters
    ----------
    input : Tensor of shape ``(T, B, *)``, or ``(B, T, *)`` with `batch_first`
        Sequences, padded at their ends.
    lengths : Tensor or list of int
        Lengths of the sequences.
    batch_first : bool, default False
    enforce_sorted : bool, default True
        Whether lengths must be in decreasing order; otherwise sequences are sorted.

    Returns
    -------
    PackedSequence

    Raises
    ------
    RuntimeError
        If lengths are invalid.

    Examples
    --------
    >>> from cygrad.nn.utils.rnn import pack_padded_sequence
    >>> pack_padded_sequence(cygrad.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).data
    tensor([1, 3, 2])
    """
    if batch_first:
        input = input.transpose(0, 1)
    if input.ndim < 2:
        raise RuntimeError(f"pack_padded_sequence: expected at least two dimensions (got shape {tuple(input.shape)}).")
    sizes, order = _lengths(lengths, input.shape[1], "pack_padded_sequence"), None
    if not sizes:
        raise RuntimeError("pack_padded_sequence: Cannot pack empty tensors.")
    if not enforce_sorted:
        order = cygrad.argsort(cygrad.tensor(sizes), descending=True)
        sizes = [sizes[position] for position in order.tolist()]
        input = input.index_select(1, order)
    elif sizes != sorted(sizes, reverse=True):
        raise RuntimeError("pack_padded_sequence: enforce_sorted=True requires lengths in decreasing order (got "
                           f"{sizes}). Pass enforce_sorted=False.")
    if sizes[0] > input.shape[0]:
        raise RuntimeError("pack_padded_sequence: Expected `len(lengths)` not to exceed the padded length (got "
                           f"{sizes[0]}, expected at most {input.shape[0]}).")
    alive, parts, batch_sizes, start = len(sizes), [], [], 0
    for stop in sorted(set(sizes)):                    # steps with the same number of sequences
        parts.append(input[start:stop, :alive].flatten(0, 1))
        batch_sizes += [alive] * (stop - start)
        alive = sum(size > stop for size in sizes)
        start = stop
    return PackedSequence(cygrad.cat(parts), cygrad.tensor(batch_sizes), order)


@names_arguments
def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """
    Pad packed sequences: the inverse of `pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool, default False
        Return shape ``(B, T, *)`` instead of ``(T, B, *)``.
    padding_value : float, default 0
    total_length : int, optional
        Padded length T; the length of the longest sequence by default.

    Returns
    -------
    (Tensor, Tensor)
        The padded sequences and their lengths.

    Raises
    ------
    ValueError
        If `total_length` is less than the longest sequence.

    Examples
    --------
    >>> packed = nn.utils.rnn.pack_sequence([cygrad.tensor([1.0, 2.0]), cygrad.tensor([4.0])])
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 2.],
            [4., 0.]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    steps, n = len(sizes), sizes[0]
    if total_length is not None and total_length < steps:
        raise ValueError("pad_packed_sequence: total_length must not be less than the longest sequence (got "
                         f"{total_length} and {steps}).")
    # Index of each padded element in the packed data; the padding value is appended to it.
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    data = sequence.data
    filler = cygrad.full((1, *data.shape[1:]), padding_value, dtype=data.dtype)
    places = [[starts[step] + member if step < steps and member < sizes[step] else starts[-1] for member in range(n)]
              for step in range(steps if total_length is None else total_length)]
    padded = cygrad.cat([data, filler]).index_select(0, cygrad.tensor(places).flatten())
    padded = padded.unflatten(0, (len(places), n))
    lengths = cygrad.tensor([sum(size > member for size in sizes) for member in range(n)])
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded.transpose(0, 1) if batch_first else padded, lengths


@names_arguments
@documented()
def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """
    Pad sequences to the same length and stack them.

    Parameters
    ----------
    sequences : iterable of Tensor
        Of shape ``(length, *)`` each.
    batch_first : bool, default False
        Return shape ``(B, T, *)`` instead of ``(T, B, *)``.
    padding_value : float, default 0
    padding_side : {"right", "left"}

    Examples
    --------
    >>> from cygrad.nn.utils.rnn import pad_sequence
    >>> pad_sequence([cygrad.ones(3), cygrad.ones(1)], batch_first=True)
    tensor([[1., 1., 1.],
            [1., 0., 0.]])
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f"pad_sequence: Expected padding_side to be one of left or right (got {padding_side!r}).")
    sequences = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest, rest = max(tensor.shape[0] for tensor in sequences), tuple(sequences[0].shape[1:])
    for tensor in sequences:
        if tuple(tensor.shape[1:]) != rest:
            raise RuntimeError("pad_sequence: all dimensions except the first must be the same (got "
                               f"{tuple(tensor.shape[1:])}, expected {rest}).")
    padded = []
    for tensor in sequences:
        check_numbers("pad_sequence", tensor.dtype, padding_value, wraps=False)
        filler = cygrad.full((longest - tensor.shape[0], *rest), padding_value, dtype=tensor.dtype)
        padded.append(cygrad.cat([tensor, filler] if padding_side == "right" else [filler, tensor]))
    return cygrad.stack(padded, 0 if batch_first else 1)


@names_arguments
def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """
    Return sequences without padding.

    Parameters
    ----------
    padded_sequences : Tensor of shape ``(T, B, *)``, or ``(B, T, *)`` with `batch_first`
    lengths : Tensor
        Lengths of the sequences.
    batch_first : bool, default False

    Returns
    -------
    list of Tensor

    Examples
    --------
    >>> nn.utils.rnn.unpad_sequence(cygrad.tensor([[1.0, 2.0], [4.0, 0.0]]), cygrad.tensor([2, 1]), batch_first=True)
    [tensor([1., 2.]), tensor([4.])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:int(length)] for sequence, length in zip(padded_sequences.unbind(0), lengths, strict=True)]


@names_arguments
def pack_sequence(sequences, enforce_sorted=True):
    """
    Pack sequences of different lengths.

    Parameters
    ----------
    sequences : list of Tensor
        Of shape ``(length, *)`` each.
    enforce_sorted : bool, default True
        See `pack_padded_sequence`.

    Returns
    -------
    PackedSequence

    Examples
    --------
    >>> packed = nn.utils.rnn.pack_sequence([cygrad.tensor([1.0, 2.0, 3.0]), cygrad.tensor([4.0])])
    >>> packed.data
    tensor([1., 4., 2., 3.])
    >>> packed.batch_sizes
    tensor([2, 1, 1])
    """
    lengths = [tensor.shape[0] for tensor in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@names_arguments
def unpack_sequence(packed_sequences):
    """
    Return the sequences of a packed one.

    Parameters
    ----------
    packed_sequences : PackedSequence

    Returns
    -------
    list of Tensor

    Examples
    --------
    >>> packed = nn.utils.rnn.pack_sequence([cygrad.tensor([1.0, 2.0]), cygrad.tensor([4.0])])
    >>> nn.utils.rnn.unpack_sequence(packed)
    [tensor([1., 2.]), tensor([4.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
