"""Element-wise functions, special functions, in-place methods and aliases, compared with PyTorch."""

import pytest

import cygrad
from cygrad.nn import functional as F
from tests.composite.arrays import ARRAYS, names_in
from tests.composite.test_composite import compare

EXPRESSIONS = r"""
    torch.ldexp(y, torch.tensor([1, 2, 3]))
    torch.ldexp(y, y)
    torch.ldexp(k, k)
    torch.ldexp(z, torch.tensor([1, 2]))
    torch.frexp(w)
    torch.frexp(y * 0)
    torch.frexp(k)
    torch.float_power(w, 2)
    torch.float_power(2, y)
    torch.float_power(y, torch.tensor([1, 2, 3]))
    torch.float_power(k, 1j)
    torch.float_power(2, 3)
    torch.mvlgamma(w + 2, 2)
    torch.mvlgamma(w + 2, 3)
    torch.mvlgamma(w, 0)
    torch.mvlgamma(v + 3, 2)
    torch.polygamma(0, w)
    torch.polygamma(1, w)
    torch.polygamma(4, w)
    torch.polygamma(-1, w)
    w.polygamma(2)
    torch.polygamma(1, v + 1)
    torch.logit(w / 8)
    torch.logit(w / 8 - 0.2, 0.1)
    torch.logit(w, eps=0.25)
    torch.logit(torch.tensor([0.0, 1.0, -1.0, 2.0]))
    torch.logit(b)
    torch.nan_to_num(n)
    torch.nan_to_num(n, 2.0, 3.0, 4.0)
    torch.nan_to_num(torch.tensor([float("inf"), -float("inf"), 1.0, float("nan")]))
    torch.nan_to_num(k)
    torch.nan_to_num(b)
    torch.isreal(z)
    torch.isreal(x)
    torch.isposinf(x / 0)
    torch.isneginf(x / 0)
    torch.isposinf(k)
    torch.isposinf(z)
    torch.isin(v, torch.tensor([1, 5]))
    torch.isin(v, torch.arange(3, 30), invert=True)
    torch.isin(x, w)
    torch.isin(x, 2.5)
    torch.isin(3, v)
    torch.isin(x, v)
    torch.isin(v, w)
    torch.isin(n, n)
    torch.gcd(k, torch.tensor([2, 3, 4]))
    torch.lcm(k - 3, torch.tensor([2, 3, 4]))
    torch.gcd(x, x)
    torch.gcd(b, b)
    torch.heaviside(k, k)
    torch.nextafter(x, y)
    torch.nextafter(k, k)
    torch.logaddexp2(x, y)
    torch.logaddexp2(k, k)
    torch.deg2rad(x)
    torch.rad2deg(k)
    torch.deg2rad(z)
    torch.igamma(w.detach(), y.abs()[0])
    torch.igammac(w.detach(), w * 2)
    torch.erfinv(y / 5)
    torch.erfinv(v)
    torch.digamma(torch.tensor([0.0, -0.0, -1.0, -2.5, float("inf"), -float("inf"), float("nan")]))
    torch.lgamma(y)
    torch.lgamma(v + 1)
    torch.i0(x)
    torch.special.zeta(torch.tensor([2.0, 3.0, 1.0, 0.5, 4.0]), w)
    torch.special.zeta(2.0, w)
    torch.special.entr(torch.tensor([0.0, 1.0, 0.5, -1.0, float("nan"), float("inf")]))
    torch.special.entr(w)
    torch.special.xlog1py(y, w[:3])
    torch.special.xlog1py(2, w)
    torch.special.xlog1py(w, 2)
    torch.special.psi(w)
    torch.special.expit(w)
    torch.special.logit(w / 8, 0.2)
    torch.special.multigammaln(w + 1, 2)
    torch.special.gammainc(w.detach(), w * 1.5)
    torch.special.log_softmax(x, 1)
    torch.special.softmax(x, dim=0)
    torch.special.round(x)
    torch.special.round(x, decimals=1)
    torch.special.logsumexp(x, 0)
    (torch.special.i0e(x), torch.special.i1(x), torch.special.i1e(x))
    (torch.special.erfcx(x), torch.special.ndtr(x), torch.special.log_ndtr(x * 5))
    torch.special.ndtri(w / 8)
    torch.special.ndtri(torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5]))
    torch.special.bessel_j0(w.detach())
    torch.special.bessel_j1(w.detach())
    torch.special.bessel_y0(w.detach())
    torch.special.bessel_y1(w.detach())
    torch.special.modified_bessel_i0(x.detach())
    torch.special.modified_bessel_i1(x.detach())
    torch.special.modified_bessel_k0(w.detach())
    torch.special.modified_bessel_k1(w.detach())
    torch.special.scaled_modified_bessel_k0(w.detach())
    torch.special.scaled_modified_bessel_k1(w.detach())
    torch.special.spherical_bessel_j0(w.detach())
    (x * 1).logit_(0.3)
    (x * 1).nan_to_num_()
    (x * 1).index_fill_(1, torch.tensor([0]), 3.0)
    (x * 1).index_copy_(1, torch.tensor([0]), w[:2, None])
    (x * 1).masked_scatter_(b, w)
    (x * 1).put_(torch.tensor([0]), w[:1])
    (x * 1).renorm_(2, 0, 1)
    (w * 1).polygamma_(1)
    (x * 1).deg2rad_()
    (y[:2] * 1).addmv_(x, y)
    (x * 1).float_power_(2)
    (k * 1).float_power_(2)
    (k * 1).gcd_(k)
    (k * 1).lcm_(k)
    (k * 1).digamma_()
    (w * 1).digamma_()
    (w * 1).erfinv_()
    ((w * 1).lgamma_(), (w * 1).mvlgamma_(1), (w * 1).i0_())
    torch.heaviside(x.detach(), y.detach())
    torch.sum(x, axis=0, keepdims=True)
    x.mean(axis=1)
    torch.max(x, axis=1)
    x.std(axis=0, keepdims=True)
    torch.cumsum(x, axis=1)
    torch.argmax(x, axis=0)
    torch.cat((x, x), axis=1)
    torch.stack((x, x), axis=1)
    torch.squeeze(x[:1], axis=0)
    torch.unsqueeze(x, axis=1)
    torch.sort(x, axis=0)
    torch.topk(x, 2, axis=1)
    torch.norm(x, "fro")
    torch.norm(x)
    torch.norm(x, 1)
    torch.norm(x, p=3, dim=1, keepdim=True)
    x.norm(dim=(0, 1))
    x.norm(1, 1, dtype=torch.float64)
    torch.norm(x, "abc")
    torch.norm(x, "fro", dim=0)
    torch.norm(x, None)
    torch.nonzero(k)
    torch.nonzero(k, as_tuple=True)
    k.nonzero(as_tuple=True)
    torch.nonzero(torch.tensor(3), as_tuple=True)
    torch.where(k)
    torch.where(k > 1)
    torch.where(k > 1, x, 0.0)
    torch.where(k > 1, 1, x)
    x.where(k > 1, y)
    x.where(k > 1, 0)
    torch.nonzero_static(k, size=3)
    torch.nonzero_static(k, size=9, fill_value=0)
    torch.unravel_index(torch.tensor([4, 1, -1]), (2, 3))
    torch.unravel_index(torch.tensor([[4, 1], [0, 5]]), (2, 3))
    torch.unravel_index(torch.tensor(2.0), (2, 3))
    torch.argsort(y, stable=True)
    torch.split_with_sizes(x, [1, 2], 1)
    torch.unsafe_split(x, 2, 1)
    torch.unsafe_chunk(x, 2, 1)
    torch.is_nonzero(torch.tensor(0.0))
    torch.is_nonzero(x)
    torch.is_nonzero(y[:1])
    torch.is_same_size(x, k)
    (torch.is_signed(k),)
    k.is_signed()
    torch.conj_physical(z)
    torch.fill(x, 3)
    torch.fill(x, y[0])
    torch.fill(x, y)
    torch.resolve_conj(z.conj())
    torch.aminmax(x, dim=1)
    torch.lerp(x, y, 0.3)
    torch.quantile(x, 0.4, dim=1, keepdim=True)
    torch.median(x, axis=1)
    torch.trapezoid(y[:1])
    torch.take_along_dim(x, torch.tensor([[0], [1]]), dim=1)
    torch.all(x > 0, axis=0)
    torch.logsumexp(x, axis=0)
    torch.unbind(x, axis=1)
"""


