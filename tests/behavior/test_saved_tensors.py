"""Saved tensors: which, lifetime, access, versions (hooks are in test_saved_tensors_hooks.py)."""

import gc
import weakref

import pytest

import cygrad
from cygrad.autograd import grad
from tests.tools import FLOAT, leaf

BLOCK = 1 << 20                                  # elements whose 8 MiB are one large block to the byte


def in_use():
    """Bytes of large blocks that live arrays hold."""
    return cygrad.memory_stats()["large_in_use"]


def saved_names(node):
    return {name for name in dir(node) if name.startswith("_saved_")}


@pytest.mark.guarantee("S1")
def test_saved_inputs_are_the_tensors_themselves():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x.pow(2)
    assert y.grad_fn._saved_self is x
    assert y.grad_fn._saved_exponent == 2
    z = (x * w) * y
    assert z.grad_fn._saved_other is y
    product = x * w
    assert product.grad_fn._saved_self is x
    assert product.grad_fn._saved_other is w


@pytest.mark.guarantee("S1")
def test_saved_results_share_memory():
    x = leaf(1.0, 2.0)
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert saved is not y
    assert saved.tolist() == y.tolist()
    assert saved.data_ptr() == y.data_ptr()
    assert saved.grad_fn is y.grad_fn
    assert saved.requires_grad
    assert saved._version == y._version


@pytest.mark.guarantee("S1")
def test_raw_saved():
    x = leaf(1.0, 2.0)
    y = x.exp() * x
    raw = y.grad_fn._raw_saved_self
    assert type(raw).__name__ == "SavedTensor"
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        type(raw)()
    with pytest.raises(AttributeError, match="no attribute '_saved_nothing'"):
        _ = y.grad_fn._saved_nothing
    with pytest.raises(AttributeError):
        _ = y.grad_fn._raw_saved_nothing
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "_raw_saved_other"} <= set(dir(y.grad_fn))


@pytest.mark.guarantee("S1")
def test_saved_input_outlives_its_tensor():
    x = leaf(1.0, 2.0)
    w = x * 3
    y = w * w
    dead = weakref.ref(w)
    node = w.grad_fn
    del w
    assert dead() is None                        # saving keeps the memory, not the object
    again = y.grad_fn._saved_self
    assert again.tolist() == [3.0, 6.0]
    assert again.grad_fn is node
    (g,) = grad(again.sum(), x, retain_graph=True)
    assert g.tolist() == [3.0, 3.0]


@pytest.mark.guarantee("S1")
def test_freed():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*freed.*retain_graph=True"):
        _ = y.grad_fn._saved_result


@pytest.mark.guarantee("S2")
def test_saving_makes_no_cycle():
    gc.collect()
    gc.disable()
    try:
        for make in (lambda x: x.exp(), lambda x: x.sigmoid() * x, lambda x: x.softmax(0), lambda x: x.sqrt().tanh(),
                     lambda x: x.pow(3), lambda x: x.max(), lambda x: (x * 1).mul_(x).exp_()):
            x = leaf([1.0, 2.0])
            y = make(x)
            node, tensor = weakref.ref(y.grad_fn), weakref.ref(y)
            del y
            assert node() is None
            assert tensor() is None
            leaf_alive = weakref.ref(x)
            del x
            assert leaf_alive() is None
    finally:
        gc.enable()


@pytest.mark.guarantee("S2")
def test_freed_node_by_node():
    size = 250_000                               # 2 MB each
    x = cygrad.ones(size, dtype=FLOAT, requires_grad=True)
    y = x
    for _ in range(10):
        y = y.sin()
    allocated = []
    node = y.grad_fn
    nodes = []
    while node.next_functions:
        nodes.append(node)
        node = node.next_functions[0][0]
    del node
    for node in nodes[2::3]:
        node.register_prehook(lambda grads: allocated.append(in_use()))
    root = y.sum()
    del y, node
    root.backward()
    assert len(allocated) == 3
    assert allocated[0] > allocated[1] > allocated[2]
    assert allocated[0] - allocated[2] >= 5 * 8 * size


