# ruff: noqa: E402, I001 (the order matters: types, operators, functions composed of them)
"""
cygrad: automatic differentiation on CPUs, with a Cython core and the API of PyTorch.

Examples in docstrings assume ``import cygrad``, ``from cygrad import nn`` and
``from cygrad.nn import functional as F``.
"""

import gc as _gc
import importlib as _importlib
import sys as _sys

# Import creates hardly any garbage, and collecting it repeatedly would take a tenth of the import time; so all objects
# move to the oldest generation, unless objects were frozen before.
_collecting = _gc.isenabled()
_gc.disable()
try:
    from cygrad._core.graph import type_slots  # isort: split  (complete the Tensor type)
    from cygrad import operators  # isort: split  (from here on Tensors compute)
    from cygrad import tensor_methods
finally:
    if _collecting:
        if not _gc.get_freeze_count():
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()

from cygrad._core import COMPANIONS as _COMPANIONS
from cygrad._core.arrays.dtype import (
    bfloat16,
    bool,
    complex32,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    qint8,
    qint32,
    quint2x4,
    quint4x2,
    quint8,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cygrad._core.creation.factories import empty, empty_like, eye, full, full_like, ones, ones_like, zeros, zeros_like
from cygrad._core.creation.creation import as_tensor, asarray, from_dlpack, from_numpy, scalar_tensor, tensor
from cygrad._core.arrays.array import (
    LAYOUTS,
    MEMORY_FORMATS,
    device,
    get_default_device,
    layout,
    memory_format,
    set_default_device,
)
from cygrad._core.arrays.array import Size
from cygrad._core.threads.parallel import get_num_threads, set_num_threads, threads
from cygrad._core.creation.factories import arange, linspace, logspace
from cygrad._core.memory.storage import empty_cache, memory_stats
from cygrad._core.graph.tensor import Tensor
from cygrad import autograd, composite, linalg, operators, printing, random, tensor_methods
from cygrad.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from cygrad.printing import get_printoptions, printoptions, set_printoptions
from cygrad.random import *  # noqa: F403

__version__ = "0.1.0"

globals().update({**LAYOUTS, **MEMORY_FORMATS})
globals().update(operators.FUNCTIONS)
globals().update(composite.FUNCTIONS)
globals().update(linalg.FUNCTIONS)

from math import e, inf, nan, pi

# Imported on first access, because most programs need only some of them. They use the functions above, under the name
# of the package.
_LATE = {
    **{
        name: (f"cygrad.{name}", None)
        for name in (
            "array_api",
            "compiling",
            "config",
            "distributed",
            "distributions",
            "fft",
            "func",
            "multiprocessing",
            "nn",
            "numpy",
            "optim",
            "profiler",
            "safetensors",
            "serialization",
            "signal",
            "sparse",
            "special",
            "utils",
        )
    },
    "compile": ("cygrad.compiling", "compile"),
    "istft": ("cygrad.fft", "istft"),
    "stft": ("cygrad.fft", "stft"),
    "load": ("cygrad.serialization", "load"),
    "save": ("cygrad.serialization", "save"),
    "show_config": ("cygrad.config", "show_config"),
    "stand_in": ("cygrad.compatibility", "stand_in"),
    "vmap": ("cygrad.func", "vmap"),
}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'cygrad' has no attribute {name!r}")
    if name in _LATE:
        module, part = _LATE[name]
        found = _importlib.import_module(module)
        found = found if part is None else getattr(found, part)
    else:
        found = _importlib.import_module("cygrad.compatibility.names").find(name)
        _INTERNAL.add(name)  # for programs for PyTorch, not for completion
    globals()[name] = found
    return found


_INTERNAL = {
    "LAYOUTS",
    "MEMORY_FORMATS",
    "composite",
    "conversion",
    "operators",
    "printing",
    "tensor_metadata",
    "tensor_methods",
    "type_slots",
}


def __dir__():
    return sorted(name for name in {*globals(), *_LATE} - _INTERNAL if not name.startswith("_"))


for _name in _COMPANIONS.keys() & _sys.modules.keys():  # which would have imported them later
    _importlib.import_module(_COMPANIONS[_name])
if "IPython" in _sys.modules:
    printing.show_state_dicts(_sys.modules["IPython"].get_ipython())
newaxis = None
# Names of dtypes come last: from here on they shadow Python's own types.
float, double = float32, float64
int, long, short = int32, int64, int16
cfloat, cdouble = complex64, complex128
half, chalf = float16, complex32
