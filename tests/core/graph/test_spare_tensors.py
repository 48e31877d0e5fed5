"""Tensor free list: reused objects keep nothing of their former state."""

import gc
import weakref

import cygrad


def made(n):
    """New Tensors, more than wait at any time."""
    return [cygrad.ones(2) for _ in range(n)]


def test_nothing_is_left_of_the_former_one():
    x = cygrad.ones(2, requires_grad=True)
    for _ in range(3):
        former = [x * 2.0, x[0], x.detach(), (x * 1.0)[:1], cygrad.ones(2, requires_grad=True)]
        former[0].retain_grad()
        former[0].sum().backward()
        former[4].grad = cygrad.ones(2)
        with cygrad.no_grad():
            former.append(x[:1])
        with cygrad.inference_mode():
            former.append(x * 2.0)
        former[1].name_of_mine = "kept"
        former[4].register_hook(lambda grad: grad)
        del former
        for tensor in made(600):
            assert tensor.grad_fn is None and not tensor.requires_grad and tensor.is_leaf and tensor.grad is None
            assert tensor._base is None and tensor.output_nr == 0 and not tensor.is_inference()
            assert not hasattr(tensor, "name_of_mine") and tensor.__dict__ == {} and tensor._version == 0
            assert gc.is_tracked(tensor)


def test_weak_references_end():
    ended = []
    x = cygrad.ones(2)
    watched = weakref.ref(x, ended.append)
    del x
    assert watched() is None and len(ended) == 1
    assert all(weakref.ref(tensor)() is tensor for tensor in made(3))


def test_what_a_dying_tensor_takes_along_may_make_tensors():
    """The end of a node runs a user's code, which gets Tensors that are waiting."""
    made_meanwhile = []

    class Noting:
        def __del__(self):
            made_meanwhile.extend(made(3))

    for _ in range(5):
        x = cygrad.ones(2, requires_grad=True)
        y = (x * 2.0)[:1]
        y.grad_fn.metadata["end"] = Noting()
        z = y + 1.0
        del x, y, z
    gc.collect()
    assert len(made_meanwhile) == 15 and len({id(tensor) for tensor in made_meanwhile}) == 15
    assert all(tensor.tolist() == [1.0, 1.0] for tensor in made_meanwhile)


def test_long_chains_of_leaves_end_without_recursion():
    """The gradient of each leaf leads to the next one: as deep as a stack is not."""
    leaf = cygrad.ones(1, requires_grad=True)
    for _ in range(20_000):
        further = cygrad.ones(1, requires_grad=True)
        further.grad = leaf * 1.0
        leaf = further
    del leaf, further
    gc.collect()


def test_subclasses_die_as_they_did():
    ended = []

    class Own(cygrad.Tensor):
        def __del__(self):
            ended.append(self.shape)

    tensors = [cygrad.ones(2).as_subclass(Own) for _ in range(3)]
    del tensors
    assert ended == [(2,)] * 3
