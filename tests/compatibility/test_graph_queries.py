"""Private attributes of PyTorch's engine, hooks and views."""

import pickle
import warnings

import pytest

import cygrad
from cygrad import nn
from cygrad.autograd import forward_ad, grad
from cygrad.compatibility import engine, internal
from cygrad.compatibility.hooks import RemovableHandle


def test_the_current_node_and_the_order_are_those_of_the_running_backward():
    seen = []
    x = cygrad.ones(2, requires_grad=True)
    y, z = x.sin(), x.cos()
    product = y * z
    total = product.sum()
    product.register_hook(lambda g: seen.append(engine._current_autograd_node() is product.grad_fn))
    y.grad_fn.register_hook(lambda *gradients: seen.append(engine._current_autograd_node() is y.grad_fn))
    product.grad_fn.register_hook(lambda *gradients: seen.append(
        [node.name() for node in engine._current_graph_task_execution_order()]))
    with engine.set_multithreading_enabled(False):
        total.backward(retain_graph=True)
    assert seen == [True, ["SumBackward0", "MulBackward0", "CosBackward0", "SinBackward0",
                           "AccumulateGrad"], True]
    with engine.set_multithreading_enabled(False):
        grad(total, y, retain_graph=True)
    assert seen[4] == ["SumBackward0", "MulBackward0", "SinBackward0"]
    assert engine._current_autograd_node() is None
    with pytest.raises(RuntimeError, match="during the backward pass"):
        engine._current_graph_task_execution_order()
    product.register_hook(lambda g: engine._current_graph_task_execution_order())
    with pytest.raises(RuntimeError, match="multithreading disabled"):
        total.backward()


def test_nodes_that_run_and_leaves_under_grad():
    seen = []
    x = cygrad.ones(2, requires_grad=True)
    y, z = x.sin(), x.cos()
    product = y * z
    leaf = y.grad_fn.next_functions[0][0]
    product.register_hook(lambda g: seen.append([engine._will_engine_execute_node(node)
                                                 for node in (product.grad_fn, z.grad_fn)]))
    grad(product.sum(), y, retain_graph=True)
    product.sum().backward(retain_graph=True)
    assert seen == [[True, False], [True, True]]
    product.register_hook(lambda g: engine._will_engine_execute_node(leaf))
    with pytest.raises(RuntimeError, match=r"currently running autograd.grad\(\)"):
        grad(product.sum(), x)
    with pytest.raises(RuntimeError, match="during the backward pass"):
        engine._will_engine_execute_node(leaf)


def test_tangents_can_be_switched_off_by_a_call_or_a_block():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(cygrad.ones(2), cygrad.full((2,), 3.0))
        with engine._set_fwd_grad_enabled(False):
            assert not engine._is_fwd_grad_enabled()
            with engine._set_fwd_grad_enabled(True):
                assert forward_ad.unpack_dual(dual * 2).tangent.tolist() == [6, 6]
            product = dual * 2
        assert engine._is_fwd_grad_enabled()
        assert forward_ad.unpack_dual(product).tangent is None
        engine._set_fwd_grad_enabled(False)
        product = dual * 2
        engine._set_fwd_grad_enabled(True)
        assert forward_ad.unpack_dual(product).tangent is None
        assert forward_ad.unpack_dual(dual).tangent.tolist() == [3, 3]


def test_versions_can_be_set():
    x = cygrad.ones(2)
    engine._unsafe_set_version_counter((x,), (7,))
    assert x._version == 7
    engine._unsafe_set_version_counter(x, 3)
    assert x._version == 3
    with pytest.raises(RuntimeError, match="Cannot set a version to a negative number"):
        engine._unsafe_set_version_counter(x, -1)
    engine._unsafe_set_version_counter(x, 7)
    with engine._unsafe_preserve_version_counter((x, cygrad.ones(1))):
        x.mul_(2)
    assert x._version == 7


def test_hooks_of_tensors_can_be_replaced_but_not_deleted():
    x = cygrad.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 2)
    assert handle.id in handle.hooks_dict_ref()
    x._backward_hooks = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]
    x._backward_hooks = {5: lambda g: g * 10}
    x.sum().backward()
    assert x.grad.tolist() == [11, 11]
    y = x * 2
    y._backward_hooks = {}
    for name in ("_backward_hooks", "_grad_fn"):
        with pytest.raises(RuntimeError, match=f"{name}: cannot be deleted"):
            delattr(y, name)
    with pytest.raises(RuntimeError, match="can be only set to None"):
        y._grad_fn = x
    y._grad_fn = None
    assert y.grad_fn is None and not y.requires_grad


