"""Hooks of tensors and nodes."""

import gc
import threading
import weakref

import pytest

import cygrad
from cygrad.autograd import grad
from cygrad.autograd.graph import backward_order, register_multi_grad_hook
from tests.tools import FLOAT, leaf


@pytest.mark.guarantee("H1")
def test_tensor_hooks():
    v = cygrad.zeros(3, dtype=FLOAT, requires_grad=True)
    handle = v.register_hook(lambda grad: grad * 2)
    v.backward(cygrad.tensor([1.0, 2.0, 3.0], dtype=FLOAT))
    assert v.grad.tolist() == [2.0, 4.0, 6.0]
    handle.remove()
    handle.remove()                              # twice does no harm
    v.backward(cygrad.tensor([1.0, 2.0, 3.0], dtype=FLOAT))
    assert v.grad.tolist() == [3.0, 6.0, 9.0]


@pytest.mark.guarantee("H1")
def test_handles_are_context_managers():
    x = leaf(1.0)
    with x.register_hook(lambda grad: grad * 10):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.item() == 11.0


@pytest.mark.guarantee("H1")
def test_node_hooks():
    x, w = leaf(3.0), leaf(5.0)
    y = x * w
    seen = []
    y.grad_fn.register_hook(lambda *grads: seen.append(tuple([g.item() for g in part] for part in grads)))
    y.backward(retain_graph=True)
    assert seen == [([5.0, 3.0], [1.0])]
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, None))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 100,))
    x.grad = w.grad = None
    y.backward()
    assert x.grad.item() == 1000.0
    assert w.grad is None


@pytest.mark.guarantee("H1")
def test_prehook_may_drop_the_gradient():
    x = leaf(3.0)
    y = x * x
    y.grad_fn.register_prehook(lambda outputs: (None,))
    y.backward()
    assert x.grad is None


@pytest.mark.guarantee("H1")
def test_post_accumulate_hooks():
    x = leaf(3.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * x).backward()
    (x * 2).backward()
    assert seen == [(True, 6.0), (True, 8.0)]
    grad(x * x, x)                               # nothing is accumulated
    handle.remove()
    (x * 2).backward()
    assert len(seen) == 2
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 2).backward()
    assert x.grad is None


@pytest.mark.guarantee("H1")
def test_registration_errors():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        cygrad.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        cygrad.ones(2).register_hook(print)
    for register in (x.register_hook, x.register_post_accumulate_grad_hook, (x * 2).grad_fn.register_hook,
                     (x * 2).grad_fn.register_prehook):
        with pytest.raises(TypeError, match="must be callable"):
            register(5)


@pytest.mark.guarantee("H2")
def test_when_they_fire():
    def setup():
        x = leaf(2.0)
        y = x * 3
        z = y * y
        log = []
        x.register_hook(lambda g: log.append("tensor x"))
        y.register_hook(lambda g: log.append("tensor y"))
        y.grad_fn.register_prehook(lambda g: log.append("prehook y"))
        y.grad_fn.register_hook(lambda i, o: log.append("hook y"))
        x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated x"))
        return x, y, z, log

    x, y, z, log = setup()
    z.backward()
    assert log == ["tensor y", "prehook y", "hook y", "tensor x", "accumulated x"]
    x, y, z, log = setup()
    grad(z, y)                                   # tensor hooks fire even when the node does not run
    assert log == ["tensor y"]
    x, y, z, log = setup()
    grad(z, x)
    assert log == ["tensor y", "prehook y", "hook y", "tensor x"]
    x, y, z, log = setup()
    grad(z, [x, y])
    assert log == ["tensor y", "prehook y", "hook y", "tensor x"]
    x, y, z, log = setup()
    z.backward(inputs=[x])
    assert log == ["tensor y", "prehook y", "hook y", "tensor x", "accumulated x"]


@pytest.mark.guarantee("H2")
def test_hooks_change_what_grad_returns():
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    assert [g.item() for g in grad(y, [y, x])] == [10.0, 31.0]


