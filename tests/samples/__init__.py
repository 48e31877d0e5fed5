"""Sample inputs of every operator, for the one parametrized suite.

Each module here has a dict ``SAMPLES``: name of a public function -> list of builders. A builder is a function of
``(make, dtype)`` and gives a `Sample`; ``make(shape, low=-2, high=2)`` gives a tensor of that dtype with random
elements between the two bounds (both parts, if complex). The suite decides which of them require gradients.
``COMPLEX`` names the functions that take complex tensors, and ``HELPERS`` says for each operator without a public
function whose samples exercise it. Names with a dot are those of modules: ``linalg.inv``. ``WRAPPED`` has for some
names a function of the library, cygrad or PyTorch, that gives the function to be tested in the place of the one
of that name: where results are not unique, what is unique of them.
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
    "factorization",
    "fft",
    "gamma",
    "indexing",
    "linalg",
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
FUNCTIONAL = {"linear", "pad", "one_hot", "embedding", "embedding_bag"}

# Not differentiable in PyTorch, or incorrectly.
BEYOND = set()
SAMPLES, COMPLEX, HELPERS, WRAPPED = {}, set(), {}, {}
for _family in FAMILIES:
    _module = import_module(f"{__name__}.{_family}")
    SAMPLES.update(_module.SAMPLES)
    COMPLEX.update(getattr(_module, "COMPLEX", ()))
    HELPERS.update(getattr(_module, "HELPERS", {}))
    WRAPPED.update(getattr(_module, "WRAPPED", {}))
    BEYOND.update(getattr(_module, "BEYOND", ()))
    if _family in ("activation", "attention", "convolution", "losses", "margin", "normalization", "pooling",
                   "resampling"):
        FUNCTIONAL.update(_module.SAMPLES)

__all__ = ["BEYOND", "COMPLEX", "FAMILIES", "HELPERS", "SAMPLES", "WRAPPED", "Sample", "find", "find_in"]


def find_in(library, name):
    """Return the function of a name, or its wrapper; None for all other names."""
    if name in WRAPPED:
        return WRAPPED[name](library)
    module, _, function = name.rpartition(".")
    return getattr(getattr(library, module), function, None) if module else None


def find(name):
    """The function of that name: of cygrad, of its functional interface, a method of tensors, or a special function."""
    if found := find_in(cygrad, name):
        return found
    places = (cygrad, cygrad.Tensor, cygrad.nn.functional)
    for place in (*(reversed(places) if name in FUNCTIONAL else places), cygrad.special):
        if hasattr(place, name):
            return getattr(place, name)
    raise LookupError(f"no public function or method is called {name!r}")