def test_hooks_of_a_tensor_are_a_dict_that_can_be_changed_before_it_requires_grad():
    x, calls = cygrad.ones(2), []
    assert x._backward_hooks is None
    x._backward_hooks = hooks = {}
    hooks["first"] = lambda g: calls.append(g.tolist())
    assert x._backward_hooks is hooks
    (x + cygrad.ones(2, requires_grad=True)).sum().backward()
    assert not calls
    x.requires_grad_()
    (x * 3).sum().backward()
    assert calls == [[3, 3]]
    handle = x.register_hook(lambda g: g * 2)
    assert list(x._backward_hooks) == ["first", handle.id]
    handle.remove()
    assert list(hooks) == ["first"]
    with pytest.raises(TypeError, match=r"_backward_hooks: can only be set to a dict or None .got list"):
        x._backward_hooks = []


def test_tangents_can_be_disabled_in_one_level_only():
    def constant_part(x):
        with engine._set_fwd_grad_enabled(False):
            shift = x * x
        return x * x - shift

    def slope(x):
        return cygrad.func.jvp(constant_part, (x,), (cygrad.ones_like(x),))[1]
    x = cygrad.tensor(3.0)
    assert slope(x).tolist() == 6
    with pytest.raises(NotImplementedError, match="tangents cannot be disabled in a jvp inside of another level"):
        cygrad.func.jvp(slope, (x,), (x,))
    assert slope(x).tolist() == 6


def test_handles_remove_from_all_their_dicts_also_after_pickling():
    def hook(*arguments):
        return None

    hooks, flags = {}, {}
    handle = RemovableHandle(hooks, extra_dict=flags)
    hooks[handle.id], flags[handle.id] = hook, True
    handle.remove()
    assert hooks == flags == {}
    layer = nn.Linear(2, 2)
    handle = layer.register_forward_hook(hook)
    assert list(handle.hooks_dict_ref()) == [handle.id]
    other = RemovableHandle({})
    other.__setstate__(handle.__getstate__())
    other.remove()
    assert len(layer._forward_hooks) == 0
    assert pickle.loads(pickle.dumps(RemovableHandle({}))).hooks_dict_ref() == {}


@pytest.mark.parametrize("view", [
    lambda x: x.t()[1:], lambda x: x.view(3, 2)[0].unsqueeze(1).expand(2, 4), lambda x: x.split(2, 1)[1],
    lambda x: x.unbind(0)[1], lambda x: x.as_strided((2,), (2,), 1), lambda x: x.diagonal()])
def test_views_are_made_again_of_another_base(view):
    x = cygrad.arange(6.0).reshape(2, 3).clone()
    base = x * 10
    seen = view(x)
    for method in (seen._view_func, seen._view_func_unsafe):
        again = method(base)
        assert again.tolist() == view(base).tolist()
        assert again._base is base
    back = seen._rev_view_func_unsafe(seen.detach())
    assert back.tolist() == x.tolist() and back.stride() == x.stride()
    assert seen._view_func(cygrad.zeros(4)) is None
    assert x._view_func(base) is None


def test_views_of_complex_numbers_are_made_again():
    z = cygrad.tensor([[1 + 2j, 3 - 4j]])
    assert cygrad.view_as_real(z)[..., 1]._view_func(z * 2).tolist() == [[4, -8]]
    numbers = cygrad.view_as_real(z)
    assert numbers._rev_view_func_unsafe(numbers.detach()).tolist() == z.tolist()


def test_vmap_of_tangents_in_any_memory_order():
    def along(tangent):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(cygrad.ones(3, 2).t(), tangent)
            dual[0].mul_(2)
            return forward_ad.unpack_dual(dual).tangent

    tangents = cygrad.arange(12.0).view(2, 2, 3)
    expected = tangents.clone()
    expected[:, 0] *= 2
    assert engine._vmap(along)(tangents).tolist() == expected.tolist()
    doubled, nothing = engine._vmap(lambda x: (x * 2, None), allow_none_pass_through=True)(tangents)
    assert doubled.tolist() == (2 * tangents).tolist() and nothing is None


