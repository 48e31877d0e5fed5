"""Classes of named tuples for functions with several results, made at the first use of each."""

import functools
from collections import namedtuple

__all__ = ["named_result"]


@functools.cache
def named_result(name, *fields):
    """The class for the results of a function of that name; it can be pickled, though no module holds it."""
    found = namedtuple(name, fields, module=__name__)
    found.__reduce__ = lambda self: (_rebuild, (name, fields, tuple(self)))
    return found


def _rebuild(name, fields, values):
    return named_result(name, *fields)(*values)
