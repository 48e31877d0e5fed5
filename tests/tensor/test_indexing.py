"""Indexing compared with NumPy and PyTorch: random keys, views, graphs, errors, speed."""

import random
import warnings

import numpy as np
import pytest

import cygrad
from tests.reference import torch

SHAPES = [(), (5,), (0,), (3, 4), (2, 3, 4), (1, 4, 1, 3), (2, 0, 3), (2, 2, 2, 2, 2)]


def random_key(rng, shape):
    """A key for the shape: a list of entries as plain Python, NumPy arrays standing for index tensors."""
    key, dim, ellipsis = [], 0, False
    lengths = [(), (1,), (3,), (2, 3), (2, 1)]
    broadcast = rng.choice([(3,), (2, 3)])
    while dim < len(shape) and rng.random() < 0.85:
        kind = rng.random()
        size = shape[dim]
        if kind < 0.25:
            start, stop = (rng.choice([None, rng.randint(-size - 2, size + 2)]) for _ in range(2))
            key.append(slice(start, stop, rng.choice([None, 1, 1, 2, 3])))
            dim += 1
        elif kind < 0.45 and size:
            key.append(rng.randint(-size, size - 1))
            dim += 1
        elif kind < 0.55:
            key.append(None)
        elif kind < 0.62 and not ellipsis:
            key.append(Ellipsis)
            ellipsis = True
            dim += rng.randint(0, len(shape) - dim)
        elif kind < 0.66:
            key.append(rng.random() < 0.5)
        elif kind < 0.85 and size:
            shape_of_index = rng.choice([s for s in lengths if np.broadcast_shapes(s, broadcast) == broadcast])
            key.append(np.array([rng.randint(-size, size - 1) for _ in range(int(np.prod(shape_of_index)))],
                                dtype=rng.choice(["int64", "int64", "int32"])).reshape(shape_of_index))
            dim += 1
        elif kind < 0.95 and size:
            # A mask that chooses as many elements as the index tensors have, to broadcast with them.
            n = rng.randint(1, min(2, len(shape) - dim))
            mask = np.zeros(shape[dim : dim + n], dtype=bool)
            if mask.size:
                chosen = rng.sample(range(mask.size), min(mask.size, rng.choice([1, 3])))
                mask.reshape(-1)[chosen] = True
            key.append(mask)
            dim += n
    return key


def mixed(key):
    """Return whether the key mixes index tensors and integers, which NumPy treats as index tensors, too."""
    integers = [type(entry) is int or (isinstance(entry, np.ndarray) and entry.ndim == 0) for entry in key]
    return any(integers) and any(isinstance(entry, (np.ndarray, bool)) for entry in key)


def converted(key, library, rng):
    """The key with index arrays as tensors of the library, lists or ndarrays."""
    entries = []
    for entry in key:
        if isinstance(entry, np.ndarray):
            kind = rng.random()
            if kind < 0.2 and entry.ndim == 1 and entry.size:
                entry = entry.tolist()
            elif kind < 0.9:
                entry = library.tensor(entry)
        entries.append(entry)
    return entries[0] if len(entries) == 1 and not isinstance(entries[0], list) else tuple(entries)


