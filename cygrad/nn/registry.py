"""What the attributes of a module are: one ordered dict from name to kind, and live views of its parts."""

from collections.abc import MutableMapping, MutableSet

__all__ = ["BUFFER", "MODULE", "PARAMETER", "REGISTERING", "TRANSIENT", "LiveDict", "Part", "Registered", "Transient"]

PARAMETER = "parameter"
BUFFER = "buffer"
TRANSIENT = "buffer that state_dict leaves out"
MODULE = "child module"

# Functions that all modules call with what is registered: kind -> id -> hook(module, name, value).
REGISTERING = {PARAMETER: {}, BUFFER: {}, MODULE: {}}


class LiveDict(MutableMapping, dict):
    """
    A view with the interface of a dict, for programs that expect one.

    The dict that it is by inheritance stays empty. What is listed at once is a copy, which may be read while the
    original changes, and backwards.
    """

    def keys(self):
        """The keys as they are now."""
        return dict(self.pairs()).keys()

    def values(self):
        """The values as they are now."""
        return dict(self.pairs()).values()

    def items(self):
        """The pairs as they are now."""
        return dict(self.pairs()).items()

    def copy(self):
        """An ordinary dict."""
        return dict(self.pairs())

    def __iter__(self):
        return iter(self.keys())

    def __reversed__(self):
        return reversed(self.keys())

    def __len__(self):
        return len(self.pairs())

    def __repr__(self):
        return repr(self.copy())

    def __reduce__(self):
        return dict, (self.copy(),)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def __or__(self, other):
        return self.copy() | other

    def __ror__(self, other):
        return other | self.copy()

    def __ior__(self, other):
        self.update(other)
        return self


class Registered(LiveDict):
    """
    Attributes of one kind as a mapping from name to value, such as ``module._parameters``.

    Values are ordinary attributes in the module's ``__dict__``, where Python finds them without our help;
    this is a view of them, so both always agree.
    """

    __slots__ = ("_kinds", "_values")

    def __init__(self, owner, *kinds):
        self._kinds = kinds
        self._values = owner.__dict__

    def pairs(self):
        """The names and values as they are now."""
        return [(name, self._values[name]) for name, kind in self._values["_kinds"].items() if kind in self._kinds]

    def __getitem__(self, name):
        if self._values["_kinds"].get(name) not in self._kinds:
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name, value):
        kinds = self._values["_kinds"]
        if kinds.get(name) not in self._kinds:
            kinds[name] = self._kinds[0]
        self._values[name] = value

    def __delitem__(self, name):
        if self._values["_kinds"].get(name) not in self._kinds:
            raise KeyError(name)
        del self._values["_kinds"][name], self._values[name]


class Part:
    """The attribute that gives such a view; assigning a dict replaces what is there."""

    def __init__(self, doc, *kinds):
        self.__doc__ = doc
        self.kinds = kinds

    def __get__(self, owner, cls=None):
        return self if owner is None else Registered(owner, *self.kinds)

    def __set__(self, owner, values):
        values = dict(values)
        found = Registered(owner, *self.kinds)
        found.clear()
        found.update(values)


class Transient(MutableSet):
    """The names of the buffers that state_dict leaves out, as a set that may be changed."""

    __slots__ = ("_all",)

    def __init__(self, owner):
        self._all = owner.__dict__["_kinds"]

    def __contains__(self, name):
        return self._all.get(name) == TRANSIENT

    def __iter__(self):
        return iter([name for name, kind in self._all.items() if kind == TRANSIENT])

    def __len__(self):
        return len(list(iter(self)))

    def add(self, name):
        """Leave the buffer out from now on."""
        if self._all.get(name) == BUFFER:
            self._all[name] = TRANSIENT

    def discard(self, name):
        """Leave it out no longer."""
        if name in self:
            self._all[name] = BUFFER

    def __repr__(self):
        return repr(set(self))
