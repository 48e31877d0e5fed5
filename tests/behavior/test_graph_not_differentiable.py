"""Results of non-differentiable operators refer to their input in errors."""

import pytest

import cygrad
from cygrad.autograd import forward_ad, grad

pytestmark = pytest.mark.guarantee("G1")

CALLS = {
    "unique": lambda x: cygrad.unique(x), "unique with counts": lambda x: cygrad.unique(x, return_counts=True)[0],
    "unique of slices": lambda x: cygrad.unique(x, dim=0), "unique method": lambda x: x.unique(),
    "unique_consecutive": lambda x: cygrad.unique_consecutive(x),
    "unique_consecutive of slices": lambda x: cygrad.unique_consecutive(x, dim=1),
    "geqrf": lambda x: cygrad.geqrf(x)[0], "geqrf factors": lambda x: cygrad.geqrf(x).tau,
    "igamma": lambda x: cygrad.igamma(x, cygrad.ones(2, 2)), "igammac": lambda x: cygrad.igammac(x, cygrad.ones(2, 2)),
    "bincount": lambda x: cygrad.bincount(cygrad.tensor([0, 1, 1, 3]), x.flatten()),
    "histogram": lambda x: cygrad.histogram(x, 2).hist, "histogram edges": lambda x: cygrad.histogram(x, 2).bin_edges,
    "histogram weights": lambda x: cygrad.histogram(cygrad.ones(2, 2), 2, weight=x).hist,
    "histogramdd": lambda x: cygrad.histogramdd(x, 2).hist,
    "histogramdd weights": lambda x: cygrad.histogramdd(cygrad.ones(4, 2), 2, weight=x.flatten()).hist,
    "binomial": lambda x: cygrad.binomial(x, cygrad.ones(2, 2)),
    "binomial chances": lambda x: cygrad.binomial(cygrad.ones(2, 2), x / 4),
    "zeta": lambda x: cygrad.special.zeta(x + 1, 2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_history_is_kept_and_backward_names_the_operator(name):
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    result = CALLS[name](x)
    assert result.requires_grad
    with pytest.raises(NotImplementedError, match=f"the derivative for {name.split()[0]}.* is not implemented"):
        result.sum().backward()
    with pytest.raises(NotImplementedError, match=name.split()[0]):
        grad(CALLS[name](x).sum(), x, create_graph=True)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_recorded_where_nothing_is_asked_for(name):
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert not CALLS[name](x).requires_grad
    with cygrad.no_grad():
        assert not CALLS[name](x.requires_grad_()).requires_grad


def test_the_other_argument_has_its_gradient():
    x, y = (cygrad.ones(2, requires_grad=True) for _ in range(2))
    assert grad(cygrad.igamma(x, y).sum(), y)[0].tolist() == pytest.approx([0.36788, 0.36788], rel=1e-4)


def test_a_tangent_is_refused_at_once():
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="igamma"):
        cygrad.igamma(forward_ad.make_dual(cygrad.ones(2), cygrad.ones(2)), cygrad.ones(2))


def test_counts_drawn_have_the_gradient_zero():
    x = cygrad.tensor([2.0, cygrad.inf], requires_grad=True)
    counts = cygrad.poisson(x[:1])
    assert counts.requires_grad
    assert grad(counts.sum(), x)[0].tolist() == [0, 0]


def test_each_of_several_inputs_is_remembered():
    x, weight = cygrad.rand(3, requires_grad=True), cygrad.rand(3, requires_grad=True)
    for first, second in ((x, weight), (x, weight.detach()), (x.detach(), weight)):
        result = cygrad.histogram(first, 2, weight=second).hist
        assert result.requires_grad
        with pytest.raises(NotImplementedError, match="histogram"):
            result.sum().backward()
