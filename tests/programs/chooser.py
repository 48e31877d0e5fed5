"""
Choices of a program: numbers drawn by hypothesis, and facts about available values.

Every choice takes one number, and zero chooses the simplest thing there is: so smaller numbers make simpler programs.
"""

import numpy as np

RARE = 245          # of 256: numbers from here on choose what mostly fails


class Chooser:
    """Numbers between 0 and 255, taken one after the other, and the values of the machine that runs the program.

    Parameters
    ----------
    numbers : sequence of int
        Taken from the beginning again when they are used up.
    machine : Machine
        Has run all lines before this one.
    """

    def __init__(self, numbers, machine):
        self.numbers = numbers
        self.machine = machine
        self.taken = 0

    def number(self):
        """The next number."""
        value = self.numbers[self.taken % len(self.numbers)] + 7 * (self.taken // len(self.numbers))
        self.taken += 1
        return value % 256

    def of(self, things):
        """One of a sequence; the first one for zero."""
        return things[self.number() % len(things)]

    def chance(self, one_in):
        """True once in a while, never for zero."""
        return self.number() % one_in == one_in - 1

    def rare(self):
        """True for the few choices that mostly fail."""
        return self.number() >= RARE

    def value(self, *conditions):
        """
        Index of a value that meets all conditions, the newest for zero; None if there is none.

        Rarely only those conditions count that are about elements: it may have any shape and dtype.
        """
        values = self.machine.values
        pick, anything = self.number(), self.rare()
        if anything:
            conditions = [condition for condition in conditions if condition in (is_neat, is_tame)]
        found = [i for i in reversed(range(len(values))) if meets(values[i], conditions)]
        return found[pick % len(found)] if found else None

    def dim(self, ndim):
        """A dimension, sometimes negative, rarely out of range."""
        if self.rare():
            return ndim + 1
        count = max(ndim, 1)
        return self.number() % (2 * count) - count if self.chance(3) else self.number() % count


def meets(value, conditions):
    """
    Return whether it meets all of them.

    Views that cannot be used any more meet none, and neither do those that have no history though their base requires
    grad: torch says of them that they require grad.
    """
    try:
        if value._base is not None and value._base.requires_grad and not value.requires_grad:
            return False
        return all(test(value) for test in conditions)
    except RuntimeError:
        return False


def shape(value):
    """As a tuple."""
    return tuple(value.shape)


def name_of(dtype):
    """`float64` for the dtype of any library."""
    return str(dtype).rpartition(".")[2]


def numbers_in(value):
    """Return the elements as a separate NumPy array."""
    return value.detach().numpy().copy()


def is_real(value):
    """Floating and not complex."""
    return value.dtype.is_floating_point


def is_complex(value):
    """Of a complex dtype."""
    return value.dtype.is_complex


def is_floating(value):
    """Real or complex: can be differentiated."""
    return is_real(value) or is_complex(value)


def is_integer(value):
    """int64."""
    return name_of(value.dtype) == "int64"


def is_bool(value):
    """A mask."""
    return name_of(value.dtype) == "bool"


def is_neat(value):
    """Multiples of a small power of two: two libraries agree to the bit, so that kinks are at the same place."""
    array = numbers_in(value)
    if array.dtype.kind in "bi":
        return bool((np.abs(array.astype(float)) < 1e6).all())
    parts = np.stack([array.real, array.imag])
    with np.errstate(all="ignore"):
        scaled = parts * (16 if array.dtype == np.float32 else 256)
        return bool((np.isfinite(parts) & (scaled == np.round(scaled)) & (np.abs(parts) < 1e3)).all())


def has_zeros(value):
    """Some element is zero."""
    return bool((numbers_in(value) == 0).any())


def is_tame(value):
    """Finite and of moderate size, so that errors of rounding stay small."""
    array = numbers_in(value)
    with np.errstate(all="ignore"):
        return bool((np.isfinite(array) & (np.abs(array) < 50)).all())


def fits(first, *, into=False):
    """A condition: broadcasts against the value, or to its shape."""
    own = shape(first)

    def test(other):
        try:
            result = np.broadcast_shapes(own, shape(other))
        except ValueError:
            return False
        return result == own if into else int(np.prod(result)) <= 64

    return test


def has(ndim):
    """Return a condition on the number of dimensions."""
    return lambda value: value.ndim == ndim


def at_least(ndim):
    """Return a condition on the minimum number of dimensions."""
    return lambda value: value.ndim >= ndim
