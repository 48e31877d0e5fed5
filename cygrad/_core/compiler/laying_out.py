"""
Which transposed matrices are copied to lie row by row, because many products read them.

A product puts rows of a transposed matrix next to each other for itself, each time; and does with the copy what it
would have done with the matrix, bit for bit, as long as it is computed in blocks of registers. Where BLAS computes it,
it may add up in another order: then only `fast` programs copy.
"""

from cygrad._core.compiler.operations import PRODUCTS, Operation
from cygrad._core.kernels.linalg.multiply import same_bits_by_rows
from cygrad._core.table.operator import find_operator

FEWEST = 3                        # products that read it
LEAST_ROWS = 512                  # ... which they have together

__all__ = ["laid_out"]


class Turned:
    """A matrix that products read by its columns, as they see it."""

    def __init__(self, lowering, operation):
        number = operation.arguments[1]
        held = lowering.arrays[number]
        order = -1 if operation.operator.name == "linear" else 1
        self.shape, self.strides = held.shape[::order], held.strides[::order]
        self.key = held.buffer, held.offset, self.shape, self.strides, held.dtype
        self.number = lowering.view(held.buffer, held.offset, self.shape, self.strides, held)
        self.contiguous = lowering.arrays[self.number].contiguous


def read_by(lowering, operation):
    """The Turned that a product of two matrices reads, and: are bits those by a copy? None for what needs no copy."""
    if operation.kind != "kernel" or operation.operator.name not in PRODUCTS:
        return None
    left, right = (lowering.arrays[number] for number in operation.arguments[:2])
    result = lowering.arrays[operation.results[0]]
    if not (len(left.shape) == len(right.shape) == 2 and result.numel and left.dtype is right.dtype is result.dtype
            and (left.dtype.is_floating_point or left.dtype.is_complex)):
        return None
    turned = Turned(lowering, operation)
    if turned.contiguous:
        return None
    exact = (left.dtype.is_floating_point and left.strides[1] == turned.strides[0] == 1
             and same_bits_by_rows(left.dtype.itemsize, left.shape[0], *turned.shape[::-1]))
    return (turned, exact) if exact or (lowering.fast and left.shape[0] > 1) else None


def by_rows(operation, copy):
    """The same product by a copy of the matrix that lies row by row."""
    left, _, *bias = operation.arguments
    if operation.operator.name != "linear":
        return (left, copy), operation.operator
    if bias[0] is None:
        return (left, copy), find_operator("mm")
    return (bias[0], left, copy, None, None), find_operator("addmm")


def laid_out(lowering):
    """The operations of a Lowering, with copies that are worth while."""
    groups, found = {}, []
    for place, operation in enumerate(lowering.operations):
        for number in operation.writes():
            for key in [key for key in groups if key[0] == lowering.arrays[number].buffer]:
                found.append(groups.pop(key))
        read = read_by(lowering, operation)
        if read is not None:
            groups.setdefault(read[0].key, []).append((place, operation, *read))
    copies = {}                       # place of the first product -> what it needs before it
    for members in [*found, *groups.values()]:
        rows = sum(lowering.arrays[operation.arguments[0]].shape[0] for _, operation, *_ in members)
        if len(members) < FEWEST or rows < LEAST_ROWS:
            continue
        first, _, turned, _ = members[0]
        copy = lowering.fresh(lowering.arrays[turned.number], turned.shape)
        copies.setdefault(first, []).append(Operation("copy", (turned.number,), (copy,)))
        for _, operation, _, _ in members:
            operation.arguments, operation.operator = by_rows(operation, copy)
        if not all(exact for *_, exact in members):
            lowering.rewrites.append(f"a transposed matrix of {len(members)} products: copied once to lie row by row")
    return [entry for place, operation in enumerate(lowering.operations)
            for entry in (*copies.get(place, ()), operation)]
