"""Statistics, cumulative extrema, matrix products and distances, compared with PyTorch."""

import numpy as np
import pytest

import cygrad
from tests.composite.arrays import ARRAYS, names_in
from tests.composite.test_composite import compare

EXPRESSIONS = r"""
    torch.nansum(n)
    torch.nansum(n, 1)
    torch.nansum(k, 0)
    torch.nansum(b)
    torch.nansum(z)
    torch.nansum(n, (0, 1), True, dtype=torch.float32)
    torch.nanmean(n)
    torch.nanmean(k)
    torch.nanmean(z)
    torch.count_nonzero(k)
    torch.count_nonzero(k, 0)
    torch.count_nonzero(k, (0, 1))
    torch.count_nonzero(z)
    torch.count_nonzero(n)
    torch.median(x)
    torch.median(x, 1)
    torch.median(x, 0, True)
    x.median(-1)
    torch.median(w)
    torch.median(k)
    torch.median(n)
    torch.median(n, 1)
    torch.nanmedian(n)
    torch.nanmedian(n, 1)
    torch.nanmedian(x, dim=0, keepdim=True)
    torch.median(x[:, :0])
    torch.median(x[:0], 0)
    torch.median(x[:0], 1)
    torch.median(torch.tensor(3.0))
    torch.median(torch.tensor(3.0), 0)
    torch.median(z)
    torch.kthvalue(w, 2)
    torch.kthvalue(x, 1)
    torch.kthvalue(x, 3, 1, True)
    torch.kthvalue(x, 0)
    torch.kthvalue(x, 4)
    torch.kthvalue(w, 2, 1)
    torch.kthvalue(x[:0], 1)
    torch.kthvalue(x[:0], 1, 0)
    torch.kthvalue(torch.tensor(3.0), 1)
    w.kthvalue(k=2, dim=0)
    torch.mode(w[:1])
    torch.mode(k)
    torch.mode(torch.tensor([1.0, 2.0, 2.0, 3.0]))
    torch.mode(x, 1)
    torch.mode(x[:0], 0)
    torch.msort(x)
    torch.quantile(w, 0.3)
    torch.quantile(x, 0.3)
    torch.quantile(x, 0.3, 1)
    torch.quantile(x, torch.tensor([0.2, 0.9], dtype=torch.float64), 1)
    torch.quantile(x, torch.tensor([0.2, 0.9], dtype=torch.float64), 1, True)
    torch.quantile(x, torch.tensor([0.2, 0.9], dtype=torch.float64), 0, keepdim=True, interpolation="midpoint")
    torch.quantile(x, 0.3, 0, interpolation="lower")
    torch.quantile(x, 0.3, 1, interpolation="higher")
    torch.quantile(x, 0.3, 1, interpolation="nearest")
    torch.quantile(c, 0.7, 1)
    torch.quantile(c, 0.7, keepdim=True)
    torch.quantile(n, 0.5, 1)
    torch.quantile(n, 0.5)
    torch.nanquantile(n, 0.5, 1)
    torch.nanquantile(n, 0.5)
    torch.nanquantile(n, torch.tensor([0.2, 0.9], dtype=torch.float64), 1, True, interpolation="higher")
    torch.quantile(w, 1.2)
    torch.quantile(w, torch.tensor([0.2, 1.9], dtype=torch.float64))
    torch.quantile(w, torch.tensor([0.2]))
    torch.quantile(k, 0.2)
    torch.quantile(w[:0], 0.2)
    torch.quantile(w, 0.2, interpolation="q")
    torch.quantile(torch.tensor(2.0), 0.2)
    torch.cov(x)
    torch.cov(y)
    torch.cov(x, correction=0)
    torch.cov(x, fweights=torch.tensor([1, 2, 3]))
    torch.cov(x, aweights=y.abs())
    torch.cov(x, correction=0, fweights=torch.tensor([1, 2, 3]), aweights=y.abs())
    torch.cov(k)
    torch.cov(z)
    torch.cov(c)
    torch.cov(torch.tensor(1.0))
    torch.cov(x, fweights=y)
    torch.cov(x, aweights=y)
    torch.cov(x[:, :1])
    torch.corrcoef(x)
    torch.corrcoef(y)
    torch.corrcoef(z)
    torch.corrcoef(c)
    x.cov()
    torch.cummax(x, 1)
    torch.cummax(w, 0)
    torch.cummax(n, 1)
    torch.cummin(x, 0)
    torch.cummin(k, 1)
    torch.cummin(n, 0)
    torch.cummax(torch.tensor([1.0, 1.0, 0.0, 2.0, 2.0]), 0)
    torch.cummax(b, 0)
    torch.cummax(torch.tensor(3.0), 0)
    torch.cummax(x, 3)
    torch.cummax(x[:0], 0)
    torch.cummax(z, 0)
    torch.logcumsumexp(x, 1)
    torch.logcumsumexp(c, 0)
    torch.logcumsumexp(torch.tensor([-float("inf"), -float("inf"), 1.0, 2.0]), 0)
    torch.logcumsumexp(torch.tensor([1.0, float("inf"), 1.0, 2.0]), 0)
    torch.logcumsumexp(torch.tensor(3.0), 0)
    torch.logcumsumexp(k, 1)
    torch.logcumsumexp(x, 2)
    torch.addmv(y[:2], x, y)
    torch.addmv(y[:2], x, y, beta=2, alpha=0.5)
    torch.addmv(y[0], x, y, beta=0)
    torch.addmv(y, x, y)
    torch.addmv(y[:2], x, x)
    torch.addr(x, w[:2], y)
    torch.addr(x, w[:2], y, beta=0.5, alpha=2)
    torch.addr(x, w, y)
    torch.baddbmm(c[:, :, :3], c, c.transpose(1, 2), beta=2, alpha=3)
    torch.baddbmm(c, c, c)
    torch.addbmm(x[:, :1], c[:, :2], c.transpose(1, 2))
    torch.addbmm(c[0, :3, :3], c, c.transpose(1, 2), beta=2, alpha=3)
    torch.addmv(k[:, 0], k, k[0], alpha=1.5)
    torch.addmv(k[:, 0], k, k[0], alpha=2)
    torch.chain_matmul(x, x.t(), x)
    torch.chain_matmul(x)
    torch.chain_matmul(x, y)
    torch.tensordot(x, x, 2)
    torch.tensordot(c, c, ([0, 1], [0, 1]))
    torch.tensordot(c, x, ([1], [1]))
    torch.tensordot(x, y, 1)
    torch.tensordot(x, x, 0)
    torch.tensordot(x, x, 1)
    torch.tensordot(x, x, 3)
    torch.tensordot(x, x, ([0], [1]))
    torch.tensordot(x, x, ([0, 1], [0]))
    torch.inner(x, y)
    torch.inner(x, c[:, :3, :3])
    torch.inner(x, torch.tensor(2.0, dtype=torch.float64))
    torch.inner(x, w)
    torch.kron(x, y)
    torch.kron(x, x)
    torch.kron(torch.tensor(2.0, dtype=torch.float64), x)
    torch.kron(k, x)
    torch.cross(c, c * c, 1)
    torch.cross(x, y.expand(2, 3), dim=1)
    torch.cross(x, y.expand(2, 3))
    torch.cross(x, x[:1], dim=1)
    torch.cross(x, y)
    torch.cross(w, w)
    torch.cross(x, x, dim=0)
    torch.dist(x, y)
    torch.dist(x, y, 1)
    torch.dist(x, x)
    torch.dist(x, y, float("inf"))
    torch.cdist(x, x * 2)
    torch.cdist(c, c * 2 + 1)
    torch.cdist(c, c[0], 1)
    torch.cdist(c, c[0] * 3, 0)
    torch.cdist(c, c[0] * 3, float("inf"))
    torch.cdist(c, c[0] * 3, 3)
    torch.cdist(x, x)
    torch.cdist(x, y)
    torch.cdist(x, w[None])
    torch.cdist(x, x, -1)
    torch.cdist(x[:0], x)
    torch.pdist(c[0])
    torch.pdist(c[0], 1)
    torch.pdist(x[:1])
    torch.pdist(c)
    torch.renorm(x, 2, 0, 1)
    torch.renorm(x, 1, 1, 3)
    torch.renorm(c, 3, 1, 0.5)
    torch.renorm(y, 2, 0, 1)
    torch.renorm(x, 0, 0, 1)
    torch.renorm(x, 2, 0, -1)
    torch.renorm(x * 0 + 1e-09, 2, 0, 0)
    torch.nanmean(n.detach(), 1)
    torch.nanmean(n.detach(), 0, True)
"""


