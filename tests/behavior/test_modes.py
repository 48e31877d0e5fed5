"""Modes: no_grad, enable_grad, set_grad_enabled, inference_mode."""

import asyncio
import threading

import pytest

import cygrad
from tests.tools import FLOAT, leaf

MODES = {
    "no_grad": (cygrad.no_grad, (False, False)),
    "enable_grad": (cygrad.enable_grad, (True, False)),
    "set_grad_enabled(False)": (lambda: cygrad.set_grad_enabled(False), (False, False)),
    "set_grad_enabled(True)": (lambda: cygrad.set_grad_enabled(True), (True, False)),
    "inference_mode": (cygrad.inference_mode, (False, True)),
    "inference_mode(False)": (lambda: cygrad.inference_mode(False), (True, False)),
}


def state():
    return cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled()


@pytest.fixture(autouse=True)
def clean_state():
    assert state() == (True, False)
    yield
    assert state() == (True, False)


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("name", MODES)
def test_context_managers(name):
    make, expected = MODES[name]
    with make():
        assert state() == expected
    assert state() == (True, False)
    with pytest.raises(ZeroDivisionError), make():
        raise ZeroDivisionError
    assert state() == (True, False)


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("name", MODES)
def test_decorators(name):
    make, expected = MODES[name]

    @make()
    def decorated(a, *, b=2):
        """Its text."""
        return a + b, state()

    assert state() == (True, False)
    assert decorated(1, b=3) == (4, expected)
    assert decorated.__name__ == "decorated"
    assert decorated.__doc__ == "Its text."

    @make()
    def failing():
        raise KeyError("x")

    with pytest.raises(KeyError):
        failing()
    assert state() == (True, False)


@pytest.mark.guarantee("M1")
def test_decorators_without_parentheses():
    for mode, expected in ((cygrad.no_grad, (False, False)), (cygrad.enable_grad, (True, False)),
                           (cygrad.inference_mode, (False, True))):
        @mode
        def decorated():
            return state()
        assert decorated() == expected


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("name", MODES)
def test_generators(name):
    make, expected = MODES[name]
    seen = []

    @make()
    def numbers():
        try:
            for i in range(3):
                seen.append(state())
                got = yield i
                seen.append((state(), got))
            return "end"
        except KeyError:
            seen.append(("caught", state()))
            yield "after"
        finally:
            seen.append(("finally", state()))

    running = numbers()
    assert next(running) == 0
    assert state() == (True, False)
    assert running.send("hello") == 1
    assert seen[1] == (expected, "hello")
    assert running.throw(KeyError("x")) == "after"
    assert state() == (True, False)
    running.close()
    assert seen[-1] == ("finally", expected)
    assert seen[-2] == ("caught", expected)

    def outer():
        return (yield from numbers())
    assert list(outer()) == [0, 1, 2]


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("name", MODES)
def test_coroutines(name):
    make, expected = MODES[name]

    @make()
    async def work():
        first = state()
        await asyncio.sleep(0)
        return first, state()

    async def main():
        async def look():
            found = state()
            await asyncio.sleep(0)
            return found, state()
        return await asyncio.gather(work(), look(), work())

    inside, outside, again = asyncio.run(main())
    assert inside == again == (expected, expected)
    assert outside == ((True, False), (True, False))


@pytest.mark.guarantee("M1")
def test_nesting():
    with cygrad.no_grad():
        with cygrad.enable_grad():
            with cygrad.no_grad():
                assert state() == (False, False)
            assert state() == (True, False)
            with cygrad.inference_mode():
                assert state() == (False, True)
                with cygrad.inference_mode(False):
                    assert state() == (True, False)
                assert state() == (False, True)
            assert state() == (True, False)
        assert state() == (False, False)
    mode = cygrad.no_grad()                      # one object, entered inside itself
    with mode, mode:
        assert state() == (False, False)
        with cygrad.enable_grad(), mode:
            assert state() == (False, False)


@pytest.mark.guarantee("M1")
def test_set_grad_enabled_as_a_function():
    cygrad.set_grad_enabled(False)
    assert not cygrad.is_grad_enabled()
    cygrad.set_grad_enabled(True)
    assert cygrad.is_grad_enabled()
    with cygrad.set_grad_enabled(False):
        cygrad.set_grad_enabled(True)
        assert cygrad.is_grad_enabled()
    assert cygrad.is_grad_enabled()


@pytest.mark.guarantee("M1")
def test_thread_local():
    seen, go, done = [], threading.Event(), threading.Event()

    def body():
        seen.append(state())
        with cygrad.inference_mode():
            done.set()
            go.wait()
            seen.append(state())

    with cygrad.no_grad():
        thread = threading.Thread(target=body)
        thread.start()
        done.wait()
        assert state() == (False, False)
        go.set()
        thread.join()
    assert seen == [(True, False), (False, True)]


@pytest.mark.guarantee("M1")
def test_refuses_what_is_no_function():
    with pytest.raises(TypeError, match="can only decorate a function"):
        cygrad.no_grad()(5)


