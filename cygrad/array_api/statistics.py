"""The standard's reductions, running sums and differences."""

from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import numerics, reductions

__all__ = ["FUNCTIONS"]


def _reduction(name):
    row = reductions.rows[name]
    return lambda x, /, *, axis=None, keepdims=False: row(x, axis, keepdims=keepdims)


def _sum(name):
    row = reductions.rows[name]
    return lambda x, /, *, axis=None, dtype=None, keepdims=False: row(x, axis, dtype, keepdims=keepdims)


def _spread(name):
    row = reductions.rows[name]
    return lambda x, /, *, axis=None, correction=0.0, keepdims=False: row(x, axis, ddof=correction, keepdims=keepdims)


def _running(name):
    row = reductions.rows[name]
    return lambda x, /, *, axis=None, dtype=None, include_initial=False: row(
        x, axis=axis, dtype=dtype, include_initial=include_initial)


FUNCTIONS = finished("cygrad.array_api", {
    **{name: _reduction(name) for name in ("all", "any", "max", "mean", "min")},
    **{name: _sum(name) for name in ("sum", "prod")}, **{name: _spread(name) for name in ("std", "var")},
    **{name: _running(name) for name in ("cumulative_sum", "cumulative_prod")},
    "diff": lambda x, /, *, axis=-1, n=1, prepend=None, append=None: numerics.diff(x, n, axis, prepend, append)})
