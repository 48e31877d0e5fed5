"""
Public functions composed of operators.

`FUNCTIONS` are for the package's namespace, `METHODS` and `PROPERTIES` for the Tensor type; they take precedence over
operators of the same name.
"""

import sys

from cygrad._core.dispatch.indexing import fill_, index_put, index_put_, zero_
from cygrad.composite import (
    arithmetic,
    calculus,
    contraction,
    counting,
    diagonals,
    distances,
    dtypes,
    flips,
    float_parts,
    gamma,
    geometry,
    grids,
    indexing,
    log_sums,
    predicates,
    products,
    recurrent,
    reductions,
    rounding,
    scattering,
    searching,
    shapes,
    stacking,
    statistics,
    windows,
)
from cygrad.composite.out_forms import all_spelled

__all__ = ["FUNCTIONS", "METHODS", "PROPERTIES"]

_MODULES = (arithmetic, calculus, contraction, counting, diagonals, distances, dtypes, flips, float_parts, gamma,
            geometry, grids, indexing, log_sums, predicates, products, recurrent, reductions, rounding, scattering,
            searching, shapes, stacking, statistics, windows)
# Pickles of version 0.1 name these modules.
sys.modules.update({f"{__name__}.{former}": module for former, module in {
    "differences": calculus, "numbers": float_parts, "placing": indexing, "questions": predicates, "turning": flips,
}.items()})
FUNCTIONS = {
    name: getattr(module, name)
    for module in _MODULES
    for name in module.__all__
    if name not in ("METHODS", "PROPERTIES") and not name.endswith("_")
}
FUNCTIONS |= {"fill_": fill_, "index_put": index_put, "zero_": zero_}


def _methods(module):
    """Return the methods that a module adds to Tensor by name."""
    found = getattr(module, "METHODS", ())
    return found if isinstance(found, dict) else {name: getattr(module, name) for name in found}


METHODS = {name: function for module in _MODULES for name, function in _methods(module).items()}
METHODS |= {"index_put": index_put, "index_put_": index_put_}
FUNCTIONS |= {name: METHODS[name] for name in ("clamp_", "clip_", "logit_", "nan_to_num_", "round_")}
FUNCTIONS, METHODS = all_spelled(FUNCTIONS), all_spelled(METHODS)
PROPERTIES = shapes.PROPERTIES
