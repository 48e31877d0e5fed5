"""Sample inputs of every operator, for the one parametrised suite.

Each module here has a dict ``SAMPLES``: name of a public function -> list of builders. A builder is a function of
``(make, dtype)`` and gives a `Sample`; ``make(shape, low=-2, high=2)`` gives a tensor of that dtype with random
elements between the two bounds (both parts, if complex). The suite decides which of them require gradients.
``COMPLEX`` names the functions that take complex tensors, and ``HELPERS`` says for each operator without a public
function whose samples exercise it.
"""

from importlib import import_module

import cygrad

from .sample import Sample

FAMILIES = (
    "activation",
    "arithmetic",
    "attention",
    "bessel",
    "combination",
    "comparison",
    "complex",
    "composed",
    "convolution",
    "copy",
    "error",
    "exponential",
    "extrema",
    "gamma",
    "indexing",
    "logic",
    "losses",
    "margin",
    "normalization",
    "number",
    "ordering",
    "part",
    "polynomial",
    "pooling",
    "power",
    "products",
    "recurrent",
    "reduction",
    "resampling",
    "rounding",
    "scan",
    "scatter",
    "selection",
    "trigonometric",
    "view",
)

# Functions of the functional interface that have another signature than the operator of their name.
FUNCTIONAL = {"linear", "pad", "one_hot", "embedding"}

# What is not differentiable in PyTorch, or wrongly.
BEYOND = set()
SAMPLES, COMPLEX, HELPERS = {}, set(), {}
for _family in FAMILIES:
    _module = import_module(f"{__name__}.{_family}")
    SAMPLES.update(_module.SAMPLES)
    COMPLEX.update(getattr(_module, "COMPLEX", ()))
    HELPERS.update(getattr(_module, "HELPERS", {}))
    BEYOND.update(getattr(_module, "BEYOND", ()))
    if _family in ("activation", "attention", "convolution", "losses", "margin", "normalization", "pooling", "resampling"):
        FUNCTIONAL.update(_module.SAMPLES)

__all__ = ["BEYOND", "COMPLEX", "FAMILIES", "HELPERS", "SAMPLES", "Sample", "find"]


def find(name):
    """The function of that name: of cygrad, of its functional interface, a method of tensors, or a special function."""
    places = (cygrad, cygrad.Tensor, cygrad.nn.functional)
    for place in (*(reversed(places) if name in FUNCTIONAL else places), cygrad.special):
        if hasattr(place, name):
            return getattr(place, name)
    raise LookupError(f"no public function or method is called {name!r}")
