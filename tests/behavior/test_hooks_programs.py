"""Programs with hooks of tensors and nodes behave as in PyTorch."""

import pytest

import cygrad
from tests.behavior.two_libraries import Program
from tests.reference import torch

pytestmark = pytest.mark.guarantee("H1")

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def grad_y_only(p):
    _x, y, z = p.new()
    y.register_hook(p.note("t", lambda g: g * 2))
    y.grad_fn.register_prehook(p.note("pre", lambda g: (g[0] * 10,)))
    y.grad_fn.register_hook(p.note("post"))
    y.retain_grad()
    return p.lib.autograd.grad(z.sum(), y), y.grad


@program
def backward_inputs_y(p):
    x, y, z = p.new()
    y.register_hook(p.note("t", lambda g: g * 2))
    y.grad_fn.register_hook(p.note("post"))
    z.sum().backward(inputs=[y])
    return y.grad, x.grad


@program
def backward_inputs_x(p):
    x, _y, z = p.new()
    x.register_hook(p.note("t", lambda g: g * 2))
    x.register_post_accumulate_grad_hook(p.note("xpost"))
    p.graph.get_gradient_edge(x).node.register_prehook(p.note("pre"))
    n = p.graph.get_gradient_edge(x).node
    n.register_hook(p.note("post"))
    z.sum().backward(inputs=[x])
    return x.grad


@program
def retain_before_and_after_hook(p):
    _x, y, z = p.new()
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    z.sum().backward()
    return y.grad


@program
def leaf_hook_replaces(p):
    x, _y, z = p.new()
    x.register_hook(lambda g: g * 7)
    z.sum().backward()
    return x.grad


@program
def hook_removes_itself(p):
    _x, y, z = p.new()
    h = []

    def f(g):
        p.log.append("f")
        h[0].remove()

    h.append(y.register_hook(f))
    y.register_hook(p.note("g"))
    z.sum().backward(retain_graph=True)
    z.sum().backward()


@program
def hook_removes_later(p):
    _x, y, z = p.new()
    h = []

    def f(g):
        p.log.append("f")
        h[0].remove()

    y.register_hook(f)
    h.append(y.register_hook(p.note("g")))
    z.sum().backward(retain_graph=True)


@program
def prehook_removes_later(p):
    _x, y, z = p.new()
    h = []

    def f(g):
        p.log.append("f")
        h[0].remove()

    y.grad_fn.register_prehook(f)
    h.append(y.grad_fn.register_prehook(p.note("g")))
    z.sum().backward(retain_graph=True)


@program
def posthook_removes_later(p):
    _x, y, z = p.new()
    h = []

    def f(*g):
        p.log.append("f")
        h[0].remove()

    y.grad_fn.register_hook(f)
    h.append(y.grad_fn.register_hook(p.note("g")))
    z.sum().backward(retain_graph=True)


@program
def acc_removes_later(p):
    x, _y, z = p.new()
    h = []

    def f(*g):
        p.log.append("f")
        h[0].remove()

    x.register_post_accumulate_grad_hook(f)
    h.append(x.register_post_accumulate_grad_hook(p.note("g")))
    z.sum().backward(retain_graph=True)


@program
def hook_registers_same(p):
    _x, y, z = p.new()

    def f(g):
        p.log.append("f")
        y.register_hook(p.note("new"))

    y.register_hook(f)
    z.sum().backward(retain_graph=True)
    p.log.append("|")
    z.sum().backward()


@program
def hook_registers_upstream(p):
    x, y, z = p.new()

    def f(g):
        p.log.append("f")
        x.register_hook(p.note("new"))
        y.grad_fn.register_prehook(p.note("newpre"))
        y.grad_fn.register_hook(p.note("newpost"))

    y.register_hook(f)
    z.sum().backward()


@program
def hook_inplace(p):
    x, y, z = p.new()

    def f(g):
        g.mul_(2)

    y.register_hook(f)
    z.sum().backward()
    return x.grad


@program
def leaf_hook_inplace(p):
    x, _y, z = p.new()

    def f(g):
        g.mul_(2)

    x.register_hook(f)
    z.sum().backward()
    return x.grad