class Parts(nn.Module):
    """A module that computes a given function."""

    def __init__(self, forward):
        super().__init__()
        self.compute = forward

    def forward(self, *args):
        return self.compute(*args)


@pytest.mark.parametrize(("compute", "missed"), [
    (lambda x, y: x * y, None), (lambda x, y: x.sin() * y, "multiple autograd Nodes"),
    (lambda x, y: (x * 2, y * 2), "different autograd Nodes made the outputs"),
    (lambda x, y: {"product": x * y}, "does not return a single Tensor or a tuple of Tensors"),
    (lambda x, y: (x * y).detach(), None)])
def test_non_full_backward_hooks_warn_of_what_they_miss(compute, missed):
    x, y = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    module = Parts(compute)
    module.register_backward_hook(lambda *args: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module(x * 1, y * 1)
    assert [entry.category for entry in caught] == [FutureWarning] * (missed is not None)
    assert missed is None or missed in str(caught[0].message)


def test_non_full_backward_hooks_warn_of_nested_arguments():
    module = Parts(lambda tensors: tensors[0] * 2)
    module.register_backward_hook(lambda *args: None)
    with pytest.warns(FutureWarning, match="does not take a single Tensor"):
        module([cygrad.ones(2, requires_grad=True)])


def test_inference_mode_resizes_tensors_that_require_grad():
    x = cygrad.arange(4.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="require grad"):
        x.resize_(2)
    with cygrad.inference_mode():
        assert x.resize_(2).tolist() == [0, 1]
    assert x.shape == (2,)


def test_a_backward_knows_whether_it_retains_the_graph():
    with pytest.raises(RuntimeError, match="not inside of a backward"):
        engine._get_current_graph_task_keep_graph()
    x, seen = cygrad.ones(2, requires_grad=True), []
    y = (x * x).sum()
    x.register_hook(lambda g: seen.append(engine._get_current_graph_task_keep_graph()))
    y.backward(retain_graph=True)
    y.backward(create_graph=True, retain_graph=True)
    y.backward()
    assert seen == [True, True, False]
    node, given = cygrad.ones(2, requires_grad=True).sin().grad_fn, []
    z = (x * 2).sum()
    x.register_hook(lambda g: given.append(engine._will_engine_execute_node(node)))
    z.backward()
    assert given == [False]
    x.register_hook(lambda g: engine._will_engine_execute_node(x))
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        (x * 2).sum().backward()


def test_cached_tensors_are_marked_by_identity():
    x = cygrad.ones(2)
    engine._add_cached_tensor(x)
    assert engine._is_cached_tensor(x) and not engine._is_cached_tensor(cygrad.ones(2))
    engine._remove_cached_tensor(x)
    assert not engine._is_cached_tensor(x)


def test_resize_is_a_view_with_a_gradient():
    x = cygrad.ones(4, requires_grad=True)
    (engine.Resize.apply(x, (2, 2)) * cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="4 elements"):
        engine.Resize.apply(x, (3,))


@pytest.mark.parametrize("other", [cygrad.ones(2, 3), cygrad.ones(3, 2).t(), cygrad.ones(5)[1:3], cygrad.ones(0, 2)])
def test_zeros_with_the_layout_of_another_tensor_for_each_entry_of_a_batch(other):
    for dims in range(3):
        found = internal._new_zeros_with_same_feature_meta(cygrad.ones(4, 5), other, self_num_batch_dims=dims)
        assert found.shape == ((4, 5)[:dims] + other.shape) and not found.count_nonzero()
        assert found.stride()[dims:] == other.stride() and found.storage_offset() == other.storage_offset()


def test_sequence_numbers_order_nodes_that_are_ready():
    for first, second in (("a", "b"), ("b", "a")):
        x, order = cygrad.ones(3, requires_grad=True), []
        a, b = x * 2, x * 3
        c = a * b
        nodes = {"a": a, "b": b, "c": c}
        for name, tensor in nodes.items():
            tensor.register_hook(lambda g, name=name, order=order: order.append(name))
        for number, name in ((100, first), (99, second), (98, "c")):     # c has the smallest, and is needed by both
            nodes[name].grad_fn._set_sequence_nr(number)
            assert nodes[name].grad_fn._sequence_nr() == number
        c.sum().backward()
        assert order == ["c", first, second] and x.grad.tolist() == [12, 12, 12]
