"""Constants: copy those that change, compute with the others while tracing."""

from cygrad._core.compiler.executable import number_everywhere
from cygrad._core.compiler.program import LARGE, Operation

__all__ = ["copy_constants", "fold_constants", "remove_unit_factors"]


def copy_constants(program):
    """Copy constants that are modified or returned, in each execution."""
    for position, buffer in enumerate(program.buffers):
        if buffer.kind == "constant" and (buffer.writes or position in program.output_buffers) and (
                not program.is_changed_before(buffer)):
            number = buffer.first
            program.sources[number] = program.snapshot(position)
            program.operations.insert(0, Operation("copy", (("source", number),), (number,)))


def fold_constants(program):
    """Replace computations on constants by their traced results."""
    kept = []
    for operation in program.operations:
        foldable = operation.kind in ("evaluate", "kernel") and all(map(program.is_constant, operation.reads()))
        made = [program.arrays[number].buffer for number in operation.results if number >= 0] if foldable else []
        if made and all(
                program.is_local(program.buffers[buffer]) and not program.buffers[buffer].writes
                and buffer not in program.output_buffers
                and program.arrays[program.buffers[buffer].first].numel <= LARGE for buffer in made):
            program.folded.update(made)
        else:
            kept.append(operation)
    program.operations = kept


def remove_unit_factors(program):
    """Remove multiplications by one."""
    names, kept = {}, []
    for operation in program.operations:
        operation.rename(names)
        found = other_factor(program, operation)
        if found is None:
            kept.append(operation)
        else:
            names[operation.results[0]] = found
    program.operations = kept


def other_factor(program, operation):
    """Return the other factor of a multiplication by one; None for other operations."""
    expression = operation.expression
    if operation.kind != "evaluate" or (len(expression.code), len(expression.inputs)) != (1, 2) or (
            expression.constants or expression.code[0][0] != "mul"
            or not program.is_sole_array(operation.results[0])):
        return None
    result = program.arrays[operation.results[0]]
    for one, number in (expression.inputs, expression.inputs[::-1]):
        traced = program.arrays[number]
        if program.is_never_written(number) and program.is_constant(one) and (
                (traced.shape, traced.strides, traced.dtype) == (result.shape, result.strides, result.dtype)
                and number_everywhere(program.arrays[one]) == 1):
            return number
    return None
