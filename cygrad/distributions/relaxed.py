"""Continuous relaxations of discrete distributions."""

import math

import cygrad
from cygrad._core.graph.operation_names import called_operation
from cygrad.distributions import constraints
from cygrad.distributions.distribution import Distribution
from cygrad.distributions.transformed import TransformedDistribution
from cygrad.distributions.transforms import ExpTransform, SigmoidTransform
from cygrad.distributions.utils import broadcast_all, clamp_probs, logits_to_probs, probs_to_logits

__all__ = ["RelaxedBernoulli", "RelaxedOneHotCategorical"]


class _RelaxedLogits(Distribution):
    """Base of the log-space relaxed distributions, with a temperature."""

    has_rsample = True

    def __init__(self, temperature, probs, logits, event_dim, validate_args):
        if (probs is None) == (logits is None):
            name = called_operation(type(self).__name__)
            raise ValueError(f"{name}: Either `probs` or `logits` must be specified, but not both (got "
                             f"{'neither' if probs is None else 'both'}).")
        self._binary, self._given = event_dim == 0, "logits" if probs is None else "probs"
        given, = broadcast_all(logits if probs is None else probs)
        if not self._binary:
            given = given - given.logsumexp(-1, keepdim=True) if probs is None else given / given.sum(-1, keepdim=True)
        self.temperature, self._param = cygrad.as_tensor(temperature).to(given.dtype), given
        n = given.ndim - event_dim
        super().__init__(given.shape[:n], given.shape[n:], validate_args)

    probs = property(lambda self: self._param if self._given == "probs" else logits_to_probs(self._param, self._binary))
    logits = property(
        lambda self: self._param if self._given == "logits" else probs_to_logits(self._param, self._binary))

    def expand(self, batch_shape, _instance=None):
        twin = self._expanded(batch_shape, _instance)
        twin.temperature = self.temperature
        return twin


class LogitRelaxedBernoulli(_RelaxedLogits):
    """Logits of a relaxed Bernoulli variable."""

    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(temperature, probs, logits, 0, validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        probs, u = clamp_probs(self.probs.expand(shape)), clamp_probs(cygrad.rand(shape, dtype=self._param.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        difference = self.logits - self._checked(value) * self.temperature
        return self.temperature.log() + difference + 2 * cygrad.nn.functional.logsigmoid(-difference)


class ExpRelaxedCategorical(_RelaxedLogits):
    """Logarithms of a relaxed one-hot variable."""

    support = constraints.real_vector

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(temperature, probs, logits, 1, validate_args)

    def rsample(self, sample_shape=()):
        u = clamp_probs(cygrad.rand(self._extended_shape(sample_shape), dtype=self._param.dtype))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value):
        n = self._event_shape[0]
        logits, value = broadcast_all(self.logits, self._checked(value))
        scale = math.lgamma(n) + (n - 1) * self.temperature.log()
        score = logits - value * self.temperature
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedBernoulli(TransformedDistribution):
    """
    Relaxed Bernoulli distribution on (0, 1), nearer to 0 and 1 at low `temperature` (Maddison et al., 2017).

    Examples
    --------
    >>> from cygrad.distributions import RelaxedBernoulli
    >>> 0 <= RelaxedBernoulli(cygrad.tensor(0.5), probs=cygrad.tensor(0.5)).rsample() <= 1
    tensor(True)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class RelaxedOneHotCategorical(TransformedDistribution):
    """
    Relaxed one-hot categorical distribution on the simplex, nearer to one-hot vectors at low `temperature`.

    Examples
    --------
    >>> from cygrad.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(cygrad.tensor(0.5), logits=cygrad.zeros(3)).rsample().sum().round(decimals=3)
    tensor(1.)
    """

    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
