"""Errors of backward: detached tensors, unused inputs, invalid gradients."""

import pytest

import cygrad
from cygrad.autograd import Function, grad
from cygrad.autograd.graph import GradientEdge, get_gradient_edge


def leaf(*values):
    return cygrad.tensor(values, requires_grad=True)


def under_no_grad(function):
    with cygrad.no_grad():
        return function()


def under_inference_mode(function):
    with cygrad.inference_mode():
        return function()


class Constant(Function):
    @staticmethod
    def forward(ctx, x):
        result = x * 2
        ctx.mark_non_differentiable(result)
        return result

    @staticmethod
    def backward(ctx, g):
        return None


def gradient_of(x):
    return grad((x * x).sum(), x)[0]


def collected(x):
    (x * x).sum().backward()
    return x.grad


def view_without_history(x):
    y = x * 2
    return under_no_grad(lambda: y[:1])


CUTS = {
    "detach": (lambda x: (x * 2).detach(), r"created by detach\(\)"),
    "view of detach": (lambda x: (x * 2).detach()[:1], r"created by detach\(\)"),
    "detach_": (lambda x: (x * 2).detach_(), r"removed from the graph by detach_\(\)"),
    "data": (lambda x: (x * 2).data, r"created by \.data"),
    "no_grad": (lambda x: under_no_grad(lambda: x * 2), r"created without recording.*no_grad\(\)"),
    "view under no_grad": (lambda x: under_no_grad(lambda: (x * 2)[:1]), r"created without recording"),
    "no_grad view of a tensor with history": (view_without_history, r"is a view created under no_grad\(\)"),
    "inference": (lambda x: under_inference_mode(lambda: x * 2), "created in inference mode"),
    "view in inference": (lambda x: under_inference_mode(lambda: x[:1]), "created in inference mode"),
    "integers": (lambda x: x.long(), "No gradient flows through int64 tensors.*floating point"),
    "argmax": (lambda x: x.argmax(), "No gradient flows through int64 tensors.*argmax"),
    "comparison": (lambda x: x > 0, "Bool tensors, as returned by comparisons"),
    "non-differentiable": (lambda x: Constant.apply(x), r"mark_non_differentiable\(\)"),
    "gradient": (gradient_of, "is a gradient, computed without create_graph=True"),
    "collected gradient": (collected, "is a gradient, computed without create_graph=True"),
    "leaf": (lambda x: cygrad.ones(2), "leaf without requires_grad=True"),
    "computed from leaves": (lambda x: cygrad.ones(2) * 2, "computed from tensors that do not require grad"),
    "detached leaf": (lambda x: cygrad.ones(2).detach(), "leaf without requires_grad=True"),
}


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize("cut", CUTS)
def test_error_tells_where_the_graph_was_cut(cut):
    function, reason = CUTS[cut]
    tensor = function(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match=rf"backward: element 0 of tensors does not require grad.*{reason}"):
        tensor.backward(cygrad.ones_like(tensor))
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=rf"grad: One of the differentiated Tensors does not .*input 1.*{reason}"):
        grad(x * 2, [x, tensor])


@pytest.mark.guarantee("B1")
def test_a_tensor_that_was_cut_off_is_as_good_as_another():
    for function in (lambda x: x.detach(), lambda x: under_no_grad(lambda: x * 1), lambda x: x.data, gradient_of):
        x = function(leaf(1.0, 2.0)).requires_grad_()
        log = []
        x.register_hook(lambda g, log=log: log.append(g.tolist()))
        view = x * 1
        view[:1].mul_(3)
        view[0].add_(view[1])
        view.sum().backward()
        assert x.output_nr == 0 and x.grad.tolist() == [3.0, 2.0] and log == [[3.0, 2.0]]
        assert not x._is_view()


@pytest.mark.guarantee("B1")
def test_unused_input_is_named_by_its_position():
    x, unused = leaf(1.0), leaf(1.0)
    y = x * 2
    with pytest.raises(RuntimeError, match=r"grad: input 2 appears to not have been used.*allow_unused=True"):
        grad(y, [x, y, unused], retain_graph=True)
    with pytest.raises(RuntimeError, match=r"grad: input 0 appears to not have been used"):
        grad(y, [get_gradient_edge(unused), x], retain_graph=True)
    with pytest.raises(RuntimeError, match=r"GradientEdge that is not used"):
        grad(y, [get_gradient_edge(unused), x], materialize_grads=True)


