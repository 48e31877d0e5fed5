"""
Restricted unpickling.

A pickle is a program for a stack machine, two instructions of which call functions that the file names. Here they call
only entries of a table, after checking the arguments; and no instruction allocates more memory than the file has bytes.
"""

import struct
from collections import Counter, OrderedDict

__all__ = ["SAFE", "Skimmer", "Unpickler", "check_key"]

# "module.name" -> class or function that the user allows.
SAFE = {}
MAPPINGS = (dict, OrderedDict, Counter)
SMALL = 1 << 16                        # bytes that are requested before they are known to exist
MAX_KEY = 1000                        # items of a dict key; its hash is recursive
_MARK = object()


def check_key(key):
    """
    Refuse keys that are not plain values, or tuples nested so deeply or shared so often that hashing does not end.
    """
    stack, parts = [key], 0
    while stack:
        part = stack.pop()
        parts += 1
        if type(part) in (tuple, frozenset):
            stack.extend(part)
        if parts + len(stack) > MAX_KEY:
            raise ValueError("a key of a dict has too many parts")


class Unpickler:
    """
    Reads one pickle from a file.

    Parameters
    ----------
    file : binary file
    size : int
        How many bytes it has.
    names : mapping from (module, name) to object
        What the pickle may name.
    makers : set of int
        What of that it may call, as the `id` of each.
    persistent : callable
        Makes an object of an identifier.
    build : callable
        ``build(object, state)`` gives an object, made by a maker, its state.
    """

    def __init__(self, file, size, names, makers, persistent, build):
        self.file, self.size = file, size
        self.names, self.makers, self.persistent, self.give_state = names, makers, persistent, build

    def load(self):
        """Return the object of the pickle."""
        self.stack, self.memo = [], {}
        while True:
            code = self.take(1)
            if code == b".":
                result = self.pop()
                if self.stack:
                    raise ValueError("a pickle has extra items on its stack")
                return result
            step = STEPS.get(code)
            if step is None:
                raise ValueError(f"a pickle has the unknown or forbidden opcode {code!r}")
            step(self)

    def take(self, count):
        """Read the next bytes."""
        if count > SMALL and count > self.size - self.file.tell():
            raise EOFError("a pickle is truncated")
        found = self.file.read(count)
        if len(found) != count:
            raise EOFError("a pickle is truncated")
        return found

    def line(self):
        """Read the next line as text."""
        line = self.file.readline(1000)
        if line[-1:] != b"\n":
            raise EOFError("a pickle is truncated, or a name in it too long")
        return line[:-1].decode()

    def number(self, form):
        """Read the next number of a format of `struct`."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def push(self, value):
        self.stack.append(value)

    def pop(self):
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a pickle has a mark instead of a value")
        return value

    def top(self, kinds):
        """Return the container on top of the stack, of one of these types."""
        found = self.stack[-1]
        if type(found) not in kinds:
            raise ValueError(f"a pickle appends to a {type(found).__name__}")
        return found

    def pop_mark(self):
        """Pop the items since the last mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:            # an IndexError, or -1, if there is none
            place -= 1
        found = self.stack[place + 1:]
        del self.stack[place:]
        return found

    # ------------------------------------------------------------------------------------------------- instructions

    def protocol(self):
        if self.take(1)[0] > 5:
            raise ValueError("a pickle has an unknown protocol")

    def text(self, form):
        self.push(self.take(self.number(form)).decode("utf-8", "surrogatepass"))

    def raw(self, form, kind=bytes):
        self.push(kind(self.take(self.number(form))))

    def old_text(self, form):
        raw = self.take(self.number(form))
        self.push(raw.decode("utf-8", "surrogateescape"))

    def integer(self, form):
        self.push(int.from_bytes(self.take(self.number(form)), "little", signed=True))

    def join(self, count):
        if count > len(self.stack):
            raise ValueError("a pickle pops an empty stack")
        self.stack.append(tuple([self.pop() for _ in range(count)][::-1]))

    def append(self, values):
        self.top((list,)).extend(values)

    def insert(self, values):
        into = self.top(MAPPINGS)
        if len(values) % 2:
            raise ValueError("a pickle has a key without a value")
        for place in range(0, len(values), 2):
            check_key(values[place])
            into[values[place]] = values[place + 1]

    def add(self, values):
        into = self.top((set,))
        for value in values:
            check_key(value)
            into.add(value)

    def freeze(self, values):
        for value in values:
            check_key(value)
        self.push(frozenset(values))

    def remember(self, place):
        value = self.stack[-1]
        if value is _MARK:
            raise ValueError("a pickle memoizes a mark")
        self.memo[place] = value

    def name(self, module, name):
        found = self.names.get((module, name), _MARK)
        if found is _MARK:
            found = SAFE.get(f"{module}.{name}", _MARK)
        if found is _MARK:
            raise ValueError(
                f"it refers to {module}.{name}, which is not an allowed global. If you trust the file, "
                "load(..., weights_only=False) executes it, and cygrad.serialization.add_safe_globals([...]) allows "
                "this name")
        self.push(found)

    def stacked_name(self):
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise ValueError("a pickle has an invalid name")
        self.name(module, name)

    def call(self, new=False):
        arguments, maker = self.pop(), self.pop()
        if type(arguments) is not tuple:
            raise ValueError("a pickle calls a function without a tuple of arguments")
        # By identity: objects of the file may override equality.
        if any(maker is known for known in SAFE.values()):
            self.push(maker.__new__(maker, *arguments) if new else maker(*arguments))
        elif id(maker) in self.makers:
            self.push(maker(*arguments))
        else:
            raise ValueError(f"a pickle calls a forbidden object (got a {type(maker).__name__})")

    def identified(self):
        self.push(self.persistent(self.pop()))

    def build(self):
        state = self.pop()
        self.give_state(self.stack[-1], state)


