"""Arguments whose conversion modifies the argument or the tensor."""

import gc

import numpy as np
import pytest

import cygrad


class Meddles:
    """Call a function whenever its value is read."""

    def __init__(self, deed, value=1):
        self.deed, self.value = deed, value

    def __index__(self):
        self.deed()
        return self.value

    def __float__(self):
        self.deed()
        return float(self.value)

    def __bool__(self):
        self.deed()
        return True


def growing(value):
    """A list that is a hundred entries longer after each that is read."""
    items = []
    items.append(Meddles(lambda: items.extend(items[:1] * 100), value))
    return items


def emptied(value):
    """A list that has no entries any more when its first has been read."""
    items = []
    items += [Meddles(items.clear, value), value + 1]
    return items


X = cygrad.arange(6.0).reshape(2, 3)
CALLS = {
    "sum": lambda s: X.sum(s),
    "permute": lambda s: X.permute(s),
    "reshape": lambda s: X.reshape(s),
    "view": lambda s: X.view(s),
    "roll": lambda s: X.roll(s, s),
    "flip": lambda s: X.flip(s),
    "pad": lambda s: cygrad.nn.functional.pad(X, s),
    "expand": lambda s: X.expand(s),
    "tile": lambda s: X.tile(s),
    "repeat": lambda s: X.repeat(s),
    "split": lambda s: X.split(s),
    "zeros": lambda s: cygrad.zeros(s),
    "new_ones": lambda s: X.new_ones(s),
    "full": lambda s: cygrad.full(s, 1.0),
    "as_strided": lambda s: X.as_strided(s, s),
    "conv2d": lambda s: cygrad.nn.functional.conv2d(cygrad.ones(1, 1, 4, 4), cygrad.ones(1, 1, 2, 2), padding=s),
    "avg_pool2d": lambda s: cygrad.nn.functional.avg_pool2d(cygrad.ones(1, 1, 4, 4), s),
    "tensor": lambda s: cygrad.tensor(s),
    "index": lambda s: X[s],
    "rand": lambda s: cygrad.rand(s),
    "unflatten": lambda s: X.unflatten(0, s),
    "tensordot": lambda s: cygrad.tensordot(X, X, (s, s)),
    "unsqueeze": lambda s: X.unsqueeze(s[0]),
}


@pytest.mark.parametrize("make", [growing, emptied])
@pytest.mark.parametrize("value", [0, 1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_sequences_that_change_while_they_are_read(call, value, make):
    try:
        result = CALLS[call](make(value))
    except (RuntimeError, TypeError, ValueError, IndexError):
        return
    assert isinstance(result, cygrad.Tensor | tuple)


def deeds(x):
    """What code may do to a tensor that an operation is about to read."""
    return (lambda: setattr(x, "data", cygrad.ones(())), lambda: setattr(x, "data", cygrad.ones(0, 3)),
            lambda: setattr(x, "data", cygrad.ones(1)), lambda: x.set_(), x.detach_, x.zero_, gc.collect,
            cygrad.empty_cache, lambda: x.unsqueeze_(0))


USES = {
    "item": lambda x, deed: x[deed],
    "items": lambda x, deed: x[0, deed],
    "start": lambda x, deed: x[deed:],
    "bounds": lambda x, deed: x[:deed, ::deed],
    "store": lambda x, deed: x.__setitem__((slice(deed, None), 0), 5),
    "store value": lambda x, deed: x.__setitem__(0, [deed, 1.0, 2.0]),
    "index list": lambda x, deed: x[[deed, 0]],
    "narrow": lambda x, deed: x.narrow(0, deed, 1),
    "select": lambda x, deed: x.select(0, deed),
    "fill_": lambda x, deed: x.fill_(deed),
    "view": lambda x, deed: x.view(deed, -1),
    "sum": lambda x, deed: x.sum((deed,)),
    "transpose": lambda x, deed: x.transpose(0, deed),
    "masked_fill": lambda x, deed: x.masked_fill(x > 0, deed),
    "contains": lambda x, deed: deed in x,
    "copy_": lambda x, deed: x.copy_([deed, 1.0, 2.0]),
    "clamp": lambda x, deed: x.clamp(deed, deed),
    "dot": lambda x, deed: x + deed,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("number", range(9))
def test_tensors_that_change_while_an_argument_is_converted(use, number):
    x = cygrad.arange(6.0).reshape(2, 3)
    try:
        result = USES[use](x, Meddles(deeds(x)[number]))
    except (RuntimeError, TypeError, ValueError, IndexError):
        return
    if isinstance(result, cygrad.Tensor):
        assert np.isfinite(result.tolist()).all() or result.numel() == 0


def test_slices_with_other_integers():
    x = cygrad.arange(6.0)
    assert x[np.int64(1):Meddles(gc.collect, 4):cygrad.tensor(2)].tolist() == [1, 3]
    with pytest.raises(TypeError, match="slice indices must be integers"):
        x[1.5:]


def test_bytes_of_bool_arrays_other_than_0_and_1():
    odd = np.array([100, 0, 1], dtype=np.uint8).view(bool)
    assert cygrad.tensor(odd).sum().item() == 2
    assert cygrad.tensor([odd, odd]).sum().item() == 4
    with pytest.raises(ValueError, match="other bytes than 0 and 1"):
        cygrad.from_numpy(odd)
    assert cygrad.from_numpy(odd[1:]).sum().item() == 1