def outcome(function):
    """The result, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except (IndexError, ValueError, TypeError, RuntimeError) as error:
            return error


@pytest.mark.parametrize("seed", range(40))
def test_random_keys(seed):
    rng = random.Random(seed)
    for _ in range(60):
        shape = rng.choice(SHAPES)
        array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        key = random_key(rng, shape)
        state = rng.getstate()
        ours_key = converted(key, cygrad, rng)
        rng.setstate(state)
        theirs_key = converted(key, torch, rng)
        recorded = rng.random() < 0.5
        x = cygrad.tensor(array, requires_grad=recorded)
        y = torch.tensor(array, requires_grad=recorded)
        ours, theirs = outcome(lambda: x[ours_key]), outcome(lambda: y[theirs_key])
        if isinstance(theirs, Exception):
            if any(isinstance(entry, bool) for entry in key):
                continue               # PyTorch stumbles over some keys with bools and ellipses
            assert isinstance(ours, type(theirs)), (shape, key, ours, theirs)
            continue
        if isinstance(ours, Exception):
            raise ours
        assert tuple(ours.shape) == tuple(theirs.shape), (shape, key)
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
        if not mixed(key):
            expected = outcome(lambda: array[tuple(key)])
            if not isinstance(expected, Exception):
                np.testing.assert_array_equal(ours.detach().numpy(), expected)
        if recorded:
            assert ours.requires_grad
            weights = np.arange(1, ours.numel() + 1, dtype=np.float32).reshape(tuple(ours.shape))
            ours.backward(cygrad.tensor(weights))
            theirs.backward(torch.tensor(weights))
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())
        elif not any(isinstance(entry, (np.ndarray, bool)) for entry in key):
            assert np.shares_memory(ours.numpy(), x.numpy()) or ours.numel() == 0
            assert (ours._is_view() and ours.stride() == theirs.stride()) or ours.numel() <= 1


@pytest.mark.parametrize("seed", range(40))
def test_random_assignments(seed):
    rng = random.Random(seed + 1000)
    numbers = np.random.default_rng(seed)
    for _ in range(40):
        shape = rng.choice(SHAPES)
        array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        key = random_key(rng, shape)
        for entry in key:
            # Where an element is named twice it is open which value stays.
            if isinstance(entry, np.ndarray) and entry.dtype != bool:
                entry[...] = 0
        state = rng.getstate()
        ours_key = converted(key, cygrad, rng)
        rng.setstate(state)
        theirs_key = converted(key, torch, rng)
        x, y = cygrad.tensor(array), torch.tensor(array)
        target = outcome(lambda: y[theirs_key])
        if isinstance(target, Exception):
            if any(isinstance(entry, bool) for entry in key):
                continue               # PyTorch stumbles over some keys with bools and ellipses
            assert isinstance(outcome(lambda: x.__setitem__(ours_key, 1)), Exception)
            continue
        kind = rng.random()
        advanced = any(isinstance(entry, np.ndarray) and entry.dtype != bool for entry in key)
        if kind < 0.3 or advanced:
            ours_value = theirs_value = rng.choice([7, 2.5, True])
        else:
            value_shape = tuple(target.shape)[rng.randint(0, target.ndim) :]
            value_shape = tuple(1 if rng.random() < 0.2 else size for size in value_shape)
            values = numbers.standard_normal((1,) * rng.randint(0, 1) + value_shape).astype(np.float32)
            ours_value, theirs_value = cygrad.tensor(values), torch.tensor(values)
        theirs = outcome(lambda: y.__setitem__(theirs_key, theirs_value))
        ours = outcome(lambda: x.__setitem__(ours_key, ours_value))
        if isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (shape, key, ours, theirs)
            continue
        if isinstance(ours, Exception):
            raise ours
        np.testing.assert_array_equal(x.numpy(), y.numpy(), err_msg=repr((shape, key)))


@pytest.mark.parametrize("key", [
    5, -3, (0, 0, 0, 0), 1.0, slice(0, 1.5), slice(None, None, 0), "a", {1}, object(),
    np.float64(1), 2**70, (Ellipsis, 0, 0, 0, 0), [True, False, True], [0, 5],
])
def test_errors(key):
    x = cygrad.arange(24.0).reshape(2, 3, 4)
    theirs = outcome(lambda: torch.arange(24.0).reshape(2, 3, 4)[key])
    ours = outcome(lambda: x[key])
    assert isinstance(theirs, Exception)
    # Texts and integers that are far too large are indices of no kind, too.
    assert isinstance(ours, (IndexError, type(theirs))), repr(ours)
    assert isinstance(outcome(lambda: x.__setitem__(key, 0.0)), type(ours))


def test_texts_of_errors():
    x = cygrad.arange(24.0).reshape(2, 3, 4)
    for recorded in (False, True):
        x.requires_grad_(recorded)
        with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 2"):
            x[5]
        with pytest.raises(IndexError, match="index -4 is out of bounds for dimension 1 with size 3"):
            x[:, -4]
        with pytest.raises(IndexError, match=r"too many indices for tensor of dimension 3 \(got 4\)"):
            x[0, 0, 0, 0]
        with pytest.raises(IndexError, match="too many indices"):
            x[0, 0, 0, ::-1]
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            x[::0]
        with pytest.raises(IndexError, match=r"0-dim tensor. Use `tensor.item"):
            cygrad.tensor(3.0)[0]
        with pytest.raises(IndexError, match=r"the shape of the mask \(3,\) at index 0 does not match"):
            x[cygrad.tensor([True, False, True])]
        with pytest.raises(IndexError, match="must be integers or bool"):
            x[cygrad.tensor([0.0])]
        with pytest.raises(IndexError, match="single ellipsis"):
            x[..., ...]
        with pytest.raises(IndexError):
            x[cygrad.tensor([0, 7])]
        with pytest.raises(IndexError):
            x[cygrad.tensor([0, 1]), cygrad.tensor([0, 1, 2])]
    with pytest.raises(TypeError, match="setitem: cannot assign a str"):
        cygrad.zeros(2)[0] = "a"
    with pytest.raises(RuntimeError, match="without overflow"):
        cygrad.zeros(2)[0] = 1j
    with pytest.raises(RuntimeError):
        cygrad.zeros(3)[0:2] = cygrad.tensor([1.0, 2.0, 3.0])


def test_nodes():
    x = cygrad.rand(2, 3, 4, requires_grad=True)
    for key, name in ((0, "Select"), (slice(None), "Slice"), (slice(0, 1), "Slice"), (Ellipsis, "Alias"),
                      ((), "Alias"), (None, "Unsqueeze"), ((slice(None), 1), "Select"), ([0, 1], "Index"),
                      (cygrad.tensor(1), "Select")):
        assert x[key].grad_fn.name() == f"{name}Backward0", key
    assert x[0, 1].grad_fn.next_functions[0][0].name() == "SelectBackward0"
    assert x[()] is not x
    with cygrad.no_grad():
        assert x[0].grad_fn is None and x[0]._base is x


def test_view_of_a_base_that_gets_a_history():
    base = cygrad.zeros(2, 3)
    view = base[0]
    base.mul_(cygrad.ones(1, requires_grad=True))
    assert view[1:].requires_grad and view[1].requires_grad
    assert view[(slice(1, 2),)].grad_fn is not None


def test_second_derivative():
    x = cygrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x[cygrad.tensor([0, 2, 2])] ** 3).sum() + (x[1:] ** 2).sum() + x[0] ** 2
    (grad,) = cygrad.autograd.grad(y, x, create_graph=True)
    (second,) = cygrad.autograd.grad(grad.sum(), x)
    np.testing.assert_allclose(second.numpy(), [8, 2, 38])


def test_assignment_is_recorded():
    x = cygrad.zeros(3)
    v = cygrad.tensor([1.0, 2.0], requires_grad=True)
    x[1:] = v * 3
    x[cygrad.tensor([0])] = v[0]
    x[x > 5] = v[1] * 10
    x.sum().backward()
    assert v.grad.tolist() == [4.0, 10.0]
    y = cygrad.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        y[0] = 1
    with pytest.raises(RuntimeError, match="leaf"):
        y[[0]] = 1
    z = y * 1
    z[0] = 5.0
    z[[2]] = 6.0
    z.sum().backward()
    assert y.grad.tolist() == [0.0, 1.0, 0.0]


def test_assignment_counts_a_version():
    x = cygrad.zeros(3)
    x[0] = 1
    x[[1]] = 2
    x[x == 2] = 3
    assert x._version == 3 and x.tolist() == [1, 3, 0]


def test_assigned_values_are_converted():
    x = cygrad.zeros(3)
    x[:2] = [1, 2]
    x[[2]] = cygrad.tensor([3])
    assert x.tolist() == [1, 2, 3]
    x[:] = np.array([4.0, 5.0, 6.0])
    assert x.tolist() == [4, 5, 6]
    n = cygrad.zeros(2, dtype=cygrad.int64)
    n[0] = 2.7
    n[[1]] = 3.9
    assert n.tolist() == [2, 3]


def test_augmented_assignment():
    x = cygrad.zeros(2, 2)
    x[0] += 1
    x[:, [1]] *= 2
    assert x.tolist() == [[1, 2], [0, 0]]


def test_index_put():
    x = cygrad.zeros(3)
    index = cygrad.tensor([0, 0, 2])
    assert x.index_put((index,), cygrad.tensor([1.0, 2.0, 3.0]), accumulate=True).tolist() == [3, 0, 3]
    assert x.tolist() == [0, 0, 0]
    v = cygrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.clone().index_put_((index,), v, accumulate=True)
    (y * cygrad.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert v.grad.tolist() == [1, 1, 3]
    with pytest.raises(RuntimeError, match="index_put_: dtypes must match"):
        x.index_put_((index,), cygrad.tensor([1, 2, 3]))


def test_uint8_is_a_mask():
    x = cygrad.arange(3)
    with pytest.warns(UserWarning, match="uint8"):
        assert x[cygrad.tensor([1, 0, 1], dtype=cygrad.uint8)].tolist() == [0, 2]


def test_any_strides():
    array = np.arange(24.0).reshape(4, 6)[::-1, ::-2]
    x = cygrad.from_numpy(array)
    for key in (1, slice(1, 3), (slice(None), 0), (0, slice(None, None, 2)), (None, 1)):
        np.testing.assert_array_equal(x[key].numpy(), array[key])
    np.testing.assert_array_equal(x[cygrad.tensor([0, 2])].numpy(), array[[0, 2]])
    x[1, :2] = 0
    assert (array[1, :2] == 0).all()


def test_iteration_and_inference():
    assert [row.tolist() for row in cygrad.arange(4).reshape(2, 2)] == [[0, 1], [2, 3]]
    with cygrad.inference_mode():
        x = cygrad.rand(2, 2, requires_grad=True)
        assert x[0].is_inference() and not x[0].requires_grad
        x[0, 0] = 3
        assert x[0, 0].item() == 3


BACKWARD = ["::-1", ":, ::-2", "..., 3:0:-1", "::-1, 1, ::-1", "1::-1, [0, 2]", "[1, 0], ::-1", "None, ::-1", "5:0:-1",
            "0:5:-1", "mask, ::-1", "::-1, mask2"]


@pytest.mark.parametrize("key", BACKWARD)
def test_slices_may_run_backward(key):
    array = np.arange(24.0).reshape(2, 3, 4)
    names = {"mask": np.array([[True, False, True], [False, True, True]]), "mask2": array[0] % 3 == 0}
    index = eval(f"numpy.s_[{key}]", {"numpy": np, **names})
    x = cygrad.tensor(array)
    assert x[index].tolist() == array[index].tolist()
    assert cygrad.autograd.gradcheck(lambda t: t[index], [x.clone().requires_grad_()])
    value = np.arange(array[index].size, dtype=float).reshape(array[index].shape)
    x[index] = cygrad.tensor(value)
    array[index] = value
    assert x.tolist() == array.tolist()

    def assigned(t, v):
        t = t * 1
        t[index] = v
        return t

    assert cygrad.autograd.gradcheck(assigned, [cygrad.tensor(array, requires_grad=True),
                                                cygrad.tensor(value, requires_grad=True)])


def test_an_array_of_uint8_is_a_mask_as_a_tensor_of_it_is():
    mask = np.array([[1, 0, 1], [0, 1, 0]], np.uint8)
    x = cygrad.arange(6).reshape(2, 3)
    with pytest.warns(UserWarning, match="taken for a mask"):
        assert x[mask].tolist() == x[cygrad.tensor(mask)].tolist() == [0, 2, 4]
    with pytest.warns(UserWarning, match="taken for a mask"):
        x[:, np.array([1, 0, 1], np.uint8)] = 9
    assert x.tolist() == [[9, 1, 9], [9, 4, 9]]
    assert x[np.array(1, np.uint8)].tolist() == [9, 4, 9]


@pytest.mark.parametrize("name", ["index_put", "index_copy", "scatter", "put"])
def test_the_last_of_equal_indices_has_the_gradient(name):
    """Which element is written and which one has the derivative is the same."""
    index = cygrad.tensor([1, 1, 0, 1])

    def write(x, v):
        if name in ("index_copy", "scatter"):
            return getattr(x, name)(0, index, v)
        return getattr(x, name)((index,) if name == "index_put" else index, v)
    x, values = cygrad.zeros(3, dtype=cygrad.float64), cygrad.tensor([4.0, 5, 6, 7], dtype=cygrad.float64)
    assert write(x, values).tolist() == [6, 7, 0]
    values.requires_grad_()
    gradient, = cygrad.autograd.grad(write(x, values), values, cygrad.tensor([10.0, 20, 30], dtype=cygrad.float64))
    assert gradient.tolist() == [0, 0, 10, 20]
    assert cygrad.autograd.gradcheck(write, [x.requires_grad_(), values], check_forward_ad=True)
    assert cygrad.autograd.gradgradcheck(write, [x, values])


def test_equal_indices_of_rows_and_pairs():
    x, values = cygrad.rand(3, 4, 2, dtype=cygrad.float64), cygrad.rand(3, 2, dtype=cygrad.float64)
    rows, columns = cygrad.tensor([2, 0, 2]), cygrad.tensor([1, 1, 1])

    def write(x, values):
        return x.index_put((rows, columns), values)
    assert cygrad.autograd.gradcheck(write, [x.requires_grad_(), values.requires_grad_()], check_forward_ad=True)
    assert cygrad.autograd.gradcheck(lambda x, v: x.index_put((None, columns[:2]), v.unsqueeze(1)),
                                     [x, values], check_forward_ad=True)


@pytest.mark.parametrize("index", [[[0, 1], [2, 2]], [[0], [1]], []], ids=str)
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "sum", "prod", "mean", "amax", "amin"])
def test_what_a_small_index_leaves_out_has_the_gradient_zero(name, index):
    index = cygrad.tensor(index, dtype=cygrad.int64)
    x = (cygrad.arange(12.0, dtype=cygrad.float64).reshape(3, 4) + 0.5).requires_grad_()
    source = (cygrad.arange(20.0, dtype=cygrad.float64).reshape(4, 5) * 0.3 + 1.1).requires_grad_()

    def function(x, source):
        if name.startswith("scatter"):
            return getattr(x, name)(0, index, source)
        return x.scatter_reduce(0, index, source, name)
    assert cygrad.autograd.gradcheck(function, [x, source], check_forward_ad=True)
    assert cygrad.autograd.gradgradcheck(function, [x, source])


@pytest.mark.parametrize("key", [[0, 2], [True, False, True], slice(0, 2)])
def test_assigned_values_may_have_leading_dimensions_of_size_1(key):
    x, values = cygrad.zeros(3, requires_grad=True), cygrad.ones(1, 1, 2, requires_grad=True)
    y = x.clone()
    y[cygrad.tensor(key) if isinstance(key, list) else key] = values
    (y * y).sum().backward()
    assert y.sum() == 2 and values.grad.tolist() == [[[2.0, 2.0]]] and x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_refuses_values_of_more_dimensions(accumulate):
    with pytest.raises(RuntimeError, match="index_put"):
        cygrad.zeros(3).index_put((cygrad.tensor([0, 2]),), cygrad.ones(1, 2), accumulate)
