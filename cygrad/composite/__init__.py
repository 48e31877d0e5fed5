"""Public functions that are composed of operators of the table.

`FUNCTIONS` are for the package's namespace, `METHODS` and `PROPERTIES` for the Tensor type; where a name is
also one of the table, the one here is what users see.
"""

from cygrad._core.indexing import index_put, index_put_
from cygrad.composite import (
    arithmetic,
    contraction,
    counting,
    diagonals,
    differences,
    distances,
    dtypes,
    gamma,
    geometry,
    grids,
    in_place,
    numbers,
    placing,
    products,
    questions,
    recurrent,
    reductions,
    rounding,
    scattering,
    searching,
    shapes,
    stacking,
    statistics,
    turning,
    windows,
)

__all__ = ["FUNCTIONS", "METHODS", "PROPERTIES"]

_MODULES = (arithmetic, contraction, counting, diagonals, differences, distances, dtypes, gamma, geometry, grids,
            numbers, placing, products, questions, recurrent, reductions, rounding, scattering, searching, shapes,
            stacking, statistics, turning, windows)
FUNCTIONS = {
    name: getattr(module, name)
    for module in _MODULES
    for name in module.__all__
    if name not in ("METHODS", "PROPERTIES") and not name.endswith("_")
}
FUNCTIONS |= {"index_put": index_put, **in_place.FUNCTIONS}


def _methods(module):
    """What a module adds to Tensor: functions by name, or under the names of a dict."""
    found = getattr(module, "METHODS", ())
    return found if isinstance(found, dict) else {name: getattr(module, name) for name in found}


METHODS = {name: function for module in _MODULES for name, function in _methods(module).items()}
METHODS |= {"index_put": index_put, "index_put_": index_put_}
PROPERTIES = shapes.PROPERTIES
