"""Distributions compared with PyTorch: densities, moments, samples and their gradients."""

import math

import numpy as np
import pytest

import cygrad
from cygrad import distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions

SPREAD = [[2.0, 0.5], [0.5, 1.0]]
FACTOR = [[1.5, 0.0], [-0.4, 0.7]]
P = [0.2, 0.5, 0.7]
# name: parameters, values in the support
CASES = {
    "Bernoulli": ({"probs": P}, [0.0, 1.0, 1.0]),
    "Beta": ({"concentration1": [0.5, 2.0, 3.0], "concentration0": [1.5, 0.7, 4.0]}, [0.2, 0.5, 0.9]),
    "Binomial": ({"total_count": 5, "probs": P}, [0.0, 3.0, 5.0]),
    "Categorical": ({"logits": [[0.1, 0.5, -1.0], [2.0, 0.0, 0.3]]}, [0.0, 2.0]),
    "Cauchy": ({"loc": [0.0, 1.0], "scale": [1.0, 2.5]}, [-0.3, 4.0]),
    "Chi2": ({"df": [1.0, 4.5]}, [0.3, 2.0]),
    "ContinuousBernoulli": ({"probs": P}, [0.1, 0.6, 0.8]),
    "Dirichlet": ({"concentration": [[0.5, 1.5, 2.0], [3.0, 1.2, 0.8]]}, [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    "Exponential": ({"rate": [0.5, 2.0]}, [0.3, 1.5]),
    "FisherSnedecor": ({"df1": [3.0, 5.0], "df2": [6.0, 9.0]}, [0.5, 2.0]),
    "Gamma": ({"concentration": [0.5, 2.5], "rate": [1.0, 3.0]}, [0.4, 1.2]),
    "GeneralizedPareto": ({"loc": [0.0, 1.0, 0.0], "scale": [1.0, 2.0, 1.0], "concentration": [0.2, -0.3, 0.0]},
                          [0.5, 2.0, 1.5]),
    "Geometric": ({"probs": P}, [0.0, 2.0, 5.0]),
    "Gumbel": ({"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, [0.5, -1.0]),
    "HalfCauchy": ({"scale": [1.0, 2.0]}, [0.5, 3.0]),
    "HalfNormal": ({"scale": [1.0, 2.0]}, [0.5, 3.0]),
    "InverseGamma": ({"concentration": [2.5, 3.0], "rate": [1.0, 2.0]}, [0.5, 2.0]),
    "Kumaraswamy": ({"concentration1": [1.5, 2.0], "concentration0": [2.0, 3.0]}, [0.3, 0.8]),
    "LKJCholesky": ({"dim": 2, "concentration": [1.0, 2.0]}, [[1.0, 0.0], [0.6, 0.8]]),
    "Laplace": ({"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, [0.5, -1.0]),
    "LogNormal": ({"loc": [0.0, 1.0], "scale": [1.0, 0.5]}, [0.5, 2.0]),
    "LogisticNormal": ({"loc": [0.0, 1.0], "scale": [1.0, 0.5]}, [0.2, 0.3, 0.5]),
    "LowRankMultivariateNormal": ({"loc": [0.0, 1.0], "cov_factor": [[1.0], [0.5]], "cov_diag": [1.0, 2.0]}, [0.5,
                                                                                                              -1.0]),
    "Multinomial": ({"total_count": 4, "probs": [0.2, 0.3, 0.5]}, [1.0, 0.0, 3.0]),
    "MultivariateNormal": ({"loc": [0.0, 1.0], "covariance_matrix": SPREAD}, [[0.5, -1.0], [0.0, 0.3]]),
    "MultivariateNormal, precision": ({"loc": [0.0, 1.0], "precision_matrix": SPREAD}, [0.5, -1.0]),
    "MultivariateNormal, factor": ({"loc": [[0.0, 1.0]] * 2, "scale_tril": FACTOR}, [[0.5, -1.0]]),
    "NegativeBinomial": ({"total_count": [3.0, 2.5], "probs": [0.3, 0.6]}, [0.0, 4.0]),
    "Normal": ({"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, [0.5, -1.0]),
    "OneHotCategorical": ({"probs": [[0.2, 0.3, 0.5]]}, [[0.0, 1.0, 0.0]]),
    "OneHotCategoricalStraightThrough": ({"probs": [0.2, 0.3, 0.5]}, [0.0, 0.0, 1.0]),
    "Pareto": ({"scale": [1.0, 2.0], "alpha": [2.5, 3.0]}, [1.5, 2.5]),
    "Poisson": ({"rate": [0.5, 4.0]}, [0.0, 3.0]),
    "RelaxedBernoulli": ({"temperature": 0.7, "probs": P}, [0.1, 0.6, 0.8]),
    "RelaxedOneHotCategorical": ({"temperature": 0.7, "probs": [0.2, 0.3, 0.5]}, [0.1, 0.6, 0.3]),
    "StudentT": ({"df": [1.5, 5.0], "loc": [0.0, 1.0], "scale": [1.0, 2.0]}, [0.5, -1.0]),
    "Uniform": ({"low": [0.0, 1.0], "high": [1.0, 3.0]}, [0.5, 1.5]),
    "VonMises": ({"loc": [0.0, 1.0], "concentration": [0.5, 4.0]}, [0.5, -1.0]),
    "Weibull": ({"scale": [1.0, 2.0], "concentration": [1.5, 3.0]}, [0.5, 1.0]),
    "Wishart": ({"df": [3.0, 4.5], "covariance_matrix": SPREAD}, SPREAD),
}


@pytest.fixture(autouse=True)
def double_precision():
    """What PyTorch computes along the way fits the doubles that it is given only so."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def made(name, requires_grad=False):
    """The distribution here and there, in double precision, and the values."""
    parameters, values = CASES[name]
    name = name.partition(",")[0]

    def build(library, module):
        return getattr(module, name)(**{
            key: library.tensor(value, dtype=library.float64, requires_grad=requires_grad)
            if isinstance(value, (list, float)) else value for key, value in parameters.items()})

    return (build(cygrad, ours), build(torch, theirs), cygrad.tensor(values, dtype=cygrad.float64),
            torch.tensor(values, dtype=torch.float64))


def close(found, expected, **tolerance):
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-9, **tolerance)


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_densities(name):
    p, q, x, y = made(name)
    assert p.batch_shape == tuple(q.batch_shape)
    assert p.event_shape == tuple(q.event_shape)
    assert (p.has_rsample, p.has_enumerate_support) == (q.has_rsample, q.has_enumerate_support)
    assert p.support.check(x).all()
    close(p.log_prob(x), q.log_prob(y))
    assert type(p).__name__ in repr(p)


@pytest.mark.parametrize("what", ["mean", "variance", "stddev", "mode", "entropy", "perplexity", "cdf", "icdf",
                                  "enumerate_support"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_them(name, what):
    p, q, x, y = made(name)

    def ask(distribution, library, value):
        found = getattr(distribution, what)
        if what == "cdf":
            return found(value)
        if what == "icdf":
            return found(library.full(value.shape, 0.3, dtype=library.float64))
        return found() if callable(found) else found

    try:
        expected = ask(q, torch, y)
    except (NotImplementedError, AttributeError):
        return
    if (name, what) == ("Kumaraswamy", "mode"):           # nan, there; it is a maximum of the density
        assert all((p.log_prob(p.mode) > p.log_prob(p.mode + step)).all() for step in (-0.01, 0.01))
        return
    close(ask(p, cygrad, x), expected)


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", CASES)
def test_samples(name):
    cygrad.manual_seed(3)
    p, q, _, _ = made(name)
    x = p.sample((4000,))
    assert tuple(x.shape) == (4000, *p.batch_shape, *p.event_shape)
    assert not x.requires_grad
    assert p.support.check(x).all()
    # They are such that the other library finds them as likely as its own.
    likely = q.log_prob(torch.from_numpy(x.numpy()))
    torch.manual_seed(3)
    own = q.log_prob(q.sample((4000,)))
    spread = (own.var(0) / 2000).sqrt() + 1e-9
    assert ((likely.mean(0) - own.mean(0)).abs() < 6 * spread).all()
    wide = p.expand((3, *p.batch_shape))
    assert wide.batch_shape == (3, *p.batch_shape)
    assert tuple(wide.sample((2,)).shape) == (2, 3, *p.batch_shape, *p.event_shape)
    close(wide.log_prob(x[0])[1], q.log_prob(torch.from_numpy(x[0].numpy())))


@pytest.mark.parametrize("name", [name for name in CASES if getattr(ours, name.partition(",")[0]).has_rsample is True])
def test_gradients_of_samples(name):
    """They fit the density: along them the distribution function does not move, on average over bounded functions."""
    parameters = {key: value for key, value in CASES[name][0].items() if isinstance(value, list)}
    for key in parameters:
        cygrad.manual_seed(5)
        p, _, _, _ = made(name, requires_grad=True)
        x = p.rsample((20000,))
        parameter = getattr(p, key, None)
        assert x.requires_grad
        if name.startswith("OneHot") or parameter is None or not parameter.is_leaf:
            continue
        x.cos().mean(0).sum().backward()
        detached = x.detach()
        q, _, _, _ = made(name, requires_grad=True)
        score = q.log_prob(detached)
        weights = detached.cos().reshape((*tuple(score.shape), -1)).sum(-1)
        weights = weights - weights.mean(0)
        (score * weights).mean(0).sum().backward()
        close_enough = 0.15 + 0.1 * getattr(q, key).grad.abs()
        assert ((parameter.grad - getattr(q, key).grad).abs() < close_enough).all()


def test_gamma_samples_move_with_their_shape_as_the_quantile_does():
    import scipy.special as special

    cygrad.manual_seed(0)
    a = cygrad.tensor([0.05, 0.3, 1.0, 2.5, 30.0, 4000.0], dtype=cygrad.float64, requires_grad=True)
    x = ours.Gamma(a.expand(50, 6), 1.0).rsample()
    grad, = cygrad.autograd.grad(x.sum(), a, retain_graph=True)
    total = np.zeros(6)
    for row in x.detach().numpy():
        for i, (shape, value) in enumerate(zip(a.detach().numpy(), row, strict=True)):
            step = 1e-5 * shape
            p = special.gammainc(shape, value)
            if p < 0.5:
                total[i] += (special.gammaincinv(shape + step, p) - special.gammaincinv(shape - step, p)) / (2 * step)
            else:
                p = special.gammaincc(shape, value)
                total[i] += (special.gammainccinv(shape + step, p) - special.gammainccinv(shape - step, p)) / (2 * step)
    np.testing.assert_allclose(grad.numpy(), total, rtol=1e-4)


@pytest.mark.parametrize("q", CASES)
@pytest.mark.parametrize("p", CASES)
def test_divergences(p, q):
    mine, theirs_p, _, _ = made(p)
    other, theirs_q, _, _ = made(q)
    try:
        expected = theirs.kl_divergence(theirs_p, theirs_q)
        shape = np.broadcast_shapes(mine.batch_shape, other.batch_shape)
    except (NotImplementedError, RuntimeError, ValueError, AttributeError):
        return
    expected = expected.expand(shape)
    if p == q:
        close(ours.kl_divergence(mine, other).abs(), torch.zeros_like(expected), err_msg="of itself")
    close(ours.kl_divergence(mine, other), expected)


def test_composed():
    p, q = (module.Independent(module.Normal(library.zeros(3, 2), 1.0), 1)
            for library, module in ((cygrad, ours), (torch, theirs)))
    assert (p.batch_shape, p.event_shape) == ((3,), (2,))
    close(p.log_prob(cygrad.ones(3, 2)), q.log_prob(torch.ones(3, 2)))
    close(p.entropy(), q.entropy())
    assert p.expand((5, 3)).sample().shape == (5, 3, 2)

    def mixture(library, module):
        return module.MixtureSameFamily(module.Categorical(library.tensor([0.3, 0.7])),
                                        module.Normal(library.tensor([-1.0, 2.0]), library.tensor([0.5, 1.0])))

    p, q = mixture(cygrad, ours), mixture(torch, theirs)
    for what in ("mean", "variance"):
        close(getattr(p, what), getattr(q, what))
    close(p.log_prob(cygrad.tensor([0.0, 1.0])), q.log_prob(torch.tensor([0.0, 1.0])))
    close(p.cdf(cygrad.tensor(0.5)), q.cdf(torch.tensor(0.5)))
    cygrad.manual_seed(0)
    assert abs(p.sample((5000,)).mean().item() - q.mean.item()) < 0.1


def test_what_is_refused():
    with pytest.raises(ValueError, match="to satisfy the constraint"):
        ours.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support"):
        ours.Exponential(1.0).log_prob(cygrad.tensor(-1.0))
    assert ours.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    with pytest.raises(ValueError, match="not both"):
        ours.Bernoulli(probs=0.5, logits=0.0)
    with pytest.raises(TypeError, match="expected the parameters loc, scale"):
        ours.Normal(0.0)
    with pytest.raises(NotImplementedError, match="no formula for"):
        ours.kl_divergence(ours.Wishart(3.0, cygrad.eye(2)), ours.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="implement rsample"):
        ours.Poisson(cygrad.tensor(1.0)).rsample()
    assert math.isnan(ours.Cauchy(0.0, 1.0).mean.item())
