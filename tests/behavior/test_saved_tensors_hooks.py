"""Hooks of single saved tensors and of all in a block."""

import gc
import os
import re
import sys
import threading
import uuid
import weakref

import pytest

import cygrad
from cygrad.autograd import Function, grad
from tests.tools import FLOAT, leaf

# ----------------------------------------------------------------------------------------------- hooks of one save

def identity(tensor):
    return tensor


def squared(x):
    y = x.pow(2)
    return y, y.grad_fn._raw_saved_self


@pytest.mark.guarantee("S5")
def test_pack_once_unpack_each_time():
    x = leaf(1.0, 2.0)
    calls = []

    def pack(tensor):
        calls.append("pack")
        assert not cygrad.is_grad_enabled() and not tensor.requires_grad
        return tensor.tolist()

    def unpack(values):
        calls.append("unpack")
        return cygrad.tensor(values, dtype=FLOAT)
    y, raw = squared(x)
    raw.register_hooks(pack, unpack)
    assert calls == ["pack"]
    saved = y.grad_fn._saved_self
    assert saved.tolist() == [1, 2] and saved is not x and saved.requires_grad and saved.is_leaf
    assert raw.unpack().tolist() == [1, 2]
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert calls == ["pack"] + ["unpack"] * 4 and x.grad.tolist() == [4, 8]


@pytest.mark.guarantee("S5")
def test_place_in_the_graph_is_kept():
    x = leaf(1.0, 2.0)
    w = x * 3
    y = w * w.exp()
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy().copy(), cygrad.from_numpy)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t.numpy().copy(), cygrad.from_numpy)
    first, = grad(y.sum(), x, create_graph=True)
    second, = grad(first.sum(), x)
    expected, = grad((3 * (3 * x).exp() * (1 + 3 * x)).sum(), x)
    assert cygrad.allclose(second, expected)
    saved = y.grad_fn._saved_other
    assert saved.grad_fn.name() == "ExpBackward0"


@pytest.mark.guarantee("S5")
def test_result_is_replaced():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: None, lambda nothing: cygrad.tensor([10.0, 20.0], dtype=FLOAT))
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    assert grad(y.sum(), x)[0].tolist() == [10, 20]


@pytest.mark.guarantee("S5")
def test_original_memory_is_given_up():
    x = leaf(1.0, 2.0) * 1
    dead = weakref.ref(x)
    y, raw = squared(x)
    raw.register_hooks(lambda t: t.tolist(), lambda v: cygrad.tensor(v, dtype=FLOAT))
    x.zero_()                                       # the packed value is not affected
    del x
    assert dead() is None
    assert y.grad_fn._saved_self.tolist() == [1, 2]


