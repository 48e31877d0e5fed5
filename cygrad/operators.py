"""The operators of the table as Python functions: collected from the modules generated for its families."""

import importlib

import cygrad._core
import cygrad._core.kernels
from cygrad._core import inplace, native, number_protocol, operator, tangent_rules, tangents
from cygrad._core.creation import tensor
from cygrad._core.dtype import complex128, float64
from cygrad._core.engine import run_backward
from cygrad._core.factories import zeros, zeros_like

OPERATORS, INPLACE, FUNCTIONS, METHODS = {}, {}, {}, {}

for _name in sorted(_name for _name in cygrad._core.COMPILED if _name.startswith("functions_")):
    _family = importlib.import_module(f"cygrad._core.{_name}")
    OPERATORS.update(_family.OPERATORS)
    INPLACE.update(_family.INPLACE)
    FUNCTIONS.update(_family.FUNCTIONS)
    METHODS.update(_family.METHODS)

# What the core itself composes of recorded operations.
native.set_functions(OPERATORS)
inplace.functions.update(OPERATORS)
operator.set_namespace({**OPERATORS, "tensor": tensor, "float64": float64, "complex128": complex128})
tangents.set_functions({**OPERATORS, "zeros": zeros, "zeros_like": zeros_like}, tangent_rules.push, tangent_rules.fit)
tangent_rules.namespace.update({
    **OPERATORS, "zeros_like": zeros_like, "run_backward": run_backward, "laid_out": tangents.laid_out})
number_protocol.connect()
