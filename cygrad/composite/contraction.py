"""Einstein summation."""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from cygrad._core.graph.argument_errors import described
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators

__all__ = ["einsum"]

MIN_COLUMNS = 32      # of a product whose operands are exchanged, so that they are adjacent in memory
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Labeled(NamedTuple):
    """Index of a value, and the label of each dimension: a letter, or a number from the end of `...`."""

    value: int
    labels: tuple


class Plan:
    """
    Sequence of operators that computes an einsum for operands of given shapes.

    Each step is (operator, indices of its operands among the values, further arguments). The values are the operands,
    then the results of the steps.
    """

    def __init__(self, n):
        self.n = n
        self.steps = []

    def add(self, operator, values, *arguments):
        """Append a step and return the index of its result."""
        self.steps.append((operator, values, arguments))
        return self.n + len(self.steps) - 1

    def run(self, tensors):
        """Execute the steps and return the last value."""
        values = list(tensors)
        for operator, indices, arguments in self.steps:
            values.append(operator(*[values[i] for i in indices], *arguments))
        return values[-1]


def _sum(tensor, dims):
    return operators.sum(tensor, dims, dtype=tensor.dtype)


# ---- reading the arguments

def _text_of(sublist):
    """Convert `[0, 1, ...]` to "AB..."."""
    text = ""
    if not isinstance(sublist, (list, tuple)):
        raise TypeError(f"einsum: subscripts must be a list of integers (got {described(sublist)}).")
    for item in sublist:
        if item is Ellipsis:
            text += "..."
        elif isinstance(item, int) and 0 <= item < len(LETTERS):
            text += LETTERS[item]
        else:
            raise ValueError(f"einsum: subscripts must be integers in [0, {len(LETTERS)}) or ... (got {item!r}).")
    return text


