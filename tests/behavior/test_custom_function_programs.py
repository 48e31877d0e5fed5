"""Programs with valid and invalid custom functions behave as in PyTorch."""

import pytest

import cygrad
from tests.behavior.two_libraries import Program
from tests.reference import torch

pytestmark = pytest.mark.guarantee("F1")

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def identity(ctx, g):
    return g


def make(p, forward, backward=identity):
    return type(
        "Made", (p.lib.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def gradient(p, forward, backward=identity):
    """Of the sum of a function of one leaf."""
    x = p.leaf(1.0, 2.0)
    y = make(p, forward, backward).apply(x)
    (y[0] if isinstance(y, tuple) else y).sum().backward()
    return x.grad


@program
def too_few(p):
    x = p.leaf(1.0)
    y = p.leaf(1.0)
    make(p, lambda c, a, b: a * b, lambda c, g: g).apply(x, y).backward()


@program
def too_many(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: (g, g))


@program
def too_many_none(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: (g, None, None))


@program
def list_result(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: [g])


@program
def nontensor_grad(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: 5.0)


@program
def grad_for_nontensor(p):
    x = p.leaf(1.0)
    make(p, lambda c, a, b: a * b, lambda c, g: (g, g)).apply(x, 2.0).backward()
    return x.grad


@program
def grad_for_norg(p):
    x = p.leaf(1.0)
    y = p.lib.ones(1)
    make(p, lambda c, a, b: a * b, lambda c, g: (g, g)).apply(x, y).backward()
    return x.grad, y.grad


@program
def none_for_needed(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: None)


@program
def wrong_shape(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: p.lib.ones(3))


@program
def bcast_shape(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: p.lib.ones(3, 2))


@program
def scalar_shape(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: p.lib.tensor(1.0))


@program
def wrong_dtype(p):
    r = gradient(p, lambda c, a: a * 1, lambda c, g: g.double())
    return r.dtype == p.lib.float32


@program
def int_grad(p):
    r = gradient(p, lambda c, a: a * 1, lambda c, g: p.lib.ones(2, dtype=p.lib.int64))
    return r, r.dtype == p.lib.float32


@program
def complex_grad(p):
    return gradient(p, lambda c, a: a * 1, lambda c, g: g + 1j)


@program
def save_nontensor(p):
    return gradient(p, lambda c, a: (c.save_for_backward(5), a * 1)[1])


@program
def save_none(p):
    return gradient(
        p,
        lambda c, a: (c.save_for_backward(None, a), a * 1)[1],
        lambda c, g: g if c.saved_tensors[0] is None else 1 / 0,
    )


@program
def save_twice(p):
    def f(c, a):
        c.save_for_backward(a)
        c.save_for_backward(a * 2)
        return a * 1

    def b(c, g):
        return g * len(c.saved_tensors) * c.saved_tensors[0].sum()

    return gradient(p, f, b)


@program
def saved_in_forward(p):
    def f(c, a):
        c.save_for_backward(a)
        return a * len(c.saved_tensors)

    return gradient(p, f)


@program
def save_in_backward(p):
    def b(c, g):
        c.save_for_backward(g)
        return g

    return gradient(p, lambda c, a: a * 1, b)


@program
def no_backward(p):
    x = p.leaf(1.0)
    type("Fn", (p.lib.autograd.Function,), {"forward": staticmethod(lambda c, a: a * 1)}).apply(x).backward()


@program
def nonstatic_forward(p):
    type(
        "Fn", (p.lib.autograd.Function,), {"forward": lambda self, c, a: a * 1, "backward": staticmethod(identity)}
    ).apply(p.leaf(1.0))


@program
def nonstatic_backward(p):
    type(
        "Fn",
        (p.lib.autograd.Function,),
        {"forward": staticmethod(lambda c, a: a * 1), "backward": lambda self, c, g: g},
    ).apply(p.leaf(1.0)).backward()


@program
def old_instance(p):
    make(p, lambda c, a: a * 1, identity)()(p.leaf(1.0))


@program
def dirty_noninput(p):
    def f(c, a):
        t = a * 2
        c.mark_dirty(t)
        return t

    return gradient(p, f)


@program
def dirty_not_returned(p):
    x = p.leaf(1.0)
    y = x * 1

    def f(c, a):
        a.mul_(2)
        c.mark_dirty(a)
        return a * 1

    make(p, f, identity).apply(y)


@program
def dirty_leaf(p):
    def f(c, a):
        a.mul_(2)
        c.mark_dirty(a)
        return a

    return gradient(p, f)


@program
def dirty_ok(p):
    x = p.leaf(1.0)
    y = x * 1

    def f(c, a):
        a.mul_(2)
        c.mark_dirty(a)
        return a

    z = make(p, f, lambda c, g: g * 2).apply(y)
    z.sum().backward()
    return z is y, x.grad, y._version


@program
def dirty_view(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    v = y[:1]

    def f(c, a):
        a.mul_(2)
        c.mark_dirty(a)
        return a

    make(p, f, lambda c, g: g * 2).apply(v)
    y.sum().backward()
    return x.grad


@program
def nondiff_noutput(p):
    def f(c, a):
        c.mark_non_differentiable(a)
        return a * 1

    return gradient(p, f)


@program
def nondiff_nontensor(p):
    def f(c, a):
        c.mark_non_differentiable(5)
        return a * 1

    return gradient(p, f)


@program
def nondiff_in_backward(p):
    seen = []

    def f(c, a):
        r = a * 1
        s = a * 2
        c.mark_non_differentiable(r)
        return r, s

    def b(c, g, h):
        seen.append((g.tolist(), h.tolist()))
        return h

    x = p.leaf(1.0)
    r, s = make(p, f, b).apply(x)
    s.backward()
    return seen, r.requires_grad, x.grad


@program
def returns_nontensor(p):
    return make(p, lambda c, a: 5, identity).apply(p.leaf(1.0))


@program
def returns_none(p):
    return make(p, lambda c, a: None, identity).apply(p.leaf(1.0))


@program
def returns_list(p):
    r = make(p, lambda c, a: [a * 1, a * 2], lambda c, g, h: g).apply(p.leaf(1.0))
    return type(r).__name__, r[0].requires_grad


@program
def returns_dict(p):
    r = make(p, lambda c, a: {"a": a * 1}, lambda c, g: g).apply(p.leaf(1.0))
    return type(r).__name__, r["a"].requires_grad


@program
def returns_input(p):
    x = p.leaf(1.0)
    y = make(p, lambda c, a: a, lambda c, g: g * 3).apply(x)
    y.sum().backward()
    return y is x, y._is_view(), x.grad


@program
def returns_input_twice(p):
    x = p.leaf(1.0)
    a, b = make(p, lambda c, a: (a, a), lambda c, g, h: g * 3 + h).apply(x)
    return a is b, a.requires_grad


@program
def returns_view(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    v = make(p, lambda c, a: a[:1], lambda c, g: p.lib.cat([g, g])).apply(y)
    return v._is_view(), v._base is y


@program
def returns_view_inplace(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    v = make(p, lambda c, a: a[:1], lambda c, g: p.lib.cat([g, g])).apply(y)
    v.mul_(2)


@program
def returns_input_inplace(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    v = make(p, lambda c, a: a, identity).apply(y)
    v.mul_(2)


@program
def returns_int(p):
    r = make(p, lambda c, a: a.long(), identity).apply(p.leaf(1.0))
    return r.requires_grad


@program
def nested(p):
    G = make(p, lambda c, a: a * 2, lambda c, g: g * 2)

    def f(c, a):
        c.save_for_backward(a)
        return G.apply(a)

    def b(c, g):
        (a,) = c.saved_tensors
        with p.lib.enable_grad():
            q = a.detach().requires_grad_()
            G.apply(q).sum().backward()
        return g * q.grad

    return gradient(p, f, b)


@program
def double_backward(p):
    def f(c, a):
        c.save_for_backward(a)
        return a**3

    def b(c, g):
        (a,) = c.saved_tensors
        return g * 3 * a**2

    x = p.leaf(2.0)
    (g,) = p.lib.autograd.grad(make(p, f, b).apply(x).sum(), x, create_graph=True)
    return p.lib.autograd.grad(g.sum(), x)


@program
def double_backward_unsaved(p):
    def f(c, a):
        c.a = a.detach()
        return a**3

    def b(c, g):
        return g * 3 * c.a**2

    x = p.leaf(2.0)
    (g,) = p.lib.autograd.grad(make(p, f, b).apply(x).sum(), x, create_graph=True)
    return g.requires_grad, p.lib.autograd.grad(g.sum(), x, allow_unused=True)


@program
def nograd_bwd(p):
    def b(c, g):
        return g if not p.lib.is_grad_enabled() else 1 / 0

    return gradient(p, lambda c, a: a * 1, b)


@program
def needs_input_grad(p):
    seen = []

    def b(c, g, *r):
        seen.append(c.needs_input_grad)
        return g, None, None

    x = p.leaf(1.0)
    make(p, lambda c, a, b, k: a * 1, b).apply(x, p.lib.ones(1), 5).backward()
    return seen


@program
def setup_ctx(p):
    class F(p.lib.autograd.Function):
        @staticmethod
        def forward(a, b=2):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.b = inputs[1]
            ctx.n = len(inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.b, None

    x = p.leaf(1.0)
    F.apply(x, 3).backward()
    return x.grad


@program
def ctx_in_wrong_style(p):
    class F(p.lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

    return F.apply(p.leaf(1.0))


@program
def fwd_enable_grad_returned(p):
    def f(c, a):
        with p.lib.enable_grad():
            return a * 2

    x = p.leaf(1.0)
    y = make(p, f, lambda c, g: g * 10).apply(x)
    y.backward()
    return x.grad


@program
def materialize_bad(p):
    def f(c, a):
        c.set_materialize_grads(False)
        return a * 1, a * 2

    def b(c, g, h):
        return g if h is None else h

    x = p.leaf(1.0)
    make(p, f, b).apply(x)[0].backward()
    return x.grad


@program
def kw_setup(p):
    class F(p.lib.autograd.Function):
        @staticmethod
        def forward(a, *, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

    return F.apply(p.leaf(1.0), b=2)


@program
def both_vjp_backward(p):
    class F(p.lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    F.apply(p.leaf(1.0)).backward()


@program
def staticmethod_inherit(p):
    class A(p.lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class B(A):
        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = p.leaf(1.0)
    B.apply(x).backward()
    return x.grad, B.apply(x).grad_fn.name()


@program
def out_dtype_complex(p):
    x = p.leaf(1.0)
    y = make(p, lambda c, a: a * (1 + 1j), lambda c, g: g.real).apply(x)
    y.abs().backward()
    return x.grad


@program
def complex_for_real(p):
    x = p.leaf(1.0)
    y = make(p, lambda c, a: a * (1 + 1j), lambda c, g: g).apply(x)
    y.abs().backward()
    return x.grad


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", PROGRAMS, ids=[function.__name__ for function in PROGRAMS])
def test_programs_with_custom_functions(function):
    assert Program(cygrad).run(function) == Program(torch).run(function)
