"""
cygrad: automatic differentiation on CPUs, with a Cython core.

``import cygrad as torch`` runs the programs of the note "Autograd mechanics".
"""

from cygrad._core.dtype import (
    bool,
    complex64,
    complex128,
    dtype,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    set_default_dtype,
    uint8,
)
from cygrad._core.factories import (
    empty,
    empty_like,
    eye,
    full,
    full_like,
    new_empty,
    new_full,
    new_ones,
    new_tensor,
    new_zeros,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from cygrad._core.creation import as_tensor, asarray, from_dlpack, from_numpy, scalar_tensor, tensor
from cygrad._core.parallel import get_num_threads, set_num_threads, threads
from cygrad._core.ranges import arange, linspace, logspace
from cygrad._core.storage import empty_cache, memory_stats
from cygrad._core.tensor import Tensor, install
from cygrad._core import tensor_hooks

from cygrad import operators  # isort: split  (from here on Tensors compute)
from cygrad._core import assign
from cygrad import autograd, composite, conversion, printing, random
from cygrad.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from cygrad.autograd.run import tensor_backward
from cygrad.config import show_config
from cygrad.printing import get_printoptions, printoptions, set_printoptions
from cygrad.random import *  # noqa: F403

__version__ = "0.1.0"

globals().update(operators.FUNCTIONS)
globals().update(composite.FUNCTIONS)
install({
    **operators.METHODS, **composite.METHODS, **composite.PROPERTIES, **random.METHODS, **conversion.METHODS,
    **tensor_hooks.METHODS, **assign.METHODS,
    "new_zeros": new_zeros, "new_ones": new_ones, "new_empty": new_empty, "new_full": new_full,
    "new_tensor": new_tensor, "backward": tensor_backward, "__repr__": printing.tensor_repr,
    "__format__": printing.tensor_format,
})
for _function in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "install", "tensor_backward"):
    del globals()[_function]

from cygrad.serialization import load, save  # noqa: E402  isort: split
from cygrad import nn, optim, utils  # noqa: E402  isort: split
from math import e, inf, nan, pi  # noqa: E402

newaxis = None
# The short names of dtypes come last: they hide Python's own types from here on.
float, double = float32, float64
int, long, short = int32, int64, int16
cfloat, cdouble = complex64, complex128
