"""Kullback-Leibler divergences, registered by the classes of both distributions."""

import math

import cygrad
from cygrad.distributions import composed, continuous, discrete, gamma_family, vectors
from cygrad.distributions.distribution import ExponentialFamily
from cygrad.distributions.transformed import Independent, TransformedDistribution
from cygrad.distributions.utils import deviance, euler_constant, gamma_divergence, sum_last

__all__ = ["kl_divergence", "register_kl"]

_TABLE = {}


def register_kl(type_p, type_q):
    """
    Decorate a function that computes the divergence of two classes of distributions.

    Parameters
    ----------
    type_p, type_q : type
        Subclasses of Distribution.

    Examples
    --------
    >>> from cygrad.distributions import Normal, kl_divergence, register_kl
    >>> class Point(Normal):
    ...     pass
    >>> @register_kl(Point, Point)
    ... def _(p, q):
    ...     return (p.loc - q.loc).abs()
    >>> kl_divergence(Point(0.0, 1.0), Point(3.0, 1.0))
    tensor(3.)
    """
    def enter(function):
        _TABLE[type_p, type_q] = function
        return function
    return enter


def kl_divergence(p, q):
    """
    Return the Kullback-Leibler divergence KL(p || q), the expected ``p.log_prob(x) - q.log_prob(x)`` under `p`.

    Parameters
    ----------
    p, q : Distribution

    Returns
    -------
    Tensor
        In the batch shape.

    Raises
    ------
    NotImplementedError
        If no formula is registered.

    Examples
    --------
    >>> from cygrad.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    fitting = [key for key in _TABLE if isinstance(p, key[0]) and isinstance(q, key[1])]
    if not fitting:
        raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__} is "
                                  f"registered. Add one with register_kl.")
    nearest = min(fitting, key=lambda key: (type(p).__mro__.index(key[0]) + type(q).__mro__.index(key[1])))
    return _TABLE[nearest](p, q)


def _same_family(distribution):
    """Return the divergence of two members of one exponential family: a Bregman divergence of log normalizers."""
    def divergence(p, q):
        if type(p) is not type(q):
            raise NotImplementedError("kl_divergence: no formula is registered for two different families "
                                      f"(got {type(p).__name__} and {type(q).__name__}).")
        ours = [parameter.detach().requires_grad_() for parameter in p._natural_params]
        with cygrad.enable_grad():
            normalizer = p._log_normalizer(*ours)
            slopes = cygrad.autograd.grad(normalizer.sum(), ours, create_graph=True)
        result = q._log_normalizer(*q._natural_params) - normalizer
        for own, other, slope in zip(ours, q._natural_params, slopes, strict=True):
            result = result - sum_last((other - own) * slope, len(q.event_shape))
        return result
    _TABLE[distribution, distribution] = divergence


_same_family(ExponentialFamily)


def _nested(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent distributions with different numbers of dimensions.")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: Transformed distributions with different transforms.")
    return kl_divergence(p.base_dist, q.base_dist)


def _infinite(p, q):
    found = cygrad.as_tensor(next(value for value in p.__dict__.values() if isinstance(value, cygrad.Tensor)))
    shape = cygrad.broadcast_shapes(p.batch_shape, q.batch_shape)
    return cygrad.full(shape, math.inf, dtype=found.dtype)


def _where_inside(inside, found):
    return cygrad.where(inside, found, math.inf)


def _choices(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = cygrad.where((q.probs == 0).expand(terms.shape), math.inf, terms)
    return cygrad.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


def _bernoulli(p, q):
    log_sigmoid = cygrad.nn.functional.logsigmoid
    one = p.probs * (log_sigmoid(p.logits) - log_sigmoid(q.logits))
    one = cygrad.where(q.probs == 0, math.inf, one)
    one = cygrad.where(p.probs == 0, 0.0, one)
    zero = (1 - p.probs) * (log_sigmoid(-p.logits) - log_sigmoid(-q.logits))
    zero = cygrad.where(q.probs == 1, math.inf, zero)
    return one + cygrad.where(p.probs == 1, 0.0, zero)


def _beta(p, q):
    parts = ((p.concentration1, q.concentration1), (p.concentration0, q.concentration0))
    totals = [a.double() + b.double() for a, b in zip(*parts, strict=True)]
    first, second = (_part(a, b, totals[1] / totals[0]) for a, b in parts)
    return first + second - gamma_divergence(*(total.to(first.dtype) for total in totals))


def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    totals = [values.double().sum(-1) for values in (a, b)]
    parts = _part(a, b, (totals[1] / totals[0]).unsqueeze(-1))
    return parts.sum(-1) - gamma_divergence(*(total.to(parts.dtype) for total in totals))


def _part(a, b, ratio):
    """
    Return the part of one concentration of the divergence, with the ratio of the totals of b and a.

    Deviances of b from a alone would cancel, those from a * ratio do not, but need its digits.
    """
    mean = a.double() * ratio
    return deviance(b.double(), mean, mean.log()).to(a.dtype) + gamma_divergence(a, b)


def _gamma(p, q):
    mean = p.concentration * (q.rate / p.rate)
    log_mean = p.concentration.log() + q.rate.log() - p.rate.log()
    return deviance(q.concentration, mean, log_mean) + gamma_divergence(p.concentration, q.concentration)


def _normals(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


def _laplaces(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


def _gumbels(p, q):
    ratio, apart = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - apart + ratio * euler_constant + (apart + cygrad.lgamma(1 + ratio)).exp() - (1
                                                                                                       + euler_constant)


def _cauchys(p, q):
    return (((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (4 * p.scale * q.scale).log())


def _paretos(p, q):
    ratio = q.alpha / p.alpha
    return _where_inside(p.scale >= q.scale, q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1)


def _uniforms(p, q):
    return _where_inside((q.low <= p.low) & (q.high >= p.high), ((q.high - q.low) / (p.high - p.low)).log())


def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError("kl_divergence: normal vectors must have the same length (got event shapes "
                         f"{p.event_shape} and {q.event_shape}).")
    n = p.event_shape[0]
    ours, theirs = p.scale_tril, q.scale_tril
    shape = cygrad.broadcast_shapes(tuple(ours.shape), tuple(theirs.shape))
    spread = cygrad.linalg.solve_triangular(theirs.expand(shape), ours.expand(shape), upper=False).square().sum((-2,
                                                                                                                 -1))
    return (vectors._half_log_det(theirs) - vectors._half_log_det(ours)
            + 0.5 * (spread + vectors._distance(theirs, q.loc - p.loc) - n))


def _by_moments(log_q):
    """Register divergences for which moments of p give the expected logarithm of q."""
    return lambda p, q: -p.entropy() - log_q(p, q)


def _normal_log(p, q):
    return -0.5 * ((p.variance + (p.mean - q.loc).square()) / q.scale.square()) - q.scale.log() - 0.5 * math.log(
        2 * math.pi)


def _exponential_log(p, q):
    return q.rate.log() - q.rate * p.mean


def _log_mean(p):
    """Return the expected logarithm."""
    if isinstance(p, gamma_family.Gamma):
        return cygrad.digamma(p.concentration) - p.rate.log()
    if isinstance(p, continuous.Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, composed.Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    if isinstance(p, continuous.Uniform):
        return (cygrad.xlogy(p.high, p.high) - cygrad.xlogy(p.low, p.low)) / (p.high - p.low) - 1
    return cygrad.digamma(p.concentration1) - cygrad.digamma(p.concentration1 + p.concentration0)


def _gamma_log(p, q):
    return (q.concentration * q.rate.log() - cygrad.lgamma(q.concentration) + (q.concentration - 1) * _log_mean(p)
            - q.rate * p.mean)


def _gumbel_log(p, q):
    """Return the expected logarithm of q for a normal p."""
    ratio = p.scale / q.scale
    mean = (p.loc - q.loc) / q.scale
    return -q.scale.log() - mean - (-mean + 0.5 * ratio.square()).exp()


def _poissons(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def _poisson_log(p, q):
    """Return the expected logarithm of q for a Bernoulli p, whose log factorials are 0."""
    return cygrad.xlogy(p.probs, q.rate) - q.rate


def _binomials(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("kl_divergence: Binomial: q must not have more trials than p.")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return cygrad.where(p.total_count > q.total_count, math.inf, found)


def _geometrics(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


def _continuous_bernoullis(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_normalizer_of() + (-p.probs).log1p() - q._log_normalizer_of()
            - (-q.probs).log1p())


def _wisharts(p, q):
    n = p.event_shape[0]
    ours, theirs = p.scale_tril, q.scale_tril
    spread = cygrad.linalg.solve_triangular(theirs, ours, upper=False).square().sum((-2, -1))
    digammas = cygrad.digamma(0.5 * (p.df.unsqueeze(-1) - cygrad.arange(n, dtype=p.df.dtype))).sum(-1)
    return (q.df * (vectors._half_log_det(theirs) - vectors._half_log_det(ours)) + 0.5 * p.df * (spread - n)
            + cygrad.mvlgamma(0.5 * q.df, n) - cygrad.mvlgamma(0.5 * p.df, n) + 0.5 * (p.df - q.df) * digammas)


def _continuous_bernoulli_log(p, q):
    return p.mean * q.logits + (-q.probs).log1p() + q._log_normalizer_of()


_C, _D, _G, _V, _M = continuous, discrete, gamma_family, vectors, composed
_TABLE |= {
    (Independent, Independent): _nested, (TransformedDistribution, TransformedDistribution): _transformed,
    (_D.Bernoulli, _D.Bernoulli): _bernoulli, (_D.Binomial, _D.Binomial): _binomials,
    (_D.Categorical, _D.Categorical): _choices, (_D.OneHotCategorical, _D.OneHotCategorical): _choices,
    (_D.ContinuousBernoulli, _D.ContinuousBernoulli): _continuous_bernoullis, (_D.Geometric, _D.Geometric): _geometrics,
    (_D.Poisson, _D.Poisson): _poissons,
    (_D.Bernoulli, _D.Poisson): _by_moments(_poisson_log), (_G.Beta, _G.Beta): _beta,
    (_V.Dirichlet, _V.Dirichlet): _dirichlet,
    (_C.Exponential, _C.Exponential): lambda p, q: q.rate / p.rate - 1 - (q.rate / p.rate).log(),
    (_G.Gamma, _G.Gamma): _gamma, (_C.Gumbel, _C.Gumbel): _gumbels, (_C.Laplace, _C.Laplace): _laplaces,
    (_C.Normal, _C.Normal): _normals, (_C.HalfNormal, _C.HalfNormal): lambda p, q: _normals(p.base_dist, q.base_dist),
    (_C.Cauchy, _C.Cauchy): _cauchys, (_M.Pareto, _M.Pareto): _paretos, (_V.Wishart, _V.Wishart): _wisharts,
    (_C.HalfCauchy, _C.HalfCauchy): lambda p, q: _cauchys(p.base_dist, q.base_dist),
    (_G.Beta, _D.ContinuousBernoulli): _by_moments(_continuous_bernoulli_log),
    (_D.ContinuousBernoulli, _C.Exponential): _by_moments(_exponential_log),
    (_C.Uniform, _C.Uniform): _uniforms,
    (_V.MultivariateNormal, _V.MultivariateNormal): _multivariate,
    (_V.LowRankMultivariateNormal, _V.LowRankMultivariateNormal): _multivariate,
    (_V.MultivariateNormal, _V.LowRankMultivariateNormal): _multivariate,
    (_V.LowRankMultivariateNormal, _V.MultivariateNormal): _multivariate,
    (_C.Normal, _C.Gumbel): _by_moments(_gumbel_log),
    (_C.Normal, _C.Laplace): _by_moments(lambda p, q: -q.scale.log() - math.log(2) - _absolute_mean(p, q) / q.scale),
    (_C.Uniform, _C.Gumbel): _by_moments(lambda p, q: -q.scale.log() - (p.mean - q.loc) / q.scale - q.scale * (
        (-(p.low - q.loc) / q.scale).exp() - (-(p.high - q.loc) / q.scale).exp()) / (p.high - p.low)),
    (_C.Uniform, _M.Pareto): lambda p, q: _where_inside(p.low >= q.scale, -p.entropy() - (
        q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _log_mean(p))),
}
_TABLE |= {(cls, _C.Normal): _by_moments(_normal_log) for cls in (_C.Exponential, _G.Gamma, _C.Gumbel, _C.Laplace,
                                                                  _C.Uniform,
                                                                  _G.Beta, _D.ContinuousBernoulli)}
_TABLE |= {(_M.Pareto, _C.Normal): lambda p, q: cygrad.where(p.alpha <= 2, math.inf, -p.entropy() - _normal_log(p, q)),
           (_M.Pareto, _C.Exponential): lambda p, q: cygrad.where(
               p.alpha <= 1, math.inf, -p.entropy() - _exponential_log(p, q)),
           (_M.Pareto, _G.Gamma): lambda p, q: cygrad.where(p.alpha <= 1, math.inf, -p.entropy() - _gamma_log(p, q)),
           (_C.Uniform, _C.Exponential): lambda p, q: _where_inside(p.low >= 0, -p.entropy() - _exponential_log(p, q)),
           (_C.Uniform, _G.Gamma): lambda p, q: _where_inside(p.low >= 0, -p.entropy() - _gamma_log(p, q)),
           (_C.Uniform, _G.Beta): lambda p, q: _where_inside((p.low >= 0) & (p.high <= 1), -p.entropy()
                                                             - _beta_log(p, q)),
           (_C.Uniform, _D.ContinuousBernoulli): lambda p, q: _where_inside(
               (p.low >= 0) & (p.high <= 1), -p.entropy() - _continuous_bernoulli_log(p, q)),
           (_D.ContinuousBernoulli, _C.Uniform): lambda p, q: _where_inside(
               (q.low <= 0) & (q.high >= 1), -p.entropy() + (q.high - q.low).log()),
           (_G.Beta, _C.Uniform): lambda p, q: _where_inside((q.low <= 0) & (q.high >= 1), -p.entropy() + (
               q.high - q.low).log())}
_TABLE |= {(cls, _C.Exponential): _by_moments(_exponential_log) for cls in (_G.Beta, _G.Gamma)}
_TABLE |= {(cls, _G.Gamma): _by_moments(_gamma_log) for cls in (_G.Beta, _C.Exponential)}
_TABLE |= {(_C.Exponential, _C.Gumbel): _by_moments(lambda p, q: -q.scale.log() - (p.mean - q.loc) / q.scale - (
    q.loc / q.scale).exp() * p.rate / (p.rate + q.scale.reciprocal())),
    (_G.Gamma, _C.Gumbel): _by_moments(lambda p, q: -q.scale.log() - (p.mean - q.loc) / q.scale - (
        q.loc / q.scale).exp() * (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))}
# The support of the first class is not contained in that of the second.
for _unbounded in (_C.Cauchy, _C.Gumbel, _C.Laplace, _C.Normal):
    for _other in (_G.Beta, _D.ContinuousBernoulli, _C.Exponential, _G.Gamma, _M.Pareto, _C.Uniform):
        _TABLE.setdefault((_unbounded, _other), _infinite)
for _positive in (_C.Exponential, _G.Gamma, _M.Pareto):
    for _other in (_G.Beta, _D.ContinuousBernoulli, _M.Pareto, _C.Uniform):
        _TABLE.setdefault((_positive, _other), _infinite)
_TABLE |= {(_G.Beta, _M.Pareto): _infinite, (_D.ContinuousBernoulli, _M.Pareto): _infinite,
           (_D.Poisson, _D.Bernoulli): _infinite, (_D.Poisson, _D.Binomial): _infinite}


def _absolute_mean(p, q):
    """Return the expected distance of a normal variable from `q.loc`."""
    z = (p.loc - q.loc) / (math.sqrt(2) * p.scale)
    return p.scale * math.sqrt(2 / math.pi) * (-z.square()).exp() + (p.loc - q.loc) * cygrad.erf(z)


def _beta_log(p, q):
    """Return the expected logarithm of q for a uniform p."""
    low, high = 1 - p.low, 1 - p.high
    log_rest = (cygrad.xlogy(low, low) - cygrad.xlogy(high, high)) / (p.high - p.low) - 1
    return ((q.concentration1 - 1) * _log_mean(p) + (q.concentration0 - 1) * log_rest
            + cygrad.lgamma(q.concentration1 + q.concentration0) - cygrad.lgamma(q.concentration1)
            - cygrad.lgamma(q.concentration0))
