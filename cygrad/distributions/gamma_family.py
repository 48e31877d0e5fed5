"""Gamma, beta, Student's t and F distributions, sampled from gamma variables."""

import math

import cygrad
from cygrad import special
from cygrad.distributions import constraints
from cygrad.distributions.distribution import ExponentialFamily, Parametric
from cygrad.distributions.gamma_samples import log_standard_gamma, standard_gamma
from cygrad.distributions.utils import (
    EPS,
    LARGE,
    LOG_2PI,
    TINY,
    broadcast_all,
    deviance,
    lgamma_less_digamma,
    log1p_square,
    log_beta,
    log_binomial,
    stirling_error,
)
from cygrad.nn.functional import logsigmoid

__all__ = ["Beta", "Chi2", "FisherSnedecor", "Gamma", "StudentT"]


class Gamma(ExponentialFamily):
    """
    Gamma distribution with shape `concentration` and `rate`.

    Examples
    --------
    >>> from cygrad.distributions import Gamma
    >>> shape = cygrad.tensor(2.0, requires_grad=True)
    >>> Gamma(shape, 1.0).rsample((1000,)).mean().backward()
    >>> shape.grad.round()
    tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate
        return value + (value.detach().clamp(min=TINY[value.dtype]) - value.detach())

    def log_prob(self, value):
        self._checked(value)
        a = self.concentration
        log_value = cygrad.where(a < LARGE, 1.0, value).log()
        return self._log_density(cygrad.xlogy(a - 1, value), log_value, self.rate * value)

    def _log_density(self, power, log_value, mean):
        """Return the log density; `power` is ``(concentration - 1) * log(value)``, `mean` is ``rate * value``."""
        a = self.concentration
        plain = cygrad.xlogy(a, self.rate) + power - mean - cygrad.lgamma(a)
        large, mean, log_rate = (cygrad.where(a < LARGE, LARGE, number) for number in (a, mean, self.rate.log()))
        around = (0.5 * (large.log() - LOG_2PI) - log_value - stirling_error(large)
                  - deviance(large, mean, log_rate + log_value))
        return cygrad.where(a < LARGE, plain, around)

    def cdf(self, value):
        return special.gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self):
        return lgamma_less_digamma(self.concentration, 1) - self.rate.log()

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x, y):
        return cygrad.lgamma(x + 1) + (x + 1) * (-y.reciprocal()).log()


class Chi2(Gamma):
    """
    Chi-squared distribution: the sum of squares of `df` standard normal variables.

    Examples
    --------
    >>> from cygrad.distributions import Chi2
    >>> Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        df, = broadcast_all(df)
        Gamma._hold(self, {"concentration": 0.5 * df, "rate": 0.5}, (), validate_args)

    df = property(lambda self: self.concentration * 2)


def _log_beta_density(a, b, log_p, log_q):
    """Return ``a * log_p + b * log_q - log_beta(a, b)``."""
    return log_binomial(a, b, log_p, log_q) + a.log() - (a / b).log1p()