@pytest.mark.guarantee("H2")
def test_once_per_backward_with_the_whole_gradient():
    x = leaf(2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 3 + x * 4 + x).backward()
    assert seen == [8.0]
    y = x * 1
    y.register_hook(lambda g: seen.append(("y", g.item())))
    (y * 3 + y * y).backward()
    assert seen == [8.0, ("y", 7.0), 7.0]


@pytest.mark.guarantee("H3")
def test_order():
    x = leaf(1.0)
    y = x * 2
    log = []
    node, accumulator = y.grad_fn, y.grad_fn.next_functions[0][0]
    node.register_hook(lambda i, o: log.append("post 1"))
    node.register_prehook(lambda g: log.append("pre 1"))
    y.register_hook(lambda g: log.append("tensor 1"))
    y.register_hook(lambda g: log.append("tensor 2"))
    node.register_prehook(lambda g: log.append("pre 2"))
    node.register_hook(lambda i, o: log.append("post 2"))
    accumulator.register_hook(lambda i, o: log.append("leaf post"))
    accumulator.register_prehook(lambda g: log.append("leaf pre"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    x.register_hook(lambda g: log.append("leaf tensor"))
    y.backward()
    assert log == ["tensor 1", "tensor 2", "pre 1", "pre 2", "post 1", "post 2",
                   "leaf tensor", "leaf pre", "accumulated", "leaf post"]


@pytest.mark.guarantee("H3")
def test_retained_gradients_come_after_tensor_hooks_and_before_prehooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.grad_fn.register_prehook(lambda g: (g[0] * 10,))
    y.backward()
    assert y.grad.item() == 3.0
    assert x.grad.item() == 60.0


@pytest.mark.guarantee("H3")
def test_later_hooks_see_earlier_changes():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: g * 10)
    (x * 1).backward()
    assert seen == [2.0]
    assert x.grad.item() == 20.0


@pytest.mark.guarantee("H3")
def test_changes_while_hooks_run():
    x = leaf(1.0)
    log, handles = [], []
    x.register_hook(lambda g: handles[0].remove() or log.append(1))
    handles.append(x.register_hook(lambda g: log.append(2)))
    x.register_hook(lambda g: x.register_hook(lambda g: log.append("new")) and None)
    (x * 1).backward()
    assert log == [1, 2]                         # the hooks of the moment at which they are called
    (x * 1).backward()
    assert log == [1, 2, 1, "new"]


@pytest.mark.guarantee("H6")
def test_bound_to_the_history_of_the_moment():
    x = leaf(1.0)
    t = x.sin()
    seen = []
    t.register_hook(lambda g: seen.append(("sin", g.item())))
    t.cos_()
    t.register_hook(lambda g: seen.append(("cos", g.item())))
    t.backward()
    assert [name for name, _ in seen] == ["cos", "sin"]
    assert seen[0][1] == 1.0
    assert seen[1][1] != 1.0


@pytest.mark.guarantee("H6")
def test_views_after_a_change_of_the_base():
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y[0]
    seen = []
    v.register_hook(lambda g: seen.append("old"))
    y.mul_(2)
    v.register_hook(lambda g: seen.append("new"))
    (v * 3).backward()
    assert seen == ["new"]


@pytest.mark.guarantee("H6")
def test_leaf_hooks_outlive_graphs_and_node_hooks_do_not():
    x = leaf(1.0)
    log = []
    x.register_hook(lambda g: log.append("tensor"))
    y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda i, o: log.append("node"))
    y.backward()
    assert log == ["tensor", "node"]
    del y
    gc.collect()
    (x * 2).backward()
    assert log == ["tensor", "node", "tensor"]


@pytest.mark.guarantee("H6")
def test_hooks_do_not_keep_the_leaf():
    x = leaf(1.0)
    x.register_hook(lambda g: g)
    handle = x.register_post_accumulate_grad_hook(lambda t: None)
    dead = weakref.ref(x)
    del x
    assert dead() is None
    handle.remove()


# ------------------------------------------------------------------------------------------------ several gradients