@program
def root_hook_inplace(p):
    x, _y, z = p.new()
    s = z.sum()
    s.register_hook(lambda g: g.mul_(5) and None)
    s.backward()
    return x.grad


@program
def given_grad_inplace(p):
    x, _y, z = p.new()
    g = p.lib.ones(2)

    def f(g):
        g.mul_(5)

    z.register_hook(f)
    z.backward(g)
    return g, x.grad


@program
def post_acc_modifies(p):
    x, _y, z = p.new()

    def f(p):
        p.grad.mul_(0)

    x.register_post_accumulate_grad_hook(f)
    z.sum().backward()
    return x.grad


@program
def post_acc_sets_none(p):
    x, _y, z = p.new()

    def f(p):
        p.grad = None

    x.register_post_accumulate_grad_hook(f)
    z.sum().backward()
    return x.grad


@program
def post_acc_twice_used(p):
    x = p.lib.tensor([1.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(p.note("p", lambda p: None))
    (x * 2 + x * 3).backward()
    return x.grad


@program
def post_acc_returns(p):
    x, _y, z = p.new()
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.detach())
    z.sum().backward()
    return x.grad


@program
def hook_wrong_shape(p):
    _x, y, z = p.new()
    y.register_hook(lambda g: p.lib.ones(3))
    z.sum().backward()


@program
def hook_other_dtype(p):
    x, y, z = p.new()
    y.register_hook(lambda g: g.double())
    z.sum().backward()
    return x.grad


@program
def prehook_single_tensor(p):
    x, y, z = p.new()
    y.grad_fn.register_prehook(lambda g: g[0] * 2)
    z.sum().backward()
    return x.grad


@program
def prehook_list(p):
    x, y, z = p.new()
    y.grad_fn.register_prehook(lambda g: [g[0] * 2])
    z.sum().backward()
    return x.grad


@program
def prehook_wrong_len(p):
    x, y, z = p.new()
    y.grad_fn.register_prehook(lambda g: (g[0], g[0]))
    z.sum().backward()
    return x.grad


@program
def prehook_none_entry(p):
    x, y, z = p.new()
    y.grad_fn.register_prehook(lambda g: (None,))
    z.sum().backward()
    return x.grad


@program
def posthook_single(p):
    x, y, _z = p.new()
    s = y.exp()
    s.grad_fn.register_hook(lambda gi, go: gi[0] * 2)
    s.sum().backward()
    return x.grad


@program
def posthook_none_entry(p):
    x, y, z = p.new()
    y.grad_fn.register_hook(lambda gi, go: (None, None))
    z.sum().backward()
    return x.grad


@program
def posthook_fills_unneeded(p):
    x, y, z = p.new()
    y.grad_fn.register_hook(lambda gi, go: (gi[0], p.lib.ones(2)))
    z.sum().backward()
    return x.grad


@program
def posthook_scalar_for_shape(p):
    x, y, z = p.new()
    y.grad_fn.register_hook(lambda gi, go: (gi[0].sum(), None))
    z.sum().backward()
    return x.grad


@program
def hook_inplace_then_registered(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(p.note("before"))
    y.mul_(3)
    y.register_hook(p.note("after"))
    y.sum().backward()
    return x.grad


@program
def retain_inplace_twice(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.retain_grad()
    y.sum().backward()
    return y.grad


@program
def mode_in_hook(p):
    _x, y, z = p.new()
    y.register_hook(lambda g: p.log.append((p.lib.is_grad_enabled(), g.requires_grad)))
    z.sum().backward(create_graph=True)
    z.sum().backward()


@program
def multi_all(p):
    x, y, z = p.new()
    w = p.lib.ones(2, requires_grad=True)
    p.graph.register_multi_grad_hook((x, y, w), p.note("all"))
    z.sum().backward(retain_graph=True)
    (z * w).sum().backward(retain_graph=True)
    p.lib.autograd.grad(z.sum(), y, retain_graph=True)
    z.sum().backward(inputs=[x])


@program
def multi_any(p):
    x, y, z = p.new()
    w = p.lib.ones(2, requires_grad=True)
    h = p.graph.register_multi_grad_hook((x, y, w), p.note("any"), mode="any")
    z.sum().backward(retain_graph=True)
    z.sum().backward(retain_graph=True)
    h.remove()
    z.sum().backward()


@program
def multi_nograd_any(p):
    x, _y, z = p.new()
    p.graph.register_multi_grad_hook((x, p.lib.ones(2)), p.note("any"), mode="any")
    z.sum().backward()


@program
def multi_same_twice(p):
    x, _y, z = p.new()
    p.graph.register_multi_grad_hook((x, x), p.note("all"))
    z.sum().backward()


@program
def multi_returns(p):
    x, y, z = p.new()
    p.graph.register_multi_grad_hook((x, y), lambda g: [p.lib.ones(2)] * 2)
    z.sum().backward()
    return x.grad


@program
def multi_any_returns(p):
    x, y, z = p.new()
    p.graph.register_multi_grad_hook((x, y), lambda g: p.lib.ones(2), mode="any")
    z.sum().backward()
    return x.grad


@program
def multi_raises(p):
    x, y, z = p.new()

    def f(g):
        raise ValueError

    p.graph.register_multi_grad_hook((x, y), f)
    try:
        z.sum().backward(retain_graph=True)
    except ValueError:
        p.log.append("raised")
    z.sum().backward()


@program
def node_hook_on_accumulate(p):
    x, _y, z = p.new()
    n = p.graph.get_gradient_edge(x).node
    n.register_hook(p.note("post"))
    n.register_prehook(p.note("pre", lambda g: (g[0] * 2,)))
    z.sum().backward()
    return x.grad


@program
def with_handle(p):
    _x, y, z = p.new()
    with y.register_hook(p.note("a")):
        z.sum().backward(retain_graph=True)
    z.sum().backward()


@program
def leaf_requires_grad_off(p):
    x, _y, z = p.new()
    x.register_hook(p.note("a"))
    x.requires_grad_(False)
    z.sum().backward()
    return x.grad


@program
def hook_backward_inside(p):
    x, y, z = p.new()
    w = p.lib.ones(1, requires_grad=True)

    def f(g):
        with p.lib.enable_grad():
            (w * 2).backward()

    y.register_hook(f)
    z.sum().backward()
    return w.grad, x.grad


@program
def double_hook(p):
    x, y, z = p.new()
    y.register_hook(p.note("y"))
    (g,) = p.lib.autograd.grad(z.sum(), x, create_graph=True)
    g.register_hook(p.note("g"))
    g.sum().backward()
    return x.grad


@program
def alias_view_hook(p):
    x = p.lib.ones(2, requires_grad=True)
    v = x.view(2)
    v.register_hook(p.note("v"))
    x.sum().backward()
    return x.grad


@program
def output_unused_multi(p):
    x = p.lib.ones(4, requires_grad=True)
    a, b = x.split(2)
    a.register_hook(p.note("a"))
    b.register_hook(p.note("b"))
    a.sum().backward()
    return x.grad


@program
def tensor_hook_two_outputs(p):
    x = p.lib.ones(4, requires_grad=True)
    a, b = x.split(2)
    b.register_hook(p.note("b"))
    a.register_hook(p.note("a", lambda g: g * 2))
    (a.sum() + b.sum()).backward()
    return x.grad


@program
def hook_keeps_after_del(p):
    x = p.lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(p.note("y"))
    z = y * 2
    del y
    z.sum().backward()


@program
def retain_grad_del(p):
    x = p.lib.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = y * 2
    del y
    z.sum().backward()
    return x.grad


@program
def retain_grad_create_graph(p):
    _x, y, z = p.new()
    y.retain_grad()
    z.sum().backward(create_graph=True)
    return y.grad.requires_grad, y.grad


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", PROGRAMS, ids=[function.__name__ for function in PROGRAMS])
def test_programs_with_hooks(function):
    assert Program(cygrad).run(function) == Program(torch).run(function)
