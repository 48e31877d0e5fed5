"""Univariate continuous distributions."""

import math

import cygrad
from cygrad import special
from cygrad.distributions import constraints
from cygrad.distributions.distribution import ExponentialFamily, Parametric
from cygrad.distributions.transformed import TransformedDistribution
from cygrad.distributions.transforms import AbsTransform, AffineTransform, ExpTransform
from cygrad.distributions.utils import EPS, LOG_2PI, TINY, broadcast_all, euler_constant, log1p_square

__all__ = ["Cauchy", "Exponential", "GeneralizedPareto", "Gumbel",
           "HalfCauchy", "HalfNormal", "Laplace", "Normal", "Uniform", "VonMises"]



class _LocationScale(Parametric):
    """Location-scale family; subclasses define the standard distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * self._standard(shape, self.loc)

    def log_prob(self, value):
        z = (self._checked(value) - self.loc) / self.scale
        return self._log_density(z) - self.scale.log()

    def cdf(self, value):
        return self._cdf((self._checked(value) - self.loc) / self.scale)

    def icdf(self, value):
        return self.loc + self.scale * self._icdf(value)

    def entropy(self):
        return self.scale.log() + self._entropy

    mode = property(lambda self: self.loc)


class Normal(_LocationScale, ExponentialFamily):
    """
    Normal distribution with mean `loc` and standard deviation `scale`.

    Examples
    --------
    >>> from cygrad.distributions import Normal
    >>> mean = cygrad.tensor(0.0, requires_grad=True)
    >>> Normal(mean, 1.0).log_prob(cygrad.tensor(2.0)).backward()
    >>> mean.grad
    tensor(2.)
    """

    _entropy = 0.5 + 0.5 * LOG_2PI
    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.stddev.square())

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            shape = self._extended_shape(sample_shape)
            return cygrad.normal(self.loc.expand(shape), self.scale.expand(shape))

    def _standard(self, shape, like):
        return cygrad.randn(shape, dtype=like.dtype)

    def _log_density(self, z):
        return -0.5 * z.square() - 0.5 * LOG_2PI

    def _cdf(self, z):
        return special.ndtr(z)

    def _icdf(self, p):
        return special.ndtri(p)

    @property
    def _natural_params(self):
        return self.loc / self.scale.square(), -0.5 / self.scale.square()

    def _log_normalizer(self, x, y):
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()


class Laplace(_LocationScale):
    """
    Laplace distribution: exponential on both sides of `loc`.

    Examples
    --------
    >>> from cygrad.distributions import Laplace
    >>> Laplace(0.0, 1.0).cdf(cygrad.tensor(0.0))
    tensor(0.5000)
    """

    _entropy = 1 + math.log(2)
    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.square())
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def _standard(self, shape, like):
        u = cygrad.rand(shape, dtype=like.dtype) * (2 - EPS[like.dtype]) + (EPS[like.dtype] - 1)
        return -u.sign() * (-u.abs().clamp(min=TINY[like.dtype])).log1p()

    def _log_density(self, z):
        return -z.abs() - math.log(2)

    def _cdf(self, z):
        return cygrad.where(z < 0, 0.5 * z.clamp(max=0).exp(), 1 - 0.5 * (-z.clamp(min=0)).exp())

    def _icdf(self, p):
        return cygrad.where(p < 0.5, (2 * p).log(), -(2 * (1 - p)).log())


class Cauchy(_LocationScale):
    """
    Cauchy distribution, which has no mean; `scale` is the half width at half maximum.

    Examples
    --------
    >>> from cygrad.distributions import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(cygrad.tensor(0.0))
    tensor(0.5000)
    """

    _entropy = math.log(4 * math.pi)
    mean = property(lambda self: cygrad.full_like(self.loc, math.nan))
    variance = property(lambda self: cygrad.full_like(self.loc, math.inf))

    def _standard(self, shape, like):
        return cygrad.empty(shape, dtype=like.dtype).cauchy_()

    def log_prob(self, value):
        apart = self._checked(value) - self.loc
        return -math.log(math.pi) - log1p_square(apart, self.scale) - self.scale.log()

    def _cdf(self, z):
        return cygrad.atan2(cygrad.ones_like(z), -z) / math.pi

    def _icdf(self, p):
        tail = (math.pi * cygrad.where(p < 0.5, p, 1 - p)).tan().reciprocal()
        tail = cygrad.where(p < 0.5, -tail, tail)
        return cygrad.where((p - 0.5).abs() < 0.25, (math.pi * (p - 0.5)).tan(), tail)


class _Half(TransformedDistribution):
    """Absolute value of a variable with a distribution symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: cygrad.zeros_like(self.scale))

    def __init__(self, scale, validate_args=None):
        super().__init__(self._base(0.0, scale, validate_args=False), AbsTransform(), validate_args)

    def log_prob(self, value):
        found = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return cygrad.where(value >= 0, found, -math.inf)

    def cdf(self, value):
        return self._cdf(self._checked(value) / self.scale)

    def icdf(self, value):
        return self.scale * self._icdf(value)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """
    Half-normal distribution: the absolute value of a normal variable with mean 0.

    Examples
    --------
    >>> from cygrad.distributions import HalfNormal
    >>> HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.square() * (1 - 2 / math.pi))

    def _cdf(self, z):
        return cygrad.erf(z / math.sqrt(2))

    def _icdf(self, p):
        return math.sqrt(2) * cygrad.erfinv(p)


class HalfCauchy(_Half):
    """
    Half-Cauchy distribution: the absolute value of a Cauchy variable with `loc` 0.

    Examples
    --------
    >>> from cygrad.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(cygrad.tensor(1.0))
    tensor(0.5000)
    """

    _base = Cauchy
    mean = property(lambda self: cygrad.full_like(self.scale, math.inf))
    variance = property(lambda self: cygrad.full_like(self.scale, math.inf))

    def _cdf(self, z):
        return 2 / math.pi * z.atan()

    def _icdf(self, p):
        half = math.pi / 2
        return cygrad.where(p < 0.5, (half * p).tan(), (half * (1 - p)).tan().reciprocal())


class Uniform(Parametric):
    """
    Uniform distribution on [low, high).

    Examples
    --------
    >>> from cygrad.distributions import Uniform
    >>> Uniform(1.0, 3.0).cdf(cygrad.tensor(1.5))
    tensor(0.2500)
    """

    arg_constraints = {"low": constraints.dependent(is_discrete=False, event_dim=0),
                       "high": constraints.dependent(is_discrete=False, event_dim=0)}
    has_rsample = True
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.low * math.nan)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def __init__(self, low, high, validate_args=None):
        super().__init__(low, high, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError("Uniform: not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """Values from `low` to `high`."""
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape=()):
        return self.low + cygrad.rand(self._extended_shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value):
        inside = (self.low <= self._checked(value)) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class Gumbel(_LocationScale, TransformedDistribution):
    """
    Gumbel distribution of the maximum of many samples.

    Examples
    --------
    >>> from cygrad.distributions import Gumbel
    >>> Gumbel(1.0, 2.0).mean
    tensor(2.1544)
    """

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        ones, dtype = cygrad.ones_like(self.scale), self.scale.dtype
        TransformedDistribution.__init__(
            self, Uniform(TINY[dtype] * ones, ones - EPS[dtype], validate_args=validate_args),
            [ExpTransform().inv, AffineTransform(0.0, -ones), ExpTransform().inv,
             AffineTransform(self.loc, -self.scale)], validate_args)

    _entropy = 1 + euler_constant
    mean = property(lambda self: self.loc + self.scale * euler_constant)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.square())

    def _standard(self, shape, like):
        return -cygrad.empty(shape, dtype=like.dtype).exponential_().clamp(min=TINY[like.dtype]).log()

    def _log_density(self, z):
        return -z - (-z).exp()

    def _cdf(self, z):
        return (-(-z).exp()).exp()

    def _icdf(self, p):
        return -(-p.log()).log()


class Exponential(ExponentialFamily):
    """
    Exponential distribution of waiting times between events with `rate`.

    Examples
    --------
    >>> from cygrad.distributions import Exponential
    >>> Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: cygrad.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape=()):
        return cygrad.empty(self._extended_shape(sample_shape), dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value):
        return -cygrad.expm1(-self.rate * self._checked(value))

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x):
        return -(-x).log()


