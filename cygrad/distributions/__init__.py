"""
Distributions with samples, densities and gradients: of numbers, choices, counts, vectors and matrices.

Every distribution has a `batch_shape`, that of its parameters, and an `event_shape`, that of one value. `rsample` draws
values through which gradients flow to the parameters, `log_prob` is differentiable by both.

Examples
--------
>>> from cygrad.distributions import Normal
>>> loc = cygrad.tensor([0.0, 1.0], requires_grad=True)
>>> Normal(loc, 1.0).log_prob(cygrad.tensor([1.0, 1.0])).sum().backward()
>>> loc.grad
tensor([1., 0.])
"""

from cygrad._core import public_dir as _public_dir
from cygrad.distributions import constraints, transforms
from cygrad.distributions.composed import *  # noqa: F403
from cygrad.distributions.constraint_registry import biject_to, transform_to
from cygrad.distributions.continuous import *  # noqa: F403
from cygrad.distributions.discrete import *  # noqa: F403
from cygrad.distributions.distribution import Distribution, ExponentialFamily
from cygrad.distributions.gamma_family import *  # noqa: F403
from cygrad.distributions.kl import kl_divergence, register_kl
from cygrad.distributions.relaxed import *  # noqa: F403
from cygrad.distributions.transformed import *  # noqa: F403
from cygrad.distributions.transforms import *  # noqa: F403
from cygrad.distributions.vectors import *  # noqa: F403

__dir__ = _public_dir(__name__)
