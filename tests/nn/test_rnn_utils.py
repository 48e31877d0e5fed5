"""Padded and packed sequences."""

import pytest

import cygrad
from cygrad.nn.utils import rnn
from tests.reference import torch

LENGTHS = [[3, 2, 1], [2, 2], [1], [4, 4, 1, 1]]


def sequences(library, lengths, rest=(2,), grad=False):
    made, start = [], 0
    for length in lengths:
        size = length
        for n in rest:
            size *= n
        values = library.arange(start, start + size, dtype=library.float64).reshape(length, *rest)
        made.append(values.requires_grad_() if grad else values)
        start += size
    return made


def plain(value):
    """Tensors as lists, in any structure."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def both(work):
    return [plain(work(library, library.nn.utils.rnn)) for library in (cygrad, torch)]


@pytest.mark.parametrize("rest", [(), (2,), (2, 1)])
@pytest.mark.parametrize("lengths", [*LENGTHS, [1, 3, 2]])
@pytest.mark.parametrize("batch_first", [False, True])
def test_same_as_pytorch(lengths, rest, batch_first):
    def work(library, module):
        parts = sequences(library, lengths, rest)
        seen = []
        for side in "left", "right":
            padded = module.pad_sequence(parts, batch_first, -1.5, side)
            seen += [padded, tuple(padded.shape)]
        # of a copy, because PyTorch transposes it in place
        seen.append(module.unpad_sequence(padded.clone(), library.tensor(lengths), batch_first))
        packed = module.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
        seen += list(packed)
        again, sizes = module.pad_packed_sequence(packed, batch_first, padding_value=7.0)
        seen += [again, sizes]
        seen += list(module.pad_packed_sequence(packed, batch_first, total_length=6))
        seen.append(module.unpack_sequence(packed))
        if lengths == sorted(lengths, reverse=True):
            seen += list(module.pack_sequence(parts))
            seen += list(module.pack_padded_sequence(padded, library.tensor(lengths), batch_first))
        return seen

    ours, theirs = both(work)
    assert ours == theirs


def test_gradients_reach_every_element_once():
    parts = sequences(cygrad, [1, 3, 2], grad=True)
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.requires_grad
    padded, _ = rnn.pad_packed_sequence(packed)
    (padded * 3).sum().backward()
    for part in parts:
        assert part.grad.tolist() == cygrad.full_like(part, 3.0).tolist()
    x = cygrad.randn(3, 2, 2, dtype=cygrad.float64, requires_grad=True)
    assert cygrad.autograd.gradcheck(lambda x: rnn.pad_packed_sequence(
        rnn.pack_padded_sequence(x, [2, 3], enforce_sorted=False))[0] ** 2, (x,))


@pytest.mark.parametrize(("attempt", "error", "text"), [
    (lambda m: m.pack_padded_sequence(cygrad.ones(3, 2), [1, 2]), RuntimeError, "sorted"),
    (lambda m: m.pack_padded_sequence(cygrad.ones(3, 2), [2]), RuntimeError, "one length for each"),
    (lambda m: m.pack_padded_sequence(cygrad.ones(3, 2), [2, 0]), RuntimeError, "must be positive"),
    (lambda m: m.pack_padded_sequence(cygrad.ones(3, 2), [4, 1]), RuntimeError, "padded length"),
    (lambda m: m.pack_padded_sequence(cygrad.ones(3), [4, 1, 1]), RuntimeError, "two dimensions"),
    (lambda m: m.pack_padded_sequence(cygrad.ones(3, 0), []), RuntimeError, "Cannot pack empty"),
    (lambda m: m.pad_sequence([]), RuntimeError, "empty list"),
    (lambda m: m.pad_sequence([cygrad.ones(2, 2), cygrad.ones(2, 3)]), RuntimeError, "must be the same"),
    (lambda m: m.pad_sequence([cygrad.ones(2)], padding_side="up"), ValueError, "left or right"),
    (lambda m: m.pad_packed_sequence(m.pack_sequence([cygrad.ones(2)]), total_length=1), ValueError, "not be less"),
    (lambda m: m.PackedSequence(cygrad.ones(2), None), ValueError, "batch_sizes"),
])
def test_what_does_not_fit(attempt, error, text):
    with pytest.raises(error, match=text):
        attempt(rnn)


def test_packed_sequences_as_objects():
    packed = rnn.pack_sequence([cygrad.ones(2), cygrad.zeros(1)])
    assert isinstance(packed, tuple)
    assert packed.data.dtype == cygrad.float32
    assert packed.double().data.dtype == cygrad.float64
    assert packed.to(cygrad.float32) is packed
    assert packed.double().batch_sizes is packed.batch_sizes
    assert packed.cpu() is packed
    assert not packed.is_cuda
    order = cygrad.tensor([2, 0, 1])
    assert rnn.invert_permutation(order).tolist() == [1, 2, 0]
    assert rnn.PackedSequence(cygrad.ones(3), cygrad.tensor([3]), order).unsorted_indices.tolist() == [1, 2, 0]