@pytest.mark.parametrize("text", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_as_the_reference(text):
    compare(text, {name: ARRAYS[name] for name in names_in(text)}, rtol=1e-9)


@pytest.mark.parametrize("dtype", [cygrad.bfloat16, cygrad.float16])
def test_neighbors_of_short_floats_are_those_of_their_dtype(dtype):
    tiny, largest = ((2.0**-133, 3.3895313892515355e38), (2.0**-24, 65504.0))[dtype is cygrad.float16]
    step = 2.0**-7 if dtype is cygrad.bfloat16 else 2.0**-10
    infinity, nan = float("inf"), float("nan")
    cases = [(1.0, 2.0, 1 + step), (1.0, 0.0, 1 - step / 2), (-1.0, 0.0, -1 + step / 2), (-1.0, -infinity, -1 - step),
             (0.0, 1.0, tiny), (0.0, -1.0, -tiny), (tiny, -1.0, 0.0), (largest, infinity, infinity),
             (infinity, 0.0, largest), (-infinity, 0.0, -largest), (1.0, 1.0, 1.0), (3.0, nan, nan), (nan, 0.0, nan)]
    start, end, expected = (cygrad.tensor(values, dtype=dtype) for values in zip(*cases, strict=True))
    found = cygrad.nextafter(start, end)
    assert found.dtype is dtype
    assert cygrad.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0))
    assert cygrad.signbit(cygrad.nextafter(cygrad.tensor([-tiny], dtype=dtype), end[:1])).item()
    assert cygrad.equal(start.clone()[:11].nextafter_(end[:11]), expected[:11])
    leaf = start[:3].clone().requires_grad_()
    cygrad.nextafter(leaf, end[:3].expand(2, 3)).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("other", [cygrad.float64, cygrad.int64, cygrad.float16])
