"""
Layout assignment: copy a transposed matrix to row-major order once if many products read it.

Each product packs the rows of a transposed matrix itself. A product in register blocks gives bit-identical results with
the copy. BLAS may sum in another order, so products by BLAS use a copy only in mode "fast".
"""

from cygrad._core.compiler.program import PRODUCTS, Operation
from cygrad._core.kernels.linalg.matmul import same_bits_by_rows
from cygrad._core.table.operator import find_operator

MIN_PRODUCTS = 3                  # that read the matrix
MIN_ROWS = 512                    # ... in all of them

__all__ = ["assign_layouts"]


class TransposedMatrix:
    """A matrix that products read column by column."""

    def __init__(self, program, operation):
        number = operation.arguments[1]
        traced = program.arrays[number]
        order = -1 if operation.operator.name == "linear" else 1
        self.shape, self.strides = traced.shape[::order], traced.strides[::order]
        self.key = traced.buffer, traced.offset, self.shape, self.strides, traced.dtype
        self.number = program.view(traced.buffer, traced.offset, self.shape, self.strides, traced)
        self.contiguous = program.arrays[self.number].contiguous


def transposed_operand(program, operation):
    """Return the TransposedMatrix that a product reads and whether a copy is bit-identical, or None."""
    if operation.kind != "kernel" or operation.operator.name not in PRODUCTS:
        return None
    left, right = (program.arrays[number] for number in operation.arguments[:2])
    result = program.arrays[operation.results[0]]
    if not (len(left.shape) == len(right.shape) == 2 and result.numel and left.dtype is right.dtype is result.dtype
            and (left.dtype.is_floating_point or left.dtype.is_complex)):
        return None
    transposed = TransposedMatrix(program, operation)
    if transposed.contiguous:
        return None
    exact = (left.dtype.is_floating_point and left.strides[1] == transposed.strides[0] == 1
             and same_bits_by_rows(left.dtype.itemsize, left.shape[0], *transposed.shape[::-1]))
    return (transposed, exact) if exact or (program.fast and left.shape[0] > 1) else None


def with_copy(operation, copy):
    """Return arguments and operator of the same product with a row-major copy."""
    left, _, *bias = operation.arguments
    if operation.operator.name != "linear":
        return (left, copy), operation.operator
    if bias[0] is None:
        return (left, copy), find_operator("mm")
    return (bias[0], left, copy, None, None), find_operator("addmm")


def assign_layouts(program):
    """Insert copies where they pay off."""
    if not program.calls(PRODUCTS):
        return
    groups, found = {}, []
    for position, operation in enumerate(program.operations):
        for number in operation.writes():
            for key in [key for key in groups if key[0] == program.arrays[number].buffer]:
                found.append(groups.pop(key))
        read = transposed_operand(program, operation)
        if read is not None:
            groups.setdefault(read[0].key, []).append((position, operation, *read))
    copies = {}                       # position of the first product -> copies to insert before it
    for members in [*found, *groups.values()]:
        rows = sum(program.arrays[operation.arguments[0]].shape[0] for _, operation, *_ in members)
        if len(members) < MIN_PRODUCTS or rows < MIN_ROWS:
            continue
        first, _, transposed, _ = members[0]
        copy = program.new_array(program.arrays[transposed.number], transposed.shape)
        copies.setdefault(first, []).append(Operation("copy", (transposed.number,), (copy,)))
        for _, operation, _, _ in members:
            operation.arguments, operation.operator = with_copy(operation, copy)
        if not all(exact for *_, exact in members):
            program.rewrites.append(f"a transposed matrix of {len(members)} products: copied once to lie row by row")
    program.operations = [entry for position, operation in enumerate(program.operations)
                          for entry in (*copies.get(position, ()), operation)]