class Skimmer(Unpickler):
    """Scans a pickle without creating objects: only `persistent` gets the identifiers of storages."""

    def append(self, values):
        pass

    insert = add = append

    def freeze(self, values):
        self.push(None)

    def name(self, module, name):
        self.push(self.names.get((module, name)))

    def call(self, new=False):
        del self.stack[-2:]
        self.push(None)

    def build(self):
        self.pop()


def _constant(value):
    return lambda self: self.push(value)


STEPS = {
    b"\x80": Unpickler.protocol, b"\x95": lambda self: self.take(8),
    b"(": lambda self: self.stack.append(_MARK), b"0": lambda self: self.stack.pop(),
    b"1": Unpickler.pop_mark, b"2": lambda self: self.push(self.stack[-1]),
    b"N": _constant(None), b"\x88": _constant(True), b"\x89": _constant(False),
    b"K": lambda self: self.push(self.number("<B")), b"M": lambda self: self.push(self.number("<H")),
    b"J": lambda self: self.push(self.number("<i")), b"G": lambda self: self.push(self.number(">d")),
    b"\x8a": lambda self: self.integer("<B"), b"\x8b": lambda self: self.integer("<I"),
    b"X": lambda self: self.text("<I"), b"\x8c": lambda self: self.text("<B"), b"\x8d": lambda self: self.text("<Q"),
    b"U": lambda self: self.old_text("<B"), b"T": lambda self: self.old_text("<I"),
    b"C": lambda self: self.raw("<B"), b"B": lambda self: self.raw("<I"), b"\x8e": lambda self: self.raw("<Q"),
    b"\x96": lambda self: self.raw("<Q", bytearray),
    b")": _constant(()), b"t": lambda self: self.push(tuple(self.pop_mark())),
    b"\x85": lambda self: self.join(1), b"\x86": lambda self: self.join(2), b"\x87": lambda self: self.join(3),
    b"]": lambda self: self.push([]), b"l": lambda self: self.push(self.pop_mark()),
    b"a": lambda self: self.append([self.pop()]), b"e": lambda self: self.append(self.pop_mark()),
    b"}": lambda self: self.push({}), b"s": lambda self: self.insert([self.pop(), self.pop()][::-1]),
    b"u": lambda self: self.insert(self.pop_mark()),
    b"\x8f": lambda self: self.push(set()), b"\x90": lambda self: self.add(self.pop_mark()),
    b"\x91": lambda self: self.freeze(self.pop_mark()),
    b"c": lambda self: self.name(self.line(), self.line()), b"\x93": Unpickler.stacked_name,
    b"R": lambda self: self.call(), b"\x81": lambda self: self.call(new=True), b"b": lambda self: self.build(),
    b"Q": lambda self: self.identified(),
    b"q": lambda self: self.remember(self.number("<B")), b"r": lambda self: self.remember(self.number("<I")),
    b"\x94": lambda self: self.remember(len(self.memo)),
    b"h": lambda self: self.push(self.memo[self.number("<B")]),
    b"j": lambda self: self.push(self.memo[self.number("<I")]),
}
