"""Registration hooks, and views of hooks as dicts."""

from collections.abc import MutableMapping
from typing import Any

__all__ = ["BUFFER", "MODULE", "PARAMETER", "REGISTERING", "LiveDict"]

PARAMETER = "parameter"
BUFFER = "buffer"
MODULE = "child module"

# Global functions called for each registration: kind -> id -> hook(module, name, value).
REGISTERING = {PARAMETER: {}, BUFFER: {}, MODULE: {}}


class LiveDict(MutableMapping, dict):  # type: ignore[misc, metaclass]
    """
    View with the interface of a dict.

    The inherited dict stays empty. Iteration is over a snapshot, so the original may change meanwhile.
    """

    pairs: Any
    clear: Any
    update: Any

    def keys(self):
        """Return a snapshot of the keys."""
        return dict(self.pairs()).keys()

    def values(self):
        """Return a snapshot of the values."""
        return dict(self.pairs()).values()

    def items(self):
        """Return a snapshot of the items."""
        return dict(self.pairs()).items()

    def copy(self):
        """Return an ordinary dict."""
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
