"""Mode stack of a thread: Python modes, profilers, autocast and forward mode."""

import threading

import pytest

import cygrad
from cygrad.autograd import forward_ad
from cygrad.profiler import profile
from cygrad.utils.operator_modes import OperatorMode


class Seen(OperatorMode):
    """Record the names of operators, with a prefix."""

    def __init__(self, log=None, mark=""):
        self.log, self.mark = [] if log is None else log, mark

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(self.mark + func.__name__.partition(".")[0])
        return func(*args, **(kwargs or {}))


def leaf():
    return cygrad.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)


CALLS = {
    "binary": (lambda x: x * x, "mul"),
    "unary": (lambda x: x.exp(), "exp"),
    "number": (lambda x: x + 1.0, "add"),
    "product": (lambda x: x @ x, "mm"),
    "sizes": (lambda x: x.view(4), "view"),
    "subscript": (lambda x: x[0], "select"),
    "in place": (lambda x: x.add_(1), "add_"),
    "augmented": (lambda x: x.__imul__(2), "mul_"),
    "copy": (lambda x: x.copy_(cygrad.zeros(2, 2)), "copy_"),
    "out": (lambda x: cygrad.exp(x, out=cygrad.empty(2, 2)), "exp"),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_each_way_to_call_an_operator_once(name, recorded):
    call, expected = CALLS[name]
    x = leaf()
    x = x.clone() if recorded and name != "out" else x.detach()
    with Seen() as mode:
        call(x)
    assert mode.log.count(expected) == 1


def test_a_mode_sees_the_operators_of_a_backward_and_changes_no_bit_of_it():
    def loss(x):
        return ((x @ x).sin() / x).sum()
    x, y = leaf(), leaf()
    loss(x).backward()
    value = loss(y)
    with Seen() as mode:
        value.backward()
    assert mode.log.count("mm") == 2 and "cos" in mode.log
    assert cygrad.equal(x.grad, y.grad) and not y.grad.requires_grad
    with Seen() as mode:
        loss(y).backward()                    # adds to the gradient in the same way
    loss(x).backward()
    assert cygrad.equal(x.grad, y.grad)


def test_inner_modes_come_first_and_what_they_call_is_seen_by_outer_ones():
    log = []
    with Seen(log, "outer "), Seen(log, "inner "):
        leaf().exp()
    assert log == ["inner exp", "outer exp"]


def test_a_profiler_sees_what_a_mode_calls_and_not_what_it_replaces():
    class Replaced(OperatorMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return cygrad.zeros_like(args[0]).cos() if func.__name__.startswith("exp") else func(*args)
    for first, second in ((profile(), Replaced()), (Replaced(), profile())):
        with first, second:
            result = leaf().exp()
        prof = first if isinstance(first, profile) else second
        names = [event.name for event in prof.events()]
        assert cygrad.equal(result, cygrad.ones(2, 2)) and "cos" in names and "exp" not in names


def test_modes_see_a_call_before_autocast_casts_it():
    with Seen() as mode, cygrad.autocast("cpu", dtype=cygrad.bfloat16):
        assert (leaf() @ leaf()).dtype == cygrad.bfloat16
    assert mode.log == ["mm"]
    with profile() as prof, cygrad.autocast("cpu", dtype=cygrad.bfloat16):
        leaf() @ leaf()
    assert [event.name for event in prof.events()] == ["matmul"]


def test_tangents_are_computed_below_modes_and_are_not_seen():
    with forward_ad.dual_level(), Seen() as mode:
        x = forward_ad.make_dual(leaf().detach(), cygrad.ones(2, 2))
        mode.log.clear()
        y = x.sin()
        assert mode.log == ["sin"]
        assert cygrad.allclose(forward_ad.unpack_dual(y).tangent, x.cos())


def test_a_failing_mode_leaves_the_stack_as_it_was():
    class Failing(OperatorMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")
    with Seen() as outer:
        with Failing():
            for _ in range(3):
                with pytest.raises(ValueError, match="no"):
                    leaf().exp()
        leaf().exp()
    leaf().sin()
    assert outer.log == ["exp"]


def test_other_threads_have_stacks_of_their_own():
    logs = [[] for _ in range(4)]

    def work(log, number):
        for _ in range(50):
            with Seen(log):
                x = leaf().exp()
                for _ in range(number):
                    x = x * x
            x.sin()
    with Seen() as outer:
        threads = [threading.Thread(target=work, args=(log, number)) for number, log in enumerate(logs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outer.log == []
    assert logs == [(["exp"] + ["mul"] * number) * 50 for number in range(4)]


def test_a_nested_backward_in_a_new_thread_keeps_the_modes():
    depth = 80                                # more than the stack of one thread takes

    class Nested(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.n:
                x = leaf()
                with cygrad.enable_grad():
                    Nested.apply(x, ctx.n - 1).sum().backward()
            else:
                grad.exp()
            return grad, None
    with Seen() as mode:
        Nested.apply(leaf(), depth).sum().backward()
    assert mode.log.count("exp") == 1


def test_grad_mode_in_inference_mode_is_reported_and_left_as_it_was():
    with cygrad.inference_mode():
        assert not cygrad.is_grad_enabled()
        with cygrad.enable_grad():
            assert cygrad.is_grad_enabled() and cygrad.is_inference_mode_enabled()
            assert not (leaf() * 2).requires_grad
            with cygrad.no_grad():
                assert not cygrad.is_grad_enabled()
            assert cygrad.is_grad_enabled()
        with cygrad.inference_mode(False):
            assert cygrad.is_grad_enabled() and (leaf() * 2).requires_grad
        assert not cygrad.is_grad_enabled()
    assert cygrad.is_grad_enabled() and not cygrad.is_inference_mode_enabled()
