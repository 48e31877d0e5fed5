"""Views created without recording, and views of inference tensors."""

import pytest

import cygrad
from cygrad.autograd import grad

MODES = {"no_grad": cygrad.no_grad, "inference_mode": cygrad.inference_mode}
VIEWS = {
    "view": lambda x: x.view(-1), "slice": lambda x: x[1:], "select": lambda x: x[0], "t": lambda x: x.t(),
    "expand": lambda x: x.expand(2, 2, 2), "split": lambda x: x.split(1)[0], "unbind": lambda x: x.unbind()[0],
    "alias": lambda x: x[:], "unsqueeze": lambda x: x[None], "diagonal": lambda x: x.diagonal(),
    "as_strided": lambda x: x.as_strided((2,), (1,)), "chunk": lambda x: x.chunk(2)[1],
    "reshape": lambda x: x.reshape(4), "view of a view": lambda x: x.view(-1).view(2, 2),
}
each_mode = pytest.mark.parametrize("mode", MODES)
each_view = pytest.mark.parametrize("name", VIEWS)


def leads_nowhere(tensor):
    return all(node is None for node, _ in tensor.grad_fn.next_functions)


@pytest.mark.guarantee("M2")
@each_mode
@each_view
@pytest.mark.parametrize("leaf", [True, False])
def test_a_view_requires_grad_as_its_base_does(name, mode, leaf):
    x = cygrad.ones(2, 2, requires_grad=True)
    base = x if leaf else x * 2
    with MODES[mode]():
        view = VIEWS[name](base)
    assert view.requires_grad
    assert view.is_leaf
    assert view.grad_fn is None
    assert view._base is base
    assert not view.is_inference()
    assert "requires_grad=True" in repr(view)
    view.retain_grad()          # a leaf keeps its gradient without
    view.register_post_accumulate_grad_hook(print).remove()
    product = view * 2
    assert product.requires_grad
    assert leads_nowhere(product)
    assert grad(base.sum(), view, allow_unused=True) == (None,)
    product.sum().backward()
    assert x.grad is None
    assert not view.detach().requires_grad
    assert leads_nowhere(view[..., 0])


@pytest.mark.guarantee("M2")
@each_mode
@each_view
def test_and_later_if_the_base_does_so_later(name, mode):
    x = cygrad.ones(2, 2)
    with MODES[mode]():
        view = VIEWS[name](x)
    assert not view.requires_grad
    assert not (view * 2).requires_grad
    x.requires_grad_()
    assert view.requires_grad
    assert leads_nowhere(view * 2)
    x.requires_grad_(False)
    assert not view.requires_grad


def changes(base, view):
    return {"base": lambda: base.mul_(2), "another view": lambda: base.view(-1).mul_(2)}


@pytest.mark.guarantee("I2")
@each_mode
@each_view
@pytest.mark.parametrize("who", ["base", "another view"])
def test_it_becomes_invalid_by_a_recorded_change(name, mode, who):
    base = cygrad.ones(2, 2, requires_grad=True) * 2
    with MODES[mode]():
        view = VIEWS[name](base)
    changes(base, view)[who]()
    assert view.requires_grad
    why = "created in no-grad mode" if mode == "no_grad" else "created in inference mode"
    for use in (lambda: view.grad_fn, lambda: view.is_leaf, lambda: view * 2, lambda: view[..., 0],
                lambda: view.sum().backward(), lambda: cygrad.stack([view, view])):
        with pytest.raises(RuntimeError, match=f"(?s)modified in place.*{why}.*create the view again"):
            use()
    with pytest.raises(RuntimeError, match="is being modified inplace"):
        view.add_(1)
    assert "grad_fn=<Invalid>" in repr(view)
    view.retain_grad()                             # of a leaf: nothing to do
    assert not view.detach().requires_grad
    with cygrad.no_grad():
        assert (view * 2).sum() == 8 * view.numel()
        if name != "expand":                       # whose elements share places
            view.add_(1)


