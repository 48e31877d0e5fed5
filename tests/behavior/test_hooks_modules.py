"""Hooks of modules."""

import copy
import threading

import pytest

import cygrad
from cygrad import nn
from cygrad.autograd import grad
from cygrad.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from tests.tools import FLOAT, leaf

pytestmark = pytest.mark.guarantee("H5")


def numbers(grads):
    return tuple(None if g is None else g.tolist() for g in grads)


class Several(nn.Module):
    """Several inputs and outputs, some of them no tensors."""

    def forward(self, x, k, y, *, z=None):
        return x * 2, k, y * 3 + (0 if z is None else z), None


def watched(module):
    log = []
    module.register_full_backward_pre_hook(lambda m, g: log.append(("pre", numbers(g))))
    module.register_full_backward_hook(lambda m, i, o: log.append(("full", numbers(i), numbers(o))))
    return log


def test_gradients_of_inputs_and_outputs():
    module = Several()
    log = watched(module)
    first, k, second, nothing = module(leaf(1.0), 5, leaf(2.0))
    assert (k, nothing) == (5, None)
    (first + second * 10).backward()
    assert log == [("pre", (1.0, None, 10.0, None)), ("full", (2.0, None, 30.0), (1.0, None, 10.0, None))]


def test_outputs_that_are_not_used_and_inputs_that_need_no_gradient():
    module = Several()
    log = watched(module)
    module(leaf(1.0), 5, leaf(2.0))[0].backward()
    assert log == [("pre", (1.0, None, None, None)), ("full", (2.0, None, 0.0), (1.0, None, None, None))]
    log.clear()
    constant = cygrad.tensor(2.0, dtype=FLOAT)
    module(leaf(1.0), 5, constant)[0].backward()
    assert log[1] == ("full", (2.0, None, None), (1.0, None, None, None))
    log.clear()
    z = leaf(1.0)
    results = module(constant, 5, constant, z=z)
    with pytest.warns(UserWarning, match="input requires grad"):
        results[2].backward()
    assert log == [("pre", (None, None, 1.0, None)), ("full", (None, None, None), (None, None, 1.0, None))]
    assert z.grad.item() == 1.0


def test_grad_with_inputs():
    module = Several()
    log = watched(module)
    x, y = leaf(1.0), leaf(2.0)
    first, _, second, _ = module(x, 5, y)
    assert numbers(grad(first + second, x)) == (2.0,)
    assert log == [("pre", (1.0, None, 1.0, None)), ("full", (2.0, None, 3.0), (1.0, None, 1.0, None))]


def test_return_values_replace():
    layer = nn.Tanh()
    layer.register_full_backward_pre_hook(lambda m, g: (g[0] * 10,))
    layer.register_full_backward_hook(lambda m, i, o: (o[0] + i[0],))
    layer.register_full_backward_hook(lambda m, i, o: i[0] * 2)
    x = leaf(0.0, 0.0)
    layer(x).sum().backward()
    assert x.grad.tolist() == [40.0, 40.0]
    layer.register_full_backward_hook(lambda m, i, o: (None,))
    x.grad = None
    layer(x).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("answer", ["two", "text", "shape"])
@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_wrong_answers(kind, answer):
    layer = nn.Tanh()
    answers = {"two": lambda m, g, *_: (g[0], g[0]), "text": lambda m, g, *_: "text", "shape": lambda m, g, *_: g[0][0]}
    getattr(layer, kind)(answers[answer])
    with pytest.raises((RuntimeError, TypeError), match=r"invalid number|expected None|changed the dtype"):
        layer(leaf(1.0, 2.0)).sum().backward()
    with pytest.raises(TypeError, match="must be callable"):
        getattr(layer, kind)(5)


def test_nothing_to_replace_without_inputs():
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda m, i, o: i)
    with pytest.warns(UserWarning, match="no input requires grad"):
        layer(cygrad.ones(3, 1)).sum().backward()
    assert layer.weight.grad.item() == 3.0
    layer.register_full_backward_hook(lambda m, i, o: o)
    with pytest.warns(UserWarning, match="no input"), pytest.raises(RuntimeError, match="no gradient can be replaced"):
        layer(cygrad.ones(3, 1)).sum().backward()