def four_tensors():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    return a, b, a * b, a * b


@pytest.mark.guarantee("H4")
def test_all_waits_for_what_this_backward_reaches():
    a, b, c, d = four_tensors()
    seen = []
    handle = register_multi_grad_hook((a, b, c, d), seen.append)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c * d).sum().backward(retain_graph=True)
    assert [[g is not None for g in grads] for grads in seen] == [
        [True, True, True, False], [True, False, True, False], [True, True, True, True]]
    assert [g if g is None else g.tolist() for g in seen[0]] == [[3.0, 4.0], [1.0, 2.0], [1.0, 1.0], None]
    handle.remove()
    handle.remove()
    c.sum().backward()
    assert len(seen) == 3


@pytest.mark.guarantee("H4")
def test_all_in_grad():
    a, b, c, d = four_tensors()
    seen = []
    with register_multi_grad_hook([d, c, b, a, a], seen.append):
        grad((c * 2).sum(), [c], retain_graph=True)              # the node of c does not run, its gradient is computed
        grad((c * d).sum(), [a], retain_graph=True)
        grad((a * 2).sum(), b, allow_unused=True)                # nothing is computed
    grad((c * d).sum(), [a])
    assert [[g is not None for g in grads] for grads in seen] == [
        [False, True, False, False, False], [True, True, False, True, True]]


@pytest.mark.guarantee("H4")
def test_any():
    a, b, c, d = four_tensors()
    seen = []
    handle = register_multi_grad_hook((a, b, c, d, cygrad.ones(1)), seen.append, mode="any")
    (c + d * 5).sum().backward(retain_graph=True)
    grad((c * 7).sum(), a, retain_graph=True)
    assert [g.tolist() for g in seen] == [[5.0, 5.0], [7.0, 7.0]]
    handle.remove()
    c.sum().backward()
    assert len(seen) == 2


@pytest.mark.guarantee("H4")
def test_bound_to_the_history_and_leaves_of_any_graph():
    x = leaf(1.0)
    t = x.sin()
    seen = []
    register_multi_grad_hook((t, x), seen.append)
    t.mul_(3)
    t.backward()
    (x * 2).backward()                                           # the hook of the leaf holds for the next graph too
    assert [[g and g.item() for g in grads] for grads in seen] == [[3.0, x.cos().item() * 3], [None, 2.0]]


@pytest.mark.guarantee("H4")
def test_backward_that_ended_early_leaves_nothing():
    x = leaf(1.0)
    y = x * 2
    seen = []
    register_multi_grad_hook((x, y), seen.append)
    with y.grad_fn.register_prehook(lambda grads: 1 / 0), pytest.raises(ZeroDivisionError):
        y.backward(retain_graph=True)
    y.backward()
    assert [g.item() for g in seen[0]] == [2.0, 1.0]
    assert len(seen) == 1


@pytest.mark.guarantee("H4")
def test_nested_backward():
    x, seen = leaf(1.0), []

    def inner(grads):
        seen.append([g and g.item() for g in grads])
        if len(seen) == 1:
            with cygrad.enable_grad():
                (x * 10).backward()

    y = x * 2
    register_multi_grad_hook((y, x), inner)
    x.register_hook(lambda g: None)
    y.backward()
    assert seen == [[1.0, 2.0], [None, 10.0]]


@pytest.mark.guarantee("H4")
def test_threads():
    a, b, c, d = four_tensors()
    seen, any_seen = [], []
    register_multi_grad_hook((a, b, c, d), lambda grads: seen.append([g if g is None else g.tolist() for g in grads]))
    register_multi_grad_hook((a, b, c, d), any_seen.append, mode="any")

    def body(i):
        for _ in range(25):
            ((c if i % 2 else d) * float(i)).sum().backward(retain_graph=True)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [[[3.0 * i, 4.0 * i], [1.0 * i, 2.0 * i], [1.0 * i] * 2 if i % 2 else None,
                 None if i % 2 else [1.0 * i] * 2] for i in range(4)]
    assert len(seen) == len(any_seen) == 100
    assert all(seen.count(one) == 25 for one in expected)