@pytest.mark.guarantee("S5")
def test_errors():
    x = leaf(1.0, 2.0)
    y, raw = squared(x)
    for wrong in ((3, identity), (identity, None)):
        with pytest.raises(TypeError, match="hook must be callable"):
            raw.register_hooks(*wrong)
    raw.register_hooks(identity, lambda t: 3)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        raw.register_hooks(identity, identity)
    with pytest.raises(TypeError, match=r"unpack_hook expected to be a Tensor .got int"):
        _ = y.grad_fn._saved_self
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    for value in (cygrad.ones(3, dtype=FLOAT), cygrad.ones(2, dtype=cygrad.float32)):
        y, raw = squared(x)
        raw.register_hooks(identity, lambda t, value=value: value)
        with pytest.raises(RuntimeError, match="unpack must return a tensor of the packed shape and dtype"):
            y.sum().backward()
    y, raw = squared(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(identity, identity)
    y = x * cygrad.ones(2, dtype=FLOAT)
    with pytest.raises(RuntimeError, match="saved no tensor"):
        y.grad_fn._raw_saved_self.register_hooks(identity, identity)
    y, raw = squared(x * 1)
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        raw.register_hooks(lambda t: t.add_(1), identity)


@pytest.mark.guarantee("S5")
def test_raising_hooks_do_no_harm():
    x = leaf(1.0, 2.0)
    y, raw = squared(x)

    def fail(value):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        raw.register_hooks(fail, identity)
    assert y.grad_fn._saved_self is x
    fails = [True]
    raw.register_hooks(identity, lambda t: fail(t) if fails[0] else t)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    fails[0] = False
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.mark.guarantee("S5")
def test_hooks_of_one_saved_tensor_of_a_custom_function():
    class Times(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, None, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, _, y = ctx.saved_tensors
            return g * y, g * x
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = Times.apply(x, y)
    raw = z.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda t: t.tolist(), lambda v: cygrad.tensor(v, dtype=FLOAT) * 10)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        raw[0].register_hooks(identity, identity)
    with pytest.raises(RuntimeError, match="saved no tensor at position 1"):
        raw[1].register_hooks(identity, identity)
    assert [g.tolist() for g in grad(z.sum(), (x, y))] == [[3, 4], [10, 20]]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw[2].register_hooks(identity, identity)


# ------------------------------------------------------------------------------------------- hooks of many saves

hooks = cygrad.autograd.graph.saved_tensors_hooks


@pytest.mark.guarantee("S6")
def test_note_identity():
    x = leaf(1.0, 2.0)
    with hooks(identity, identity):
        y = x * x
    first, second = y.grad_fn._saved_self, y.grad_fn._saved_other
    assert first is not x and second is not x and first is not second
    assert first.data_ptr() == second.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


@pytest.mark.guarantee("S6")
def test_all_saves_within_and_only_those():
    x = leaf(1.0, 2.0)
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor
    with hooks(pack, identity):
        y = x.exp()                                        # the result
        z = x.mul(y) + x.sin()                             # self and other, self
        _ = cygrad.ones(2) * 2                             # nothing is saved
    assert len(packed) == 4 and packed[1] is x and packed[2] is y and packed[3] is x
    z.sum().exp()
    assert len(packed) == 4
    z.sum().backward()
    assert cygrad.allclose(x.grad, (x.exp() + x * x.exp() + x.cos()).detach())


@pytest.mark.guarantee("S6")
def test_matrices_lists_and_large_tensors():
    a = cygrad.randn(60, 70, dtype=FLOAT, requires_grad=True)
    b = cygrad.randn(70, 50, dtype=FLOAT, requires_grad=True)

    def compute():
        return cygrad.logsumexp(cygrad.tanh(a @ b), 1).prod() + cygrad.where(a > 0, a, a * a).cumsum(0).mean()
    expected = grad(compute(), (a, b))
    with hooks(lambda t: t.numpy(force=True).copy(), cygrad.from_numpy):
        packed = compute()
    for found, wanted in zip(grad(packed, (a, b), retain_graph=True), expected, strict=True):
        assert found.equal(wanted)
    for found, wanted in zip(grad(packed, (a, b), create_graph=True), expected, strict=True):
        assert cygrad.allclose(found, wanted)


@pytest.mark.guarantee("S6")
def test_nested_innermost_wins():
    x = leaf(1.0)
    names = []

    def named(name):
        return hooks(lambda t: names.append(name) or t, identity)
    with named("outer"):
        x.exp()
        with named("inner"):
            x.exp()
        x.exp()
        with pytest.raises(ZeroDivisionError), named("inner"):
            raise ZeroDivisionError
        x.exp()
    x.exp()
    assert names == ["outer", "inner", "outer", "outer"]


@pytest.mark.guarantee("S6")
def test_thread_local():
    x = leaf(1.0)
    packed = []
    with hooks(lambda t: packed.append(t) or t, identity):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert not packed


@pytest.mark.guarantee("S6")
def test_hooks_of_a_block_around_a_custom_function():
    outside = leaf(3.0) * 1

    class Times(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y, outside)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, other = ctx.saved_tensors
            return g * x * y * other
    x = leaf(1.0)
    packed = []
    with hooks(lambda t: packed.append(t) or t.item(), lambda v: cygrad.tensor(v, dtype=FLOAT).reshape(())):
        y = Times.apply(leaf(1.0).reshape(()) * 1)
    assert len(packed) == 3
    saved = y.grad_fn.saved_tensors
    assert saved[1].grad_fn is y.grad_fn and saved[2].grad_fn is outside.grad_fn
    y.backward()
    assert x.grad is None


@pytest.mark.guarantee("S6")
def test_raising_pack_makes_no_graph():
    x = leaf(1.0, 2.0)

    def fail(tensor):
        raise KeyError("mine")
    y = x * 1
    version = y._version
    with hooks(fail, identity):
        for operation in (lambda: x.exp(), lambda: x * x, lambda: y.mul_(x), lambda: cygrad.matmul(x, x),
                          lambda: x.mul(x.view(2, 1))):
            with pytest.raises(KeyError, match="mine"):
                operation()
    assert y._version == version and y.grad_fn.name() == "MulBackward0"
    assert grad(y.sum(), x)[0].tolist() == [1, 1]
    with hooks(lambda t: t.add_(1), identity), pytest.raises(RuntimeError, match="pack hook is modifying its input"):
        (x * 1).exp()


@pytest.mark.guarantee("S6")
def test_in_place_operations():
    x = leaf(1.0, 2.0)
    with hooks(lambda t: t.tolist(), lambda v: cygrad.tensor(v, dtype=FLOAT)):
        y = x * 1
        y.pow_(2).exp_()
        z = x * 1
        z[1:].mul_(z[:1].clone())
    assert cygrad.allclose(grad(y.sum(), x)[0], (2 * x * (x * x).exp()).detach())
    assert grad(z.sum(), x)[0].tolist() == [3, 1]


@pytest.mark.guarantee("S6")
def test_no_cycle_with_identity_hooks():
    x = leaf(1.0, 2.0)
    with hooks(identity, identity):
        y = x.exp()
    dead = weakref.ref(y.grad_fn)
    gc.collect()
    gc.disable()
    try:
        del y
        assert dead() is None
    finally:
        gc.enable()


@pytest.mark.guarantee("S6")
def test_packed_values_are_freed_by_backward():
    class Box:
        def __init__(self, tensor):
            self.tensor = tensor
    boxes = []

    def pack(tensor):
        box = Box(tensor)
        boxes.append(weakref.ref(box))
        return box
    x = leaf(1.0, 2.0)
    with hooks(pack, lambda box: box.tensor):
        y = (x.exp() * x).sum()
    assert len(boxes) == 3
    y.backward()
    assert all(box() is None for box in boxes)


@pytest.mark.guarantee("S6")
def test_note_self_deleting_temp_file(tmp_path):
    torch, tmp_dir = cygrad, str(tmp_path)

    class SelfDeletingTempFile:
        def __init__(self):
            self.name = os.path.join(tmp_dir, str(uuid.uuid4()))

        def __del__(self):
            os.remove(self.name)

    def pack_hook(tensor):
        temp_file = SelfDeletingTempFile()
        torch.save(tensor, temp_file.name)
        return temp_file

    def unpack_hook(temp_file):
        return torch.load(temp_file.name)

    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(pack_hook, unpack_hook)
    assert len(os.listdir(tmp_dir)) == 1
    with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
        z = (y.exp() * x).sum()
    assert len(os.listdir(tmp_dir)) == 4
    z.backward()
    assert torch.allclose(x.grad, ((2 * x * x + 1) * (x * x).exp()).detach())
    assert not os.listdir(tmp_dir)


@pytest.mark.guarantee("S6")
def test_save_on_cpu_is_a_copy():
    x = leaf(1.0, 2.0)
    y = x * 1
    with cygrad.autograd.graph.save_on_cpu(pin_memory=False):
        z = y.pow(2)
    y.zero_()
    assert grad(z.sum(), x)[0].tolist() == [2, 4]


@pytest.mark.guarantee("S6")
def test_disable():
    graph = cygrad.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), hooks(identity, identity):
            pass
        with (graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="nor here"),
              hooks(identity, identity)):
            pass
        with pytest.raises(RuntimeError, match="not here"), hooks(identity, identity):
            pass
    with (hooks(identity, identity), pytest.raises(RuntimeError, match="too late"),
          graph.disable_saved_tensors_hooks("too late")):
        pass
    with hooks(identity, identity):
        pass
    with pytest.raises(TypeError, match="pack hook must be callable"), hooks(3, identity):
        pass


