"""Expression fusion: evaluate element-wise operations in their only reader, element-wise or a sum."""

from cygrad._core.arrays.array cimport same_shape
from cygrad._core.compiler.program cimport (
    ArrayExpression, Operation, Program, array_at, buffer_at, with_inputs,
)

from cygrad._core.compiler.executable import layout_of
from cygrad._core.compiler.program import plain


def fuse_expressions(Program program not None):
    """Fuse element-wise operations into their only reader, an element-wise operation or a sum."""
    cdef Operation operation
    cdef list counts = program.read_counts()
    cdef dict maker = {}, sources
    cdef set removed = set()
    cdef int position = -1
    for operation in program.operations:
        position += 1
        if operation.kind == "evaluate":
            maker[operation.results[0]] = position
        meta = _summed_layout(program, operation) if operation.expression is None else None
        if operation.expression is None and meta is None:
            continue
        sources = {}
        for number in operation.reads():
            source = maker.get(number)
            if source is not None and counts[buffer_at(program, number)] == 1 and source not in removed and (
                    program.is_sole_array(number) and _is_fusable(program, operation, number, source, position)):
                sources[number] = source
        if meta is not None:
            if not all(has_one_layout(program, number, program.operations[source])
                       for number, source in sources.items()):
                continue
            for source in sources.values():
                operation.kind, operation.meta = "sum", meta
                operation.expression = program.operations[source].expression
            removed.update(sources.values())
            continue
        if not sources:
            continue
        found = _inlined(program, operation, sources)
        for number in list(sources) if found is None else ():            # too large: those that fit, one by one
            if _inlined(program, operation, {number: sources[number]}) is None:
                del sources[number]
            else:
                operation.expression = _inlined(program, operation, {number: sources[number]})
        operation.expression = found or operation.expression
        removed.update(sources.values())
    program.operations = [operation for position, operation in enumerate(program.operations) if position not in removed]


cdef ArrayExpression _inlined(Program program, Operation operation, dict sources):
    """Return the expression of an operation with those of its inputs, or None if it is too large."""
    return with_inputs(operation.expression, {
        number: (<Operation?>program.operations[source]).expression for number, source in sources.items()})


cdef bint _is_fusable(Program program, Operation operation, int number, int source, int position) except -1:
    """Return whether the expression of an input can be evaluated in its reader, an element-wise operation or a sum."""
    cdef list inputs = (<Operation?>program.operations[source]).expression.inputs
    for read in inputs:
        if not program.unchanged_between(read, source, position):
            return False
    if operation.expression is None:
        return True
    target = operation.target
    if not same_shape(array_at(program, number), array_at(program, operation.results[0] if target is None else target)):
        return False
    return target is None or buffer_at(program, target) not in [buffer_at(program, read) for read in inputs]


def has_one_layout(program, number, source):
    """
    Return whether a summed array and all operands of its expression are row-major, or have the same strides.

    A sum adds in the order of memory. Of several layouts, the whole expression, or one in the memory of an operand, may
    give another one than its steps.
    """
    summed = program.arrays[number]
    return all(traced.contiguous if summed.contiguous else (traced.shape, traced.strides) == (
        summed.shape, summed.strides) for traced in map(program.arrays.__getitem__, source.expression.inputs))


cdef object _summed_layout(Program program, Operation operation):
    """
    Return the keepdim layout of a sum.

    Return None if the operation is not a sum, reduces nothing, or changes the dtype.
    """
    if operation.kind != "kernel" or operation.operator.name not in ("sum_to", "sum"):
        return None
    result, source = program.arrays[operation.results[0]], program.arrays[operation.arguments[0]]
    if operation.operator.name == "sum_to":
        return result
    dims = plain(operation.arguments[1])
    dims = [dims] if isinstance(dims, int) else dims or range(len(source.shape))
    reduced = {dim % max(len(source.shape), 1) for dim in dims}
    kept = tuple([1 if dim in reduced else size for dim, size in enumerate(source.shape)])
    if kept == source.shape or source.numel == 0 or result.dtype is not source.dtype or not (
            source.dtype.is_floating_point and result.contiguous):
        return None
    return result if result.shape == kept else layout_of(result, kept)
