"""Sparse gradients and saved tensors where dense ones are expected: in hooks, custom Functions and leaves."""

import pytest

import cygrad
from cygrad.autograd.graph import saved_tensors_hooks


def sparse(gradient):
    return None if gradient is None else gradient.to_sparse()


class ReturnsSparse(cygrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return (2 * grad).to_sparse()


HOOKS = {
    "tensor": lambda y: y.register_hook(sparse),
    "node before": lambda y: y.grad_fn.register_prehook(lambda grads: tuple(map(sparse, grads))),
    "node after": lambda y: y.grad_fn.register_hook(lambda grads, _: tuple(map(sparse, grads))),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_can_return_sparse_gradients(hook, create_graph):
    x = cygrad.tensor([[1.0, 2.0], [0.0, 4.0]], requires_grad=True)
    y = x * x
    HOOKS[hook](y)
    gradient, = cygrad.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert gradient.to_dense().tolist() == [[2.0, 4.0], [0.0, 8.0]]


def test_retained_gradients_after_a_hook_with_a_sparse_result():
    x = cygrad.ones(2, 2, requires_grad=True)
    y = 3 * x
    y.register_hook(sparse)
    y.retain_grad()
    y.sum().backward()
    assert y.grad.to_dense().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_sparse_result_of_a_custom_function():
    leaf = cygrad.ones(2, requires_grad=True)
    ReturnsSparse.apply(leaf).sum().backward()
    assert leaf.grad.is_sparse and leaf.grad.to_dense().tolist() == [2.0, 2.0]
    ReturnsSparse.apply(leaf).sum().backward()
    assert leaf.grad.to_dense().tolist() == [4.0, 4.0]
    inner = cygrad.ones(2, requires_grad=True)
    ReturnsSparse.apply(3 * inner).sum().backward()
    assert inner.grad.tolist() == [6.0, 6.0]
    fixed = cygrad.tensor([0.0, 3.0]).to_sparse()

    class Fixed(ReturnsSparse):
        @staticmethod
        def backward(ctx, grad):
            return fixed

    for _ in range(2):
        Fixed.apply(leaf).sum().backward()
    assert leaf.grad.to_dense().tolist() == [4.0, 10.0] and fixed.to_dense().tolist() == [0.0, 3.0]
    leaf.grad = None
    (Fixed.apply(leaf) + Fixed.apply(leaf)).sum().backward()
    assert leaf.grad.to_dense().tolist() == [0.0, 6.0] and fixed.to_dense().tolist() == [0.0, 3.0]
    mixed = cygrad.ones(2, requires_grad=True)
    (ReturnsSparse.apply(mixed) + 5 * mixed).sum().backward()
    assert mixed.grad.to_dense().tolist() == [7.0, 7.0]


@pytest.mark.parametrize("hook", ["before", "after"])
def test_module_hooks_can_return_sparse_gradients(hook):
    module = cygrad.nn.Linear(2, 2)
    if hook == "before":
        module.register_full_backward_pre_hook(lambda _, grads: tuple(map(sparse, grads)))
    else:
        module.register_full_backward_hook(lambda _, inputs, outputs: tuple(map(sparse, inputs)))
    x = cygrad.ones(2, 2, requires_grad=True)
    module(x).sum().backward()
    expected = module.weight.detach().sum(0).expand(2, 2)
    assert cygrad.equal(x.grad.to_dense(), expected)
    assert module.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_backward_of_a_sparse_vector():
    x = cygrad.ones(2, 2, requires_grad=True)
    (2 * x).backward(cygrad.eye(2).to_sparse())
    assert x.grad.to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.parametrize("source", ["to_dense", "to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_outputs_and_inputs_of_grad_and_backward(source, layout):
    elements = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = getattr(elements, source)().requires_grad_()
    y, gradient = getattr(x * 3, layout)(), getattr(elements, layout)()
    found, = cygrad.autograd.grad(y, x, gradient, retain_graph=True)
    assert found.layout is x.layout and cygrad.equal(found.to_dense(), elements * 3)
    found, = cygrad.autograd.grad([y], [x], [elements], retain_graph=True)
    assert found.layout is x.layout and cygrad.equal(found.to_dense(), elements * 3)
    y.backward(gradient)
    assert x.grad.layout is x.layout and cygrad.equal(x.grad.to_dense(), elements * 3)


def test_gradients_of_sparse_outputs_have_their_indices():
    x = cygrad.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().requires_grad_()
    y = x * x
    found, = cygrad.autograd.grad(y, x, cygrad.tensor([[0.0, 1.0], [0.0, 0.0]]), retain_graph=True)
    assert found.to_dense().tolist() == [[0, 4], [0, 0]]
    with pytest.raises(RuntimeError, match="sparse output 0 has elements that the output does not have"):
        y.backward(cygrad.ones(2, 2), retain_graph=True)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\]"):
        cygrad.autograd.grad(y, x, cygrad.ones(2))
    other = cygrad.ones(2, requires_grad=True)
    nothing, zeros = cygrad.autograd.grad(other.sum(), [x, other], materialize_grads=True)
    assert nothing.is_sparse and nothing.to_dense().tolist() == [[0, 0], [0, 0]] and zeros.tolist() == [1, 1]


def test_sparse_gradients_are_added_to_a_sparse_grad_in_place():
    leaf = cygrad.ones(3, requires_grad=True)
    leaf.grad = kept = cygrad.tensor([0.0, 1.0, 0.0]).to_sparse()
    leaf.backward(cygrad.tensor([2.0, 0.0, 0.0]).to_sparse())
    assert leaf.grad is kept and kept.to_dense().tolist() == [2.0, 1.0, 0.0]
    leaf.backward(cygrad.ones(3))
    assert leaf.grad.tolist() == [3.0, 2.0, 1.0] and not leaf.grad.is_sparse


def test_unpack_hooks_can_return_sparse_tensors():
    class Square(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 2 * x * grad

    for function in (Square.apply, lambda x: x * x):
        x = cygrad.tensor([3.0, 0.0], requires_grad=True)
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor.to_sparse()):
            y = function(x)
        y.sum().backward()
        assert x.grad.tolist() == [6.0, 0.0]


def test_gradients_of_the_meta_device_are_refused():
    x = cygrad.ones(2, requires_grad=True)
    y = 2 * x
    y.register_hook(lambda grad: grad.to("meta"))
    with pytest.raises(RuntimeError, match="a hook of MulBackward0 returned a gradient on another device"):
        y.sum().backward()

    class ToMeta(ReturnsSparse):
        @staticmethod
        def backward(ctx, grad):
            return grad.to("meta")

    with pytest.raises(RuntimeError, match="ToMetaBackward: backward returned a gradient on another device"):
        ToMeta.apply(x).sum().backward()


@pytest.mark.parametrize(("shape", "index"), [((4,), 2), ((), 0), ((), [0, 0])])
def test_gather_with_sparse_grad_takes_indices_without_dimensions(shape, index):
    x, index = cygrad.ones(shape, requires_grad=True), cygrad.tensor(index)
    cygrad.gather(x, 0, index, sparse_grad=True).sum().backward()
    sparse_gradient, x.grad = x.grad.to_dense(), None
    cygrad.gather(x, 0, index).sum().backward()
    assert cygrad.equal(sparse_gradient, x.grad)
