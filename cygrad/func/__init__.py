"""Function transforms: derivatives, Jacobians and vmap, which can be nested."""

from cygrad._core import public_dir as _public_dir
from cygrad.func.backward import elementwise_grad, grad, grad_and_value, value_and_grad, vjp
from cygrad.func.forward import jvp, linearize
from cygrad.func.matrices import hessian, jacfwd, jacrev
from cygrad.func.modules import (
    debug_unwrap,
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from cygrad.func.vmap import vmap

__all__ = [
    "debug_unwrap", "elementwise_grad", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state",
    "value_and_grad", "vjp", "vmap",
]

__dir__ = _public_dir(__name__)
