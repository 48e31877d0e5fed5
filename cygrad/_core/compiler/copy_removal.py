"""Copies: return a result instead of its clone."""


def remove_copies(program):
    """Remove clones of results without other readers."""
    names, kept = {}, []
    if not program.calls(("clone",)):
        return
    for operation in program.operations:
        operation.rename(names)
        if operation.kind == "kernel" and operation.operator.name == "clone":
            source, result = operation.arguments[0], operation.results[0]
            traced = program.arrays[result]
            # A copy of constant elements belongs to the caller, who may modify it.
            if not program.is_constant(source) and program.is_sole_array(source) and (
                    program.is_never_written(result) and program.arrays_of(traced.buffer) == [result]
                    and traced.contiguous and traced.strides == program.arrays[source].strides):
                names[result] = source
                if traced.buffer in program.output_buffers:
                    program.output_buffers.add(program.arrays[source].buffer)
                continue
        kept.append(operation)
    program.operations = kept
    program.names |= names
    program.outgoing = {names.get(number, number) for number in program.outgoing}
