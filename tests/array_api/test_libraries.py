"""SciPy and scikit-learn on Tensors with the array API enabled, each in a separate process."""

import textwrap

import pytest

from tests.tools import run_program

pytestmark = pytest.mark.slow

START = """
import warnings
import numpy as np
import cygrad as c
def tensor(values, **options):
    return c.tensor(np.asarray(values), **options)
def same(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for part, other in zip(found, expected):
            same(part, other)
        return
    assert isinstance(found, c.Tensor), type(found)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
rng = np.random.default_rng(0)
a, b = rng.uniform(0.5, 2, 12), rng.uniform(0.5, 2, 12)
x, y = tensor(a), tensor(b)
"""
SPECIAL = """
from scipy import special
for call in (special.erf, special.expit, special.gammaln, special.logit, special.i0, special.entr):
    same(call(x / 3), call(a / 3))
same(special.betainc(x, y, y / 3), special.betainc(a, b, b / 3))
leaf = tensor(a, requires_grad=True)
for call in (special.logsumexp, special.softmax, special.log_softmax, lambda t: special.xlogy(t, t)):
    same(call(leaf), call(a))
    with c.autograd.graph.allow_mutation_on_saved_tensors():         # SciPy modifies its results in place
        assert c.autograd.gradcheck(call, [leaf])
print("done")
"""
STATISTICS = """
from scipy import stats
for call in (stats.zscore, stats.gmean, stats.hmean, stats.skew, stats.kurtosis, stats.variation, stats.sem,
             stats.tmean, stats.tvar, stats.iqr, lambda t: stats.moment(t, 3)):
    same(call(x), call(a))
    assert c.autograd.gradcheck(call, [tensor(a, requires_grad=True)])
for call in (lambda t, u: stats.ttest_ind(t, u)[:2], lambda t, u: tuple(stats.ttest_1samp(t, 0.5))[:2],
             lambda t, u: stats.pearsonr(t, u)[:2] if isinstance(t, np.ndarray) else tuple(stats.pearsonr(t, u))):
    found, expected = call(x, y), call(a, b)
    same(tuple(found), tuple(expected))
same(tuple(stats.chisquare(tensor([16.0, 18, 16, 14, 12, 12]))), tuple(stats.chisquare([16, 18, 16, 14, 12, 12])))
same(stats.rankdata(x).to(c.float64), stats.rankdata(a))
print("done")
"""
SIGNAL = """
from scipy import signal
for call in (
        signal.fftconvolve, signal.oaconvolve, signal.convolve, signal.correlate, lambda t, u: signal.hilbert(t),
        lambda t, u: signal.detrend(t), lambda t, u: signal.resample(t, 20),
        lambda t, u: signal.lfilter(t[:3], u[:2], u), lambda t, u: signal.savgol_filter(t, 5, 2),
        lambda t, u: signal.medfilt(t, 3)):
    same(call(x, y), call(a, b))
leaves = [tensor(a, requires_grad=True), tensor(b, requires_grad=True)]
assert c.autograd.gradcheck(signal.fftconvolve, leaves)
assert c.autograd.gradcheck(signal.hilbert, leaves[:1])
print("done")
"""
OPTIMIZE = """
from scipy import optimize
def value_and_gradient(at):
    point = tensor(at, requires_grad=True)
    value = optimize.rosen(point)
    value.backward()
    return value.item(), point.grad.numpy()
def curvature(at):
    return c.autograd.functional.hessian(optimize.rosen, tensor(at)).numpy()
for method, options in (("BFGS", {}), ("L-BFGS-B", {}), ("CG", {}), ("trust-exact", {"hess": curvature})):
    found = optimize.minimize(value_and_gradient, [-1.2, 1.0, 0.5], jac=True, method=method, **options)
    assert found.success, method
    np.testing.assert_allclose(found.x, 1, atol=1e-4)
same(optimize.rosen_der(x), optimize.rosen_der(a))
leaf = tensor(a, requires_grad=True)
slope, = c.autograd.grad(optimize.rosen(leaf), leaf)
same(slope, optimize.rosen_der(a))
print("done")
"""
SKLEARN = """
import sklearn
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances, rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler
warnings.simplefilter("ignore")
points, classes = make_classification(60, 5, random_state=0)
inputs, targets = make_regression(60, 5, noise=1.0, random_state=0)
calls = [
    *[lambda X, y, R, r, scaler=scaler: scaler.fit_transform(X) for scaler in (
        StandardScaler(), MinMaxScaler(), MaxAbsScaler(), Normalizer(), PolynomialFeatures(2))],
    lambda X, y, R, r: abs(PCA(2, svd_solver="full").fit_transform(X)),
    lambda X, y, R, r: Ridge(solver="svd").fit(R, r).predict(R),
    lambda X, y, R, r: LinearDiscriminantAnalysis().fit(X, y).predict(X),
    lambda X, y, R, r: GaussianNB().fit(X, y).predict_proba(X),
    lambda X, y, R, r: GaussianMixture(2, random_state=0, init_params="random").fit(X).means_,
    lambda X, y, R, r: cosine_similarity(X), lambda X, y, R, r: euclidean_distances(X),
    lambda X, y, R, r: rbf_kernel(X),
    lambda X, y, R, r: train_test_split(X, y, random_state=0)[0],
    lambda X, y, R, r: make_pipeline(StandardScaler(), PCA(2, svd_solver="full"), Ridge(solver="svd")).fit(
        R, r).predict(R),
]
for call in calls:
    expected = call(points, classes, inputs, targets)
    with sklearn.config_context(array_api_dispatch=True):
        found = call(tensor(points), tensor(classes), tensor(inputs), tensor(targets))
    assert isinstance(found, c.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-8)
with sklearn.config_context(array_api_dispatch=True):
    assert accuracy_score(tensor(classes), tensor(classes)) == 1
    assert mean_squared_error(tensor(targets), tensor(targets) + 1) == 1
    assert r2_score(tensor(targets), tensor(targets)) == 1
print("done")
"""


@pytest.mark.parametrize("program", [SPECIAL, STATISTICS, SIGNAL, OPTIMIZE, SKLEARN],
                         ids=["special", "statistics", "signal", "optimize", "sklearn"])
def test_library_works_on_tensors(program):
    assert run_program(textwrap.dedent(START + program), SCIPY_ARRAY_API="1") == ["done"]
