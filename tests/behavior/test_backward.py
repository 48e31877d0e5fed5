"""Backward: calls, accumulation, freed graphs, inputs, higher orders."""

import pytest

import cygrad
from cygrad.autograd import backward, grad
from cygrad.nn import functional
from tests.tools import FLOAT, leaf


def ones(*shape, dtype=FLOAT):
    return cygrad.ones(shape, dtype=dtype)


# ----------------------------------------------------------------------------------------------------------------- B1

@pytest.mark.guarantee("B1")
def test_scalars_need_no_gradient():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    x.grad = None
    (x[:1] * 3).backward()                       # one element, for any number of dimensions
    assert x.grad.tolist() == [3.0, 0.0]


@pytest.mark.guarantee("B1")
def test_others_need_one():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"only for scalar outputs \(got output 0 of shape .2,..*pass a gradient"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"implicitly created only for scalar outputs \(got output 1"):
        backward([x.sum(), x * 2])
    with pytest.raises(RuntimeError, match="implicitly created only for scalar"):
        x[:0].backward()
    (x * 2).backward(cygrad.tensor([1.0, 10.0], dtype=FLOAT))
    assert x.grad.tolist() == [2.0, 20.0]


@pytest.mark.guarantee("B1")
def test_complex_scalars_need_one():
    z = leaf(1 + 2j, dtype=cygrad.complex128)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs.*complex128"):
        (z * z).backward()
    (z * z.conj()).real.backward()
    assert z.grad.item() == 2 + 4j


@pytest.mark.guarantee("B1")
def test_shapes_and_dtypes_are_checked():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: .* a shape of \(3,\) and output\[0\] .* \(2,\)"):
        (x * 2).backward(ones(3))
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: .* a shape of \(\) and output\[0\] .* \(2,\)"):
        grad(x * 2, x, ones())
    with pytest.raises(RuntimeError, match=r"to have the same dtype, .* \(got complex128, expected float64\)"):
        (x * 2).backward(ones(2, dtype=cygrad.complex128))
    # A real gradient of another width is converted.
    (x * 2).backward(ones(2, dtype=cygrad.float32))
    assert x.grad.dtype is FLOAT
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.guarantee("B1")
def test_what_cannot_be_differentiated():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        ones().backward()
    with pytest.raises(RuntimeError, match="No gradient flows through int64 tensors"):
        cygrad.tensor(3).backward()
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        backward([leaf(1.0), ones()])
    with pytest.raises(TypeError, match=r"must be a Tensor or a GradientEdge.*got int"):
        backward([5])
    with pytest.raises(TypeError):
        backward(5)
    with pytest.raises(TypeError):
        backward(None)
    x = leaf(1.0)
    with pytest.raises(TypeError, match=r"gradients can be either Tensors or None .got int"):
        backward([x * 2], [5])
    with pytest.raises(RuntimeError, match=r"got 2 tensors and 1 gradients"):
        backward([x * 2, x], [None])
    with pytest.raises(RuntimeError, match=r"got 1 tensors and 2 gradients"):
        grad(x * 2, x, [None, None])
    assert x.grad is None


@pytest.mark.guarantee("B1")
def test_several_roots():
    x = leaf(2.0)
    a = x * 3
    b = a * a                                    # one root inside the graph of the other
    backward([a, b], [None, cygrad.tensor(10.0, dtype=FLOAT)])
    assert x.grad.item() == 3 + 10 * 2 * 6 * 3
    x.grad = None
    y = x * 5
    backward([y, y, y])                          # the same root again
    assert x.grad.item() == 15
    x.grad = None
    backward([x, x * 2, x])                      # leaves as roots
    assert x.grad.item() == 4
    backward([])                                 # nothing to do


@pytest.mark.guarantee("B1")
def test_grad():
    x, w = leaf(2.0), leaf(3.0)
    y = x * x * w
    result = grad(y, (x, w), retain_graph=True)
    assert isinstance(result, tuple)
    assert [g.item() for g in result] == [12.0, 4.0]
    assert grad([y, x], [w, x], [None, cygrad.tensor(5.0, dtype=FLOAT)])[1].item() == 17.0
    assert x.grad is None
    assert w.grad is None
    assert not result[0].requires_grad
    assert result[0].grad_fn is None


@pytest.mark.guarantee("B1")
def test_grad_of_the_output_itself():
    x = leaf(2.0)
    y = x * 3
    assert grad(y, y)[0].item() == 1.0
    assert [g.item() for g in grad(y, [y, x, y])] == [1.0, 3.0, 1.0]
    assert grad(x, x)[0].item() == 1.0
    seed = cygrad.tensor(7.0, dtype=FLOAT)
    assert grad(x, x, seed)[0].item() == 7.0


