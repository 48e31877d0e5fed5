"""Common subexpressions: compute equal operations on equal arrays once."""

from collections import Counter

from cygrad._core.compiler.executable import number_everywhere
from cygrad._core.compiler.program import LARGE, plain

# Primitives as fast as reading memory.
CHEAP = frozenset(("add", "sub", "mul", "neg", "square"))

__all__ = ["merge_equal"]


def merge_equal(program):
    """Compute common subexpressions once: equal operations on equal arrays that were not written in between."""
    known, names, writes, kept = {}, equal_arrays(program), Counter(), []
    for operation in program.operations:
        operation.rename(names)
        for number in operation.writes():
            writes[program.arrays[number].buffer] += 1
        if operation.kind in ("evaluate", "kernel") and not is_cheap(program, operation):
            key = key_of(program, operation), tuple(
                [writes[program.arrays[number].buffer] for number in operation.reads()]) if writes else ()
            found = equal_results(program, operation, known.get(key))
            if found is not None:
                names.update(found)
                continue
            known.setdefault(key, operation)
        kept.append(operation)
    program.operations = kept


def equal_arrays(program):
    """Return array -> first array with its layout in the same memory, or a constant with the same elements."""
    names, constants = {}, {}
    for numbers in program.arrays_of.values():
        known, value = {}, None
        if program.is_constant(numbers[0]):
            value = number_everywhere(program.arrays[numbers[0]])
        for number in numbers if value is not None or len(numbers) > 1 else ():
            traced = program.arrays[number]
            place = (traced.offset, traced.shape, traced.strides, traced.dtype)
            names[number] = (known.setdefault(place, number) if value is None
                             else constants.setdefault((repr(value), *place), number))
    return {number: first for number, first in names.items() if first != number}


def equal_results(program, operation, other):
    """Return array -> array over the results of an equal operation; None if those of `operation` are needed."""
    if other is None or not all(number < 0 or program.is_private(number) for number in operation.results):
        return None
    names = {}
    for number, first in zip(operation.results, other.results, strict=True):
        if number < 0 or first < 0:
            continue
        traced, known = program.arrays[number], program.arrays[first]
        if not program.is_never_written(first) or program.buffers[known.buffer].first != first or (
                (traced.shape, traced.strides, traced.dtype) != (known.shape, known.strides, known.dtype)):
            return None
        for view in program.arrays_of[traced.buffer]:
            seen = program.arrays[view]
            names[view] = first if view == number else program.view(known.buffer, seen.offset, seen.shape,
                                                                 seen.strides, seen)
    return names


def is_cheap(program, operation):
    """Return whether recomputing it at each reader is faster than reading it from memory."""
    return (operation.expression is not None and len(operation.expression.code) == 1
            and operation.expression.code[0][0] in CHEAP
            and program.arrays[operation.results[0]].numel >= LARGE)


def key_of(program, operation):
    """Return a key that is equal for equal operations."""
    if operation.expression is not None:
        expression = operation.expression
        numbers = tuple([repr(plain(number)) for number in expression.constants])
        return tuple(expression.inputs), numbers, id(expression.code), expression.result
    return (operation.operator.name, tuple(
        tuple(argument) if isinstance(argument, list) else ("number", repr(argument.plain))
        if hasattr(argument, "plain") else argument for argument in operation.arguments))
