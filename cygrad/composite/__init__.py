"""Public functions that are composed of operators of the table.

`FUNCTIONS` are for the package's namespace, `METHODS` and `PROPERTIES` for the Tensor type; where a name is
also one of the table, the one here is what users see.
"""

from cygrad._core.indexing import index_put, index_put_
from cygrad.composite import arithmetic, contraction, dtypes, reductions, rounding, shapes

__all__ = ["FUNCTIONS", "METHODS", "PROPERTIES"]

FUNCTIONS = {
    name: getattr(module, name)
    for module in (arithmetic, contraction, dtypes, reductions, rounding, shapes)
    for name in module.__all__
    if name not in ("METHODS", "PROPERTIES") and not name.endswith("_")
}
FUNCTIONS["index_put"] = index_put

# Functions whose first argument is a tensor.
_AS_METHODS = (
    [name for name in arithmetic.__all__ if name != "gelu"]
    + reductions.__all__
    + rounding.__all__
    + ["chunk", "expand_as", "reshape_as", "split", "t", "tile", "unique", "view_as"]
)
METHODS = {
    **{name: getattr(module, name) for module in (arithmetic, reductions, rounding, shapes) for name in _AS_METHODS
       if name in module.__all__ and name not in ("std_mean", "var_mean")},
    **dtypes.METHODS,
    "index_put": index_put,
    "index_put_": index_put_,
}
PROPERTIES = shapes.PROPERTIES
