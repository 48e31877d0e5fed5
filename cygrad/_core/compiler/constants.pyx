# distutils: extra_compile_args = -O1
"""Constants: copy those that change, compute with the others while tracing."""

from cygrad._core.arrays.array cimport same_layout
from cygrad._core.compiler.program cimport Operation, Program, array_at, buffer_at, buffer_of
from cygrad._core.compiler.tracer cimport Buffer

from cygrad._core.compiler.executable import number_everywhere
from cygrad._core.compiler.program import LARGE


def copy_constants(Program program not None):
    """Copy constants that are modified or returned, in each execution."""
    cdef Buffer buffer
    cdef list copies = []
    cdef int position = 0
    for buffer in program.buffers:
        if buffer.kind == "constant" and (buffer.writes or position in program.output_buffers) and (
                not program.is_changed_before(buffer)):
            number = buffer.first
            program.sources[number] = program.snapshot(position)
            copies.append(Operation("copy", (("source", number),), (number,)))
        position += 1
    program.operations = copies[::-1] + program.operations


def fold_constants(Program program not None):
    """Replace computations on constants by their traced results."""
    cdef Operation operation
    cdef list kept = []
    for operation in program.operations:
        if _is_foldable(program, operation):
            program.folded.update([buffer_at(program, number) for number in operation.results if number >= 0])
        else:
            kept.append(operation)
    program.operations = kept


cdef bint _is_foldable(Program program, Operation operation) except -1:
    """Return whether it computes small results, of which the program needs no other memory, from constants."""
    cdef Buffer buffer
    cdef bint found = False
    if operation.kind != "evaluate" and operation.kind != "kernel":
        return False
    for number in operation.reads():
        if not program.is_constant(number):
            return False
    for number in operation.results:
        if number >= 0:
            buffer, found = buffer_of(program, number), True
            if not program.is_local(buffer) or buffer.writes or array_at(program, buffer.first).size > LARGE or (
                    buffer_at(program, number) in program.output_buffers):
                return False
    return found


def remove_unit_factors(Program program not None):
    """Remove multiplications by one."""
    cdef Operation operation
    cdef dict names = {}
    cdef list kept = []
    for operation in program.operations:
        operation.rename(names)
        found = _other_factor(program, operation)
        if found is None:
            kept.append(operation)
        else:
            names[operation.results[0]] = found
    program.operations = kept


cdef object _other_factor(Program program, Operation operation):
    """Return the other factor of a multiplication by one; None for other operations."""
    cdef list inputs, code
    if operation.kind != "evaluate":
        return None
    inputs, code = operation.expression.inputs, operation.expression.form.code
    if len(code) != 1 or len(inputs) != 2 or operation.expression.constants or code[0][0] != "mul":
        return None
    for one, number in (inputs, inputs[::-1]):
        if program.is_constant(one) and program.is_never_written(number) and (
                program.is_sole_array(operation.results[0])
                and same_layout(array_at(program, number), array_at(program, operation.results[0]))
                and number_everywhere(program.arrays[one]) == 1):
            return number
    return None
