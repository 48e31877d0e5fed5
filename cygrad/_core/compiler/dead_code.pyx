# distutils: extra_compile_args = -O1
"""Dead code: remove operations and results that are not read."""

from cygrad._core.compiler.program cimport Operation, Program, buffer_at
from cygrad._core.compiler.tracer cimport Buffer
from cygrad._core.program.builder cimport memory

from cygrad._core.compiler.tracer import constant
from cygrad._core.table.operator import find_operator

# Extrema with positions -> those without, which agree in signed zeros, too.
VALUES_ONLY = {"max_dim": "amax", "min_dim": "amin"}


def remove_dead(Program program not None):
    """Remove operations without effect, which an error is, too."""
    cdef Operation operation
    cdef Buffer buffer
    cdef list kept = [], keep = []
    cdef char *live = <char *>memory(len(program.buffers), keep)         # per buffer
    cdef int position = 0
    for buffer in program.buffers:
        live[position] = bool(buffer.writes) and (buffer.kind == "tensor" or buffer.kind == "gradient")
        position += 1
    for position in program.output_buffers:
        live[position] = True
    for operation in reversed(program.operations):
        if _has_live(program, operation.results, live) or _has_live(program, operation.writes(), live) or (
                program.can_fail(operation)):
            kept.append(operation)
            for number in operation.uses():
                live[buffer_at(program, number)] = True
    kept.reverse()
    program.operations = kept


cdef bint _has_live(Program program, object numbers, const char *live) except -1:
    for number in numbers:
        if number >= 0 and live[buffer_at(program, number)]:
            return True
    return False


def remove_positions(Program program not None):
    """Compute extrema without positions that are not read."""
    cdef Operation operation
    if not program.calls(VALUES_ONLY):
        return
    uses = program.uses()
    for operation in program.operations:
        if operation.kind == "kernel" and operation.operator.name in VALUES_ONLY:
            values, positions = operation.results
            buffer = program.arrays[positions].buffer
            if buffer not in uses and buffer not in program.output_buffers and program.is_never_written(positions):
                source, dim, keepdim = operation.arguments
                operation.arguments, operation.results = (source, constant((dim.plain,)), keepdim), (values,)
                operation.operator = find_operator(VALUES_ONLY[operation.operator.name])