@pytest.mark.guarantee("M2")
def test_results_of_no_grad():
    x = leaf(1.0, 2.0)
    with cygrad.no_grad():
        y = x * 2
        assert not y.requires_grad
        assert y.is_leaf
        assert y.grad_fn is None
        w = cygrad.ones(2, dtype=FLOAT, requires_grad=True)
        assert w.requires_grad
        made = [cygrad.zeros(2, requires_grad=True), cygrad.tensor([1.0], requires_grad=True),
                cygrad.randn(2, requires_grad=True), cygrad.nn.Parameter(cygrad.ones(1))]
        assert all(t.requires_grad and t.is_leaf for t in made)
    z = (y * x * w).sum()
    assert z.requires_grad
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert w.grad.tolist() == [2.0, 8.0]


@pytest.mark.guarantee("M2")
def test_in_place_on_leaves():
    x = leaf(1.0, 2.0)
    with cygrad.no_grad():
        x.mul_(3)
        x -= 1
        x[0] = 7.0
        x.view(2).add_(1)
    assert x.tolist() == [8.0, 6.0]
    assert x.is_leaf
    assert x.requires_grad
    assert x._version == 4
    (x * x).sum().backward()
    assert x.grad.tolist() == [16.0, 12.0]


@pytest.mark.guarantee("M2")
def test_contiguous_results_that_are_the_argument():
    x = leaf(1.0, 2.0)
    with cygrad.no_grad():
        assert x.contiguous() is x
        assert x.requires_grad
    assert (x.contiguous() * 2).requires_grad


@pytest.mark.guarantee("M2")
def test_backward_inside_no_grad():
    x = leaf(2.0)
    y = x * x
    with cygrad.no_grad():
        y.backward(retain_graph=True)
        assert x.grad.item() == 4.0
        (g,) = cygrad.autograd.grad(y, x, create_graph=True)
        assert g.requires_grad                   # requested, so recorded
        assert not cygrad.is_grad_enabled()
    assert cygrad.autograd.grad(g, x)[0].item() == 2.0


@pytest.mark.guarantee("M3")
def test_inference_tensors():
    x = leaf(1.0, 2.0)
    with cygrad.inference_mode():
        made = cygrad.ones(2, dtype=FLOAT)
        result = x * 2
        for t in (made, result, made.view(2), made + 1, made.detach(), made[0]):
            assert t.is_inference()
            assert not t.requires_grad
            assert t.grad_fn is None
            assert t.is_leaf
        assert not x.is_inference()
        made.add_(1)
        made[0] = 5.0
        assert made.tolist() == [5.0, 2.0]
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = made._version
    assert made.view(2).is_inference()           # views stay inference tensors
    for normal in (made.clone(), made + 1, cygrad.ones(2)):
        assert not normal.is_inference()
        assert normal._version == 0


@pytest.mark.guarantee("M3")
def test_not_to_be_saved_for_backward():
    x = leaf(1.0, 2.0)
    with cygrad.inference_mode():
        i = cygrad.ones(2, dtype=FLOAT)
    with pytest.raises(RuntimeError, match=r"mul: Inference tensors cannot be saved for backward.*clone\(\)"):
        x * i
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.view(1, 2) @ i
    y = x + i                                    # saves nothing
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    (x * i.clone()).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert (i * 3).tolist() == [3.0, 3.0]        # not recorded: allowed


@pytest.mark.guarantee("M3")
def test_in_place_outside():
    with cygrad.inference_mode():
        i = cygrad.ones(2, dtype=FLOAT)
    for change in (lambda: i.add_(1), lambda: i.zero_(), lambda: i.__setitem__(0, 1.0), lambda: i.view(2).mul_(2)):
        with pytest.raises(RuntimeError, match=r"Inplace update to inference tensor outside.*clone\(\)"):
            change()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        i.requires_grad_()
    with cygrad.inference_mode():
        i.add_(1)
        assert i.requires_grad_().requires_grad
    i = i.clone().detach()
    i.add_(1)
    assert i.tolist() == [3.0, 3.0]


@pytest.mark.guarantee("M3")
def test_views_of_normal_tensors_made_inside():
    x = leaf(1.0, 2.0)
    y = x * 1
    with cygrad.inference_mode():
        v = y.view(2)
        assert not v.is_inference()
        assert v._is_view()
        assert v._base is y
        v.add_(1)                                # in-place on normal tensors works and counts
        y.mul_(2)
    assert y._version == v._version == 2
    assert y.tolist() == [4.0, 6.0]
    with pytest.raises(RuntimeError, match="created in inference mode"):
        v.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.guarantee("M3")
def test_gradients_do_not_become_inference_tensors():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    with cygrad.inference_mode():
        assert not x.grad.is_inference()
        assert not cygrad.autograd.grad((x.detach() * 2).sum() if False else _sum_of(x), x)[0].is_inference()
    x.grad.mul_(2)
    assert x.grad.tolist() == [6.0, 6.0]
    assert x.grad._version == 1


def _sum_of(x):
    with cygrad.inference_mode(False):
        return (x * x).sum()