class Beta(ExponentialFamily):
    """
    Beta distribution on (0, 1).

    Examples
    --------
    >>> from cygrad.distributions import Beta
    >>> Beta(2.0, 3.0).mean
    tensor(0.4000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _total = property(lambda self: self.concentration1 + self.concentration0)
    mean = property(lambda self: self.concentration1 / self._total)
    variance = property(lambda self: self.concentration1 * self.concentration0 / (
        self._total.square() * (self._total + 1)))

    @property
    def mode(self):
        """Mode, by the rules of the Dirichlet distribution."""
        from cygrad.distributions.vectors import Dirichlet

        return Dirichlet(cygrad.stack([self.concentration1, self.concentration0], -1)).mode[..., 0]

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        parts = cygrad.stack([self.concentration1, self.concentration0], -1).expand((*shape, 2))
        a, b = log_standard_gamma(parts).unbind(-1)
        value = (a - b).sigmoid().to(parts.dtype)
        inside = value.detach().clamp(TINY[value.dtype], 1 - EPS[value.dtype])
        return value + (inside - value.detach())

    def log_prob(self, value):
        self._checked(value)
        a, b = self.concentration1, self.concentration0
        plain = cygrad.xlogy(a - 1, value) + special.xlog1py(b - 1, -value) - log_beta(a, b)
        small = cygrad.minimum(a, b) < LARGE
        x = cygrad.where(small, 0.5, value)
        return cygrad.where(small, plain, _log_beta_density(a, b, x.log(), (-x).log1p()) - x.log() - (-x).log1p())

    def entropy(self):
        return (lgamma_less_digamma(self.concentration1, 1) + lgamma_less_digamma(self.concentration0, 1)
                - lgamma_less_digamma(self._total, 2))

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x, y):
        return cygrad.lgamma(x) + cygrad.lgamma(y) - cygrad.lgamma(x + y)


# Differences cancel for large x, where the first terms of their series suffice.
def _log_gamma_ratio(x):
    """``lgamma(x + 0.5) - lgamma(x) - 0.5 * log(x)``."""
    w = x.clamp(min=LARGE).reciprocal()
    series = w * (-1 / 8 + w.square() * (1 / 192 + w.square() * (-1 / 640 + w.square() * 17 / 14336)))
    return cygrad.where(x < LARGE, cygrad.lgamma(x + 0.5) - cygrad.lgamma(x) - 0.5 * x.log(), series)


def _student_entropy(x):
    """``(x + 0.5) * (digamma(x + 0.5) - digamma(x)) - _log_gamma_ratio(x)``."""
    w = x.clamp(min=LARGE).reciprocal()
    series = 1 / 2 + w * (1 / 2 + w * (1 / 16 + w * (-1 / 48 + w * (-1 / 128 + w * (
        3 / 320 + w * (1 / 256 + w * (-17 / 1792 - w * 17 / 4096)))))))
    plain = (x + 0.5) * (cygrad.digamma(x + 0.5) - cygrad.digamma(x)) - _log_gamma_ratio(x)
    return cygrad.where(x < LARGE, plain, series)


class StudentT(Parametric):
    """
    Student's t-distribution with `df` degrees of freedom.

    Examples
    --------
    >>> from cygrad.distributions import StudentT
    >>> StudentT(3.0).variance
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    mode = property(lambda self: self.loc)

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        super().__init__(df, loc, scale, validate_args=validate_args)

    @property
    def mean(self):
        """`loc`; nan for df <= 1."""
        return cygrad.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self):
        """Variance; inf for df <= 2, nan for df <= 1."""
        finite = self.scale.square() * self.df / cygrad.where(self.df > 2, self.df - 2, 1)
        return cygrad.where(self.df > 2, finite, cygrad.where(self.df > 1, math.inf, math.nan).to(finite.dtype))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        noise = cygrad.randn(shape, dtype=self.df.dtype)
        log_ratio = log_standard_gamma(0.5 * self.df.expand(shape)) - (0.5 * self.df).log()
        return self.loc + self.scale * noise * (-0.5 * log_ratio).exp().to(noise.dtype)

    def log_prob(self, value):
        tails = log1p_square(self._checked(value) - self.loc, self.scale * self.df.sqrt())
        return _log_gamma_ratio(0.5 * self.df) - 0.5 * (self.df + 1) * tails - self.scale.log() - 0.5 * LOG_2PI

    def entropy(self):
        return self.scale.log() + _student_entropy(0.5 * self.df) + 0.5 * LOG_2PI


class FisherSnedecor(Parametric):
    """
    F-distribution (Fisher-Snedecor) with `df1` and `df2` degrees of freedom.

    Examples
    --------
    >>> from cygrad.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    @property
    def mean(self):
        """Mean; nan for df2 <= 2."""
        return cygrad.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        """Mode; nan for df1 <= 2."""
        return cygrad.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self):
        """Variance; nan for df2 <= 4."""
        a, b = self.df1, self.df2
        found = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return cygrad.where(b > 4, found, math.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        above, below = (log_standard_gamma(0.5 * df.expand(shape)) - df.log() for df in (self.df1, self.df2))
        return (above - below).exp().to(self.df1.dtype).clamp(min=TINY[self.df1.dtype])

    def log_prob(self, value):
        self._checked(value)
        odds = (self.df1 / self.df2).log() + value.log()
        return _log_beta_density(0.5 * self.df1, 0.5 * self.df2, logsigmoid(odds), logsigmoid(-odds)) - value.log()
