# distutils: extra_compile_args = -O1
"""
Value numbering: what is the same in each call is computed while tracing, equal operations on equal arrays once.

Constants that change are copied in each call.
"""

from cygrad._core.arrays.array cimport same_layout
from cygrad._core.compiler.program cimport (
    ArrayExpression, Operation, Program, array_at, buffer_at, buffer_of, facts_of,
)
from cygrad._core.compiler.tracer cimport Buffer, Constant, TracedArray, array_of

from cygrad._core.compiler.executable import number_everywhere
from cygrad._core.compiler.program import LARGE, plain


# ------------------------------------------------------------------------------------------------------------ constants

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
            if not program.is_local(buffer) or buffer.writes or facts_of(program, buffer.first).size > LARGE or (
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


# ------------------------------------------------------------------------------------------------ common subexpressions

# Primitives as fast as reading memory.
CHEAP = frozenset(("add", "sub", "mul", "neg", "square"))


def merge_equal(Program program not None):
    """Compute common subexpressions once: equal operations on equal arrays that were not written in between."""
    cdef Operation operation
    cdef dict known = {}, names = _equal_arrays(program), writes = {}
    cdef list kept = []
    for operation in program.operations:
        operation.rename(names)
        for number in operation.writes():
            buffer = buffer_at(program, number)
            writes[buffer] = writes.get(buffer, 0) + 1
        if (operation.kind == "evaluate" or operation.kind == "kernel") and not _is_cheap(program, operation):
            key = _key_of(operation)
            if writes:                # the written buffers only become more, so counts without positions are enough
                read = [buffer_at(program, number) for number in operation.reads()]
                key += (None, *[writes[buffer] for buffer in read if buffer in writes])
            first = known.setdefault(key, operation)
            found = None if first is operation else _equal_results(program, operation, first)
            if found is not None:
                names.update(found)
                continue
        kept.append(operation)
    program.operations = kept


cdef dict _equal_arrays(Program program):
    """Return array -> first array with its layout in the same memory, or a constant with the same elements."""
    cdef dict names = {}, constants = {}, known
    cdef set buffers = set(program.folded)
    cdef TracedArray traced, base
    cdef int array
    for array in range(program.n_facts):
        if program.facts[array].base != array or program.facts[array].is_constant:
            buffers.add(program.facts[array].buffer)
    for buffer in sorted(buffers):
        base, known, value = program.arrays[(<Buffer?>program.buffers[buffer]).first], {}, None
        if program.is_constant((<Buffer>program.buffers[buffer]).first):
            value = number_everywhere(base)
        for number in program.arrays_of(buffer):
            traced = program.arrays[number]
            if value is None and traced.offset == 0 and same_layout(array_at(program, number), array_of(base)):
                first = (<Buffer>program.buffers[buffer]).first
            else:
                place = (traced.offset, traced.shape, traced.strides, traced.dtype)
                first = (known.setdefault(place, number) if value is None
                         else constants.setdefault((repr(value), *place), number))
            if first != number:
                names[number] = first
    return names


cdef dict _equal_results(Program program, Operation operation, Operation other):
    """Return array -> array over the results of an equal operation; None if those of `operation` are needed."""
    cdef dict names = {}
    for number in operation.results:
        if number >= 0 and not program.is_private(number):
            return None
    for number, first in zip(operation.results, other.results, strict=True):
        if number < 0 or first < 0:
            continue
        if not program.is_never_written(first) or buffer_of(program, first).first != first or (
                not same_layout(array_at(program, number), array_at(program, first))):
            return None
        for view in program.arrays_of(buffer_at(program, number)):
            seen = <TracedArray?>program.arrays[view]
            names[view] = first if view == number else program.view(
                buffer_at(program, first), seen.offset, seen.shape, seen.strides, seen)
    return names


cdef bint _is_cheap(Program program, Operation operation) except -1:
    """Return whether recomputing it at each reader is faster than reading it from memory."""
    if operation.expression is None or facts_of(program, operation.results[0]).size < LARGE:
        return False
    code = operation.expression.form.code
    return len(code) == 1 and code[0][0] in CHEAP


cdef tuple _key_of(Operation operation):
    """Return a key that is equal for equal operations."""
    cdef ArrayExpression expression = operation.expression
    if expression is not None:
        parts = [expression.form] + expression.inputs
        if expression.constants:
            parts += [repr(plain(number)) for number in expression.constants]
        return tuple(parts)
    return (operation.operator.name, *[
        tuple(argument) if isinstance(argument, list) else ("number", repr(argument.plain))
        if isinstance(argument, Constant) else argument for argument in operation.arguments])
