"""Discrete distributions, parameterized by probabilities or logits."""

import math

import cygrad
from cygrad import Tensor
from cygrad._core.graph.operation_names import called_operation
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution, ExponentialFamily, Parametric
from cygrad.distributions.samples import drawn
from cygrad.distributions.utils import (
    EPS,
    LARGE,
    LOG_2PI,
    TINY,
    broadcast_all,
    clamp_probs,
    lazy_property,
    log_binomial,
    log_poisson,
    logits_to_probs,
    probs_to_logits,
)
from cygrad.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot

__all__ = ["Bernoulli", "Binomial", "Categorical", "ContinuousBernoulli", "Geometric", "Multinomial",
           "NegativeBinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson"]

MAX_ODDS = 50             # exp() of it is finite in every dtype except float16


class _Odds(Parametric):
    """A distribution with either `probs` or `logits`, and other parameters."""

    _binary = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._choose({}, probs, logits, validate_args)

    def _choose(self, others, probs, logits, validate_args):
        if (probs is None) == (logits is None):
            name = called_operation(type(self).__name__)
            raise ValueError(f"{name}: Either `probs` or `logits` must be specified, but not both.")
        self._by_logits = probs is None
        chosen = {"logits": logits} if self._by_logits else {"probs": probs}
        self._hold({**others, **chosen}, (), validate_args)

    @lazy_property
    def logits(self):
        """Log odds, or normalized log probabilities."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self):
        return self.probs if "probs" in self.__dict__ else self.logits

    def _binary_entropy(self):
        return -self.probs * logsigmoid(self.logits) - (1 - self.probs) * logsigmoid(-self.logits)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.shape


class Bernoulli(_Odds, ExponentialFamily):
    """
    Bernoulli distribution: 1 with probability `probs`, else 0.

    Examples
    --------
    >>> from cygrad.distributions import Bernoulli
    >>> Bernoulli(probs=0.25).log_prob(cygrad.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        """Mode; nan for equal probabilities."""
        return cygrad.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            return cygrad.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    entropy = _Odds._binary_entropy

    def enumerate_support(self, expand=True):
        """Return 0 and 1."""
        values = cygrad.arange(2, dtype=self._param.dtype).reshape((2,) + (1,) * len(self._batch_shape))
        return values.expand((2, *self._batch_shape)) if expand else values


class Geometric(_Odds):
    """
    Geometric distribution of the number of failures before the first success.

    Examples
    --------
    >>> from cygrad.distributions import Geometric
    >>> Geometric(probs=0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: cygrad.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError("Geometric: probs must be above 0.")

    def sample(self, sample_shape=()):
        with cygrad.no_grad():
            shape = self._extended_shape(sample_shape)
            u = cygrad.rand(shape, dtype=self.probs.dtype).clamp(min=TINY[self.probs.dtype])
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        value = self._checked(value)
        if self._by_logits:
            value, logits = broadcast_all(value, self.logits)
            return logsigmoid(logits) + value * logsigmoid(cygrad.where(value == 0, 0.0, -logits))
        value, probs = broadcast_all(value, self.probs)
        probs = cygrad.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return self._binary_entropy() / self.probs


class Binomial(_Odds):
    """
    Binomial distribution of the number of successes in `total_count` trials.

    Examples
    --------
    >>> from cygrad.distributions import Binomial
    >>> Binomial(2, probs=0.5).log_prob(cygrad.tensor(1.0)).exp()
    tensor(0.5000)
    """

    total_count: Tensor
    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._choose({"total_count": total_count}, probs, logits, validate_args)
        self.total_count = self.total_count.to(self._param.dtype)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """Integers from 0 to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape=()):
        return drawn("binomial", self._param.dtype, self._extended_shape(sample_shape), self.total_count, self.probs)

    def log_prob(self, value):
        self._checked(value)
        n, logits = self.total_count, self.logits
        return log_binomial(value, n - value, logsigmoid(logits), logsigmoid(-logits))

    def entropy(self):
        """Return the entropy by enumeration; `total_count` must be the same in the whole batch."""
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        """Return 0, 1, ..., `total_count`."""
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("enumerate_support: Binomial: all must have the same number of trials.")
        values = cygrad.arange(n + 1, dtype=self._param.dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((n + 1, *self._batch_shape)) if expand else values


class NegativeBinomial(_Odds):
    """
    Negative binomial distribution of the number of successes before `total_count` failures.

    Examples
    --------
    >>> from cygrad.distributions import NegativeBinomial
    >>> NegativeBinomial(2.0, probs=0.5).mean
    tensor(2.)
    """

    total_count: Tensor
    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer
    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._choose({"total_count": total_count}, probs, logits, validate_args)
        self.total_count = self.total_count.to(self._param.dtype)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        rate = drawn("standard_gamma", self._param.dtype, shape, self.total_count) * self.logits.detach().exp()
        return drawn("poisson", self._param.dtype, shape, rate)

    def log_prob(self, value):
        self._checked(value)
        n, logits = self.total_count, self.logits
        share = cygrad.where(n + value == 0, 0.0, -(value / n).log1p())        # log(n / (n + value))
        return log_binomial(value, n, logsigmoid(logits), logsigmoid(-logits)) + share


class Poisson(ExponentialFamily):
    """
    Poisson distribution of the number of events with mean `rate`.

    Examples
    --------
    >>> from cygrad.distributions import Poisson
    >>> Poisson(3.0).log_prob(cygrad.tensor(0.0))
    tensor(-3.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape=()):
        return drawn("poisson", self.rate.dtype, self._extended_shape(sample_shape), self.rate)

    def log_prob(self, value):
        rate, value = broadcast_all(self.rate, self._checked(value))
        return log_poisson(value, cygrad.xlogy(value, rate), rate, cygrad.where(value < LARGE, 1.0, rate).log())

    def entropy(self):
        """Return the entropy by a sum over the likely values, or a series for large rates."""
        large = self.rate > 100
        rate = cygrad.where(large, 0.0, self.rate)
        most = float(rate.detach().max()) if rate.numel() else 0.0
        values = cygrad.arange(int(most + 20 * most**0.5 + 40), dtype=rate.dtype).reshape(-1, *[1] * rate.ndim)
        log_probs = (cygrad.xlogy(values, rate) - rate - cygrad.lgamma(values + 1)).clamp(min=-700)
        w = cygrad.where(large, self.rate, 100.0).reciprocal()
        series = 0.5 * (1 + LOG_2PI - w.log()) - w * (1 / 12 + w * (1 / 24 + w * (19 / 360 + w * (
            9 / 80 + w * 863 / 2520))))
        return cygrad.where(large, series, -(log_probs.exp() * log_probs).sum(0))

    _natural_params = property(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x):
        return x.exp()


class ContinuousBernoulli(_Odds):
    """
    Continuous Bernoulli distribution on (0, 1), with an exponential density (Loaiza-Ganem and Cunningham, 2019).

    Examples
    --------
    >>> from cygrad.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(probs=0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        super().__init__(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _inside(self):
        """Return where the formulas are stable, and the log odds with the others replaced."""
        outside = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return outside, cygrad.where(outside, self.logits, 1.0)

    def _away_from_zero(self):
        """Return the log odds with those near 0 replaced, and their mask."""
        near = self.logits.abs() < EPS[self.logits.dtype] ** 0.5
        return cygrad.where(near, 1.0, self.logits), near

    def _log_normalizer_of(self):
        outside, t = self._inside()
        x = (self.probs - 0.5).square()
        return cygrad.where(outside, (t / (t / 2).tanh()).log(), math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        """Mean, by a series near 1/2."""
        outside, t = self._inside()
        x = self.probs - 0.5
        return cygrad.where(outside, 0.5 + 0.5 / (t / 2).tanh() - 1 / t, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self):
        """Variance, by a series near 1/2."""
        outside, t = self._inside()
        x, size = (self.probs - 0.5).square(), t.abs()
        return cygrad.where(outside, 1 / t.square() - (-size).exp() / cygrad.expm1(-size).square(),
                            1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape=()):
        return self.icdf(cygrad.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_normalizer_of()

    def cdf(self, value):
        self._checked(value)
        t, near = self._away_from_zero()
        # expm1(t x) / expm1(t), in a form that does not overflow
        size = t.abs()
        found = (cygrad.where(t > 0, (value - 1) * size, 0.0).exp() * cygrad.expm1(-value * size)
                 / cygrad.expm1(-size))
        found = cygrad.where(near, value + self.logits * value * (value - 1) / 2, found)
        return cygrad.where(value <= 0, 0.0, cygrad.where(value >= 1, 1.0, found))

    def icdf(self, value):
        t, near = self._away_from_zero()
        low, high = t.clamp(max=MAX_ODDS), t.clamp(min=MAX_ODDS)
        found = cygrad.where(t <= MAX_ODDS, (value * cygrad.expm1(low)).log1p() / low,
                             1 + ((1 - value) * cygrad.expm1(-high)).log1p() / high)
        return cygrad.where(near, value + self.logits * value * (1 - value) / 2, found)

    def entropy(self):
        return -self.mean * self.logits - self._log_normalizer_of() - logsigmoid(-self.logits)


class _Choices(_Odds):
    """Probabilities along the last dimension of `probs` or `logits`."""

    _binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def _choose(self, event_shape, probs, logits, validate_args):
        if (probs is None) == (logits is None):
            name = called_operation(type(self).__name__)
            raise ValueError(f"{name}: Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        if as_tensor_argument(type(self).__name__, "logits" if probs is None else "probs", given).ndim < 1:
            raise ValueError(f"{type(self).__name__}: `{'logits' if probs is None else 'probs'}` needs a "
                             "dimension for the categories.")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.shape[-1]
        Distribution.__init__(self, given.shape[:-1], (self._num_events,) if event_shape else (), validate_args)


class Categorical(_Choices):
    """
    One of the numbers from 0 on, with the given probabilities.

    Examples
    --------
    >>> from cygrad.distributions import Categorical
    >>> coin = Categorical(probs=cygrad.tensor([0.25, 0.75]))
    >>> coin.log_prob(cygrad.tensor(1)).exp()
    tensor(0.7500)
    >>> coin.sample((3,)).shape
    (3,)
    """

    has_enumerate_support = True
    mean = property(lambda self: cygrad.full(self._extended_shape(), math.nan, dtype=self.probs.dtype))
    variance = mean
    mode = property(lambda self: self.probs.argmax(-1))

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._choose(False, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The numbers that there are."""
        return constraints.integer_interval(0, self._num_events - 1)

    def sample(self, sample_shape=()):
        count = math.prod(tuple(sample_shape))
        rows = self.probs.detach().reshape(-1, self._num_events)
        if not (count and len(rows)):
            return cygrad.zeros(self._extended_shape(sample_shape), dtype=cygrad.int64)
        found = cygrad.multinomial(rows, count, True)
        return found.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        value = self._checked(value).long().unsqueeze(-1)
        shape = cygrad.broadcast_shapes(tuple(value.shape[:-1]), tuple(self.logits.shape[:-1]))
        return self.logits.expand((*shape, self._num_events)).gather(-1, value.expand((*shape, 1))).squeeze(-1)

    def entropy(self):
        lowest = -3.4028234663852886e38 if self.logits.dtype is cygrad.float32 else -1.7976931348623157e308
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        """All numbers."""
        values = cygrad.arange(self._num_events).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((self._num_events, *self._batch_shape)) if expand else values


class OneHotCategorical(_Choices):
    """
    The same with a vector that is 1 at the choice and 0 elsewhere.

    Examples
    --------
    >>> from cygrad.distributions import OneHotCategorical
    >>> OneHotCategorical(cygrad.ones(3)).sample().sum()
    tensor(1.)
    """

    support = constraints.one_hot
    has_enumerate_support = True
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    mode = property(lambda self: one_hot(self.probs.argmax(-1), self._num_events).to(self.probs.dtype))

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._choose(True, probs, logits, validate_args)

    @property
    def _categorical(self):
        return Categorical(logits=self.logits, validate_args=False)

    def sample(self, sample_shape=()):
        return one_hot(self._categorical.sample(sample_shape), self._num_events).to(self._param.dtype)

    def log_prob(self, value):
        return self._categorical.log_prob(self._checked(value).max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        """Return the rows of the identity."""
        n = self._num_events
        values = cygrad.eye(n, dtype=self._param.dtype).reshape((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """
    The same; gradients go to the probabilities as if they were the sample.

    Examples
    --------
    >>> from cygrad.distributions import OneHotCategoricalStraightThrough
    >>> probs = cygrad.tensor([0.5, 0.5], requires_grad=True)
    >>> OneHotCategoricalStraightThrough(probs).rsample()[0].backward()
    >>> probs.grad
    tensor([ 0.5000, -0.5000])
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_Choices):
    """
    How often each choice is taken in `total_count` independent ones.

    Examples
    --------
    >>> from cygrad.distributions import Multinomial
    >>> Multinomial(10, probs=cygrad.tensor([0.5, 0.5])).sample().sum()
    tensor(10.)
    """

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: total_count must be one integer for all (got "
                                      f"{type(total_count).__name__}).")
        self.total_count = total_count
        self._choose(True, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Counts that add up."""
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape=()):
        choice = Categorical(logits=self.logits.detach(), validate_args=False)
        choices = choice.sample((self.total_count, *sample_shape))
        return one_hot(choices, self._num_events).sum(0).to(self._param.dtype)

    def log_prob(self, value):
        logits, value = broadcast_all(self.logits, self._checked(value))
        total, logits = value.sum(-1, keepdim=True), cygrad.where((value == 0) & (logits == -math.inf), 0.0, logits)
        # Independent counts of a Poisson distribution, given their total
        means, log_total = total * self.probs, total.clamp(min=1).log()
        counts = log_poisson(value, value * (log_total + logits), means, log_total + logits).sum(-1)
        return counts - log_poisson(total, total * log_total, total, log_total).squeeze(-1)

    def entropy(self):
        """Expected value of ``-log_prob``, by adding up the counts of each choice."""
        n = self.total_count
        counts = Binomial(n, probs=self.probs)
        support = counts.enumerate_support(True)[1:]
        weighted = (counts.log_prob(support).exp() * cygrad.lgamma(support + 1)).sum((0, -1))
        return n * Categorical(logits=self.logits).entropy() - math.lgamma(n + 1) + weighted