@pytest.mark.guarantee("H4")
def test_makes_no_cycle():
    x = leaf(1.0)
    y = x * 2
    register_multi_grad_hook((x, y), lambda grads: None)
    y.backward(retain_graph=True)
    dead = weakref.ref(x), weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del x, y
        assert [ref() for ref in dead] == [None, None]
    finally:
        gc.enable()


@pytest.mark.guarantee("H4")
def test_multi_grad_hook_errors():
    x = leaf(1.0)
    with pytest.raises(ValueError, match="mode to be one of"):
        register_multi_grad_hook((x,), print, mode="some")
    with pytest.raises(TypeError, match="must be callable"):
        register_multi_grad_hook((x,), 5)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        register_multi_grad_hook((x, cygrad.ones(1)), print)
    register_multi_grad_hook((x,), lambda grads: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).backward()


# ------------------------------------------------------------------------------------------------------------ order

def branched(size):
    """A graph with branches, views, a shared leaf and one that is reached late."""
    x, w = (cygrad.full((size,), value, dtype=FLOAT).requires_grad_() for value in (0.5, 2.0))
    late = w * 3
    parts = (x * w).exp().reshape(2, -1)
    return x, ((parts[0] * parts[1]).sin() + late[: size // 2] * x[: size // 2].tanh()).sum()


@pytest.mark.guarantee("H7")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [4, 200_000])
def test_order_is_told_beforehand(size, threads):
    x, loss = branched(size)
    told = backward_order(loss)
    ran = []
    for node in told:
        node.register_prehook(lambda grads, node=node: ran.append((node, threading.get_ident())))
    with cygrad.threads(threads):
        loss.backward(retain_graph=True)
    assert [node for node, _ in ran] == told
    assert {thread for _, thread in ran} == {threading.get_ident()}
    numbers = [node._sequence_nr() for node in told if node.name() != "AccumulateGrad"]
    assert numbers == sorted(numbers, reverse=True)
    ran.clear()
    with cygrad.threads(threads):
        loss.backward(inputs=[x])
    assert [node for node, _ in ran] == backward_order(loss, inputs=x)
    assert len(ran) < len(told)


@pytest.mark.guarantee("H7")
@pytest.mark.parametrize("threads", [1, 2])
def test_python_nodes_between_native_ones(threads):
    _, loss = branched(200_000)
    told = backward_order(loss)[::3]
    ran = []
    for node in told:
        node.register_prehook(lambda grads, node=node: ran.append(node))
    with cygrad.threads(threads):
        loss.backward()
    assert ran == told


@pytest.mark.guarantee("H7")
def test_roots():
    x = leaf(1.0)
    y, z = x * 2, x.exp()
    edge = cygrad.autograd.graph.get_gradient_edge(y)
    assert backward_order(y) == backward_order(edge) == backward_order(y.grad_fn) == [
        y.grad_fn, y.grad_fn.next_functions[0][0]]
    assert backward_order([y, z])[:2] == [z.grad_fn, y.grad_fn]
    assert [node.name() for node in backward_order(x)] == ["AccumulateGrad"]
    assert backward_order([]) == []
    assert backward_order(y, inputs=z) == []
    with pytest.raises(RuntimeError, match="does not require grad"):
        backward_order(cygrad.ones(1))
    with pytest.raises(TypeError, match="expected a Tensor"):
        backward_order(5)
    with pytest.raises(TypeError, match="expected a Tensor"):
        backward_order([y, 5])


@pytest.mark.guarantee("H7")
def test_deep_and_within_backward():
    x = leaf(1.0)
    y, seen = x, []
    for _ in range(100_000):
        y = y * 1.0
    assert len(backward_order(y)) == 100_001
    z = x * 2
    z.register_hook(lambda g: seen.append(len(backward_order(z))))
    (z * 3).backward()                                            # the nodes belong to another plan at that moment
    assert seen == [2]
    assert x.grad.item() == 6.0