@pytest.mark.guarantee("B1")
def test_grad_options():
    x, unused = leaf(2.0), leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"input 1 appears to not have been used.*allow_unused=True"):
        grad(x * 2, [x, unused])
    assert grad(x * 2, [x, unused], allow_unused=True)[1] is None
    zeros = grad(x * 2, [x, unused], materialize_grads=True)[1]
    assert zeros.tolist() == [0.0, 0.0]
    assert zeros.dtype is FLOAT
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        grad(x * 2, [x, unused], allow_unused=False, materialize_grads=True)
    with pytest.raises(ValueError, match="grad requires non-empty inputs"):
        grad(x * 2, [])
    with pytest.raises(RuntimeError, match=r"One of the differentiated Tensors does not .* .got for input 0"):
        grad(x * 2, [ones()], allow_unused=True)


@pytest.mark.guarantee("B1")
def test_is_grads_batched():
    x = leaf([1.0, 2.0, 3.0])
    y = x * x
    eye = cygrad.eye(3, dtype=FLOAT)
    (jacobian,) = grad(y, x, eye, is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    with pytest.raises(RuntimeError, match="requires a batch of gradients for every output"):
        grad((x * x).sum(), x, is_grads_batched=True)


@pytest.mark.guarantee("B1")
def test_zero_size_and_zero_dimensions():
    for shape in ((0,), (2, 0, 3), ()):
        x = cygrad.ones(shape, dtype=FLOAT, requires_grad=True)
        y = x.exp() * x + x
        y.sum().backward()
        assert tuple(x.grad.shape) == shape
        assert tuple(grad(x * 2, x, cygrad.ones(shape, dtype=FLOAT))[0].shape) == shape


# ----------------------------------------------------------------------------------------------------------------- B2

@pytest.mark.guarantee("B2")
def test_leaves_accumulate():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    first = x.grad
    (x * 4).sum().backward()
    assert x.grad is first                       # added to in place
    assert x.grad.tolist() == [7.0, 7.0]
    assert not x.grad.requires_grad
    assert x.grad.is_leaf
    x.grad = None
    assert x.grad is None
    (x * 5).sum().backward()
    assert x.grad is not first
    assert first.tolist() == [7.0, 7.0]
    del x.grad
    assert x.grad is None


@pytest.mark.guarantee("B2")
def test_used_several_times():
    x = leaf(3.0)
    y = x
    for _ in range(3):
        y = y + y
    y.backward()
    assert x.grad.item() == 8.0


@pytest.mark.guarantee("B2")
def test_gradients_are_nobody_elses_memory():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seed = ones(2)
    (x + w).backward(seed)                       # the same gradient reaches both
    x.grad.mul_(10)
    assert w.grad.tolist() == [1.0, 1.0]
    assert seed.tolist() == [1.0, 1.0]
    result = grad(x + w, [x, w], seed)
    result[0].mul_(10)
    assert seed.tolist() == [10.0, 10.0] or result[1].tolist() == [1.0, 1.0]


@pytest.mark.guarantee("B2")
def test_expanded_gradients_are_not_kept_expanded():
    x = cygrad.ones(3, 2, dtype=FLOAT, requires_grad=True)
    x.sum().backward()
    assert x.grad.is_contiguous()
    x.grad[0].mul_(5)
    assert x.grad.tolist() == [[5.0, 5.0], [1.0, 1.0], [1.0, 1.0]]


@pytest.mark.guarantee("B2")
def test_setting_grad():
    x = leaf(1.0, 2.0)
    g = cygrad.tensor([5.0, 6.0], dtype=FLOAT)
    x.grad = g
    assert x.grad is g
    (x * 1).sum().backward()
    assert g.tolist() == [6.0, 7.0]
    assert x.grad is g
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got"):
        x.grad = 5
    with pytest.raises(RuntimeError, match=r"assigned grad has data of a different size.*\(3,\).*\(2,\)"):
        x.grad = ones(3)
    with pytest.raises(RuntimeError, match=r"assigned grad has data of a different type.*float32.*float64"):
        x.grad = ones(2, dtype=cygrad.float32)
    with pytest.raises(RuntimeError, match=r"assigned grad has data of a different.*on meta.*on cpu"):
        x.grad = cygrad.ones(2, dtype=x.dtype, device="meta")
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


@pytest.mark.guarantee("B2")
def test_grad_of_a_non_leaf_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match=r"non-leaf.*MulBackward0.*retain_grad\(\)"):
        assert y.grad is None


