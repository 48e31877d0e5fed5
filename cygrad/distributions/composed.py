"""Transformed distributions and mixtures."""

import math

import cygrad
from cygrad.distributions import constraints
from cygrad.distributions.continuous import Exponential, Normal, Uniform
from cygrad.distributions.discrete import Categorical
from cygrad.distributions.distribution import Distribution
from cygrad.distributions.gamma_family import Gamma
from cygrad.distributions.transformed import TransformedDistribution
from cygrad.distributions.transforms import AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform
from cygrad.distributions.utils import TINY, broadcast_all, euler_constant, lgamma_less_digamma

__all__ = ["InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal", "MixtureSameFamily", "Pareto",
           "Weibull"]


class LogNormal(TransformedDistribution):
    """
    Log-normal distribution: the exponential of a normal variable.

    Examples
    --------
    >>> from cygrad.distributions import LogNormal
    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.square() / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: cygrad.expm1(self.scale.square()) * (2 * self.loc + self.scale.square()).exp())

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """
    Logistic normal distribution on the simplex: stick-breaking of normal variables.

    Examples
    --------
    >>> from cygrad.distributions import LogisticNormal
    >>> LogisticNormal(cygrad.zeros(2), cygrad.ones(2)).sample().sum().round(decimals=3)
    tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class Kumaraswamy(TransformedDistribution):
    """
    Kumaraswamy distribution on (0, 1).

    Examples
    --------
    >>> from cygrad.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(cygrad.zeros_like(a), cygrad.ones_like(a), validate_args=validate_args)
        super().__init__(base, [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0),
                                PowerTransform(a.reciprocal())], validate_args)

    # Transforming the uniform base would lose small values; these logarithms keep them.

    def rsample(self, sample_shape=()):
        return self._from_rest(self.base_dist.rsample(sample_shape).clamp(min=TINY[self.concentration1.dtype]).log())

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            return self.rsample(sample_shape)

    def _log_rest(self, value):
        """Return the logarithm of ``1 - value ** concentration1``."""
        with cygrad.no_grad():
            near_one = value ** self.concentration1 > 0.5
        log_power = self.concentration1 * cygrad.where(near_one, value, 0.5).log()
        near_zero = -cygrad.where(near_one, 0.0, value) ** self.concentration1
        return cygrad.where(near_one, (-cygrad.expm1(log_power)).log(), near_zero.log1p())

    def _from_rest(self, log_rest):
        """Return the inverse survival function."""
        return (-cygrad.expm1(log_rest / self.concentration0)) ** self.concentration1.reciprocal()

    def log_prob(self, value):
        self._checked(value)
        a, b = self.concentration1, self.concentration0
        end = (b == 1) & (value == 1)
        rest = cygrad.where(end, 0.0, self._log_rest(cygrad.where(end, 0.5, value)))
        return a.log() + b.log() + cygrad.xlogy(a - 1, value) + (b - 1) * rest

    def cdf(self, value):
        return -cygrad.expm1(self.concentration0 * self._log_rest(self._checked(value)))

    def icdf(self, value):
        return self._from_rest((-value).log1p())

    def _moment(self, n):
        a, b = self.concentration1, self.concentration0
        return (b.log() + cygrad.lgamma(1 + n / a) + cygrad.lgamma(b) - cygrad.lgamma(1 + n / a + b)).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).square())

    @property
    def mode(self):
        """Mode; nan if the density has no interior maximum."""
        a, b = self.concentration1, self.concentration0
        return cygrad.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = cygrad.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class Pareto(TransformedDistribution):
    """
    Pareto distribution: a power law above `scale`.

    Examples
    --------
    >>> from cygrad.distributions import Pareto
    >>> Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(Exponential(self.alpha, validate_args=validate_args),
                         [ExpTransform(), AffineTransform(loc=0.0, scale=self.scale)], validate_args)

    mode = property(lambda self: self.scale)

    def log_prob(self, value):
        log_value = self._checked(value).log()
        return self.alpha.log() + self.alpha * (self.scale.log() - log_value) - log_value

    @property
    def mean(self):
        """Mean; inf for alpha <= 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        """Variance; inf for alpha <= 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """Values from `scale` on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """
    Weibull distribution: a power of an exponential variable.

    Examples
    --------
    >>> from cygrad.distributions import Weibull
    >>> Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(Exponential(cygrad.ones_like(self.scale), validate_args=validate_args),
                         [PowerTransform(self.concentration.reciprocal()), AffineTransform(0.0, self.scale)],
                         validate_args)

    def log_prob(self, value):
        k, z = self.concentration, self._checked(value) / self.scale
        return k.log() - self.scale.log() + (k - 1) * z.log() - z ** k

    def _moment(self, n):
        return cygrad.lgamma(1 + n / self.concentration).exp()

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(lambda self: self.scale.square() * (self._moment(2) - self._moment(1).square()))
    mode = property(lambda self: self.scale * (
        1 - self.concentration.reciprocal()).clamp(min=0) ** self.concentration.reciprocal())

    def entropy(self):
        return (euler_constant * (1 - self.concentration.reciprocal()) + (self.scale / self.concentration).log() + 1)


