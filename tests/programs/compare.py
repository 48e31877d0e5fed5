"""Compare the records of one program in two libraries."""

import numpy as np

from tests.programs.differences import WRITTEN_IN_SPITE, excuse
from tests.programs.refusal import Refusal

# Relative to the largest element of the array: what rounding may cost after a few dozen operations.
TIGHT, LOOSE = 1e-9, 2e-3


def equal(mine, other, tolerance=TIGHT):
    """Return whether two notes say the same."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() == other.keys() and all(equal(mine[key], other[key], tolerance) for key in mine)
    if isinstance(mine, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(mine) == len(other) and all(equal(a, b, tolerance) for a, b in zip(mine, other, strict=True))
    if isinstance(mine, np.ndarray) and isinstance(other, np.ndarray):
        return close(mine, other, tolerance)
    if isinstance(mine, Refusal) and isinstance(other, Refusal):
        # Handlers of PyTorch's error catch cygrad's, which may be a subclass.
        return any(base.__name__ == type(other.error).__name__ for base in type(mine.error).__mro__)
    return type(mine) is type(other) and mine == other


def close(mine, other, tolerance):
    """Return whether two arrays have the same shape and dtype and, but for rounding, the same elements."""
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return False
    if mine.dtype.kind in "bi":
        return bool((mine == other).all())
    finite = np.isfinite(mine) & np.isfinite(other)
    if mine.dtype.kind == "c":
        # What C does with infinite parts of complex numbers differs between compilers.
        if not (np.isfinite(mine) == np.isfinite(other)).all():
            return False
    elif not np.array_equal(mine[~finite], other[~finite], equal_nan=True):
        return False
    scale = max(1.0, np.abs(other[finite]).max(initial=0.0))
    return bool((np.abs(mine[finite] - other[finite]) <= tolerance * scale).all())


def difference(mine, program, machine, tell=lambda reason: None):
    """Run a program and return the first difference to a record of it.

    Parameters
    ----------
    mine : list
        Notes of cygrad's machine.
    program : list of str
    machine : Machine
        The other library's, which has run nothing yet. It does not go on after a difference.
    tell : callable, optional
        Told the reason where cygrad is different on purpose.

    Returns
    -------
    str or None
        Text for the reader of a failed test.
    """
    tolerance = TIGHT
    try:
        for line in program:
            machine.run(line)
            if any(value.dtype.itemsize < 8 * (1 + value.dtype.is_complex) for value in machine.values
                   if value.dtype.is_floating_point or value.dtype.is_complex):
                tolerance = LOOSE               # from here on single precision may be in everything
            title, there = machine.notes[-1]
            here = mine[len(machine.notes) - 1][1]
            if not equal(here, there, tolerance):
                return judge(title, here, there, machine.past, tell, tolerance)
            if any(text in repr(outcome) for text in WRITTEN_IN_SPITE
                   for outcome in (here["outcome"], there["outcome"])):
                return None
        machine.finish()
    finally:
        machine.leave_all()
    theirs = dict(machine.notes[len(program):])
    if any(".detach_()" in line for line in program):
        # What was saved of a tensor keeps its history here, though the tensor is detached in place later.
        theirs = {title: note for title, note in theirs.items() if not title.startswith("second grad of")}
    return difference_at_the_end(mine[len(program):], theirs, machine.past, tell, tolerance)


def difference_at_the_end(mine, theirs, past, tell, tolerance):
    """Compare the records after the last line."""
    refused = False
    for title, here in mine:
        # Without first derivatives there are no second ones. A backward that only one library refuses may keep
        # gradients.
        if title not in theirs or (refused and title.startswith("backward of")):
            continue
        there = theirs[title]
        here, there = in_order_of_hooks(here), in_order_of_hooks(there)
        if title.startswith("second grad of"):
            here, there = finite_in(here, there), finite_in(there, here)
        if all(isinstance(note.get("outcome"), Refusal) for note in (here, there)):
            # How far a pass got before it failed is its own affair.
            here, there = {"outcome": here["outcome"]}, {"outcome": there["outcome"]}
        found = judge(title, here, there, past, tell, tolerance)
        if found:
            return found
        refused |= isinstance(here.get("outcome"), Refusal) != isinstance(there.get("outcome"), Refusal)
    return None


def in_order_of_hooks(note):
    """The note with the calls of each hook together: which of several leaves is reached first is open."""
    return note | {"hooks": sorted(note["hooks"], key=lambda event: event[0])}


def finite_in(note, other):
    """
    The note with zero for every element that is not finite in both notes.

    What comes of an infinite or undefined derivative in second ones depends on the order of multiplications.
    """
    if isinstance(note, dict) and isinstance(other, dict):
        return {key: finite_in(fact, other.get(key)) for key, fact in note.items()}
    if isinstance(note, list) and isinstance(other, list) and len(note) == len(other):
        return [finite_in(*pair) for pair in zip(note, other, strict=True)]
    if isinstance(note, np.ndarray) and isinstance(other, np.ndarray) and note.shape == other.shape:
        return np.where(np.isfinite(note) & np.isfinite(other), note, note.dtype.type(0))
    return note


def judge(title, here, there, past, tell, tolerance):
    """The text of a difference, or None if there is none or a reason for it."""
    different = {key for key in here if not equal(here[key], there[key], tolerance)}
    if not different:
        return None
    reason = excuse(title, here, there, different, past)
    if reason is not None:
        tell(reason)
        return None
    facts = "\n".join(f"  {key}:\n    cygrad {here[key]}\n    torch  {there[key]}" for key in here if key in different)
    return f"{title}\n{facts}"