@pytest.mark.guarantee("I2")
@each_mode
@each_view
def test_also_by_a_change_that_makes_the_base_require_grad(name, mode):
    base, weight = cygrad.ones(2, 2), cygrad.ones(2, 2, requires_grad=True)
    with MODES[mode]():
        view = VIEWS[name](base)
    base.mul_(weight)
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="its history cannot be rewritten"):
        _ = view.grad_fn
    assert "<Invalid>" in repr(view)


@pytest.mark.guarantee("I2")
@each_mode
@each_view
def test_changes_of_what_needs_no_grad_do_no_harm(name, mode):
    base = cygrad.ones(2, 2)
    with MODES[mode]():
        view = VIEWS[name](base)
        base.mul_(2)
    base.mul_(2)
    assert view.is_leaf
    assert view.grad_fn is None
    assert not view.requires_grad
    assert "Invalid" not in repr(view)


@pytest.mark.guarantee("I2")
@each_view
def test_a_view_of_what_needs_no_grad_may_become_a_leaf(name):
    base = cygrad.ones(2, 2)
    view = VIEWS[name](base)
    base.mul_(2)
    view.requires_grad_()
    gradient, = grad((view * 3).sum(), view)
    assert view.grad_fn is None
    assert gradient.eq(3).all()


@pytest.mark.guarantee("I2")
@each_mode
def test_a_view_made_again_is_valid(mode):
    x = cygrad.ones(2, 2, requires_grad=True)
    base = x * 2
    with MODES[mode]():
        view = base.view(-1)
        view.add_(1)
    with pytest.raises(RuntimeError, match="base was modified in place"):
        _ = view.grad_fn
    assert grad(base.view(-1).sum(), x)[0].tolist() == [[2, 2], [2, 2]]


@pytest.mark.guarantee("M3")
@pytest.mark.parametrize("requires_grad", [True, False])
@each_view
def test_a_view_of_an_inference_tensor_is_one_itself(name, requires_grad):
    with cygrad.inference_mode():
        x = cygrad.ones(2, 2, requires_grad=requires_grad)
    view = VIEWS[name](x)
    assert view.is_inference()
    assert not view.requires_grad
    assert view.grad_fn is None
    assert view._base is None
    with pytest.raises(RuntimeError, match="inference tensor"):
        view.add_(1)
    with pytest.raises(RuntimeError, match="inference tensor"):
        view.requires_grad_()


# ---- unsafe parts, .data, set_, detach_

PARTS = {
    "unsafe_split": lambda y: cygrad.unsafe_split(y, 1), "unsafe_chunk": lambda y: cygrad.unsafe_chunk(y, 2),
    "unsafe_split_with_sizes": lambda y: cygrad.unsafe_split_with_sizes(y, [1, 1]),
    "method": lambda y: y.unsafe_split(split_size_or_sections=1, dim=-2),
}


@pytest.mark.guarantee("I2")
@pytest.mark.parametrize("name", PARTS)
def test_unsafe_parts_may_be_changed(name):
    x = cygrad.ones(2, 2, requires_grad=True)
    y = x * 2
    first, second = PARTS[name](y)
    assert first._base is None
    assert first.grad_fn is second.grad_fn
    first.mul_(3)
    assert (first._version, second._version, y._version) == (1, 0, 0)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [[6, 6], [2, 2]]
    assert y.tolist() == [[6, 6], [2, 2]]


@pytest.mark.guarantee("I1")
def test_data_keeps_the_version_counter():
    x = cygrad.ones(2)
    view = x.view(2)
    x.add_(1)
    other = cygrad.zeros(2)
    x.data = other
    assert (x._version, view._version) == (1, 1)
    x.add_(1)
    assert (x._version, view._version) == (2, 2)
    view.add_(1)
    assert (x._version, view._version, other._version) == (3, 3, 0)
    assert x.tolist() == other.tolist() == [1, 1]
    assert view.tolist() == [3, 3]


@pytest.mark.guarantee("I1")
@pytest.mark.parametrize("size", [2, 100_000])
def test_a_version_counter_outlives_the_memory_it_came_with(size):
    x = cygrad.ones(size)
    for round in range(5):
        x.data = cygrad.zeros(size)
        x.add_(1)
        assert x._version == round + 1
    y = x * 1
    y.data = x
    x.add_(1)
    assert (x._version, y._version) == (6, 0)
    del x
    y.add_(1)
    assert y._version == 1
    assert y.sum() == 3 * size


