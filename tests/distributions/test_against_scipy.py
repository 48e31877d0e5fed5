"""Distributions compared with SciPy: densities, quantiles, entropies, moments, samples; gradients by differences."""

import contextlib
import math

import numpy as np
import pytest

import cygrad
from cygrad import distributions as D

stats = pytest.importorskip("scipy.stats")
mpmath = pytest.importorskip("mpmath")

REAL = [-1e12, -300.0, -30.0, -5.0, -0.3, 0.0, 0.4, 3.0, 40.0, 1e8]
POSITIVE = [1e-12, 1e-5, 0.1, 0.7, 1.0, 2.5, 12.0, 300.0, 1e6]
UNIT = [1e-12, 1e-5, 0.1, 0.5, 0.8, 0.999, 1 - 1e-9]
COUNTS = [0.0, 1.0, 2.0, 5.0, 30.0, 400.0]
# family: (parameters, the frozen distribution of SciPy, values)
FAMILIES = [
    (D.Bernoulli, {"probs": 0.3}, stats.bernoulli(0.3), [0.0, 1.0]),
    (D.Beta, {"concentration1": 0.05, "concentration0": 0.3}, stats.beta(0.05, 0.3), UNIT),
    (D.Beta, {"concentration1": 40.0, "concentration0": 3.0}, stats.beta(40.0, 3.0), UNIT),
    (D.Binomial, {"total_count": 12.0, "probs": 0.5}, stats.binom(12, 0.5), [0.0, 1.0, 6.0, 12.0]),
    (D.Binomial, {"total_count": 12.0, "logits": -20.0}, stats.binom(12, 1 / (1 + math.exp(20))), [0.0, 1.0, 12.0]),
    (D.Cauchy, {"loc": 0.5, "scale": 2.0}, stats.cauchy(0.5, 2.0), REAL),
    (D.Chi2, {"df": 3.0}, stats.chi2(3.0), POSITIVE),
    (D.ContinuousBernoulli, {"probs": 0.2}, stats.truncexpon(math.log(4), scale=1 / math.log(4)), UNIT),
    (D.Exponential, {"rate": 2.5}, stats.expon(scale=0.4), POSITIVE),
    (D.FisherSnedecor, {"df1": 3.0, "df2": 9.0}, stats.f(3.0, 9.0), POSITIVE),
    (D.Gamma, {"concentration": 0.02, "rate": 2.0}, stats.gamma(0.02, scale=0.5), POSITIVE),
    (D.Gamma, {"concentration": 30.0, "rate": 2.0}, stats.gamma(30.0, scale=0.5), POSITIVE),
    (D.GeneralizedPareto, {"loc": 0.0, "scale": 2.0, "concentration": 0.3}, stats.genpareto(0.3, scale=2.0), POSITIVE),
    (D.GeneralizedPareto, {"loc": 0.0, "scale": 2.0, "concentration": -0.5}, stats.genpareto(-0.5, scale=2.0),
     POSITIVE[:6]),
    (D.Geometric, {"probs": 0.3}, stats.geom(0.3, loc=-1), COUNTS),
    (D.Gumbel, {"loc": 0.5, "scale": 2.0}, stats.gumbel_r(0.5, 2.0), REAL[2:]),
    (D.HalfCauchy, {"scale": 2.0}, stats.halfcauchy(scale=2.0), POSITIVE),
    (D.HalfNormal, {"scale": 2.0}, stats.halfnorm(scale=2.0), POSITIVE),
    (D.InverseGamma, {"concentration": 4.5, "rate": 2.0}, stats.invgamma(4.5, scale=2.0), POSITIVE),
    (D.Laplace, {"loc": 0.5, "scale": 2.0}, stats.laplace(0.5, 2.0), REAL[1:-1]),
    (D.LogNormal, {"loc": 0.5, "scale": 0.7}, stats.lognorm(0.7, scale=math.exp(0.5)), POSITIVE),
    (D.NegativeBinomial, {"total_count": 2.5, "probs": 0.6}, stats.nbinom(2.5, 0.4), COUNTS),
    (D.Normal, {"loc": 0.5, "scale": 2.0}, stats.norm(0.5, 2.0), REAL[1:-1]),
    (D.Pareto, {"scale": 0.7, "alpha": 5.5}, stats.pareto(5.5, scale=0.7), POSITIVE[4:]),
    (D.Poisson, {"rate": 0.2}, stats.poisson(0.2), COUNTS),
    (D.Poisson, {"rate": 230.0}, stats.poisson(230.0), COUNTS),
    (D.StudentT, {"df": 4.5, "loc": 0.5, "scale": 2.0}, stats.t(4.5, 0.5, 2.0), REAL),
    (D.Uniform, {"low": -1.0, "high": 3.0}, stats.uniform(-1.0, 4.0), [-0.9, 0.0, 2.9]),
    (D.VonMises, {"loc": 0.5, "concentration": 2.0}, stats.vonmises(2.0, loc=0.5), [-2.0, 0.0, 0.5, 3.0]),
    (D.Weibull, {"scale": 2.0, "concentration": 1.5}, stats.weibull_min(1.5, scale=2.0), POSITIVE),
]
NAMES = [f"{family.__name__}({', '.join(f'{value:g}' for value in given.values())})" for family, given, *_ in FAMILIES]
every = pytest.mark.parametrize(("family", "parameters", "theirs", "values"), FAMILIES, ids=NAMES)