def _read_arguments(args):
    """Return the subscripts of the operands, of the output (or None), and the operands."""
    if len(args) < 2:
        raise ValueError("einsum: expected an equation and at least one operand, or operands with their subscripts.")
    if isinstance(args[0], str):
        equation, operands = args[0].replace(" ", ""), args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        left, arrow, right = equation.partition("->")
        inputs, output = tuple(left.split(",")), right if arrow else None
    else:
        operands = args[0 : len(args) // 2 * 2 : 2]
        inputs = tuple(_text_of(sublist) for sublist in args[1::2])
        output = _text_of(args[-1]) if len(args) % 2 else None
    for operand in operands:
        if not isinstance(operand, Tensor):
            raise TypeError(f"einsum: operands must be Tensors (got {type(operand).__name__}).")
    if len(inputs) != len(operands):
        raise RuntimeError(f"einsum: expected one subscript for each operand (got {len(inputs)} and "
                           f"{len(operands)}).")
    return inputs, output, operands


def _split_labels(text, what):
    """Return the letters before and after `...`, and whether it occurs."""
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


def _output_labels(text, all_labels):
    """Return the labels of the output: as given, or `...` and the letters that occur once, sorted."""
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
            raise RuntimeError(f"einsum: output subscript {letter} is not in the subscripts of any operand (got "
                               f"output {text!r}).")
        if (head + tail).count(letter) > 1:
            raise RuntimeError(f"einsum: output subscript {letter} appears more than once in the output (got output "
                               f"{text!r}).")
    return head + (dots if has_dots else ()) + tail


# ---- one operand

def _without_repeats(plan, operand, shape):
    """Take diagonals for labels that occur several times; return the operand and its shape."""
    value, labels, shape = operand.value, list(operand.labels), list(shape)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if shape[first] != shape[second]:
                raise RuntimeError(f"einsum: subscript {label} is repeated for dimensions of sizes "
                                   f"{shape[first]} and {shape[second]}, which are not equal.")
            value = plan.add(operators.diagonal, (value,), 0, first, second)
            for row, item in ((labels, label), (shape, shape[first])):
                row[:] = [*row[:first], *row[first + 1 : second], *row[second + 1 :], item]
    return Labeled(value, tuple(labels)), shape


def _all_sizes(operands):
    """Return the broadcast size of each label."""
    sizes = {}
    for number, (operand, shape) in enumerate(operands):
        for label, size in zip(operand.labels, shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and size not in (1, known):
                raise RuntimeError(f"einsum: subscript {label if isinstance(label, str) else '...'} has size {size} "
                                   f"for operand {number}, which does not broadcast with size {known} seen before.")
            sizes[label] = known if size == 1 else size
    return sizes


def _without_broadcast(plan, operand, shape, sizes):
    """Squeeze dimensions of size 1 that another operand broadcasts."""
    dropped = [i for i, label in enumerate(operand.labels) if shape[i] != sizes[label]]
    if not dropped:
        return operand
    labels = tuple(label for i, label in enumerate(operand.labels) if i not in dropped)
    return Labeled(plan.add(operators.squeeze, (operand.value,), tuple(dropped)), labels)


def _summed(plan, operand, kept):
    """Sum over the labels that are not kept."""
    dims = tuple(i for i, label in enumerate(operand.labels) if label not in kept)
    if not dims:
        return operand
    return Labeled(plan.add(_sum, (operand.value,), dims), tuple(label for label in operand.labels if label in kept))


def _permuted(plan, operand, labels):
    """Permute the dimensions to the order of the labels."""
    if operand.labels == labels:
        return operand.value
    return plan.add(operators.permute, (operand.value,), tuple(operand.labels.index(label) for label in labels))


def _arranged(plan, operand, groups, sizes):
    """Permute the dimensions to the order of the groups and flatten each group."""
    value = _permuted(plan, operand, tuple(label for group in groups for label in group))
    if all(len(group) == 1 for group in groups):
        return value
    return plan.add(operators.reshape, (value,), tuple(prod(sizes[label] for label in group) for group in groups))


# ---- two operands

def _contract(plan, a, b, kept, sizes):
    """Contract two operands over the labels that are not kept, by one matrix product."""
    a = _summed(plan, a, kept | set(b.labels))
    b = _summed(plan, b, kept | set(a.labels))
    batch = [label for label in a.labels if label in b.labels and label in kept]
    summed = [label for label in a.labels if label in b.labels and label not in kept]
    left = [label for label in a.labels if label not in b.labels]
    right = [label for label in b.labels if label not in a.labels]
    labels = tuple(batch + left + right)
    first = [batch] if batch or not summed else []
    values = (_arranged(plan, a, [*first, left, summed], sizes), _arranged(plan, b, [*first, summed, right], sizes))
    product = plan.add(operators.mul if not summed else operators.bmm if batch else operators.mm, values)
    if any(len(group) != 1 for group in (*first, left, right)):
        product = plan.add(operators.reshape, (product,), tuple([sizes[label] for label in labels]))
    return Labeled(product, labels)


def _best_pair(operands, output, sizes):
    """Return the pair whose product increases memory least, and the labels to keep."""
    if len(operands) == 2:
        return 0, 1, set(output)
    best: Any = None
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


def _ends_with_first(output, operands, sizes):
    """Return whether the output is a product of rows of the second operand by columns of the first one."""
    first, second = (set(operand.labels) for operand in operands)
    return (bool(output) and output[-1] in first - second and sizes[output[-1]] >= MIN_COLUMNS
            and not (second - first).isdisjoint(output) and operands[1].labels[-1] in first - set(output))


@documented()
def einsum(*args):
    """Sum products of tensors over labeled dimensions (Einstein summation).

    Parameters
    ----------
    *args : str, then Tensors; or Tensors, each followed by a list of integers
        In an equation such as ``"bij,bjk->bik"`` each letter labels a dimension. Dimensions with the same letter are
        multiplied, and summed unless the output has the letter; a letter repeated in one operand takes its diagonal;
        ``...`` stands for all other dimensions, which are broadcast. Without ``->`` the output has the letters that
        occur once, sorted. In the second form integers replace letters; a last list is the output.

    Raises
    ------
    RuntimeError
        If subscripts are invalid or do not match the operands.
    ValueError
        If there is no operand.

    Notes
    -----
    Three or more operands are contracted in pairs; each step selects the pair whose product increases memory least.

    Examples
    --------
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
    return _planned(inputs, output, tuple([tuple(tensor.shape) for tensor in tensors])).run(tensors)


@lru_cache(maxsize=512)
def _planned(inputs, output, shapes):
    """Return the plan for operands with given subscripts and shapes."""
    plan = Plan(len(shapes))
    all_labels = tuple(_labels_of(text, len(shape), i)
                       for i, (text, shape) in enumerate(zip(inputs, shapes, strict=True)))
    output = _output_labels(output, all_labels)
    operands = [_without_repeats(plan, Labeled(i, labels), shape)
                for i, (labels, shape) in enumerate(zip(all_labels, shapes, strict=True))]
    sizes = _all_sizes(operands)
    operands = [_without_broadcast(plan, operand, shape, sizes) for operand, shape in operands]
    while len(operands) > 1:
        i, j, others = _best_pair(operands, output, sizes)
        if len(operands) == 2 and _ends_with_first(output, operands, sizes):
            i, j = j, i
        result = _contract(plan, operands[i], operands[j], others, sizes)
        operands = [operand for k, operand in enumerate(operands) if k not in (i, j)] + [result]
    value = _permuted(plan, _summed(plan, operands[0], set(output)), output)
    if value == 0:
        plan.add(operators.alias, (0,))
    return plan