@pytest.mark.guarantee("I1")
def test_what_was_saved_notices_a_change_after_data():
    x = cygrad.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.data = cygrad.zeros(2)
    with cygrad.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.guarantee("R3")
@pytest.mark.parametrize("value", [[1.0, 2.0], 1.0, None])
def test_data_takes_tensors_only(value):
    with pytest.raises(TypeError, match="data: can only be set to a Tensor"):
        cygrad.ones(2).data = value


@pytest.mark.guarantee("R3")
def test_data_takes_tensors_of_the_same_layout_only():
    dense, sparse = cygrad.eye(2), cygrad.eye(2).to_sparse()
    with pytest.raises(RuntimeError, match=r"incompatible tensor type .got a sparse tensor, expected a dense one"):
        dense.data = sparse
    assert dense.tolist() == [[1, 0], [0, 1]]
    meta = cygrad.empty(2, device="meta")
    dense.data = meta
    assert dense.is_meta and dense.shape == (2,)


@pytest.mark.guarantee("R3")
@pytest.mark.parametrize("name", ["data", "requires_grad"])
def test_some_attributes_cannot_be_deleted(name):
    with pytest.raises(RuntimeError, match=f"{name}: cannot be deleted"):
        delattr(cygrad.ones(2), name)


@pytest.mark.guarantee("I1")
def test_set_gives_a_leaf_another_node():
    x = cygrad.ones(2, requires_grad=True)
    y = (x * 2).sum()
    edge = cygrad.autograd.graph.get_gradient_edge(x)
    with cygrad.no_grad():
        x.set_(cygrad.zeros(2))
    z = (x * 3).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        grad(y, x, retain_graph=True)
    assert grad(y, edge, retain_graph=True)[0].tolist() == [2, 2]
    assert cygrad.autograd.graph.get_gradient_edge(x).node is not edge.node
    y.backward()
    z.backward()
    assert x.grad.tolist() == [5, 5]


SAVES = {
    "mul": lambda x, w: x * w, "square": lambda x, w: x * x * w, "pow": lambda x, w: x**2 * w,
    "sin": lambda x, w: x.sin() * w, "dot": lambda x, w: cygrad.dot(x, w),
}


@pytest.mark.guarantee("R3")
@pytest.mark.parametrize("name", SAVES)
@pytest.mark.parametrize("create_graph", [True, False])
def test_detach_of_a_saved_input_is_an_error_in_backward(name, create_graph):
    a, w = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    x = a * 2
    y = SAVES[name](x, w)
    x.detach_()
    with pytest.raises(RuntimeError, match=r"detached in-place, by detach_\(\).*Use detach\(\)"):
        y.sum().backward(create_graph=create_graph)


@pytest.mark.guarantee("R3")
def test_detach_of_a_large_saved_input_too():
    a = cygrad.ones(100_000, requires_grad=True)
    x = a * 2
    y = ((x * x) * 3 + 1).exp()
    x.detach_()
    with pytest.raises(RuntimeError, match="detach_"):
        y.sum().backward()


@pytest.mark.guarantee("R3")
def test_detach_of_saved_results_leaves_and_constants_is_fine():
    a, w = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    y = a.exp()
    z = y * 3
    y.detach_()
    z.sum().backward()
    assert a.grad.tolist() == pytest.approx([8.154845, 8.154845])
    x = cygrad.ones(2)
    product = x * w
    x.detach_()
    product.sum().backward()
    assert w.grad.tolist() == [1, 1]
    leaf = cygrad.ones(2, requires_grad=True)
    product = leaf * leaf
    leaf.detach_()
    product.sum().backward()
    assert leaf.grad is None


@pytest.mark.guarantee("R3")
def test_what_was_detached_can_be_used_anew():
    a, w = cygrad.ones(2, requires_grad=True), cygrad.ones(2, requires_grad=True)
    x = a * 2
    _ = x * w
    x.detach_()
    (x * w).sum().backward()
    assert w.grad.tolist() == [2, 2]
    assert x._version == 0
