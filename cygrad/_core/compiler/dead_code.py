"""Dead code: remove operations and results that are not read."""

from cygrad._core.compiler.tracer import constant
from cygrad._core.table.operator import find_operator

# Extrema with positions -> those without, which agree in signed zeros, too.
VALUES_ONLY = {"max_dim": "amax", "min_dim": "amin"}

__all__ = ["remove_dead", "remove_positions"]


def remove_dead(program):
    """Remove operations without effect, which an error is, too."""
    live, arrays = set(program.output_buffers), program.arrays
    live |= {position for position, buffer in enumerate(program.buffers)
             if buffer.writes and buffer.kind in ("tensor", "gradient")}
    kept = []
    for operation in reversed(program.operations):
        for number in (*operation.results, *operation.writes()):
            if number >= 0 and arrays[number].buffer in live:
                break
        else:
            if not program.can_fail(operation):
                continue
        kept.append(operation)
        live.update([arrays[number].buffer for number in operation.uses()])
    program.operations = kept[::-1]


def remove_positions(program):
    """Compute extrema without positions that are not read."""
    uses = None
    for operation in program.operations:
        if operation.kind == "kernel" and operation.operator.name in VALUES_ONLY:
            uses = program.uses() if uses is None else uses
            values, positions = operation.results
            buffer = program.arrays[positions].buffer
            if buffer not in uses and buffer not in program.output_buffers and program.is_never_written(positions):
                source, dim, keepdim = operation.arguments
                operation.arguments, operation.results = (source, constant((dim.plain,)), keepdim), (values,)
                operation.operator = find_operator(VALUES_ONLY[operation.operator.name])
