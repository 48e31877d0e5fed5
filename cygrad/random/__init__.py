"""
Random numbers: generators and sampling.

`FUNCTIONS` are for the package's namespace, `METHODS` for the Tensor type.
"""

from cygrad._core import public_dir as _public_dir
from cygrad.random import generator as _generator
from cygrad.random import inplace as _inplace
from cygrad.random import sampling as _sampling
from cygrad.random.generator import *  # noqa: F403
from cygrad.random.sampling import *  # noqa: F403

FUNCTIONS = {
    name: getattr(module, name)
    for module in (_generator, _sampling)
    for name in module.__all__
    if name not in ("default_generator", "dropout_mask", "fork_rng", "set_algorithm")
}
METHODS = {**_inplace.METHODS, "bernoulli": _sampling.bernoulli, "multinomial": _sampling.multinomial}

__all__ = sorted(FUNCTIONS)

__dir__ = _public_dir(__name__)
