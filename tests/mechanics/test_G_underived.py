"""Results of operators that have no derivative remember that they had an input (row G1)."""

import pytest

import cygrad
from cygrad.autograd import forward_ad, grad

CALLS = {
    "unique": lambda x: cygrad.unique(x), "unique with counts": lambda x: cygrad.unique(x, return_counts=True)[0],
    "unique of slices": lambda x: cygrad.unique(x, dim=0), "unique method": lambda x: x.unique(),
    "unique_consecutive": lambda x: cygrad.unique_consecutive(x),
    "unique_consecutive of slices": lambda x: cygrad.unique_consecutive(x, dim=1),
    "geqrf": lambda x: cygrad.geqrf(x)[0], "geqrf factors": lambda x: cygrad.geqrf(x).tau,
    "igamma": lambda x: cygrad.igamma(x, cygrad.ones(2, 2)), "igammac": lambda x: cygrad.igammac(x, cygrad.ones(2, 2)),
    "zeta": lambda x: cygrad.special.zeta(x + 1, 2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_G1_history_is_kept_and_backward_names_the_operator(name):
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    result = CALLS[name](x)
    assert result.requires_grad
    with pytest.raises(NotImplementedError, match=f"{name.split()[0]}.*derivative is not implemented"):
        result.sum().backward()
    with pytest.raises(NotImplementedError, match=name.split()[0]):
        grad(CALLS[name](x).sum(), x, create_graph=True)


@pytest.mark.parametrize("name", CALLS)
def test_G1_nothing_is_recorded_where_nothing_is_asked_for(name):
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert not CALLS[name](x).requires_grad
    with cygrad.no_grad():
        assert not CALLS[name](x.requires_grad_()).requires_grad


def test_G1_the_other_argument_has_its_gradient():
    x, y = (cygrad.ones(2, requires_grad=True) for _ in range(2))
    assert grad(cygrad.igamma(x, y).sum(), y)[0].tolist() == pytest.approx([0.36788, 0.36788], rel=1e-4)


def test_G1_a_tangent_is_refused_at_once():
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="igamma"):
        cygrad.igamma(forward_ad.make_dual(cygrad.ones(2), cygrad.ones(2)), cygrad.ones(2))