@pytest.mark.guarantee("B2")
def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()                              # twice does no harm
    assert y.retains_grad
    (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [4.0, 8.0]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [7.0, 11.0]
    x.retain_grad()                              # nothing to do for a leaf
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor"):
        ones(2).retain_grad()


@pytest.mark.guarantee("B2")
def test_retain_grad_follows_the_tensor_through_in_place_operations():
    x = leaf(3.0, 4.0)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    y[0].mul_(2)
    assert y.retains_grad
    (y * 7).sum().backward()
    assert y.grad.tolist() == [7.0, 7.0]
    assert x.grad.tolist() == [140.0, 70.0]


@pytest.mark.guarantee("B2")
def test_retain_grad_with_grad():
    y = leaf(1.0) * 2
    y.retain_grad()
    assert grad(y * 3, y)[0].item() == 3.0
    assert y.grad.item() == 3.0


# ----------------------------------------------------------------------------------------------------------------- B3

@pytest.mark.guarantee("B3")
def test_freed_graph():
    x = leaf(2.0)
    y = x.exp() * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"MulBackward0.*freed.*retain_graph=True"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"MulBackward0.*freed.*retain_graph=True"):
        grad(y, x, create_graph=True)
    assert x.grad.item() == pytest.approx(3 * 2.718281828459045**2)


@pytest.mark.guarantee("B3")
def test_freed_in_part():
    x = leaf(2.0)
    shared = x.exp()
    shared.sin().backward()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*freed"):
        (shared * 2).backward()


@pytest.mark.guarantee("B3")
def test_retain_graph():
    x = leaf(2.0)
    y = x * x
    for expected in (4.0, 8.0, 12.0):
        y.backward(retain_graph=True)
        assert x.grad.item() == expected
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.backward(retain_graph=True)


@pytest.mark.guarantee("B3")
def test_nodes_that_save_nothing_run_again():
    x = leaf(1.0, 2.0)
    y = (x + x).sum() - x.sum() * 3
    y.backward()
    y.backward()
    assert x.grad.tolist() == [-2.0, -2.0]


@pytest.mark.guarantee("B3")
def test_inputs_leave_the_rest_intact():
    x = leaf(2.0)
    y = x.exp()
    z = y.sin()
    grad(z, y)
    with pytest.raises(RuntimeError, match=r"SinBackward0.*freed"):
        z.backward()
    (y * 1).backward()                           # the nodes before the input have not run
    assert x.grad is not None


# ----------------------------------------------------------------------------------------------------------------- B4

@pytest.mark.guarantee("B4")
def test_inputs_restrict_what_accumulates():
    x, w = leaf(2.0), leaf(3.0)
    (x * w).backward(inputs=[x])
    assert x.grad.item() == 3.0
    assert w.grad is None
    (x * w).backward(inputs=w)
    assert x.grad.item() == 3.0
    assert w.grad.item() == 2.0
    (x * w).backward(inputs=(x, w, x))
    assert x.grad.item() == 6.0
    assert w.grad.item() == 4.0


@pytest.mark.guarantee("B4")
def test_inputs_restrict_what_runs():
    x, w = leaf(2.0), leaf(3.0)
    a, b = x * 2, w * 2
    ran = []
    a.grad_fn.register_prehook(lambda grads: ran.append("a"))
    b.grad_fn.register_prehook(lambda grads: ran.append("b"))
    z = a * b
    z.backward(inputs=[x], retain_graph=True)
    grad(z, [w], retain_graph=True)
    assert ran == ["a", "b"]
    grad(z, [a, b], retain_graph=True)           # their own nodes need not run
    assert ran == ["a", "b"]


@pytest.mark.guarantee("B4")
def test_inputs_that_are_no_leaves():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    z.backward(inputs=[y], retain_graph=True)
    assert y.grad.item() == 12.0
    assert x.grad is None
    z.backward(inputs=[y, x])
    assert y.grad.item() == 24.0
    assert x.grad.item() == 36.0


@pytest.mark.guarantee("B4")
def test_unused_and_empty_inputs():
    x, unused = leaf(2.0), leaf(3.0)
    (x * 2).backward(inputs=[unused])
    assert x.grad is None
    assert unused.grad is None
    with pytest.raises(RuntimeError, match="inputs cannot be empty"):
        (x * 2).backward(inputs=[])
    with pytest.raises(RuntimeError, match=r"One of the differentiated Tensors does not .* .got for input 0"):
        (x * 2).backward(inputs=[ones()])
    with pytest.raises(TypeError, match="input 0 must be a Tensor or a GradientEdge"):
        (x * 2).backward(inputs=["x"])


# ----------------------------------------------------------------------------------------------------------------- B5