@pytest.mark.guarantee("S2")
def test_memory_goes_with_the_graph():
    cygrad.empty_cache()                        # a waiting block that is a little larger would count as such
    x = cygrad.ones(BLOCK, dtype=FLOAT, requires_grad=True)
    before = in_use()
    y = x.exp().sin().tanh()
    assert in_use() - before >= 2 * 8 * BLOCK
    del y
    assert in_use() == before
    (x.exp() * x).sum().backward()
    assert in_use() - before <= 8 * BLOCK       # .grad
    x.grad = None
    assert in_use() == before


def kept(node):
    """What the node keeps besides shapes: names of saved tensors with memory."""
    return {name for name in saved_names(node) if isinstance(getattr(node, name), cygrad.Tensor)}


@pytest.mark.guarantee("S3")
def test_only_what_the_formula_needs():
    x, w, c = leaf(1.0, 2.0), leaf(3.0, 4.0), cygrad.tensor([5.0, 6.0], dtype=FLOAT)
    assert kept((x + w).grad_fn) == set()
    assert kept((x - w).grad_fn) == set()
    assert kept(x.sum().grad_fn) == set()
    assert kept(x.view(2, 1).grad_fn) == set()
    assert kept((x * w).grad_fn) == {"_saved_self", "_saved_other"}
    assert kept((x * c).grad_fn) == {"_saved_other"}         # c needs no gradient, so x is not needed
    assert kept((c * x).grad_fn) == {"_saved_self"}
    assert kept((x * 2).grad_fn) == set()
    assert kept(x.exp().grad_fn) == {"_saved_result"}
    assert kept(x.relu().grad_fn) == {"_saved_result"}
    assert kept((c / x).grad_fn) <= {"_saved_other", "_saved_self", "_saved_result"}


@pytest.mark.guarantee("S3")
@pytest.mark.parametrize("frozen", ["weight", "input"])
def test_memory_only_for_the_gradients_that_are_needed(frozen):
    """Of the input of a convolution the weight's gradient needs the values, its own gradient only the shape."""
    x, weight = cygrad.randn(1, 2, 8, 8), cygrad.randn(3, 2, 3, 3)
    (x if frozen == "weight" else weight).requires_grad_()
    y = cygrad.nn.functional.conv2d(x, weight)
    kept = cygrad.autograd.graph.memory_report(y).by_name["ConvolutionBackward0"]
    other = weight if frozen == "weight" else x
    assert kept[1] == other.numel() * other.element_size()
    y.sum().backward()
    assert (x.grad is None) == (frozen == "input")


@pytest.mark.guarantee("S3")
def test_nothing_for_parts_without_gradient():
    size = BLOCK
    frozen = cygrad.ones(size, dtype=FLOAT)
    scale = leaf(2.0)
    before = in_use()
    h = frozen
    for _ in range(5):
        h = h.exp().clamp(max=2.0)
    y = h * scale
    # h itself (scale needs it) and the result.
    assert in_use() - before <= 2 * 8 * size
    y.sum().backward()
    assert scale.grad.item() == pytest.approx(2.0 * size)
    with cygrad.no_grad():
        x = cygrad.ones(2, requires_grad=True)
        assert x.exp().grad_fn is None