def made(family, parameters, requires_grad=False):
    tensors = {name: cygrad.tensor(value, dtype=cygrad.float64, requires_grad=requires_grad)
               for name, value in parameters.items()}
    return family(**tensors), tensors


def double(values):
    return cygrad.tensor(values, dtype=cygrad.float64)


@every
def test_densities_and_tails(family, parameters, theirs, values):
    ours, _ = made(family, parameters)
    expected = getattr(theirs, "logpmf" if hasattr(theirs.dist, "pmf") else "logpdf")(np.array(values))
    np.testing.assert_allclose(ours.log_prob(double(values)).numpy(), expected, rtol=1e-9, atol=1e-11)
    try:
        found = ours.cdf(double(values))
    except NotImplementedError:
        return
    np.testing.assert_allclose(found.numpy(), theirs.cdf(values), rtol=1e-9, atol=0)


@every
def test_quantiles_at_both_ends(family, parameters, theirs, values):
    ours, _ = made(family, parameters)
    # SciPy computes those of halves from (1 + level) / 2.
    ends = [1e-6, 0.9999] if family in (D.HalfNormal, D.HalfCauchy) else [1e-300, 1e-20, 1e-8, 1 - 1e-9]
    levels = [0.0, *ends, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0]
    try:
        found = ours.icdf(double(levels))
    except NotImplementedError:
        return
    np.testing.assert_allclose(found.numpy(), theirs.ppf(levels), rtol=1e-8, atol=1e-290)


@every
def test_entropies_and_moments(family, parameters, theirs, values):
    ours, _ = made(family, parameters)
    with contextlib.suppress(NotImplementedError):
        np.testing.assert_allclose(ours.entropy().item(), theirs.entropy(), rtol=1e-9)
    if family is not D.VonMises:                 # the variance of directions
        mean, variance = theirs.stats("mv")
        for found, expected in ((ours.mean, mean), (ours.variance, variance)):
            if np.isfinite(expected):
                np.testing.assert_allclose(found.item(), expected, rtol=1e-9)


@every
def test_samples_have_the_distribution(family, parameters, theirs, values):
    cygrad.manual_seed(1)
    ours, _ = made(family, parameters)
    x = ours.sample((20000,)).numpy()
    # Average ranks of samples are uniform; those of counts are spread over their steps.
    ranks = theirs.cdf(x)
    if hasattr(theirs.dist, "pmf"):
        ranks = ranks - theirs.pmf(x) * np.random.default_rng(0).random(x.shape)
    assert stats.kstest(ranks, "uniform").pvalue > 1e-4