def test_heaviside_needs_one_dtype(other):
    x, values = cygrad.tensor([-1.0, 0.0, 2.0]), cygrad.tensor([0.5])
    assert cygrad.heaviside(x, values).tolist() == [0, 0.5, 1]
    for call in (cygrad.heaviside, cygrad.Tensor.heaviside_):
        with pytest.raises(RuntimeError, match="heaviside: input and values must have the same dtype"):
            call(x, values.to(other))


@pytest.mark.parametrize("dtype", [cygrad.float16, cygrad.bfloat16, cygrad.float32, cygrad.float64])
def test_rounding_to_decimals_keeps_the_nearest_number_of_the_dtype(dtype):
    x = cygrad.tensor([52.46875, -57.75, 94.9375, 89.0625, 0.3, float("inf"), -float("inf")], dtype=dtype)
    expected = cygrad.tensor([round(value, 1) if abs(value) < 100 else value for value in x.tolist()], dtype=dtype)
    assert cygrad.equal(x.round(decimals=1), expected)
    assert cygrad.equal(x.clone().round_(decimals=1), expected)
    out = cygrad.empty(0, dtype=dtype)
    assert cygrad.round(x, decimals=1, out=out) is out and cygrad.equal(out, expected)


@pytest.mark.parametrize(("dtype", "large"), [(cygrad.float32, 3e38), (cygrad.float64, 1e308), (cygrad.bfloat16, 3e38)])
def test_rounding_to_decimals_keeps_large_numbers(dtype, large):
    x = cygrad.tensor([large, -large], dtype=dtype, requires_grad=True)
    rounded = x.round(decimals=3)
    assert cygrad.equal(rounded, x)
    rounded.sum().backward()
    assert x.grad.tolist() == [0, 0]


ROUNDED_ONCE = {
    "addmv": lambda x, y: cygrad.addmv(x[:, 0], y, x[0], beta=0.6, alpha=0.2),
    "addr": lambda x, y: cygrad.addr(y, x[0], y[:, 1], beta=0.6, alpha=0.2),
    "baddbmm": lambda x, y: cygrad.baddbmm(x, y[None], x[None], beta=0.2, alpha=0.6),
    "addbmm": lambda x, y: cygrad.addbmm(x, cygrad.stack([x, y]), cygrad.stack([y, x]), beta=0.6, alpha=0.2),
    "dist": cygrad.dist,
    "cdist": lambda x, y: cygrad.cdist(x, y, 3),
    "pdist": lambda x, y: cygrad.pdist(x, 3),
    "renorm": lambda x, y: x.renorm(2, 0, 0.5),
    "mvlgamma": lambda x, y: cygrad.mvlgamma(x, 1),
    "cumulative_trapezoid": cygrad.cumulative_trapezoid,
    "pairwise_distance": F.pairwise_distance,
    "cosine_similarity": F.cosine_similarity,
    "normalize": lambda x, y: F.normalize(x, 3),
    "glu": lambda x, y: F.glu(x),
    "batch_norm": lambda x, y: F.batch_norm(x, y[0], y[1], y[2], y[3]),
    "soft_margin_loss": lambda x, y: F.soft_margin_loss(x, cygrad.sign(y - 0.5)),
    "triplet_margin_loss": lambda x, y: F.triplet_margin_loss(x, y, x.flip(0), margin=3),
    "multilabel_soft_margin_loss": F.multilabel_soft_margin_loss,
    "gaussian_nll_loss": lambda x, y: F.gaussian_nll_loss(x, y.flip(0), y),
    "poisson_nll_loss": F.poisson_nll_loss,
    "cross_entropy": lambda x, y: F.cross_entropy(x, y.detach()),
    "binary_cross_entropy_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y, y, pos_weight=x),
}


@pytest.mark.parametrize(("dtype", "epsilon"), [(cygrad.float16, 2.0**-11), (cygrad.bfloat16, 2.0**-8)])
@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_composed_functions_of_short_floats_are_rounded_once(name, dtype, epsilon):
    function = ROUNDED_ONCE[name]
    values = [cygrad.linspace(0.05, 0.95, 16), cygrad.linspace(0.9, 0.15, 16).roll(5)]
    short = [part.reshape(4, 4).to(dtype).requires_grad_() for part in values]
    exact = [part.detach().double().requires_grad_() for part in short]
    found, expected = function(*short), function(*exact)
    assert found.dtype is dtype
    assert ((found.double() - expected).abs() <= 1.01 * epsilon * expected.abs() + 1e-6).all()
    weights = cygrad.linspace(0.5, 1.5, expected.numel()).reshape(expected.shape).to(dtype)
    found.backward(weights)
    expected.backward(weights.double())
    assert (short[0].grad.double() - exact[0].grad).abs().max() <= 1.6 * epsilon * exact[0].grad.abs().max()
