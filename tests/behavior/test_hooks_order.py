"""Order of hooks at a node, and the gradients that they get."""

import pytest

import cygrad
from cygrad.autograd import grad
from cygrad.autograd.graph import GradientEdge, get_gradient_edge


def logged(log, name, factor=None):
    def hook(*arguments):
        log.append((name, [entry.tolist() for entry in arguments[0]] if isinstance(arguments[0], tuple)
                    else arguments[0].tolist()))
        if factor is None:
            return None
        return (arguments[0][0] * factor,) if isinstance(arguments[0], tuple) else arguments[0] * factor
    return hook


@pytest.mark.guarantee("H3")
@pytest.mark.parametrize("create_graph", [True, False])
def test_tensor_hooks_then_what_is_kept_then_prehooks(create_graph):
    log = []
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(logged(log, "before", 10))
    y.register_hook(logged(log, "tensor", 2))
    z = (y * 3).sum()
    z.backward(retain_graph=True, create_graph=create_graph)
    assert log == [("tensor", [3, 3]), ("before", [[6, 6]])]
    assert y.grad.tolist() == [6, 6]
    assert x.grad.tolist() == [120, 120]
    first, second = grad(z, (y, x), retain_graph=True, create_graph=create_graph)
    # Requested gradients are captured before the node's hooks, but after those of the tensor.
    assert first.tolist() == [6, 6]
    assert second.tolist() == [120, 120]


@pytest.mark.guarantee("H3")
def test_the_same_at_a_leaf():
    log = []
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    get_gradient_edge(x).node.register_prehook(logged(log, "before", 10))
    x.register_hook(logged(log, "tensor", 3))
    assert grad(y.sum(), x, retain_graph=True)[0].tolist() == [6, 6]
    y.sum().backward()
    assert x.grad.tolist() == [60, 60]
    assert log == [("tensor", [2, 2]), ("tensor", [2, 2]), ("before", [[6, 6]])]


@pytest.mark.guarantee("H3")
def test_posthooks_of_a_leaf_see_the_gradient_that_was_taken_over():
    seen = []
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    node = get_gradient_edge(x).node

    def change(leaf):
        leaf.grad.mul_(5)

    def post(inputs, outputs):
        seen.append((inputs, outputs[0].tolist(), outputs[0].data_ptr() == x.grad.data_ptr()))

    node.register_hook(post)
    x.register_post_accumulate_grad_hook(change)
    y.backward(cygrad.ones(2))
    assert seen == [((), [10, 10], True)]
    assert x.grad.tolist() == [10, 10]


@pytest.mark.guarantee("H3")
def test_a_gradient_that_a_hook_has_kept_stays_as_it_was():
    kept = []
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    x.register_hook(lambda gradient: kept.append(gradient))
    y.backward(cygrad.ones(2), retain_graph=True)
    x.grad.mul_(7)
    assert kept[0].tolist() == [2, 2]
    y.backward(cygrad.ones(2))
    assert x.grad.tolist() == [16, 16]
    assert [gradient.tolist() for gradient in kept] == [[2, 2], [2, 2]]


@pytest.mark.guarantee("H3")
def test_a_gradient_given_from_outside_stays_as_it_was():
    x = cygrad.ones(2, requires_grad=True)
    given = cygrad.ones(2)
    x.register_hook(lambda gradient: None)
    x.backward(given)
    x.grad.mul_(7)
    assert given.tolist() == [1, 1]
    assert x.grad.tolist() == [7, 7]


# ---- several results, one node

def factors(x):
    return cygrad.lu_unpack(*cygrad.linalg.lu_factor(x))[1:]


SEVERAL = {
    "var_mean": lambda x: cygrad.var_mean(x), "var_mean of a dimension": lambda x: cygrad.var_mean(x, 1),
    "std_mean": lambda x: cygrad.std_mean(x), "std_mean of a dimension": lambda x: cygrad.std_mean(x, 1),
    "aminmax": lambda x: cygrad.aminmax(x), "aminmax of a dimension": lambda x: cygrad.aminmax(x, dim=1),
    "lu_unpack": factors, "linalg.lu": lambda x: cygrad.linalg.lu(x)[1:],
}


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("name", SEVERAL)
def test_composed_results_share_one_node(name):
    x = cygrad.tensor([[1.0, 2.0], [4.0, 3.0]], requires_grad=True, dtype=cygrad.float64)
    results = SEVERAL[name](x)
    assert results[0].grad_fn is results[1].grad_fn
    assert [result.output_nr for result in results] == [0, 1]
    seen = []
    results[0].grad_fn.register_prehook(lambda gradients: seen.append([g.sum().item() for g in gradients]))
    (results[0].sum() * 2 + results[1].sum() * 3).backward()
    assert seen == [[2 * results[0].numel(), 3 * results[1].numel()]]