@pytest.mark.parametrize("text", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_as_the_reference(text):
    compare(text, {name: ARRAYS[name] for name in names_in(text)}, rtol=1e-9)


def test_logsumexp_of_no_complex_numbers():
    for empty, dim, shape in (((0,), 0, ()), ((2, 0), 1, (2,)), ((0, 2), 1, (0,))):
        found = cygrad.logsumexp(cygrad.zeros(empty, dtype=cygrad.complex128), dim)
        assert found.shape == shape
        assert (found == -cygrad.inf).all()


def test_a_histogram_with_equal_limits_is_centered_on_them():
    counts, edges = cygrad.histogram(cygrad.tensor([0.6, 0.6, 3.0]), 2, range=(1.0, 1.0))
    assert counts.tolist() == [2, 0] and edges.tolist() == [0.5, 1.0, 1.5]


def test_a_histogram_with_edges_refuses_a_range():
    with pytest.raises(TypeError, match="range"):
        cygrad.histogram(cygrad.tensor([0.5]), cygrad.tensor([0.0, 1.0]), range=(0.0, 2.0))


def test_unique_slices_with_nan_are_distinct():
    values = cygrad.tensor([float("nan"), 0.0, 0.0, float("nan")])
    for dim in (None, 0):
        unique, counts = cygrad.unique(values, return_counts=True, dim=dim)
        assert unique[0] == 0 and unique[1:].isnan().tolist() == [True, True] and counts.tolist() == [2, 1, 1]


def test_logcumsumexp_of_complex_numbers_stays_nan_after_nan():
    nan, inf = float("nan"), float("inf")
    result = cygrad.logcumsumexp(cygrad.tensor([complex(inf, 1), complex(0, nan), 0j]), 0)
    assert result[0].item() == complex(inf, 1) and result[1:].isnan().all()


def test_searchsorted_promotes_dtypes():
    # 16777217 is no float32; integers and floats are compared as float64
    edges = cygrad.tensor([16777216.0, 16777218.0])
    assert cygrad.searchsorted(edges, cygrad.tensor([16777217], dtype=cygrad.int32)).tolist() == [1]
    assert cygrad.bucketize(cygrad.tensor([1, 2]), cygrad.tensor([0.5, 1.5])).tolist() == [1, 2]
    assert cygrad.bucketize(cygrad.tensor([1.5]), cygrad.tensor([1, 2])).tolist() == [1]


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_a_variance_without_degrees_of_freedom_warns(name):
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        result = getattr(cygrad, name)(cygrad.ones(2, 1), dim=1)
    assert (result[0] if isinstance(result, tuple) else result).isnan().all()


@pytest.mark.filterwarnings("error")
def test_no_variance_at_all_lacks_no_degrees_of_freedom():
    assert cygrad.var(cygrad.ones(0, 3), 1).shape == (0,)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_a_variance_of_an_array_is_that_of_a_tensor(name):
    values = np.arange(4.0)
    assert str(getattr(cygrad, name)(values)) == str(getattr(cygrad, name)(cygrad.from_numpy(values)))