def test_second_derivatives():
    layer = nn.Tanh()
    log = []
    layer.register_full_backward_hook(lambda m, i, o: log.append((i[0].requires_grad, o[0].requires_grad)))
    x = leaf(0.5)
    (first,) = grad(layer(x), x, create_graph=True)
    first.backward()                       # leads to the input, but not through the output
    assert log == [(True, False)]
    plain = leaf(0.5)
    grad(plain.tanh(), plain, create_graph=True)[0].backward()
    assert x.grad.item() == plain.grad.item()


def test_outputs_must_be_tensors_and_stay():
    class Named(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Named()
    log = watched(module)
    with pytest.warns(UserWarning, match="did not return a Tensor or a tuple"):
        module(leaf(1.0))["x"].backward()
    assert log == []
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, i, o: None)
    with pytest.raises(RuntimeError, match="view"):
        layer(leaf(1.0) * 1).add_(1)


def test_without_recording():
    layer = nn.Linear(2, 2)
    log = watched(layer)
    with cygrad.no_grad():
        assert layer(cygrad.ones(2)).grad_fn is None
    layer.requires_grad_(False)
    assert layer(cygrad.ones(2)).grad_fn is None
    assert log == []


def test_order_and_global_hooks():
    layer = nn.Tanh()
    log = []

    def noting(name):
        return lambda *arguments: log.append(name)

    shared = [register_module_full_backward_hook(noting("all")),
              register_module_full_backward_pre_hook(noting("all pre")),
              register_module_forward_hook(noting("all after")), register_module_forward_pre_hook(noting("all before"))]
    try:
        layer.register_full_backward_hook(noting(1))
        layer.register_full_backward_hook(noting(0), prepend=True)
        layer.register_full_backward_pre_hook(noting("pre 1"))
        layer.register_full_backward_pre_hook(noting("pre 0"), prepend=True)
        layer.register_forward_pre_hook(noting("before"))
        layer.register_forward_hook(noting("after"))
        layer(leaf(1.0)).backward()
        assert log == ["all before", "before", "all after", "after", "all pre", "pre 0", "pre 1", "all", 0, 1]
        log.clear()
        nn.ReLU()(leaf(1.0)).backward()    # a module without hooks
        assert log == ["all before", "all after", "all pre", "all"]
    finally:
        for handle in shared:
            handle.remove()
    log.clear()
    nn.ReLU()(leaf(1.0)).backward()
    assert log == []
    assert nn.Module._hooks is None        # calls are as cheap as before


def test_global_forward_hooks_replace_and_see_errors():
    class Fails(nn.Module):
        def forward(self, x, scale=1):
            if scale == 0:
                raise ZeroDivisionError
            return x * scale

    module, log = Fails(), []
    with register_module_forward_pre_hook(lambda m, args: args[0] + 1), register_module_forward_hook(
            lambda m, args, kwargs, result: result * 10 + kwargs["scale"], with_kwargs=True):
        assert module(leaf(1.0), scale=3).item() == 63.0
    with register_module_forward_hook(lambda *arguments: log.append(len(arguments)), always_call=True), \
            pytest.raises(ZeroDivisionError):
        module(leaf(1.0), scale=0)
    assert log == [3]
    with pytest.raises(TypeError, match="must be callable"):
        register_module_forward_hook(5)
    assert nn.Module._hooks is None


def test_whole_networks():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    plain = copy.deepcopy(net)
    log = []
    for name, module in net.named_modules():
        module.register_full_backward_hook(lambda m, i, o, name=name: log.append(name))
    x = cygrad.rand(5, 3, requires_grad=True)
    net(x).sum().backward()
    assert log == ["2", "1", "0", ""]
    plain(x.detach()).sum().backward()
    for one, other in zip(net.parameters(), plain.parameters(), strict=True):
        assert (one.grad == other.grad).all()


def test_handles():
    layer = nn.Tanh()
    log = []
    with layer.register_full_backward_hook(lambda *arguments: log.append(1)):
        y = layer(leaf(1.0))
    y.backward()                           # the hooks of the moment of the call
    layer(leaf(1.0)).backward()
    assert log == [1]


def test_one_graph_in_several_threads():
    layer = nn.Tanh()
    log = []
    layer.register_full_backward_hook(lambda m, i, o: log.append((i[0].item(), o[0].item())))
    x = leaf(0.0)
    y = layer(x)

    def body(i):
        for _ in range(25):
            (y * float(i)).backward(retain_graph=True)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(log) == [(float(i), float(i)) for i in range(4) for _ in range(25)]
    assert x.grad.item() == 150.0