@pytest.mark.guarantee("G4")
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("which", [0, 1])
def test_one_of_the_results_alone(name, which):
    x = cygrad.tensor([[1.0, 2.0], [4.0, 3.0]], requires_grad=True, dtype=cygrad.float64)

    def one(x):
        return SEVERAL[name](x)[which]

    assert cygrad.autograd.gradcheck(one, (x,), check_forward_ad=True)
    assert cygrad.autograd.gradgradcheck(one, (x,))


# ---- edges

@pytest.mark.guarantee("G3")
def test_an_edge_is_a_named_tuple():
    x = cygrad.ones(2, requires_grad=True)
    y = x * 2
    edge = get_gradient_edge(y)
    assert isinstance(edge, tuple)
    assert edge._fields == ("node", "output_nr", "ownership_token")
    node, output_nr, _token = edge
    assert (node, output_nr) == (y.grad_fn, 0) == (edge.node, edge.output_nr)
    made = GradientEdge(y.grad_fn, 0)
    assert made.ownership_token is None
    assert made == edge == get_gradient_edge(y) != get_gradient_edge(x)
    assert hash(made) == hash(edge)
    assert grad(y.sum(), made, retain_graph=True)[0].tolist() == [1, 1]
    assert grad(edge, x, cygrad.ones(2), retain_graph=True)[0].tolist() == [2, 2]
    with pytest.raises(TypeError, match="expected a node"):
        GradientEdge(y, 0)
    with pytest.raises(ValueError, match="no output of this index"):
        GradientEdge(y.grad_fn, 1)


@pytest.mark.guarantee("G3")
def test_an_edge_of_a_scalar_knows_its_shape():
    x = cygrad.ones(2, requires_grad=True)
    edge = get_gradient_edge((x * 2).sum())
    assert grad(edge, x)[0].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="shape is not known"):
        cygrad.autograd.backward(GradientEdge((x * 2).sum().grad_fn, 0))


# ---- nodes are functions

@pytest.mark.guarantee("G2")
def test_a_node_can_be_called():
    log = []
    x = cygrad.ones(2, requires_grad=True)
    y = x * x
    node = y.grad_fn
    node.register_hook(logged(log, "after"))
    node.register_prehook(logged(log, "before"))
    for _ in range(2):
        first, second = node(cygrad.tensor([1.0, 2.0]))
        assert first.tolist() == second.tolist() == [1, 2]
        assert first.requires_grad
    assert log == []
    assert x.grad is None
    with cygrad.no_grad():
        assert not node(cygrad.ones(2))[0].requires_grad
    assert node(None) == (None, None)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        node(cygrad.ones(2))


@pytest.mark.guarantee("G2")
def test_calls_can_be_differentiated():
    x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    gradient = cygrad.ones(2, requires_grad=True)
    found = (x.exp()).grad_fn(gradient)
    assert grad(found.sum(), (x, gradient))[1].tolist() == pytest.approx(x.exp().tolist())


@pytest.mark.guarantee("G2")
def test_calls_of_other_nodes():
    x = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, _ = x.unbind()
    assert first.grad_fn(cygrad.ones(2), None).tolist() == [[1, 1], [0, 0]]
    leaf = get_gradient_edge(x).node
    assert leaf(cygrad.ones(2, 2)) == ()
    assert leaf(cygrad.ones(2, 2)) == ()
    assert x.grad.tolist() == [[2, 2], [2, 2]]
    y = x * 1
    y[0].mul_(3)
    assert y.grad_fn.name() == "CopySlices"
    assert y.grad_fn(cygrad.ones(2, 2))[0].tolist() == [[3, 3], [1, 1]]


@pytest.mark.guarantee("G2")
@pytest.mark.parametrize("gradients", [(), (cygrad.ones(2),) * 2, (1.0,), ([1.0, 2.0],)])
def test_wrong_calls(gradients):
    with pytest.raises(TypeError, match=r"MulBackward0: (expected 1 arguments, got|gradients must be)"):
        (cygrad.ones(2, requires_grad=True) * 2).grad_fn(*gradients)


# ---- unused inputs

@pytest.mark.guarantee("B4")
@pytest.mark.parametrize("create_graph", [True, False])
def test_materialized_zeros_can_be_differentiated_again(create_graph):
    x, unused = cygrad.ones(2, requires_grad=True), cygrad.ones(3, requires_grad=True)
    found = grad((x * 2).sum(), (x, unused), materialize_grads=True, create_graph=create_graph)
    assert found[1].tolist() == [0, 0, 0]
    assert found[1].requires_grad is create_graph
    if create_graph:
        assert grad(found[1].sum(), unused, allow_unused=True) == (None,)
        assert grad(found[1].sum(), unused, materialize_grads=True)[0].tolist() == [0, 0, 0]