@pytest.mark.guarantee("S6")
def test_allow_mutation_on_saved_tensors():
    allow = cygrad.autograd.graph.allow_mutation_on_saved_tensors
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with allow() as mutations:
        y = x * 1
        z = (y.pow(2) + y.exp() * y).sum()
        y.zero_()                                          # saved twice, and copied once
        assert len(mutations.cloned) == 1
        v = y.add(1)
        kept = v * w
        v[1:].add_(5)                                      # by way of a view
        v.data.mul_(3)                                     # even so
        y.backward(cygrad.ones(2, dtype=FLOAT))
        assert x.grad.tolist() == [0, 0]
        x.grad = None
        z.backward()
        assert grad(kept.sum(), w)[0].tolist() == [1, 1]
    assert cygrad.allclose(x.grad, (2 * x + (1 + x) * x.exp()).detach())
    with allow():
        y = x * 1
        z = y.pow(2).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow():
            pass
        same = z.grad_fn.next_functions[0][0]._saved_self
        assert same.data_ptr() == y.data_ptr()             # nothing is copied before it is needed
        assert grad(z, x, retain_graph=True)[0].tolist() == [2, 4]
    with pytest.raises(AssertionError, match="context in which the graph was recorded"):
        z.backward()
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.guarantee("S6")
@pytest.mark.parametrize("how", ["native", "python"])
def test_many_threads(how):
    def work(seed, results):
        x = cygrad.full((50,), float(seed), dtype=FLOAT, requires_grad=True)
        with hooks(lambda t: t.numpy(force=True).copy(), cygrad.from_numpy):
            y = x
            for _ in range(20):
                y = (y * x).sin()
        for _ in range(3):
            results.append(grad(y.sum(), x, retain_graph=True, create_graph=how == "python")[0].sum().item())
    expected, results = [], [[] for _ in range(4)]
    work(2, expected)
    threads = [threading.Thread(target=work, args=(2, mine)) for mine in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == expected for mine in results)