class GeneralizedPareto(Parametric):
    """
    Generalized Pareto distribution of values above a high threshold `loc`; exponential for `concentration` 0.

    Examples
    --------
    >>> from cygrad.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def _scaled(self, function, series, z):
        """Return ``function(concentration * z) / concentration``, by its series ``z * series(...)`` near 0."""
        u = cygrad.where(self.concentration == 0, 0.0, self.concentration * z)
        near = u.abs() < EPS[z.dtype] ** 0.2
        far = function(cygrad.where(near, 0.0, u)) / cygrad.where(near, 1.0, self.concentration)
        u = cygrad.where(near, self.concentration * cygrad.where(near & z.isfinite(), z, 0.0), 0.0)
        return cygrad.where(near, z * (1 + u * (series[0] + u * (series[1] + u * (series[2] + u * series[3])))), far)

    def _log_survival(self, value):
        z = (self._checked(value) - self.loc) / self.scale
        return -self._scaled(lambda u: u.clamp(min=-1).log1p(), (-1 / 2, 1 / 3, -1 / 4, 1 / 5), z)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """Values above `loc`, with an upper bound if `concentration` is negative."""
        upper = cygrad.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def rsample(self, sample_shape=()):
        return self.icdf(cygrad.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value):
        return -self.scale.log() + (1 + self.concentration) * self._log_survival(value)

    def cdf(self, value):
        return -cygrad.expm1(self._log_survival(value))

    def icdf(self, value):
        return self.loc + self.scale * self._scaled(cygrad.expm1, (1 / 2, 1 / 6, 1 / 24, 1 / 120), -(-value).log1p())

    def entropy(self):
        return self.scale.log() + self.concentration + 1

    @property
    def mean(self):
        """Mean; inf for concentration >= 1."""
        a = self.concentration
        return cygrad.where(a < 1, self.loc + self.scale / (1 - a), math.inf)

    @property
    def variance(self):
        """Variance; inf for concentration >= 1/2."""
        a = self.concentration
        return cygrad.where(a < 0.5, self.scale.square() / ((1 - a).square() * (1 - 2 * a)), math.inf)

    mode = property(lambda self: self.loc)


class VonMises(Parametric):
    """
    Von Mises distribution: a normal distribution on the circle, around `loc`.

    Examples
    --------
    >>> from cygrad.distributions import VonMises
    >>> VonMises(0.0, 1.0).mean
    tensor(0.)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        """Circular variance: 1 minus the length of the mean vector."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def log_prob(self, value):
        k = self.concentration
        return k * ((self._checked(value) - self.loc).cos() - 1) - LOG_2PI - special.i0e(k).log()

    def sample(self, sample_shape=()):
        """Draw values from -pi to pi, without gradients."""
        from cygrad.distributions.samples import drawn

        return drawn("vonmises", self.loc.dtype, self._extended_shape(sample_shape), self.loc, self.concentration)