@pytest.mark.guarantee("B5")
def test_any_order():
    x = leaf(2.0)
    y = x ** 5
    expected = [80.0, 160.0, 240.0, 240.0, 120.0, 0.0]
    for value in expected:
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(value)


@pytest.mark.guarantee("B5")
def test_create_graph_retains_unless_told():
    x = leaf(2.0)
    y = x ** 3
    (g,) = grad(y, x, create_graph=True)
    assert g.requires_grad
    y.backward()
    y = x ** 3
    grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


@pytest.mark.guarantee("B5")
def test_grad_collected_with_create_graph():
    x = leaf(2.0)
    (x ** 3).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    assert first.item() == 12.0
    (x ** 2).backward(create_graph=True)
    assert x.grad.item() == 16.0
    assert first.item() == 12.0
    assert grad(x.grad, x)[0].item() == 14.0
    x.grad = None


@pytest.mark.guarantee("B5")
def test_hooks_are_recorded():
    x = leaf(3.0)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    handle = x.register_hook(lambda grad: grad * grad)
    (g,) = grad(y, x, create_graph=True)          # (2 x * x)^2
    assert g.item() == 324.0
    handle.remove()
    assert grad(g, x)[0].item() == 16 * 27.0


@pytest.mark.guarantee("B5")
def test_through_the_gradient_argument():
    x, v = leaf(2.0), leaf(5.0)
    (g,) = grad(x ** 3, x, v, create_graph=True)
    assert grad(g, v)[0].item() == 12.0


@pytest.mark.guarantee("B5")
def test_in_place_views():
    x = leaf([[3.0, 4.0], [5.0, 6.0]])
    y = x * 1
    r = y.t()[0]
    r.mul_(r.clone())
    (g,) = grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == [[108.0, 8.0], [500.0, 12.0]]
    assert grad(g.sum(), x)[0].tolist() == [[108.0, 2.0], [300.0, 2.0]]


@pytest.mark.guarantee("B5")
@pytest.mark.parametrize("create_graph", [False, True])
def test_signs_of_zeros_of_gradients_through_in_place_views(create_graph):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[1:].mul_(2)
    (g,) = grad((y * cygrad.tensor([-0.0, -0.0, 0.0])).sum(), x, create_graph=create_graph)
    assert cygrad.signbit(g).tolist() == [True, True, False]


@pytest.mark.guarantee("B5")
def test_saved_value_detached_since():
    x = leaf(3.0)
    a = x * 2
    y = a * a
    a.detach_()                                   # whose history the formula of y would need
    with pytest.raises(RuntimeError, match=r"detached in-place, by detach_\(\)"):
        grad(y, x, create_graph=True)


PIECEWISE = {
    "relu": lambda x, *_: x.relu(), "hardtanh": lambda x, *_: functional.hardtanh(x),
    "leaky_relu": lambda x, *_: functional.leaky_relu(x), "threshold": lambda x, *_: functional.threshold(x, 0, 1),
    "max_pool": lambda x, *_: functional.max_pool1d(x, 2), "avg_pool": lambda x, *_: functional.avg_pool1d(x, 2),
    "adaptive": lambda x, *_: functional.adaptive_avg_pool1d(x, 2), "conv": functional.conv1d,
    "conv_transpose": functional.conv_transpose1d,
}


@pytest.mark.guarantee("B5")
@pytest.mark.parametrize("name", PIECEWISE)
def test_gradients_that_are_constant_give_zeros(name):
    x, w, b = (cygrad.rand(*shape, dtype=cygrad.float64).requires_grad_() for shape in ((1, 1, 6), (1, 1, 2), (1,)))
    result = PIECEWISE[name](x, w, b)
    inputs = [x, w, b] if "conv" in name else [x]
    for seed in (None, cygrad.ones_like(result).requires_grad_()):
        gradients = grad(result, inputs, cygrad.ones_like(result) if seed is None else seed, create_graph=True)
        assert all(gradient.requires_grad for gradient in gradients)
        for second in grad(gradients[-1].sum(), inputs, retain_graph=True):
            assert second.equal(cygrad.zeros_like(second))
    assert not grad(PIECEWISE[name](x, w, b).sum(), x)[0].requires_grad


def test_grad_of_a_dict_of_inputs():
    weights = {name: cygrad.ones(size, requires_grad=True) for name, size in (("a", 2), ("b", 3), ("c", 1))}
    loss = 2 * weights["a"].sum() + (3 * weights["b"]).sum()
    grads = cygrad.autograd.grad(loss, weights, materialize_grads=True)
    assert {name: grad.tolist() for name, grad in grads.items()} == {"a": [2, 2], "b": [3, 3, 3], "c": [0]}