@pytest.mark.guarantee("S6")
def test_holds_in_deeply_nested_backward():
    packed = []

    class Deeper(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with cygrad.enable_grad():
                t = leaf(1.0)
                if ctx.depth:
                    Deeper.apply(t, ctx.depth - 1).backward()
                else:
                    t.exp()
            return g * 2, None
    with hooks(lambda t: packed.append(t) or t, identity):
        Deeper.apply(leaf(1.0), 150).backward()
    assert len(packed) == 1


class Kept(Function):
    """The identity, with its argument saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        assert len(ctx.saved_tensors) == 1
        return g


@pytest.mark.guarantee("S5")
def test_registered_while_another_thread_runs_the_node():
    """Hooks are registered in time, or raise a clear error; so does reading saved tensors."""
    answers = set()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            x = cygrad.ones(50, requires_grad=True)
            outputs = [x.exp() if number % 2 else Kept.apply(x) for number in range(30)]
            total = sum(outputs[1:], outputs[0]).sum()
            start = threading.Barrier(3)

            def act(action, start=start, outputs=outputs):
                start.wait()
                for output in outputs:
                    node = output.grad_fn
                    try:
                        answers.add(action(node))
                    except RuntimeError as error:
                        answers.add(str(error))

            def register(node):
                raw = node._raw_saved_result if node.name() == "ExpBackward0" else node._raw_saved_tensors[0]
                raw.register_hooks(lambda t: t, lambda t: t)

            def look(node):
                saved = node._saved_result if node.name() == "ExpBackward0" else node.saved_tensors[0]
                return saved.shape

            threads = [threading.Thread(target=act, args=(action,)) for action in (register, look)]
            for thread in threads:
                thread.start()
            start.wait()
            try:
                total.backward()
            except RuntimeError as error:
                answers.add(str(error))
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    for answer in answers - {None, (50,)}:
        assert re.search("has released|been freed|hooks were registered on a saved tensor while another", answer)


def test_hooks_that_backward_enters_end_with_it():
    def unpack(tensor):
        manager.__enter__()
        return tensor

    manager = cygrad.autograd.graph.saved_tensors_hooks(identity, unpack)
    x = leaf(1.0)
    with manager:
        y = x.sin()
    y.backward()
    packed = []
    x.exp().grad_fn._raw_saved_result.register_hooks(packed.append, identity)      # no hooks of the thread are set
    assert len(packed) == 1


def test_an_exit_in_unpack_ends_with_backward_and_later_exits_leave_no_hooks():
    def unpack(tensor):
        inner.__exit__()
        return tensor

    inner = cygrad.autograd.graph.saved_tensors_hooks(identity, unpack)
    outer = cygrad.autograd.graph.saved_tensors_hooks(identity, identity)
    with outer:
        inner.__enter__()
        leaf(1.0).sin().backward()
    inner.__exit__()
    assert leaf(1.0).exp().grad_fn._raw_saved_result.unpack_hook is None
    with pytest.raises(RuntimeError, match="saved_tensors_hooks: __exit__ requires a call of __enter__"):
        inner.__exit__()


def test_a_saved_tensor_shows_what_is_stored():
    x = leaf(2.0)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    assert saved.data is x and saved.unpack_hook is None
    saved.register_hooks(lambda tensor: tensor.item(), cygrad.tensor)
    assert saved.data == 2.0 and saved.unpack_hook is cygrad.tensor


def test_a_node_hook_that_unpack_registers_is_called():
    def unpack(tensor):
        node.register_hook(lambda inputs, outputs: (3 * inputs[0],))
        return tensor

    x = leaf(2.0)
    with cygrad.autograd.graph.saved_tensors_hooks(identity, unpack):
        y = x.sin()
    node = y.grad_fn
    y.backward()
    assert x.grad == 3 * cygrad.cos(x.detach())