def returning(value):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return None, value
    return Wrong


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize("create_graph", [False, True])
def test_wrong_gradient_names_the_node_and_both_shapes(create_graph):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with pytest.raises(RuntimeError, match=r"WrongBackward: .*shape \(3,\) at position 1, expected .*\(2,\)"):
        grad(returning(cygrad.ones(3)).apply(x, y).sum(), y, create_graph=create_graph)
    with pytest.raises(RuntimeError, match=r"WrongBackward: .*wrong dtype \(got complex64 at position 1, expected fl"):
        grad(returning(cygrad.ones(2, dtype=cygrad.complex64)).apply(x, y).sum(), y, create_graph=create_graph)
    with pytest.raises(RuntimeError, match=r"WrongBackward: .*expected Variable or None .got str at position 1"):
        grad(returning("no").apply(x, y).sum(), y, create_graph=create_graph)


@pytest.mark.guarantee("B1")
@pytest.mark.parametrize("create_graph", [False, True])
def test_wrong_gradient_of_a_hook_names_the_node(create_graph):
    for register in (lambda y: y.register_hook(lambda g: cygrad.ones(3)),
                     lambda y: y.grad_fn.register_prehook(lambda outputs: (cygrad.ones(3),)),
                     lambda y: y.grad_fn.register_hook(lambda inputs, outputs: (cygrad.ones(3), inputs[1]))):
        x = leaf(1.0, 2.0)
        y = x * 2
        register(y)
        with pytest.raises(RuntimeError, match=r"hook of MulBackward0 .*shape \(3,\), expected .*shape \(2,\)"):
            grad(y.sum(), x, create_graph=create_graph)


@pytest.mark.guarantee("G3")
def test_edges_know_the_shape_of_their_tensor():
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    edge = get_gradient_edge(y)
    assert grad(edge, x, retain_graph=True)[0].tolist() == grad(y, x, retain_graph=True)[0].tolist()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: .* a shape of \(3,\) and output\[0\] .* \(\)"):
        grad(edge, x, cygrad.ones(3), retain_graph=True)
    with pytest.raises(RuntimeError, match=r"to have the same dtype, .* \(got complex64, expected float32\)"):
        grad(edge, x, cygrad.ones((), dtype=cygrad.complex64), retain_graph=True)
    with pytest.raises(RuntimeError, match=r"only for scalar outputs \(got output 0 of shape \(2,\)\)"):
        grad(get_gradient_edge(x * 1), x)
    with pytest.raises(RuntimeError, match=r"of a node, so its shape is not known"):
        grad(GradientEdge(y.grad_fn, 0), x)


@pytest.mark.guarantee("B1")
def test_what_native_nodes_refuse_names_them():
    for function, name in ((lambda x: x.exp(), "ExpBackward0"), (lambda x: x.sum(0), "SumBackward0"),
                           (lambda x: x @ x.t(), "MatmulBackward0"), (lambda x: x.reshape(4), "ViewBackward0")):
        x = cygrad.ones(2, 2, requires_grad=True)
        node = function(x).grad_fn
        with pytest.raises((RuntimeError, IndexError), match=rf"^{name}: .*\(5, 7\)"):
            grad(GradientEdge(node, 0), x, cygrad.ones(5, 7))


@pytest.mark.guarantee("G3")
def test_edges_as_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    z = y.sum()
    z.backward(inputs=[get_gradient_edge(x)], retain_graph=True)
    assert x.grad.tolist() == [3.0, 4.0] and w.grad is None
    z.backward(inputs=get_gradient_edge(w), retain_graph=True)
    assert w.grad.tolist() == [1.0, 2.0]
    found = grad([z, get_gradient_edge(y)], [get_gradient_edge(y), x], [None, cygrad.ones(2)], retain_graph=True)
    assert [gradient.tolist() for gradient in found] == [[2.0, 2.0], [6.0, 8.0]]
    z.backward(inputs=[get_gradient_edge(y)])        # an edge is no tensor whose .grad could be kept
    with pytest.warns(UserWarning, match="non-leaf"):
        assert y.grad is None


@pytest.mark.guarantee("G2")
def test_metadata_is_the_nodes():
    y = leaf(1.0) * 2
    y.grad_fn.metadata["note"] = 5
    assert get_gradient_edge(y).node.metadata == {"note": 5}
    (y + 1).backward()
    assert y.grad_fn.metadata == {"note": 5}
