"""Named-tuple classes of functions with several results, created on first use."""

import functools
from collections import namedtuple

from cygrad._core.arrays.dtype import library_name

__all__ = ["named_result"]


@functools.cache
def named_result(name, *fields):
    """Return the class for the results of a function; it can be pickled without being in a module."""
    found = namedtuple(name, fields, module=__name__)
    found.__reduce__ = lambda self: (_rebuild, (name, fields, tuple(self)))
    found.__repr__ = functools.partialmethod(_told, found.__repr__)
    return found


def _told(self, plain):
    """Format like a named tuple; under the name torch, with PyTorch's name."""
    library = library_name()
    if library == "cygrad":
        return plain(self)
    lines = (f"{name}={value!r}" for name, value in self._asdict().items())
    return f"{library}.return_types.{type(self).__name__}(\n" + ",\n".join(lines) + ")"


def _rebuild(name, fields, values):
    return named_result(name, *fields)(*values)