@pytest.mark.guarantee("S3")
def test_changes_of_what_is_not_saved_are_allowed():
    x, c = leaf(1.0, 2.0), cygrad.tensor([5.0, 6.0], dtype=FLOAT)
    w = x * 1
    y = w * c                                    # keeps c, not w
    w.add_(100)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]
    y = x * c
    c.add_(1)
    with pytest.raises(RuntimeError, match=r"MulBackward0.*modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.guarantee("S3")
def test_lists_are_checked_too():
    x = leaf(1.0, 2.0)
    a, b = x * 2, x * 3
    y = cygrad.stack([a, b])                     # needs no values
    a.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


# ------------------------------------------------------------------------------------------------------ versions

def changed_in_place(tensor):
    tensor.add_(1)                                  # the line that the message names
    return tensor


@pytest.mark.guarantee("S4")
def test_error_names_everything():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    z = y.pow(2)
    changed_in_place(y)
    line = changed_in_place.__code__.co_firstlineno + 1
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert "PowBackward0" in text
    assert "float64 tensor of shape (3,)" in text
    assert "'self'" in text
    assert "output 0 of MulBackward0" in text
    assert "is at version 1; expected version 0 instead" in text
    assert f"{__file__}:{line}, in changed_in_place" in text
    assert "clone()" in text


@pytest.mark.guarantee("S4")
def test_results_and_leaves():
    x = leaf(1.0, 2.0)
    y = x.exp()
    changed_in_place(y)
    with pytest.raises(RuntimeError, match=r"'result', output 0 of ExpBackward0, is at version 1.*changed_in_place"):
        _ = y.grad_fn.next_functions[0][0]._saved_result
    w = leaf(1.0, 2.0)
    z = w * w
    with cygrad.no_grad():
        w.mul_(2)
        w.zero_()
    with pytest.raises(RuntimeError, match=r"a leaf, is at version 2; expected version 0.*test_results_and_leaves"):
        z.sum().backward()


@pytest.mark.guarantee("S4")
@pytest.mark.parametrize("change", [
    lambda t: t.add_(1), lambda t: t.zero_(), lambda t: t.__setitem__(0, 1.0), lambda t: t.copy_(t * 2),
    lambda t: cygrad.add(t.detach(), 1, out=t.detach()), lambda t: t.detach().mul_(2), lambda t: t[1:].mul_(2),
    lambda t: t.detach().normal_(), lambda t: t.view(-1).detach().fill_(3),
])
def test_every_way_of_changing_is_remembered(change):
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    change(y)
    with pytest.raises(RuntimeError, match=rf"test_saved_tensors\.py:{change.__code__.co_firstlineno}, in <lambda>"):
        z.sum().backward()


@pytest.mark.guarantee("S4")
def test_in_recorded_backward_and_custom_functions():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    changed_in_place(y)
    with pytest.raises(RuntimeError, match="in changed_in_place"):
        z.sum().backward(create_graph=True)

    class Square(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t * t

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]
    y = x * 2
    z = Square.apply(y)
    changed_in_place(y)
    with pytest.raises(RuntimeError, match=r"SquareBackward: .*'saved_tensors\[0\]', output 0 of MulB.*in changed"):
        z.sum().backward()


@pytest.mark.guarantee("S4")
def test_in_a_team():
    def work(t):
        return t.sin().cos().exp()
    x = cygrad.ones(300_000, dtype=FLOAT, requires_grad=True)
    parts = [x * k for k in range(6)]
    total = sum(work(part).sum() for part in parts)
    changed_in_place(parts[3])
    with pytest.raises(RuntimeError, match=r"SinBackward0: .*in changed_in_place"):
        total.backward()


@pytest.mark.guarantee("S4")
def test_optimizer_steps_are_the_users():
    w = leaf(1.0, 2.0)
    y = w * w
    w.grad = cygrad.ones(2, dtype=FLOAT)
    cygrad.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match=r"test_saved_tensors\.py:\d+, in test_optimizer_steps_are_the_users"):
        y.sum().backward()


@pytest.mark.guarantee("S4")
def test_keeps_only_the_last_code_object():
    namespace = {}
    exec("def change(t):\n    t.add_(1)", namespace)
    code = weakref.ref(namespace["change"].__code__)
    t = cygrad.zeros(2)
    namespace["change"](t)
    del namespace
    gc.collect()                                    # a function and its globals are a cycle
    assert code() is not None
    t.add_(1)
    assert code() is None
