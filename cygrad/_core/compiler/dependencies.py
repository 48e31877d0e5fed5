"""Dependencies between operations."""

__all__ = ["dependencies"]


def dependencies(program):
    """Return, for each operation, the positions of the operations that must run before it."""
    before, writer, readers, barrier = [], {}, {}, None
    for position, operation in enumerate(program.operations):
        reads, written, made = ({program.memory_of(number)[0] for number in numbers if number >= 0}
                                for numbers in (operation.reads(), operation.writes(), operation.results))
        needs = {writer[memory] for memory in reads | written if memory in writer}
        for memory in written:
            needs |= readers.pop(memory, set())
        if not all(program.is_local(program.buffers[program.arrays[memory].buffer]) for memory in written):
            # Externally visible writes keep their order relative to all operations, some of which may fail.
            needs.update(range(barrier or 0, position))
            barrier = position
        elif barrier is not None:
            needs.add(barrier)
        for memory in reads:
            readers.setdefault(memory, set()).add(position)
        writer.update(dict.fromkeys(written | made, position))
        before.append(needs)
    return before
