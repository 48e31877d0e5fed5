"""Garbage collection: graphs without cycles are untracked, and every cycle is found."""

import gc
import weakref

import pytest

import cygrad
from cygrad.nn import Parameter


class Witness:
    """Something that can be referred to weakly, and hangs on what may leak."""


@pytest.fixture(autouse=True)
def quiet():
    """No collection but those of the tests."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def graph(leaf):
    """A short chain, of which the first part is long recorded when the second one is."""
    first = (leaf * 2).sin()
    return first, (first.view(2, 1) + leaf).sum()


def leaf_of(kind=cygrad.ones):
    """A leaf of two elements."""
    return Parameter(cygrad.ones(2)) if kind is Parameter else cygrad.ones(2, requires_grad=True)


def by_hook_of_leaf(leaf, first, last, witness):
    leaf.register_hook(lambda grad: (last, witness))


def by_hook_of_first(leaf, first, last, witness):
    first.register_hook(lambda grad: (last, witness))


def by_accumulate_hook(leaf, first, last, witness):
    leaf.register_post_accumulate_grad_hook(lambda leaf: (last, witness))


def by_node_hook(leaf, first, last, witness):
    first.grad_fn.register_hook(lambda *grads: (last, witness))


def by_prehook(leaf, first, last, witness):
    first.grad_fn.next_functions[0][0].register_prehook(lambda grads: (last, witness))


def by_accumulator_hook(leaf, first, last, witness):
    node = first.grad_fn.next_functions[0][0].next_functions[0][0]
    node.register_hook(lambda *grads: (last, witness))


def by_metadata(leaf, first, last, witness):
    first.grad_fn.metadata["kept"] = last, witness


def by_attribute(leaf, first, last, witness):
    leaf.kept = last, witness


def by_dict(leaf, first, last, witness):
    leaf.__dict__["kept"] = last, witness


def by_gradient(leaf, first, last, witness):
    leaf.grad = last + leaf.detach()
    leaf.grad.kept = witness


def by_recorded_gradient(leaf, first, last, witness):
    last.backward(create_graph=True)
    leaf.grad.kept = witness


def by_attribute_of_gradient(leaf, first, last, witness):
    leaf.grad = cygrad.ones(2)
    leaf.grad.kept = last, witness


def by_change_of_gradient(leaf, first, last, witness):
    leaf.grad = cygrad.ones(2)
    leaf.grad.mul_(last)
    leaf.grad.kept = witness


def by_saved_tensor(leaf, first, last, witness):
    node = first.grad_fn
    node._raw_saved_self.register_hooks(lambda tensor: (tensor, last, witness), lambda packed: packed[0])


def by_slice_of_gradient(leaf, first, last, witness):
    leaf.grad = cygrad.ones(2)
    leaf.grad[0] = last
    leaf.grad.kept = witness


def by_gradient_of_gradient(leaf, first, last, witness):
    leaf.grad = cygrad.ones(2)
    leaf.grad.grad = cygrad.ones(2)
    leaf.grad.grad.mul_(last)
    leaf.grad.grad.kept = witness


def by_change_of_a_computed_gradient(leaf, first, last, witness):
    last.backward(retain_graph=True)
    with cygrad.no_grad():
        gradient = leaf.grad
    gradient.mul_(last)
    gradient.kept = witness


def by_change_of_a_detached_gradient(leaf, first, last, witness):
    last.backward(retain_graph=True)
    gradient = leaf.grad.detach_()
    gradient.mul_(last)
    gradient.kept = witness


COMPUTING = (by_gradient, by_recorded_gradient, by_change_of_gradient, by_slice_of_gradient, by_gradient_of_gradient,
             by_change_of_a_computed_gradient, by_change_of_a_detached_gradient)          # that create a cycle
WAYS = [value for name, value in list(globals().items()) if name.startswith("by_")]


@pytest.mark.parametrize("kind", [cygrad.ones, Parameter])
@pytest.mark.parametrize("way", WAYS)
def test_cycle_that_closes_later(way, kind):
    leaf = leaf_of(kind)
    first, last = graph(leaf)
    witness = Witness()
    gone = weakref.ref(witness)
    way(leaf, first, last, witness)
    del leaf, first, last, witness
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", [cygrad.ones, Parameter])
@pytest.mark.parametrize("way", [way for way in WAYS if way not in COMPUTING])
def test_cycle_that_a_list_closes(way, kind):
    """What hangs on the graph is there before, and seen by the collector, when the rest of the graph is made."""
    leaf = leaf_of(kind)
    first, other = graph(leaf)
    kept, witness = [], Witness()
    gone = weakref.ref(witness)
    way(leaf, first, kept, witness)
    gc.collect()
    kept.append((first * first.exp()).sum())
    del leaf, first, other, kept, witness
    gc.collect()
    assert gone() is None


def test_cycle_through_a_context():
    class Twice(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.kept = kept
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    kept = []
    witness = Witness()
    gone = weakref.ref(witness)
    leaf = leaf_of()
    kept += [Twice.apply(leaf * 1, kept).sin(), witness]
    del leaf, kept, witness, Twice
    gc.collect()
    assert gone() is None


def test_cycle_through_a_class():
    def make(witness):
        class Special(cygrad.Tensor):
            pass
        Special.kept = [(cygrad.ones(2).as_subclass(Special).requires_grad_() * 2).sum(), witness]
    witness = Witness()
    gone = weakref.ref(witness)
    make(witness)
    del witness
    gc.collect()
    assert gone() is None


def test_cycle_through_a_changed_slice():
    leaf = leaf_of()
    whole = cygrad.zeros(3)
    whole[1:] = leaf * 2
    witness = Witness()
    gone = weakref.ref(witness)
    leaf.kept = whole.sum(), witness
    del leaf, whole, witness
    gc.collect()
    assert gone() is None


def test_nodes_stay_unseen():
    leaf = leaf_of()
    first, last = graph(leaf)
    nodes = [last.grad_fn, first.grad_fn]
    assert not any(map(gc.is_tracked, nodes))
    last.backward()
    assert leaf.grad is not None
    assert not gc.is_tracked((leaf * leaf).grad_fn)
    first.grad_fn.register_hook(lambda *grads: None)
    assert all(map(gc.is_tracked, nodes))
    assert gc.is_tracked((first * 2).sin().grad_fn)           # it leads to the hook
    assert not gc.is_tracked((leaf_of() * 2).grad_fn)


def written(state, leaf):
    out = state.clone().detach()
    out[0] = (state[0] * leaf).sigmoid()
    return out


def viewed(state, leaf):
    out = cygrad.zeros(2, 2)
    out[:, 0].copy_(leaf)
    out.t()[1].add_(state.view(4)[:2])
    return out.mul_(2)


def listed(state, leaf):
    rows = [state[0], state[1]]
    rows[0] = rows[0] * leaf
    rows[1] = (rows[1] + rows[0]).tanh_()
    return cygrad.stack(rows)


def split(state, leaf):
    a, b = state.chunk(2)
    a, b = a.unbind()[0] * leaf, b.unsqueeze(0).expand(2, 1, 2)[1]
    return cygrad.cat([a.reshape(1, 2), b])


@pytest.mark.parametrize("step", [written, viewed, listed, split])
def test_steps_track_no_object(step):
    leaf, state = leaf_of(), cygrad.ones(2, 2)
    before = len(gc.get_objects())
    for _ in range(1000):
        state = step(state, leaf)
    assert len(gc.get_objects()) - before < 500               # what the first steps import
    state.sum().backward()
    assert leaf.grad is not None


def test_changed_slice_of_a_tracked_graph_is_tracked():
    leaf, whole = leaf_of(), cygrad.zeros(3)
    leaf.register_hook(lambda grad: None)
    whole[1:] = leaf * 2
    assert gc.is_tracked(whole.grad_fn)


def accumulator_of(leaf):
    return (leaf * 2).grad_fn.next_functions[0][0]


def test_accumulator_waits_for_the_next_operation():
    leaf = leaf_of()
    node = accumulator_of(leaf)
    gone = weakref.ref(node)
    node.metadata["of"] = "this one"
    number = node._sequence_nr()
    del node
    assert gone() is None
    node = accumulator_of(leaf)
    assert node.metadata == {} and node.variable is leaf and node._sequence_nr() > number
    before = weakref.getweakrefcount(leaf), leaf.grad
    del node
    (leaf * 3).sum().backward()
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [6, 6] and before == (0, None)
    witness = weakref.ref(leaf)
    del leaf
    assert witness() is None                                  # no collection is needed


def test_accumulator_of_a_leaf_that_requires_grad_again():
    leaf = leaf_of()
    (leaf * 2).sum().backward()
    leaf.requires_grad_(False)
    leaf.requires_grad_()
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [4, 4]


def test_attributes_by_other_ways():
    class Special(cygrad.Tensor):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
    tensor = cygrad.ones(2).as_subclass(Special)
    tensor.kept = 1
    assert tensor.kept == 1
    del tensor.kept
    with pytest.raises(AttributeError):
        del tensor.kept
    plain = cygrad.ones(2)
    plain.kept = 2
    assert vars(plain) == {"kept": 2}
    del plain.kept
    with pytest.raises(AttributeError, match="grad_fn"):
        plain.grad_fn = None
