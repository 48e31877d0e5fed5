"""Objects that misbehave when they are converted."""

import numpy as np


class HostileError(Exception):
    """Exception of hostile objects, which must propagate."""


class Refuses:
    """Raises from the special method of that name, and has nothing else."""

    def __new__(cls, method):
        def refuse(self, *arguments, **options):
            raise HostileError(method)

        return object.__new__(type("Refuses", (), {method: refuse}))


class Lies:
    """Answers from the special method of that name with a given value."""

    def __new__(cls, method, value):
        return object.__new__(type("Lies", (), {method: lambda self, *arguments, **options: value}))


class Sequence:
    """Sequence whose length and items disagree."""

    def __init__(self, length, item=1.0):
        self.length, self.item = length, item

    def __len__(self):
        return self.length

    def __getitem__(self, position):
        if position == 7:
            raise HostileError("item 7")
        return self.item


class Shrinking(list):
    """A list that loses an item whenever one is read."""

    def __getitem__(self, position):
        value = super().__getitem__(position)
        self.pop()
        return value

    def __iter__(self):
        while self:
            yield self.pop()


class Clearing:
    """Empties the list that it is an item of when it is converted."""

    def __init__(self, owner):
        self.owner = owner
        owner.append(self)

    def __float__(self):
        self.owner.clear()
        return 1.0

    __index__ = __len__ = lambda self: self.owner.clear() or 1


class Meddles:
    """Number that calls a function whenever it is converted."""

    def __init__(self, deed, value):
        self.deed, self.value = deed, value

    def __index__(self):
        self.deed()
        return int(self.value)

    def __float__(self):
        self.deed()
        return float(self.value)

    def __bool__(self):
        self.deed()
        return True

    def __array__(self, dtype=None, copy=None):
        self.deed()
        return np.asarray(self.value, dtype=dtype)

    __len__ = __int__ = __index__


def growing(*values):
    """A list that gets longer whenever one of its items is converted."""
    items = []
    items += [Meddles(lambda: items.extend(items[:1] * 100), value) if isinstance(value, int) else value
              for value in values]
    return items


def changing(deed):
    """A list of which an item, when it is converted, calls a method."""
    items = [1, 2]
    given = {"append": [1]}.get(deed, [])
    items += [Meddles(lambda: getattr(items, deed)(*given), 1), 2, 3]
    return items


def endless():
    """A list that contains itself."""
    items = []
    items.append(items)
    return items


def clearing():
    """A list that is empty once its second item has been read."""
    items = [1.0]
    Clearing(items)
    items.append(2.0)
    return items


def structured():
    """Arrays of dtypes that tensors do not have, and of layouts that they do not like."""
    buffer = np.arange(64, dtype=np.uint8)
    return [
        np.array([object()]),
        np.array(["a"]),
        np.array([b"a"]),
        np.array(["2020"], dtype="datetime64[Y]"),
        np.zeros(2, dtype=[("a", "f4"), ("b", "i8")]),
        np.arange(3.0).astype(">f8"),
        buffer[1:33].view(np.float64),
        np.broadcast_to(np.float32(1), (3, 2)),
        np.arange(6.0)[::-2],
        np.zeros((2, 0, 3)),
        np.float16(1),
        np.longdouble(2),
        np.arange(3, dtype=np.uint64),
        np.ma.array([1.0, 2.0], mask=[True, False]),
        np.matrix([[1.0]]),
        np.array(None),
        np.lib.stride_tricks.as_strided(np.arange(4.0), (3, 2), (8, 8)),
        np.zeros((1,) * 40),
    ]
