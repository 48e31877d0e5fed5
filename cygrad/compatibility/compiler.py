"""Functions of ``torch.compiler`` without effect, and ``compile`` of `cygrad.compiling`."""

import contextlib
import sys

from cygrad.compiling import compile

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance", "substitute_in_graph",
]


def _same(function=None, *args, **options):
    """Return the function itself; without one, a decorator that returns its argument."""
    return (lambda function: function) if function is None else function


def _no(*args, **options):
    """Return False."""
    return False


def _nothing(*args, **options):
    """Do nothing."""


@contextlib.contextmanager
def set_stance(*args, **options):
    """Accept a stance of compiled functions for a block and ignore it."""
    yield


disable = allow_in_graph = assume_constant_result = run = disallow_in_graph = forbid_in_graph = _same
is_compiling = is_dynamo_compiling = is_exporting = is_compile_supported = is_dynamo_supported = _no
reset = cudagraph_mark_step_begin = graph_break = mark_dynamic = mark_static = maybe_mark_dynamic = \
    mark_static_address = _nothing
optimize = lambda *args, **options: _same            # noqa: E731  (`optimize("inductor")(function)`)
list_backends = lambda *args: []                     # noqa: E731


def substitute_in_graph(*args, **options):
    """Return a decorator that changes nothing."""
    return _same


class _Config:
    """Settings that are accepted and ignored."""


config = _Config()


class OptimizedModule:
    """PyTorch's type of compiled modules, of which there are no instances."""


TransformGetItemToIndex = contextlib.nullcontext             # affects tracing only
eval_frame = utils = decorators = sys.modules[__name__]      # parts of `torch._dynamo`
