"""``compile`` and what belongs to it: programs run as they are, and what would compile them returns them unchanged."""

import contextlib

from cygrad.compatibility.jit import tell_once

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "is_compiling",
           "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "substitute_in_graph"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):
    """
    The function or module itself: nothing is compiled.

    Parameters
    ----------
    model : callable, optional
        Without it, a decorator is returned.
    fullgraph, dynamic, backend, mode, options, disable : optional
        Without effect.

    Examples
    --------
    >>> import cygrad, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     f = cygrad.compile(cygrad.sin)
    >>> f is cygrad.sin
    True
    """
    tell_once("compile")
    return _same(model)


def _same(function=None, *args, **options):
    """The function itself; without one, a decorator that returns what it gets."""
    return (lambda function: function) if function is None else function


def _no(*args, **options):
    """No."""
    return False


def _nothing(*args, **options):
    """Nothing to do."""


@contextlib.contextmanager
def set_stance(*args, **options):
    """How compiled functions shall behave in a block: there are none."""
    yield


disable = allow_in_graph = assume_constant_result = run = disallow_in_graph = forbid_in_graph = _same
is_compiling = is_dynamo_compiling = is_exporting = _no
reset = cudagraph_mark_step_begin = graph_break = mark_dynamic = mark_static = maybe_mark_dynamic = _nothing
optimize = lambda *args, **options: _same            # noqa: E731  (`optimize("inductor")(function)`)
list_backends = lambda *args: []                     # noqa: E731


def substitute_in_graph(*args, **options):
    """A decorator that changes nothing."""
    return _same


class _Config:
    """Settings that are kept and change nothing."""


config = _Config()
