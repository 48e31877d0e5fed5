"""Einstein summation: sums of products of tensors, written as labels of dimensions."""

from functools import lru_cache
from math import prod
from typing import NamedTuple

from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators

__all__ = ["einsum"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Labeled(NamedTuple):
    """A tensor, and the label of each dimension: a letter, or a number counting `...` from its end."""

    tensor: Tensor
    labels: tuple


# ---- reading the arguments

def _text_of(sublist):
    """Convert `[0, 1, ...]` to "AB..."."""
    text = ""
    for item in sublist:
        if item is Ellipsis:
            text += "..."
        elif isinstance(item, int) and 0 <= item < len(LETTERS):
            text += LETTERS[item]
        else:
            raise ValueError(f"einsum: subscripts must be integers in [0, {len(LETTERS)}) or ... (got {item!r}).")
    return text


def _read_arguments(args):
    """Return the subscripts of the operands, that of the output or None, and the operands."""
    if len(args) < 2:
        raise ValueError("einsum: expected an equation and at least one operand, or operands with their subscripts.")
    if isinstance(args[0], str):
        equation, operands = args[0].replace(" ", ""), args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        inputs, arrow, output = equation.partition("->")
        inputs = tuple(inputs.split(","))
        output = output if arrow else None
    else:
        operands = args[0 : len(args) // 2 * 2 : 2]
        inputs = tuple(_text_of(sublist) for sublist in args[1::2])
        output = _text_of(args[-1]) if len(args) % 2 else None
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise TypeError(f"einsum: operands must be Tensors (got {type(operand).__name__}).")
    if len(inputs) != len(operands):
        raise RuntimeError(f"einsum: as many subscripts as operands are needed (got {len(inputs)} and "
                           f"{len(operands)}).")
    return inputs, output, operands


def _split_labels(text, what):
    """Return the letters before and after `...`, and whether it is there."""
    head, dots, tail = text.partition("...")
    for letter in head + tail:
        if letter not in LETTERS:
            raise RuntimeError(f"einsum: invalid subscript in {what} (got {letter!r} in {text!r}, expected letters and "
                               "at most one '...').")
    return tuple(head), tuple(tail), bool(dots)


def _labels_of(text, ndim, number):
    """Return the label of each dimension of an operand."""
    head, tail, dots = _split_labels(text, f"operand {number}")
    free = ndim - len(head) - len(tail)
    if free < 0 or (free > 0 and not dots):
        raise RuntimeError(f"einsum: the number of subscripts does not match operand {number} (got {text!r} for "
                           f"{ndim} dimensions).")
    return head + tuple(range(free, 0, -1)) + tail


@lru_cache(maxsize=512)
def _read_subscripts(inputs, output, ndims):
    """Return the labels of all operands, and those of the output."""
    labels = tuple(_labels_of(text, ndim, i) for i, (text, ndim) in enumerate(zip(inputs, ndims, strict=False)))
    return labels, _output_labels(output, labels)


def _output_labels(text, all_labels):
    """Return the labels of the result: as written, or `...` and the letters that occur once, in order."""
    counts = {}
    for labels in all_labels:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    dots = tuple(sorted((label for label in counts if isinstance(label, int)), reverse=True))
    if text is None:
        return dots + tuple(sorted(label for label in counts if isinstance(label, str) and counts[label] == 1))
    head, tail, has_dots = _split_labels(text, "the output")
    for letter in head + tail:
        if letter not in counts:
            raise RuntimeError(f"einsum: output subscript {letter} is in no operand (got output {text!r}).")
        if (head + tail).count(letter) > 1:
            raise RuntimeError(f"einsum: output subscript {letter} occurs twice (got output {text!r}).")
    return head + (dots if has_dots else ()) + tail


# ---- one operand

def _without_repeats(operand):
    """Take diagonals for repeated labels."""
    if len(set(operand.labels)) == len(operand.labels):
        return operand
    tensor, labels = operand.tensor, list(operand.labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if tensor.shape[first] != tensor.shape[second]:
                raise RuntimeError(f"einsum: subscript {label} is repeated for dimensions of sizes "
                                   f"{tensor.shape[first]} and {tensor.shape[second]}, which are not equal.")
            tensor = operators.diagonal(tensor, 0, first, second)
            labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label]
    return Labeled(tensor, tuple(labels))


def _all_sizes(operands):
    """Return the size of each label, 1 only if all have 1."""
    sizes = {}
    for number, operand in enumerate(operands):
        for label, size in zip(operand.labels, operand.tensor.shape, strict=False):
            known = sizes.get(label, 1)
            if known != 1 and size not in (1, known):
                raise RuntimeError(f"einsum: subscript {label if isinstance(label, str) else '...'} has size {size} "
                                   f"for operand {number}, which does not broadcast with size {known} seen before.")
            sizes[label] = known if size == 1 else size
    return sizes


def _without_broadcast(operand, sizes):
    """Drop dimensions of size 1 where another operand has the full one."""
    shape = operand.tensor.shape
    dropped = [i for i, label in enumerate(operand.labels) if shape[i] != sizes[label]]
    if not dropped:
        return operand
    labels = tuple(label for i, label in enumerate(operand.labels) if i not in dropped)
    return Labeled(operators.squeeze(operand.tensor, tuple(dropped)), labels)


def _summed(operand, kept):
    """Sum over the labels that are not needed any more."""
    dims = tuple(i for i, label in enumerate(operand.labels) if label not in kept)
    if not dims:
        return operand
    tensor = operators.sum(operand.tensor, dims, dtype=operand.tensor.dtype)
    return Labeled(tensor, tuple(label for label in operand.labels if label in kept))


def _arranged(operand, groups, sizes):
    """Return the dimensions in the order of the groups, each group as one dimension."""
    order = [label for group in groups for label in group]
    positions = tuple(operand.labels.index(label) for label in order)
    tensor = operand.tensor
    if positions != tuple(range(len(positions))):
        tensor = operators.permute(tensor, positions)
    if all(len(group) == 1 for group in groups):
        return tensor
    return operators.reshape(tensor, tuple([prod([sizes[label] for label in group]) for group in groups]))


# ---- two operands

def _contract(a, b, kept, sizes):
    """Multiply two operands and sum over the labels that are not kept: one matrix product."""
    a = _summed(a, kept | set(b.labels))
    b = _summed(b, kept | set(a.labels))
    batch = [label for label in a.labels if label in b.labels and label in kept]
    summed = [label for label in a.labels if label in b.labels and label not in kept]
    left = [label for label in a.labels if label not in b.labels]
    right = [label for label in b.labels if label not in a.labels]
    labels = tuple(batch + left + right)
    shape = tuple(sizes[label] for label in labels)
    if not summed:
        ours = _arranged(a, [batch, left, []], sizes)
        theirs = _arranged(b, [batch, [], right], sizes)
        return Labeled(operators.reshape(ours * theirs, shape), labels)
    if batch:
        product = operators.bmm(_arranged(a, [batch, left, summed], sizes), _arranged(b, [batch, summed, right], sizes))
    else:
        product = operators.mm(_arranged(a, [left, summed], sizes), _arranged(b, [summed, right], sizes))
    return Labeled(product if tuple(product.shape) == shape else operators.reshape(product, shape), labels)


def _best_pair(operands, output, sizes):
    """Return the pair whose product increases memory least."""
    if len(operands) == 2:
        return 0, 1, set(output)
    best = None
    for i in range(len(operands)):
        for j in range(i + 1, len(operands)):
            others = set(output).union(*(o.labels for k, o in enumerate(operands) if k not in (i, j)))
            both = set(operands[i].labels) | set(operands[j].labels)
            growth = prod(sizes[label] for label in both & others) - sum(
                prod(sizes[label] for label in operands[k].labels) for k in (i, j))
            cost = (growth, prod(sizes[label] for label in both))
            if best is None or cost < best[0]:
                best = (cost, i, j, others)
    return best[1:]


def einsum(*args):
    """Sum products of tensors over labeled dimensions (Einstein summation).

    Parameters
    ----------
    *args : str, then Tensors; or Tensors, each followed by a list of integers
        In an equation such as ``"bij,bjk->bik"`` each letter names a dimension. Equal letters go
        together; what is not in the output is summed; a letter repeated in one operand takes its
        diagonal; ``...`` stands for all other dimensions, which are broadcast. Without ``->`` the output
        has the letters that occur once, in the order of the alphabet. In the second form integers take
        the place of letters, and a last list that of the output.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If subscripts are invalid or do not fit the operands.
    ValueError
        If there is no operand.

    Notes
    -----
    Three and more operands are contracted in pairs, at each step the pair whose product is smallest
    compared with its operands.

    Examples
    --------
    >>> import cygrad
    >>> a = cygrad.tensor([[1., 2.], [3., 4.]])
    >>> cygrad.einsum("ij,jk->ik", a, a)
    tensor([[ 7., 10.],
            [15., 22.]])
    >>> cygrad.einsum("ii", a)
    tensor(5.)
    >>> cygrad.einsum(a, [0, 1], [1, 0])
    tensor([[1., 3.],
            [2., 4.]])
    """
    inputs, output, tensors = _read_arguments(args)
    all_labels, output = _read_subscripts(inputs, output, tuple([tensor.ndim for tensor in tensors]))
    operands = [_without_repeats(Labeled(tensor, labels)) for tensor, labels in zip(tensors, all_labels, strict=False)]
    sizes = _all_sizes(operands)
    operands = [_without_broadcast(operand, sizes) for operand in operands]
    while len(operands) > 1:
        i, j, others = _best_pair(operands, output, sizes)
        result = _contract(operands[i], operands[j], others, sizes)
        operands = [operand for k, operand in enumerate(operands) if k not in (i, j)] + [result]
    result = _summed(operands[0], set(output))
    positions = tuple(result.labels.index(label) for label in output)
    if positions == tuple(range(len(positions))):
        return result.tensor if result.tensor is not tensors[0] else operators.alias(result.tensor)
    return operators.permute(result.tensor, positions)
