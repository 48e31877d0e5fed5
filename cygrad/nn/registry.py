"""What the attributes of a module are: one ordered dict from name to kind, and live views of its parts."""

from collections.abc import MutableMapping

__all__ = ["BUFFER", "MODULE", "PARAMETER", "TRANSIENT", "Registered"]

PARAMETER = "parameter"
BUFFER = "buffer"
TRANSIENT = "buffer that state_dict leaves out"
MODULE = "child module"


class Registered(MutableMapping):
    """
    Attributes of one kind as a mapping from name to value, such as ``module._parameters``.

    Values are ordinary attributes in the module's ``__dict__``, where Python finds them without our help;
    this is a view of them, so both always agree.
    """

    __slots__ = ("_kinds", "_owner", "_values")

    def __init__(self, owner, *kinds):
        self._owner = owner
        self._kinds = kinds
        self._values = owner.__dict__

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

    def __iter__(self):
        return iter([name for name, kind in self._values["_kinds"].items() if kind in self._kinds])

    def __len__(self):
        return sum(kind in self._kinds for kind in self._values["_kinds"].values())

    def __repr__(self):
        return repr(dict(self))
