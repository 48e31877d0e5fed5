"""Generate programs: numbers drawn by hypothesis become lines that fit the available values."""

from itertools import chain

from hypothesis import strategies as st

from tests.programs import elementwise, recording, reductions, shapes
from tests.programs.chooser import Chooser


def nothing(c):
    """No line: what other drafts shrink to."""


WRITERS = (nothing, shapes.leaf, *elementwise.WRITERS, *reductions.WRITERS, *shapes.WRITERS, *recording.WRITERS)

# A line: its author, and the numbers for its choices.
DRAFT = st.tuples(st.sampled_from(WRITERS), st.tuples(*[st.integers(0, 255)] * 6))
# In groups, for hypothesis likes short lists.
DRAFTS = st.lists(st.tuples(*[DRAFT] * 3), min_size=1, max_size=10).map(lambda groups: [*chain(*groups)])


def write(drafts, machine):
    """A program, run line by line on the machine while it is written.

    Parameters
    ----------
    drafts : list of (function, tuple of int)
    machine : Machine

    Returns
    -------
    list of str
        The lines, without those that nothing was there for.
    """
    program = []
    try:
        for number in range(2):
            program.append(shapes.leaf(Chooser((0, 0, number, number), machine)))
            machine.run(program[-1])
        for writer, numbers in drafts:
            line = writer(Chooser(numbers, machine))
            if line is not None:
                program.append(line)
                machine.run(line)
        machine.finish()
    finally:
        machine.leave_all()
    return program