class InverseGamma(TransformedDistribution):
    """
    Inverse gamma distribution: the reciprocal of a gamma variable.

    Examples
    --------
    >>> from cygrad.distributions import InverseGamma
    >>> InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(cygrad.full_like(base.rate, -1.0)), validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    def log_prob(self, value):
        log_inverse = -self._checked(value).log()
        return self.base_dist._log_density((self.concentration - 1) * log_inverse, log_inverse,
                                           self.rate / value) + 2 * log_inverse

    @property
    def mean(self):
        """Mean; inf for concentration <= 1."""
        return cygrad.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self):
        """Variance; inf for concentration <= 2."""
        a = self.concentration
        return cygrad.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self):
        return lgamma_less_digamma(self.concentration, -1) + self.rate.log()

    def cdf(self, value):
        return cygrad.special.gammaincc(self.concentration, self.rate / self._checked(value))


class MixtureSameFamily(Distribution):
    """
    A mixture of the distributions in the last batch dimension of another one.

    Examples
    --------
    >>> from cygrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> mixture = MixtureSameFamily(Categorical(cygrad.ones(2)), Normal(cygrad.tensor([-1.0, 3.0]), 1.0))
    >>> mixture.mean
    tensor(1.)
    """

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily: the first argument must be a Categorical.")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("MixtureSameFamily: The Component distribution need to be an instance of "
                             "distributions.Distribution")
        shape = component_distribution.batch_shape
        if not shape or shape[-1] != mixture_distribution.logits.shape[-1]:
            raise ValueError("MixtureSameFamily: `mixture_distribution` component "
                             f"({mixture_distribution.logits.shape[-1]}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({shape[-1:] or 'none'})")
        for size, other in zip(reversed(mixture_distribution.batch_shape), reversed(shape[:-1]), strict=False):
            if size not in (1, other) and other != 1:
                raise ValueError("MixtureSameFamily: `mixture_distribution.batch_shape` "
                                 f"({mixture_distribution.batch_shape}) is not compatible with "
                                 f"`component_distribution.batch_shape` ({shape})")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        super().__init__(shape[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self):
        """Support of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, _instance)

    def _weights(self):
        probs = self._mixture_distribution.probs
        return probs.reshape(tuple(probs.shape) + (1,) * len(self._event_shape))

    @property
    def _dim(self):
        return -1 - len(self._event_shape)

    @property
    def mean(self):
        """Weighted mean of the components' means."""
        return (self._weights() * self._component_distribution.mean).sum(self._dim)

    @property
    def variance(self):
        """Variance within and between components."""
        within = (self._weights() * self._component_distribution.variance).sum(self._dim)
        apart = self._component_distribution.mean - self.mean.unsqueeze(self._dim)
        return within + (self._weights() * apart.square()).sum(self._dim)

    def cdf(self, value):
        return (self._component_distribution.cdf(value.unsqueeze(self._dim)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        found = self._component_distribution.log_prob(self._checked(value).unsqueeze(self._dim))
        return (found + self._mixture_distribution.logits).logsumexp(-1)

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            sample_shape = tuple(sample_shape)
            n = len(sample_shape) + len(self._batch_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            chosen = chosen.reshape(tuple(chosen.shape) + (1,) * (1 + len(self._event_shape)))
            chosen = chosen.expand((*tuple(values.shape[:n]), 1, *self._event_shape))
            return values.gather(n, chosen).squeeze(n)

    def __repr__(self):
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
