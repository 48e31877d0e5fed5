"""Which operations have to come before which."""

__all__ = ["dependencies"]


def dependencies(lowering):
    """For each operation the places of those that have to come before it."""
    before, writer, readers, barrier = [], {}, {}, None
    for place, operation in enumerate(lowering.operations):
        reads, written, made = ({lowering.home(number)[0] for number in numbers if number >= 0}
                                for numbers in (operation.reads(), operation.writes(), operation.results))
        needs = {writer[memory] for memory in reads | written if memory in writer}
        for memory in written:
            needs |= readers.pop(memory, set())
        if not all(lowering.is_own(lowering.buffers[lowering.arrays[memory].buffer]) for memory in written):
            # What others can see is changed before and after the same operations, some of which may fail.
            needs.update(range(barrier or 0, place))
            barrier = place
        elif barrier is not None:
            needs.add(barrier)
        for memory in reads:
            readers.setdefault(memory, set()).add(place)
        writer.update(dict.fromkeys(written | made, place))
        before.append(needs)
    return before