@every
@pytest.mark.parametrize("what", ["log_prob", "cdf", "entropy"])
def test_gradients_are_those_of_differences(family, parameters, theirs, values, what):
    inside = [value for value in values if 1e-6 < abs(value) < 1e3] or values
    inside = double([value for value in inside if value not in (1.0,)] if family is D.ContinuousBernoulli else inside)

    def value_at(changed):
        ours, tensors = made(family, {**parameters, **changed}, requires_grad=True)
        return (ours.entropy() if what == "entropy" else getattr(ours, what)(inside)), tensors

    try:
        found, tensors = value_at({})
    except NotImplementedError:
        return
    for name in parameters:
        if name == "total_count" or (what == "cdf" and family in (D.Gamma, D.Chi2, D.InverseGamma)
                                     and name in ("concentration", "df")):
            continue                             # an integer; no derivative by the shape parameter
        if not found.requires_grad:
            continue
        gradients, = cygrad.autograd.grad(found.sum(), tensors[name], retain_graph=True, allow_unused=True)
        step = 1e-5 * max(abs(parameters[name]), 0.1)
        above, below = (value_at({name: parameters[name] + sign * step})[0].sum().item() for sign in (1, -1))
        expected = (above - below) / (2 * step)
        np.testing.assert_allclose(0.0 if gradients is None else gradients.item(), expected, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
def test_ends_of_the_support(dtype):
    zero, one = cygrad.tensor(0.0, dtype=dtype), cygrad.tensor(1.0, dtype=dtype)
    levels = cygrad.tensor([0.0, 1.0], dtype=dtype)
    for family in (D.Cauchy, D.Normal, D.Laplace, D.Gumbel):
        assert family(zero, one).icdf(levels).tolist() == [-math.inf, math.inf]
    for ours in (D.HalfNormal(one), D.HalfCauchy(one), D.Exponential(one), D.Weibull(one, one), D.LogNormal(zero, one)):
        assert ours.icdf(levels).tolist() == [0.0, math.inf]
    assert D.Kumaraswamy(one, 2 * one).icdf(levels).tolist() == [0.0, 1.0]
    assert D.Kumaraswamy(one, 2 * one).cdf(levels).tolist() == [0.0, 1.0]
    assert D.ContinuousBernoulli(0.9 * one).icdf(levels).tolist() == pytest.approx([0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("name", ["HalfNormal", "HalfCauchy", "Weibull", "Exponential", "Kumaraswamy"])
def test_small_values_in_single_precision(name):
    one = cygrad.tensor(1.0)
    ours = getattr(D, name)(*[one] * (2 if name in ("Weibull", "Kumaraswamy") else 1))
    slope = {"HalfNormal": math.sqrt(2 / math.pi), "HalfCauchy": 2 / math.pi}.get(name, 1.0)     # density at 0
    for x in (1e-4, 1e-9, 1e-30):
        assert ours.cdf(cygrad.tensor(x)).item() == pytest.approx(slope * x, rel=2e-4)
        assert ours.icdf(cygrad.tensor(x)).item() == pytest.approx(x / slope, rel=2e-4)


@pytest.mark.parametrize("t", [-80.0, -3.0, -1e-3, 1e-9, 0.0, 0.5, 30.0, 70.0])
def test_continuous_bernoulli_is_a_truncated_exponential(t):
    ours = D.ContinuousBernoulli(logits=double(t))
    with mpmath.workdps(60):
        for x in (1e-10, 0.2, 0.5, 0.97):
            expected = mpmath.expm1(t * mpmath.mpf(x)) / mpmath.expm1(t) if t else x
            assert ours.cdf(double(x)).item() == pytest.approx(float(expected), rel=1e-7)
            inverse = mpmath.log1p(x * mpmath.expm1(t)) / t if t else x
            assert ours.icdf(double(x)).item() == pytest.approx(float(inverse), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("df", [0.3, 19.9, 20.1, 1e4, 1e8, 1e16, 1e30])
def test_student_t_of_any_df(df):
    x = [-7.0, 0.0, 0.5, 40.0]
    df_tensor = double(df).requires_grad_()
    ours = D.StudentT(df_tensor)
    with mpmath.workdps(80):
        n = mpmath.mpf(df)

        def log_density(value, n):
            return (mpmath.loggamma((n + 1) / 2) - mpmath.loggamma(n / 2) - mpmath.log(n * mpmath.pi) / 2
                    - (n + 1) / 2 * mpmath.log1p(mpmath.mpf(value)**2 / n))

        expected = [float(log_density(value, n)) for value in x]
        half, more = n / 2, (n + 1) / 2
        entropy = (more * (mpmath.digamma(more) - mpmath.digamma(half)) + mpmath.log(n) / 2 + mpmath.loggamma(half)
                   + mpmath.loggamma(mpmath.mpf(1) / 2) - mpmath.loggamma(more))
        slope = float(mpmath.diff(lambda n: log_density(0.5, n), n))
    np.testing.assert_allclose(ours.log_prob(double(x)).detach().numpy(), expected, rtol=1e-12)
    assert ours.entropy().item() == pytest.approx(float(entropy), rel=1e-12)
    single = D.StudentT(cygrad.tensor(df)).log_prob(cygrad.tensor(x))
    np.testing.assert_allclose(single.numpy(), expected, rtol=1e-5)
    if df < 1e6:
        gradient, = cygrad.autograd.grad(ours.log_prob(double(0.5)), df_tensor)
        assert gradient.item() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("c", [1.0, 0.1, 0.02, 0.005, 0.001])
def test_shares_of_small_concentrations(c):
    """In single precision: means, squares, few values in the middle, gradients of the mean."""
    cygrad.manual_seed(0)
    n = 20000
    x = D.Beta(cygrad.tensor(c), cygrad.tensor(3 * c)).sample((n,)).double()
    variance = 3 / 16 / (4 * c + 1)
    assert abs(x.mean().item() - 0.25) < 5 * math.sqrt(variance / n)
    assert abs(x.var().item() - variance) < 0.01
    middle = stats.beta(c, 3 * c)
    expected = middle.cdf(0.6) - middle.cdf(0.4)
    assert abs(((x > 0.4) & (x < 0.6)).double().mean().item() - expected) < 5 * math.sqrt(expected / n) + 1e-4
    shares = D.Dirichlet(cygrad.full((4,), c)).sample((n,)).double()
    assert (shares.mean(0) - 0.25).abs().max().item() < 0.02
    assert abs(shares.square().mean().item() - (c + 1) / (4 * (4 * c + 1))) < 0.01
    # d mean / d concentration1 = 3 / (16 c)
    a = cygrad.tensor(c, dtype=cygrad.float64, requires_grad=True)
    D.Beta(a.expand(200_000), 3 * c).rsample().mean().backward()
    assert a.grad.item() * c == pytest.approx(3 / 16, rel=0.2)


def test_logarithms_of_gamma_samples_move_as_their_quantiles_do():
    from cygrad.distributions.gamma_samples import log_standard_gamma

    cygrad.manual_seed(0)
    a = double([0.001, 0.02, 0.3, 0.9, 2.0, 50.0]).requires_grad_()
    log_x = log_standard_gamma(a.expand(20, 6))
    found, = cygrad.autograd.grad(log_x.sum(), a)
    expected = np.zeros(6)
    with mpmath.workdps(40):
        for row in log_x.detach().tolist():
            for i, (shape, log_value) in enumerate(zip(a.tolist(), row, strict=True)):
                x, shape = mpmath.exp(log_value), mpmath.mpf(shape)
                by_shape = mpmath.diff(lambda shape: mpmath.gammainc(shape, 0, x, regularized=True), shape)
                density = x**(shape - 1) * mpmath.exp(-x) / mpmath.gamma(shape)
                expected[i] -= float(by_shape / density / x)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.7, 12.0, 99.9, 100.1, 1e5])
def test_entropy_of_counts(rate):
    rate_tensor = double(rate).requires_grad_()
    entropy = D.Poisson(rate_tensor).entropy()
    with mpmath.workdps(30):
        low = max(0, int(rate - 60 * rate**0.5))
        logs = [k * mpmath.log(rate) - rate - mpmath.loggamma(k + 1) if rate else (0 if k == 0 else -mpmath.inf)
                for k in range(low, int(rate + 60 * rate**0.5) + 60)]
        expected = float(-sum(mpmath.exp(part) * part for part in logs if part > -mpmath.inf))
    assert entropy.item() == pytest.approx(expected, rel=1e-10, abs=1e-15)
    if rate:
        gradient, = cygrad.autograd.grad(entropy, rate_tensor)
        step = 1e-4 * rate
        above, below = (D.Poisson(double(rate + sign * step)).entropy().item() for sign in (1, -1))
        if not rate - step < 100 < rate + step:
            assert gradient.item() == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_gradients_where_log_odds_are_zero():
    """Where formulas have a kink, densities have none."""
    for make, value, expected in [
            (lambda z: D.Binomial(double(5.0), logits=z), 4.0, 1.5),
            (lambda z: D.Bernoulli(logits=z), 1.0, 0.5),
            (lambda z: D.Geometric(logits=z), 3.0, -1.0),              # 1 - p - 3 p
            (lambda z: D.NegativeBinomial(double(5.0), logits=z), 4.0, -0.5),
            (lambda z: D.ContinuousBernoulli(logits=z), 0.7, 0.2),
            (lambda z: D.Categorical(logits=cygrad.stack([z, -z])), 0.0, 1.0),
            (lambda z: D.RelaxedBernoulli(double(1.0), logits=z), 0.5, 0.0)]:
        z = double(0.0).requires_grad_()
        gradient, = cygrad.autograd.grad(make(z).log_prob(double(value)), z)
        assert gradient.item() == pytest.approx(expected, abs=1e-6)
    z = double(0.0).requires_grad_()
    gradient, = cygrad.autograd.grad(D.Laplace(double(0.0), double(1.0)).cdf(z), z)
    assert gradient.item() == pytest.approx(0.5)


def test_divergence_of_a_choice_from_counts():
    for p in (0.0, 0.2, 1.0):
        ours = D.kl_divergence(D.Bernoulli(double(p)), D.Poisson(double(4.0))).item()
        weights = stats.bernoulli(p).pmf([0, 1])
        expected = sum(w * (math.log(w) - stats.poisson(4.0).logpmf(k)) for k, w in enumerate(weights) if w)
        assert ours == pytest.approx(expected, rel=1e-9)


def test_the_cholesky_factor_of_a_correlation_goes_back():
    cygrad.manual_seed(0)
    for n in (1, 3, 10):
        x = cygrad.randn(2, n, dtype=cygrad.float64, requires_grad=True)
        transform = D.CorrCholeskyTransform()
        back = transform.inv(transform(x).clone())
        np.testing.assert_allclose(back.detach().numpy(), x.detach().numpy(), atol=1e-9)
        gradient, = cygrad.autograd.grad(back.sum(), x)
        np.testing.assert_allclose(gradient.numpy(), 1.0, atol=1e-6)


@pytest.mark.parametrize("concentration", [0.0, 1e-15, -1e-9, 1e-5, -0.001, 0.3])
def test_gradients_of_the_generalized_pareto_near_the_exponential_distribution(concentration):
    shape = double(concentration).requires_grad_()
    ours, value = D.GeneralizedPareto(double(0.0), double(1.0), shape), 1.3
    with mpmath.workdps(60):
        def log_survival(c):
            return -mpmath.log1p(c * value) / c if c else mpmath.mpf(-value)

        expected = [float(mpmath.diff(function, mpmath.mpf(concentration))) for function in (
            lambda c: (1 + c) * log_survival(c), lambda c: -mpmath.expm1(log_survival(c)),
            lambda c: mpmath.expm1(-c * mpmath.log1p(mpmath.mpf(-0.7))) / c if c else -mpmath.log1p(mpmath.mpf(-0.7)))]
    found = [cygrad.autograd.grad(result, shape)[0].item() for result in (
        ours.log_prob(double(value)), ours.cdf(double(value)), ours.icdf(double(0.7)))]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize(("dtype", "value"), [(cygrad.float32, 1e25), (cygrad.float64, 1e200)], ids=str)
def test_heavy_tails_where_squares_overflow(dtype, value):
    scale, df = (cygrad.tensor(number, dtype=dtype, requires_grad=True) for number in (2.0, 1.0))
    for ours in (D.Cauchy(0 * scale, scale), D.StudentT(df, 0 * scale, scale)):
        log_prob = ours.log_prob(cygrad.tensor(value, dtype=dtype))
        assert log_prob.item() == pytest.approx(math.log(2 / math.pi) - 2 * math.log(value), rel=1e-6)
        assert cygrad.autograd.grad(log_prob, scale)[0].item() == pytest.approx(0.5)
    scale = cygrad.tensor(1e-20, dtype=dtype, requires_grad=True)
    for ours in (D.Cauchy(0.0, scale), D.HalfCauchy(scale), D.StudentT(1.0, 0.0, scale)):
        log_prob = ours.log_prob(cygrad.tensor(value, dtype=dtype))
        assert cygrad.autograd.grad(log_prob, scale)[0].item() == pytest.approx(1e20)


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
@pytest.mark.parametrize("p", [1e-6, 0.3, 1 - 2.0**-20])
def test_entropies_of_rare_events(dtype, p):
    probs = cygrad.tensor(p, dtype=dtype)
    p = probs.item()
    expected = -p * math.log(p) - (1 - p) * math.log1p(-p)
    assert D.Bernoulli(probs).entropy().item() == pytest.approx(expected, rel=2e-6)
    assert D.Geometric(probs).entropy().item() == pytest.approx(expected / p, rel=2e-6)


def test_small_and_large_shapes_in_single_precision():
    one = cygrad.tensor(1 - 2.0**-23)
    a, b = 0.001, 2.0
    rest = -math.expm1(a * math.log(one.item()))
    assert D.Kumaraswamy(a, b).log_prob(one).item() == pytest.approx(
        math.log(a * b) + (a - 1) * math.log(one.item()) + (b - 1) * math.log(rest), rel=1e-5)
    assert D.Kumaraswamy(a, a).cdf(one).item() == pytest.approx(1 - rest**a, rel=1e-3)
    concentration = cygrad.tensor(10.0, requires_grad=True)
    log_prob = D.Weibull(1e-6, concentration).log_prob(cygrad.tensor(1e-30))
    assert log_prob.item() == pytest.approx(math.log(1e7) + 9 * math.log(1e-24), rel=1e-5)
    assert cygrad.autograd.grad(log_prob, concentration)[0].item() == pytest.approx(0.1 + math.log(1e-24), rel=1e-5)


def test_modes_at_corners():
    for concentrations, expected in (([0.05, 1.0], 0.0), ([1.0, 0.05], 1.0), ([0.5, 0.3], 1.0), ([2.0, 1.0], 1.0)):
        assert D.Beta(*concentrations).mode.item() == expected
    assert D.Weibull(2.0, cygrad.tensor([0.5, 1.0])).mode.tolist() == [0.0, 0.0]


def test_ends_of_the_support_leave_gradients_of_other_elements_alone():
    b = double(3.0).requires_grad_()
    log_prob = D.Beta(double(2.0), b).log_prob(double([0.4, 1.0]))
    gradient, = cygrad.autograd.grad(log_prob[0], b)
    assert gradient.item() == pytest.approx(math.log(0.6) + 1 / 3 + 1 / 4)        # digamma(5) - digamma(3)
    assert D.GeneralizedPareto(double(-3.0), double(0.1), double(-0.5)).cdf(double(-2.8)).item() == 1.0


@pytest.mark.parametrize(("logits", "value", "density", "slope", "mean", "variance", "entropy"), [
    (50.0, 0.3, -31.08797699457185, -0.68, 0.98, 0.0004, -2.912023005428146),
    (-50.0, 0.3, -11.08797699457185, 0.28, 0.02, 0.0004, -2.912023005428146),
    (700.0, 0.9, -63.44891966495658, -0.09857142857142855, 0.9985714285714286, 2.040816326530612e-6,
     -5.551080335043405),
    (-5.0, 0.2, 0.6161986618835889, 0.006783654906304242, 0.1932163450936958, 0.03317032711980794,
     -0.6501169364151101)])
def test_continuous_bernoulli_of_large_log_odds(logits, value, density, slope, mean, variance, entropy):
    """The right values were computed by mpmath from ``log(t / (exp(t) - 1)) + t * x``."""
    t = double(logits).requires_grad_()
    distribution = D.ContinuousBernoulli(logits=t)
    log_prob = distribution.log_prob(double(value))
    found = [log_prob, cygrad.autograd.grad(log_prob, t)[0], distribution.mean, distribution.variance,
             distribution.entropy()]
    np.testing.assert_allclose([number.item() for number in found], [density, slope, mean, variance, entropy],
                               rtol=1e-10)


@pytest.mark.parametrize("logits", [-1000.0, -30.0, 0.0, 50.0, 1000.0])
@pytest.mark.parametrize("count", [0.0, 1.0, 5.0])
def test_geometric_of_large_log_odds(logits, count):
    t = double(logits).requires_grad_()
    log_prob = D.Geometric(logits=t).log_prob(double(count))
    low, high = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    np.testing.assert_allclose(log_prob.item(), low + count * high, rtol=1e-14)
    slope, = cygrad.autograd.grad(log_prob, t)
    np.testing.assert_allclose(slope.item(), np.exp(high) - count * np.exp(low), rtol=1e-12)


def test_gradients_where_a_concentration_is_one():
    a, b, x = double(0.5).requires_grad_(), double(1.0).requires_grad_(), double(1e-8)
    slopes = cygrad.autograd.grad(D.Kumaraswamy(a, b).log_prob(x), [a, b])
    np.testing.assert_allclose([slope.item() for slope in slopes], [2 + math.log(1e-8), 1 + math.log1p(-1e-4)])
    value = double(1.0).requires_grad_()
    log_prob = D.Kumaraswamy(a, b).log_prob(value)
    assert log_prob.item() == math.log(0.5)
    assert all(slope.isfinite() for slope in cygrad.autograd.grad(log_prob, [a, b, value]))


def test_gradients_of_the_pareto_distribution_by_small_scales():
    scale = cygrad.tensor(1e-10, requires_grad=True)
    for value in (1.0, 1e20):
        log_prob = D.Pareto(scale, 0.7).log_prob(cygrad.tensor(value))
        np.testing.assert_allclose(cygrad.autograd.grad(log_prob, scale)[0].item(), 0.7e10, rtol=1e-6)


@pytest.mark.parametrize("transform", [D.SigmoidTransform(), D.TanhTransform(), D.SoftplusTransform()], ids=repr)
def test_jacobians_of_large_numbers_have_no_step(transform):
    """Where ``softplus`` is the identity: sigmoid, tanh and softplus at 21, by differences of the second derivative."""
    x = double(21.0).requires_grad_()
    jacobian = transform.log_abs_det_jacobian(x, transform(x))
    slope, = cygrad.autograd.grad(jacobian, x, create_graph=True)
    second, = cygrad.autograd.grad(slope, x)
    rate = {"SigmoidTransform": (-2, 1), "TanhTransform": (-8, 2), "SoftplusTransform": (-1, 1)}
    factor, steepness = rate[type(transform).__name__]
    np.testing.assert_allclose(second.item(), factor * math.exp(-steepness * 21), rtol=1e-8)


# In single precision, where logarithms of gamma functions of large numbers cancel; by mpmath, of parameters in float32
LARGE_NUMBERS = [
    (D.Poisson, {"rate": 1e5}, 100100.0, -6.72588519),
    (D.Poisson, {"rate": 1e7}, 10000000.0, -8.977986367),
    (D.Poisson, {"rate": 1e-30}, 25.0, -1784.942425),
    (D.Binomial, {"total_count": 1e6, "logits": 0.0}, 500300.0, -7.313546712),
    (D.Binomial, {"total_count": 1e6, "logits": -13.0}, 3.0, -1.605557648),
    (D.Binomial, {"total_count": 1e6, "logits": 20.0}, 1000000.0, -0.00206115362),
    (D.NegativeBinomial, {"total_count": 1e6, "logits": -13.0}, 3.0, -1.605558429),
    (D.NegativeBinomial, {"total_count": 2e5, "logits": 0.5}, 330000.0, -7.797070401),
    (D.NegativeBinomial, {"total_count": 2.5, "logits": 12.0}, 400000.0, -13.3935412),
    (D.Gamma, {"concentration": 1e6, "rate": 2.0}, 500200.0, -7.213925308),
    (D.InverseGamma, {"concentration": 1e5, "rate": 3e5}, 3.0, 3.738911077),
    (D.InverseGamma, {"concentration": 0.5, "rate": 1e-10}, 1e-15, -99960.2781),
    (D.Beta, {"concentration1": 1e5, "concentration0": 1e5}, 0.5, 5.87724372),
    (D.Beta, {"concentration1": 0.3, "concentration0": 1e6}, 1e-06, 11.719713),
    (D.FisherSnedecor, {"df1": 1e5, "df2": 3e5}, 1.0, 4.347107767),
    (D.FisherSnedecor, {"df1": 1e5, "df2": 1e-3}, 0.3, -6.401506382),
    (D.FisherSnedecor, {"df1": 0.5, "df2": 1e6}, 0.3, -0.8066167639)
]


@pytest.mark.parametrize(("family", "parameters", "value", "right"), LARGE_NUMBERS)
def test_densities_of_large_counts_and_shapes_in_single_precision(family, parameters, value, right):
    named = {name: cygrad.tensor(number, requires_grad=True) for name, number in parameters.items()}
    log_prob = family(**named).log_prob(cygrad.tensor(value))
    np.testing.assert_allclose(log_prob.item(), right, rtol=1e-4)
    exact = {name: double(number).requires_grad_() for name, number in parameters.items()}
    expected = cygrad.autograd.grad(family(**exact).log_prob(double(value)), list(exact.values()))
    for slope, wanted in zip(cygrad.autograd.grad(log_prob, list(named.values())), expected, strict=True):
        np.testing.assert_allclose(slope.item(), wanted.item(), rtol=1e-2, atol=1e-5)


def test_counts_of_many_choices_in_single_precision():
    probs = cygrad.tensor([1e-6, 1 - 1e-6, 0.0])
    found = D.Multinomial(10**6, probs=probs).log_prob(cygrad.tensor([1.0, 999999.0, 0.0]))
    np.testing.assert_allclose(found.item(), -0.9999995, rtol=1e-6)
    found = D.Multinomial(10**6, probs=cygrad.tensor([0.3, 0.4, 0.3])).log_prob(cygrad.tensor([3e5, 4e5, 3e5]))
    np.testing.assert_allclose(found.item(), -13.9912701347, rtol=1e-6)


@pytest.mark.parametrize(("concentration", "right", "steepness"), [
    (19.9, 2.897336183, 0.02598870874), (20.1, 2.902507121, 0.02572140112), (1e5, 7.175397932, 5.000033334e-6),
    (1e8, 10.6292789, 5.000000033e-9)])
@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
def test_entropy_of_gamma_variables_of_large_shapes(concentration, right, steepness, dtype):
    a = cygrad.tensor(concentration, dtype=dtype, requires_grad=True)
    entropy = D.Gamma(a, cygrad.ones((), dtype=dtype)).entropy()
    np.testing.assert_allclose(entropy.item(), right, rtol=2e-6)
    slope, = cygrad.autograd.grad(entropy, a)
    np.testing.assert_allclose(slope.item(), steepness, rtol=1e-4)


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
@pytest.mark.parametrize("p", [1e-30, 1e-20, 1e-9])
def test_probabilities_below_epsilon_are_not_rounded_up(dtype, p):
    probs = cygrad.tensor(p, dtype=dtype, requires_grad=True)
    one, zero = (cygrad.tensor(number, dtype=dtype) for number in (1.0, 0.0))
    for log_prob, right, steepness in (
            (D.Bernoulli(probs).log_prob(one), math.log(p), 1 / p),
            (D.Binomial(1e6, probs).log_prob(zero), -1e6 * p, -1e6),
            (D.NegativeBinomial(1e6, probs).log_prob(zero), -1e6 * p, -1e6),
            (D.Categorical(cygrad.stack([probs, one])).log_prob(zero), math.log(p), 1 / p)):
        np.testing.assert_allclose(log_prob.item(), right, rtol=3e-6)
        np.testing.assert_allclose(cygrad.autograd.grad(log_prob, probs)[0].item(), steepness, rtol=1e-5)
    for p, outcome in ((0.0, one), (1.0, zero)):                    # as in PyTorch
        probs = cygrad.tensor(p, dtype=dtype, requires_grad=True)
        log_prob = D.Bernoulli(probs).log_prob(outcome)
        assert log_prob.item() == pytest.approx(math.log(cygrad.finfo(dtype).eps))
        assert cygrad.autograd.grad(log_prob, probs)[0].item() == 0


PSI = mpmath.digamma


def log_beta(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


ENTROPIES = {
    "Gamma": (D.Gamma, lambda a, b: a - mpmath.log(b) + mpmath.loggamma(a) + (1 - a) * PSI(a)),
    "InverseGamma": (D.InverseGamma, lambda a, b: a + mpmath.log(b) + mpmath.loggamma(a) - (1 + a) * PSI(a)),
    "Beta": (D.Beta, lambda a, b: log_beta(a, b) - (a - 1) * PSI(a) - (b - 1) * PSI(b) + (a + b - 2) * PSI(a + b)),
    "Dirichlet": (lambda a, b: D.Dirichlet(cygrad.stack((a, b, b))),
                  lambda a, b: mpmath.loggamma(a) + 2 * mpmath.loggamma(b) - mpmath.loggamma(a + 2 * b)
                  + (a + 2 * b - 3) * PSI(a + 2 * b) - (a - 1) * PSI(a) - 2 * (b - 1) * PSI(b)),
}


def exact(function, *values):
    """The value and the gradients of a function of mpmath, at the rounded values."""
    with mpmath.workdps(60):
        points = [mpmath.mpf(float(np.float32(value))) for value in values]
        result = [function(*points)]
        for i, point in enumerate(points):
            step = point * mpmath.mpf(10) ** -20
            ends = [function(*points[:i], point + sign * step, *points[i + 1:]) for sign in (1, -1)]
            result.append((ends[0] - ends[1]) / (2 * step))
        return [float(value) for value in result]


def found(function, *values, dtype=cygrad.float32):
    leaves = [cygrad.tensor(float(np.float32(value)), dtype=dtype, requires_grad=True) for value in values]
    result = function(*leaves)
    return [result.item(), *(slope.item() for slope in cygrad.autograd.grad(result, leaves))]


@pytest.mark.parametrize("name", ENTROPIES)
@pytest.mark.parametrize("a", [1e-6, 0.3, 7.0, 19.9, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("b", [1e-3, 1.5, 1e5, 1e8])
def test_entropies_of_large_and_small_concentrations_do_not_cancel(name, a, b):
    """Logarithms of gamma functions of 1e9 are 2e10, and the entropies of these distributions about 10."""
    family, right = ENTROPIES[name]
    expected = exact(right, a, b)

    def entropy(a, b):
        return family(a, b).entropy()
    np.testing.assert_allclose(found(entropy, a, b), expected, rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(found(entropy, a, b, dtype=cygrad.float64), expected, rtol=1e-11, atol=2e-14)


DIVERGENCES = {
    "Gamma": (lambda a, b: D.Gamma(a, b + 1), lambda a, b, c, d: c * mpmath.log((b + 1) / (d + 1)) + mpmath.loggamma(c)
              - mpmath.loggamma(a) + (a - c) * PSI(a) + (d - b) * a / (b + 1)),
    "Beta": (D.Beta, lambda a, b, c, d: log_beta(c, d) - log_beta(a, b) + (a - c) * PSI(a) + (b - d) * PSI(b)
             + (c - a + d - b) * PSI(a + b)),
}
DIVERGENCES["Dirichlet"] = (lambda a, b: D.Dirichlet(cygrad.stack((a, b))), DIVERGENCES["Beta"][1])


@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("a", [0.01, 2.0, 18.0, 300.0, 1e6])
@pytest.mark.parametrize("by", [1.01, 1.5, 30.0])
def test_divergences_of_near_and_large_concentrations_do_not_cancel(name, a, by):
    """KL divergences are a few thousandths for 1.01, and logarithms of gamma functions of 1e6 are 1.3e7."""
    family, right = DIVERGENCES[name]
    expected = exact(right, a, 2 * a, a * by, 2 * a)

    def divergence(a, b, c, d):
        return D.kl_divergence(family(a, b), family(c, d))
    np.testing.assert_allclose(found(divergence, a, 2 * a, a * by, 2 * a)[0], expected[0], rtol=2e-4)
    np.testing.assert_allclose(found(divergence, a, 2 * a, a * by, 2 * a, dtype=cygrad.float64), expected, rtol=1e-9)
    assert found(divergence, a, 2 * a, a, 2 * a)[0] == 0


@pytest.mark.parametrize("values", [(0.001, 1e6, 0.00101, 1.01e6), (0.001, 1e6, 0.0011, 9.9e5),
                                    (317936.94, 494528.81, 318351.1, 495173.0),
                                    (190.88341, 817901.4, 190.3472, 815603.9)])
@pytest.mark.parametrize("name", ["Beta", "Dirichlet"])
def test_divergences_of_nearly_proportional_concentrations_keep_their_digits(name, values):
    """The totals are rounded to double precision: of those in float32 no digit of the divergence was right."""
    family, right = DIVERGENCES[name]
    result = found(lambda a, b, c, d: D.kl_divergence(family(a, b), family(c, d)), *values)
    np.testing.assert_allclose(result[0], exact(right, *values)[0], rtol=1e-3)


@pytest.mark.parametrize("df", [0.1, 1.0, 39.0, 41.0, 1e3, 1e6, 1e9])
def test_derivatives_of_the_entropy_of_student_t(df):
    """Up to the third; with many degrees of freedom it is that of a normal distribution and 1 / df."""
    def entropy(v):
        half = v / 2
        return ((half + 0.5) * (PSI(half + 0.5) - PSI(half)) + mpmath.log(v) / 2
                + mpmath.loggamma(half) + mpmath.log(mpmath.pi) / 2 - mpmath.loggamma(half + 0.5))
    with mpmath.workdps(80):
        right = [float(mpmath.diff(entropy, float(np.float32(df)), order, h=mpmath.mpf(10) ** -15 * df))
                 for order in range(4)]
    for dtype, rtol in ((cygrad.float32, 2e-4), (cygrad.float64, 1e-9)):
        x = cygrad.tensor(float(np.float32(df)), dtype=dtype, requires_grad=True)
        results = [D.StudentT(x).entropy()]
        for _ in range(3):
            results += cygrad.autograd.grad(results[-1], x, create_graph=True)
        np.testing.assert_allclose([result.item() for result in results], right, rtol=rtol)
