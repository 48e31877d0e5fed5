"""Modified saved tensors, hooks within hooks, and warnings turned into errors."""

import gc
import warnings
import weakref

import pytest

import cygrad
from cygrad.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from cygrad.utils.checkpoint import checkpoint


@pytest.mark.guarantee("S6")
@pytest.mark.parametrize("other", [True, False])
def test_backward_has_to_run_in_the_block_that_saved(other):
    x = cygrad.ones(2, requires_grad=True) * 1
    with allow_mutation_on_saved_tensors():
        y = (x * x).sum()
    if other:
        with allow_mutation_on_saved_tensors(), pytest.raises(AssertionError, match="in which the graph was"):
            y.backward()
    else:
        with pytest.raises(AssertionError, match="context in which the graph was recorded"):
            y.backward()


@pytest.mark.guarantee("S6")
def test_one_copy_for_what_is_saved_several_times():
    a = cygrad.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors() as context:
        x = a.clone()
        y, z = x * x, x.sin()
        assert len(context.cloned) == 0
        x.fill_(5.0)
        assert len(context.cloned) == 1
        x.fill_(6.0)
        assert len(context.cloned) == 1
        (y + z).sum().backward()
        assert a.grad.tolist() == pytest.approx([2.540302, 2.540302])
    assert len(context.cloned) == 0


@pytest.mark.guarantee("S6")
def test_parts_of_one_memory_have_copies_of_their_own():
    a = cygrad.ones(4, requires_grad=True)
    with allow_mutation_on_saved_tensors() as context:
        x = a.clone()
        y = (x[:2] * x[2:]).sum() + (x * x).sum()
        x.zero_()
        assert len(context.cloned) == 3
        y.backward()
    assert a.grad.tolist() == [3, 3, 3, 3]


@pytest.mark.guarantee("S6")
def test_different_values_of_one_tensor_have_copies_of_their_own():
    a = cygrad.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        x = a.clone()
        y = (x * x).sum()
        x.mul_(3)
        z = (x * x).sum()
        x.zero_()
        (y + z).backward()
    assert a.grad.tolist() == [2 + 18, 2 + 18]


@pytest.mark.guarantee("S6")
def test_copies_go_at_the_end_of_the_block():
    a = cygrad.ones(2, requires_grad=True)
    with allow_mutation_on_saved_tensors() as context:
        x = a.clone()
        y = x * x
        x.zero_()
        copies = [weakref.ref(keeper.tensor) for keeper in context.cloned]
        assert all(copy() is not None for copy in copies)
    gc.collect()
    assert copies
    assert all(copy() is None for copy in copies)
    del y


@pytest.mark.guarantee("S6")
def test_hooks_entered_in_unpack_do_not_leak():
    log = []

    def pack(tensor):
        log.append("pack")
        return tensor

    def unpack(tensor):
        log.append("unpack")
        with saved_tensors_hooks(pack, unpack):
            pass
        return tensor

    x = cygrad.ones(2, requires_grad=True)
    with saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    count = len(log)
    _ = x**2
    assert len(log) == count
    assert x.grad.tolist() == [2, 2]


@pytest.mark.guarantee("S5")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_unpack_gets_the_very_object_that_pack_returned(use_reentrant):
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor)
        return tensor

    def unpack(tensor):
        unpacked.append(tensor)
        return tensor

    x = cygrad.ones(2, requires_grad=True)
    with saved_tensors_hooks(pack, unpack):
        y = checkpoint(lambda x: x.exp() * x, x, use_reentrant=use_reentrant).pow(2)
        y.sum().backward()
    assert unpacked
    assert all(any(entry is other for other in packed) for entry in unpacked)


@pytest.mark.guarantee("F2")
def test_the_error_of_backward_comes_out_when_warnings_are_errors():
    class Fails(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("boom")

    x = cygrad.ones(2, requires_grad=True)
    with warnings.catch_warnings(), cygrad.autograd.set_detect_anomaly(True):
        warnings.simplefilter("error")
        with pytest.raises(KeyError, match="boom") as caught:
            Fails.apply(x).sum().backward()
        assert "Error detected in FailsBackward" in caught.value.__notes__[0]
        assert "Fails.apply(x)" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="returned nan values"):
            (cygrad.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


@pytest.mark.guarantee("F2")
def test_the_trace_names_the_forward_of_the_parent():
    with cygrad.autograd.set_detect_anomaly(True):
        x = cygrad.zeros(1, requires_grad=True)
        y = x**1.5
        (gradient,) = cygrad.autograd.grad(y, x, create_graph=True)
        with pytest.warns(UserWarning, match="Error detected in MulBackward0"), \
                pytest.warns(UserWarning, match="(?s)Previous calculation was induced by PowBackward.*x\\*\\*1.5"), \
                pytest.raises(RuntimeError, match="nan"):
            cygrad.autograd.grad(gradient, x, cygrad.full((1,), float("nan")))
