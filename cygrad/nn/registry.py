"""Registration hooks, and dict views."""

from collections.abc import MutableMapping

__all__ = ["BUFFER", "MODULE", "PARAMETER", "REGISTERING", "LiveDict"]

PARAMETER = "parameter"
BUFFER = "buffer"
MODULE = "child module"

# Global functions called for each registration: kind -> id -> hook(module, name, value).
REGISTERING = {PARAMETER: {}, BUFFER: {}, MODULE: {}}


class LiveDict(MutableMapping, dict):
    """
    A view with the interface of a dict.

    The dict that it is by inheritance stays empty. Listing it makes a copy, which may be read while the original
    changes, and backwards.
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
