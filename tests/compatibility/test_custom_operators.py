"""torch.library: derivatives, rules for vmap, and arguments that kernels modify."""

import pytest

import cygrad
from cygrad.compatibility import library


@pytest.fixture
def scaled():
    def scaled(x, factor=2.0, *, scale=1.0):
        return x.sin() * factor * scale
    operator = library.custom_op("test_custom::scaled", scaled, mutates_args=())
    yield operator
    del library.OPERATORS["test_custom::scaled"]


def registered(operator):
    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factors = inputs[1], keyword_only_inputs["scale"]
    operator.register_autograd(
        lambda ctx, gradient: (gradient * ctx.saved_tensors[0].cos() * ctx.factors[0] * ctx.factors[1], None),
        setup_context=setup)


def test_setup_context_gets_its_arguments_by_name(scaled):
    registered(scaled)
    x = cygrad.rand(3, requires_grad=True)
    assert cygrad.allclose(cygrad.autograd.grad(scaled(x, 3.0, scale=2.0).sum(), x)[0], x.cos() * 6)
    assert cygrad.allclose(cygrad.autograd.grad(scaled(x).sum(), x)[0], x.cos() * 2)
    with cygrad.no_grad():
        assert scaled(x).grad_fn is None
    assert not scaled(x.detach()).requires_grad


def test_an_operator_with_a_derivative_refuses_tangents(scaled):
    registered(scaled)
    with cygrad.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp"):
        scaled(cygrad.autograd.forward_ad.make_dual(cygrad.ones(2), cygrad.ones(2)))


@pytest.mark.parametrize("with_derivative", [False, True])
@pytest.mark.parametrize("with_rule", [False, True])
def test_operators_under_vmap_use_their_rule_or_those_of_the_kernel(scaled, with_derivative, with_rule):
    seen = []
    if with_derivative:
        registered(scaled)
    if with_rule:
        @scaled.register_vmap
        def rule(info, in_dims, x, factor, *, scale):
            seen.append((info.batch_size, in_dims))
            return scaled(x, factor, scale=scale), in_dims[0]
    x = cygrad.rand(3, 4, requires_grad=True)
    y = cygrad.vmap(lambda row: scaled(row, 3.0, scale=2.0))(x)
    assert cygrad.allclose(y, x.sin() * 6)
    assert cygrad.allclose(cygrad.autograd.grad(y.sum(), x)[0], x.cos() * 6)
    assert seen == [(3, (0, None))] * with_rule


@pytest.mark.parametrize("mutated", [("x",), "unknown"])
def test_a_kernel_that_modifies_an_argument_is_an_in_place_operation(mutated):
    @library.custom_op("test_custom::fill", mutates_args=mutated)
    def fill(x, value=1.0):
        x.detach().numpy()[...] = value
    x, y = cygrad.zeros(3), cygrad.ones(3, requires_grad=True)
    product = (x * y).sum()
    fill(x, value=2.0)
    assert x.tolist() == [2, 2, 2] and x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    several = [cygrad.zeros(2), None, cygrad.zeros(2)]
    nothing = library.custom_op("test_custom::fill", lambda x: None, mutates_args=mutated)
    nothing(several)
    assert [part if part is None else part._version for part in several] == [1, None, 1]
    del library.OPERATORS["test_custom::fill"]
