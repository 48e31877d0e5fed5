"""The operators of the table as Python functions: collected from the modules generated for its families."""

from importlib import import_module

import cygrad._core
from cygrad._core.build_config import KERNELS
from cygrad._core.dispatch import number_protocol
from cygrad._core.dispatch.indexing import index_put_
from cygrad._core.graph import override

# The table finds kernels by their names, so all of them come first.
for _name in KERNELS:
    import_module(_name)

OPERATORS, INPLACE, FUNCTIONS, METHODS = {}, {}, {}, {}

for _name in sorted(_name for _name in cygrad._core.COMPILED if _name.startswith("cygrad._core.operators.")):
    _family = import_module(_name)
    OPERATORS.update(_family.OPERATORS)
    INPLACE.update(_family.INPLACE)
    FUNCTIONS.update(_family.FUNCTIONS)
    METHODS.update(_family.METHODS)

override.changing_functions.update({name[:-1]: function for name, function in INPLACE.items()})
override.changing_functions["index_put_into"] = index_put_
number_protocol.connect()
