"""Accumulation: compute a product directly on top of the result to which it is added."""

from cygrad._core.compiler.program import Operation

# Inner dimension up to which BLAS adds a complete product to the result, with a single rounding.
MAX_EXACT_INNER = 128

__all__ = ["accumulate_products"]


def accumulate_products(program):
    """Compute a product directly on top of the result to which it is added."""
    if not program.calls(("mm", "matmul")):
        return
    uses, maker, removed = program.uses(), {}, set()
    for position, operation in enumerate(program.operations):
        for number in operation.results:
            maker[number] = position
        if not program.is_sum_of_two(operation) or len(program.arrays[operation.results[0]].shape) != 2:
            continue
        inputs = operation.expression.inputs
        if not all(number in maker and program.is_sole_array(number) and len(uses[program.arrays[number].buffer]) == 1
                   for number in inputs):
            continue
        for number, addend in sorted([inputs, inputs[::-1]], key=lambda pair: -maker[pair[0]]):
            source = maker[number]
            product = program.operations[source]
            if is_plain_product(program, product) and all(
                    program.unchanged_between(read, source, position) for read in product.reads()):
                removed.add(source)
                program.operations[position] = Operation("accumulate", (addend, *product.arguments), operation.results)
                break
    program.operations = [operation for position, operation in enumerate(program.operations) if position not in removed]


def is_plain_product(program, operation):
    """Return whether it is a product of two matrices that BLAS accumulates with a single rounding."""
    if operation.kind != "kernel" or operation.operator.name not in ("mm", "matmul"):
        return False
    left, right = (program.arrays[number] for number in operation.arguments)
    return (len(left.shape) == len(right.shape) == 2 and left.dtype.is_floating_point and left.dtype.itemsize >= 4
            and left.shape[0] > 1 and right.shape[1] > 1 and left.shape[1] > 0
            and (program.fast or left.shape[1] <= MAX_EXACT_INNER))
