"""Tensors from sizes, numbers, sequences and arrays, against PyTorch's dtypes, values and errors."""

import copy
import gc
import itertools
import math
import warnings

import numpy as np
import pytest

import cygrad
from tests.reference import torch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]


def same(ours, theirs, exact=True):
    """Equal shape, dtype and values; PyTorch rounds float32 steps in an order that depends on the machine."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    if exact:
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    else:
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-6, atol=4e-6)


def both(text, **names):
    """An expression evaluated with `torch` standing for either library; errors by their class."""
    results = []
    for library in (cygrad, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results.append(eval(text, {"torch": library, "np": np, **names}))
            except Exception as error:
                results.append(error)
    return results


@pytest.mark.parametrize(
    "text",
    [
        "torch.tensor(3.)",
        "torch.tensor(3)",
        "torch.tensor(True)",
        "torch.tensor(1j)",
        "torch.tensor([True, 1])",
        "torch.tensor([True, 1.5])",
        "torch.tensor([1, 1j])",
        "torch.tensor([])",
        "torch.tensor([[], []])",
        "torch.tensor([[[]]])",
        "torch.tensor(())",
        "torch.tensor(range(3))",
        "torch.tensor(((1, 2), (3, 4)))",
        "torch.tensor(np.float64(3))",
        "torch.tensor(np.float32(3))",
        "torch.tensor(np.int16(3))",
        "torch.tensor([np.float32(3), 1])",
        "torch.tensor([np.float32(3), np.float64(1)])",
        "torch.tensor([np.int16(3), True])",
        "torch.tensor([torch.tensor(1), torch.tensor(2.)])",
        "torch.tensor([torch.tensor([1.]), torch.tensor([2.])])",
        "torch.tensor([torch.tensor(1, dtype=torch.int32), 2])",
        "torch.tensor([np.array([1., 2.]), np.array([3., 4.])])",
        "torch.tensor(np.arange(6).reshape(2, 3).T)",
        "torch.tensor(np.zeros(3, dtype=np.float16), dtype=torch.float32)",
        "torch.tensor([-1], dtype=torch.uint8)",
        "torch.tensor(1.7, dtype=torch.int32)",
        "torch.tensor(-1.7, dtype=torch.int32)",
        "torch.tensor(1e300, dtype=torch.float32)",
        "torch.tensor([2, 0], dtype=torch.bool)",
        "torch.tensor(float('nan'), dtype=torch.bool)",
        "torch.tensor(3, dtype=torch.complex128)",
        "torch.as_tensor([1, 2.])",
        "torch.as_tensor(3, dtype=torch.float64)",
        "torch.asarray([1, 2])",
        "torch.asarray(b'abcd', dtype=torch.uint8)",
        "torch.asarray(np.float32(3))",
        "torch.scalar_tensor(3)",
        "torch.asarray(range(3), dtype=torch.float32)",
        "torch.scalar_tensor(3, dtype=torch.int64)",
        "torch.zeros(2, 3)",
        "torch.zeros((2, 3))",
        "torch.zeros([2])",
        "torch.zeros(())",
        "torch.zeros(size=(2,))",
        "torch.zeros(np.int64(2))",
        "torch.zeros(torch.tensor(2))",
        "torch.zeros(2, dtype=int)",
        "torch.zeros(0, 3)",
        "torch.zeros(2, dtype=complex)",
        "torch.zeros(2, device='cpu')",
        "torch.ones(3, layout=torch.strided)" if hasattr(cygrad, "strided") else "torch.ones(3)",
        "torch.ones(3, pin_memory=False)",
        "torch.full((2,), 3)",
        "torch.full((2,), 3.)",
        "torch.full((2,), True)",
        "torch.full((2,), 1j)",
        "torch.full((2,), torch.tensor(3))",
        "torch.full((2,), np.float32(3))",
        "torch.full((2,), 1.5, dtype=torch.int32)",
        "torch.full((2,), float('inf'))",
        "torch.eye(3)",
        "torch.eye(2, 3, dtype=torch.bool)",
        "torch.eye(0)",
        "torch.eye(3, 2, dtype=torch.complex64)",
        "torch.arange(5)",
        "torch.arange(5.)",
        "torch.arange(1, 5, 2)",
        "torch.arange(5, 1, -1)",
        "torch.arange(0, 5, dtype=torch.float32)",
        "torch.arange(0.5, 5, dtype=torch.int64)",
        "torch.arange(0.5, 5, 1.5, dtype=torch.int64)",
        "torch.arange(0.5, 5, 1.5, dtype=torch.int32)",
        "torch.arange(True)",
        "torch.arange(torch.tensor(3))",
        "torch.arange(torch.tensor(3.))",
        "torch.arange(5, 5)",
        "torch.arange(300, dtype=torch.uint8)",
        "torch.arange(end=3)",
        "torch.arange(start=1, end=3)",
        "torch.arange(2**53, 2**53 + 3)",
        "torch.arange(0)",
        "torch.linspace(0, 10, 5, dtype=torch.int64)",
        "torch.linspace(0, 10, 4, dtype=torch.int32)",
        "torch.linspace(0, 1, 1)",
        "torch.linspace(0, 1, 0)",
        "torch.linspace(-5, 5, 7, dtype=torch.int8)",
        "torch.logspace(0, 2, 3, base=2)",
        "torch.logspace(0, 2, 1)",
        "torch.logspace(0, 2, 5, 2, dtype=torch.int64)",
        "torch.ones_like(torch.tensor([1, 2]))",
        "torch.full_like(torch.ones(2, dtype=torch.int32), 1.5)",
        "torch.zeros_like(torch.ones(2), dtype=torch.int64)",
        "torch.full_like(torch.ones(2, dtype=torch.int32), 1.5, dtype=torch.float32)",
        "torch.ones(2, dtype=torch.int32).new_zeros(3)",
        "torch.ones(2).new_zeros((3, 2), dtype=torch.float64)",
        "torch.ones(2, dtype=torch.int32).new_full((3,), 1.5)",
        "torch.ones(2).new_ones(2, 3)",
        "torch.ones(2, dtype=torch.int32).new_tensor([1.5])",
        "torch.ones(2, dtype=torch.float64).new_tensor([1])",
        "torch.from_numpy(np.array(3.))",
        "torch.from_dlpack(np.arange(3.))",
        "torch.zeros(2, out=torch.ones(2, dtype=torch.int32))",
    ],
)
def test_values_and_dtypes(text):
    ours, theirs = both(text)
    if isinstance(ours, Exception):
        raise ours
    same(ours, theirs)


@pytest.mark.parametrize(
    "text",
    [
        "torch.tensor([torch.ones(2), torch.ones(2)])",
        "torch.tensor([[1, 2], [3]])",
        "torch.tensor([[1, 2], 3])",
        "torch.tensor([1, [2, 3]])",
        "torch.tensor('abc')",
        "torch.tensor(None)",
        "torch.tensor([None])",
        "torch.tensor(['a'])",
        "torch.tensor(object())",
        "torch.tensor({1: 2})",
        "torch.tensor(2**63)",
        "torch.tensor([2**70])",
        "torch.tensor(300, dtype=torch.uint8)",
        "torch.tensor([300], dtype=torch.int8)",
        "torch.tensor(float('nan'), dtype=torch.int32)",
        "torch.tensor(1j, dtype=torch.float32)",
        "torch.tensor([1j], dtype=torch.int32)",
        "torch.tensor(np.array(['a']))",
        "torch.tensor([1], requires_grad=True)",
        "torch.tensor(1, 2)",
        "torch.tensor()",
        "torch.from_numpy([1])",
        "torch.from_numpy(np.zeros(3, dtype='>f4'))",
        "torch.from_numpy(np.zeros(3, dtype=[('a', 'f4'), ('b', 'i1')])['a'])",
        "torch.asarray([1, 2], copy=False)",
        "torch.scalar_tensor(1j)",
        "torch.zeros()",
        "torch.zeros(-1)",
        "torch.zeros(2.)",
        "torch.zeros((2, 1.5))",
        "torch.zeros((2,), 3)",
        "torch.zeros(True)",
        "torch.zeros(2, dtype=torch.int32, requires_grad=True)",
        "torch.zeros(2, out=torch.ones(2, dtype=torch.int32), dtype=torch.float32)",
        "torch.full(2, 3)",
        "torch.full((2,), torch.tensor(3., requires_grad=True))",
        "torch.full((2,), 300, dtype=torch.uint8)",
        "torch.full((2,), 1j, dtype=torch.float32)",
        "torch.full((2,), 'a')",
        "torch.full((2,), 1e300)",
        "torch.empty(2**62, 8)",
        "torch.eye(-1)",
        "torch.eye(2.5)",
        "torch.arange(5, 1)",
        "torch.arange(1, 5, 0)",
        "torch.arange(0, float('nan'))",
        "torch.arange(0, float('inf'))",
        "torch.arange(3, dtype=torch.bool)",
        "torch.arange(3, dtype=torch.complex64)",
        "torch.arange(1j)",
        "torch.arange(3, requires_grad=True)",
        "torch.linspace(0, 1, -1)",
        "torch.linspace(0, 1)",
        "torch.linspace(0, 1, 3, dtype=torch.bool)",
        "torch.ones_like([1])",
        "torch.ones(2).new_zeros()",
    ],
)
def test_errors(text):
    ours, theirs = both(text)
    assert isinstance(theirs, Exception)
    assert isinstance(ours, Exception), ours
    assert isinstance(ours, type(theirs)), repr(ours)
    assert isinstance(ours, TypeError) or "got" in str(ours) or ":" in str(ours), repr(ours)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3), (1, 5, 2)])
def test_every_dtype_and_shape(dtype, shape):
    d, t = getattr(cygrad, dtype), getattr(torch, dtype)
    same(cygrad.zeros(shape, dtype=d), torch.zeros(shape, dtype=t))
    same(cygrad.ones(shape, dtype=d), torch.ones(shape, dtype=t))
    same(cygrad.full(shape, 1, dtype=d), torch.full(shape, 1, dtype=t))
    assert cygrad.empty(shape, dtype=d).dtype is d
    data = np.random.default_rng(0).integers(0, 2, shape).tolist()
    same(cygrad.tensor(data, dtype=d), torch.tensor(data, dtype=t))
    same(cygrad.tensor(np.array(data), dtype=d), torch.tensor(np.array(data), dtype=t))
    assert cygrad.zeros(shape, dtype=d).is_contiguous()


@pytest.mark.parametrize("value", [0, 1, -0.0, 7])
@pytest.mark.parametrize("n", [1, 5, 4097, 1 << 19, (1 << 19) + 3])
def test_large_fill(value, n):
    assert (cygrad.full((n,), value, dtype=cygrad.float64).numpy() == value).all()
    assert np.signbit(cygrad.full((n,), value).numpy().astype(np.float64)).all() == (str(value) == "-0.0")


def test_ndarray_is_copied_with_its_dtype():
    source = np.arange(6, dtype=np.int16).reshape(2, 3)
    for array in (source, source[::-1], source.T, source[:, ::2], np.broadcast_to(source[0], (4, 3))):
        x = cygrad.tensor(array)
        np.testing.assert_array_equal(x.numpy(), array)
        assert x.dtype is cygrad.int16 and x.is_contiguous()
        assert not np.shares_memory(x.numpy(), array)
    np.testing.assert_array_equal(cygrad.tensor(source.astype(">f8")).numpy(), source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_shares_memory(dtype):
    array = np.zeros((4, 6), dtype=dtype)
    for view in (array, array[::2], array[::-1, ::-2], array.T, array[1:1], array[2, 3:]):
        x = cygrad.from_numpy(view)
        assert np.shares_memory(x.numpy(), view) or view.size == 0
        assert x.numpy().strides == view.strides and tuple(x.shape) == view.shape
    x = cygrad.from_numpy(array[::-1])
    array[0, 0] = 1
    assert x[-1, 0].item() == 1


def test_from_numpy_keeps_the_array_alive():
    x = cygrad.from_numpy(np.arange(1000.0))
    gc.collect()
    assert x[999].item() == 999


def test_read_only_array():
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="from_numpy: the array is read-only"):
        x = cygrad.from_numpy(array)
    with pytest.raises(RuntimeError, match="read-only"):
        x.mul_(2)
    assert not np.shares_memory(cygrad.as_tensor(array).numpy(), array)
    np.testing.assert_array_equal(array, [0, 1, 2])


def test_as_tensor_shares_what_it_can():
    array = np.zeros(3)
    assert np.shares_memory(cygrad.as_tensor(array).numpy(), array)
    assert not np.shares_memory(cygrad.as_tensor(array, dtype=cygrad.float32).numpy(), array)
    x = cygrad.ones(2, requires_grad=True)
    assert cygrad.as_tensor(x) is x
    assert cygrad.as_tensor(x, dtype=cygrad.float64).grad_fn is not None


def test_asarray():
    x = cygrad.ones(2, requires_grad=True)
    assert cygrad.asarray(x) is x
    assert not cygrad.asarray(x, requires_grad=False).requires_grad
    assert cygrad.asarray(x * 2, requires_grad=True).is_leaf
    assert cygrad.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="asarray: another dtype requires a copy"):
        cygrad.asarray(x, dtype=cygrad.float64, copy=False)
    data = bytearray(b"abc")
    y = cygrad.asarray(data, dtype=cygrad.uint8)
    data[0] = 0
    assert y.tolist() == [0, 98, 99]


def test_dlpack():
    x = cygrad.arange(3.0)
    y = np.from_dlpack(x)
    assert np.shares_memory(x.numpy(), y)
    z = cygrad.from_dlpack(torch.arange(4))
    assert z.tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match="from_dlpack: the object does not support DLPack"):
        cygrad.from_dlpack(3)
    assert torch.from_dlpack(x).tolist() == [0, 1, 2]


def test_requires_grad():
    for make in (cygrad.zeros, cygrad.ones, cygrad.empty):
        x = make(2, requires_grad=True)
        assert x.requires_grad and x.is_leaf
        with cygrad.no_grad():
            assert make(2, requires_grad=True).requires_grad
    for x in (
        cygrad.tensor([1.0], requires_grad=True),
        cygrad.eye(2, requires_grad=True),
        cygrad.arange(3.0, requires_grad=True),
        cygrad.linspace(0, 1, 3, requires_grad=True),
        cygrad.full((2,), 1.0, requires_grad=True),
        cygrad.zeros_like(cygrad.ones(2), requires_grad=True),
    ):
        assert x.requires_grad and x.is_leaf
    assert not cygrad.ones_like(cygrad.ones(2, requires_grad=True)).requires_grad


def test_inference_tensors():
    with cygrad.inference_mode():
        for x in (cygrad.zeros(2), cygrad.tensor([1.0]), cygrad.arange(3), cygrad.ones_like(cygrad.ones(1))):
            assert x.is_inference()
    assert not cygrad.zeros(2).is_inference()


def test_copy_of_a_tensor_warns():
    x = cygrad.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="clone"):
        y = cygrad.tensor(x)
    assert not y.requires_grad and y.data_ptr() != x.data_ptr()
    with pytest.warns(UserWarning, match="without its history"):
        cygrad.tensor([x[0], x[1]])


def test_a_sequence_that_changes_while_it_is_read():
    class Growing:
        def __init__(self, add):
            self.add = add

        def __float__(self):
            data.extend([1.0] * self.add)
            return 1.0

    for add in (0, 1000):
        data = [1.0, Growing(add), 2.0]
        if add:
            with pytest.raises(ValueError, match="tensor: a sequence changed its length"):
                cygrad.tensor(data)
        else:
            assert cygrad.tensor(data).tolist() == [1, 1, 2]

    class Liar(list):
        def __len__(self):
            return 5

    with pytest.raises(ValueError, match="changed its length"):
        cygrad.tensor(Liar([1, 2]))


def test_default_dtype():
    try:
        cygrad.set_default_dtype(cygrad.float64)
        assert cygrad.tensor(1.0).dtype is cygrad.float64
        assert cygrad.zeros(1).dtype is cygrad.float64
        assert cygrad.tensor(1j).dtype is cygrad.complex128
        assert cygrad.arange(1.0).dtype is cygrad.float64
        assert cygrad.tensor([1]).dtype is cygrad.int64
    finally:
        cygrad.set_default_dtype(cygrad.float32)


def test_ranges_against_the_reference():
    rng = np.random.default_rng(0)
    for _ in range(400):
        start, end, step = (float(np.round(v, 2)) for v in rng.uniform(-20, 20, 3))
        if rng.random() < 0.5:
            start, end, step = int(start), int(end), int(step)
        if step == 0 or (end - start) * step < 0:
            continue
        dtype = rng.choice([None, "int64", "int32", "int16", "float32", "float64"])
        options = [{} if dtype is None else {"dtype": getattr(library, dtype)} for library in (cygrad, torch)]
        if int(step) == 0 and dtype == "int64":
            continue
        same(cygrad.arange(start, end, step, **options[0]), torch.arange(start, end, step, **options[1]), exact=False)
        n = int(rng.integers(0, 20))
        # Of integers the middle may be rounded otherwise; compare floating ones.
        if dtype not in ("int64", "int32", "int16"):
            same(cygrad.linspace(start, end, n, **options[0]), torch.linspace(start, end, n, **options[1]), exact=False)
            same(
                cygrad.logspace(start / 9, end / 9, n, **options[0]),
                torch.logspace(start / 9, end / 9, n, **options[1]),
                exact=False,
            )
        else:
            # Where the exact value is an integer PyTorch may round it down.
            ours, theirs = cygrad.linspace(start, end, n, **options[0]), torch.linspace(start, end, n, **options[1])
            assert np.abs(ours.numpy().astype(int) - theirs.numpy()).max(initial=0) <= 1
    same(cygrad.linspace(0, 1j, 3), torch.linspace(0, 1j, 3), exact=False)
    same(cygrad.logspace(0, 1j, 3), torch.logspace(0, 1j, 3), exact=False)


def test_texts_of_errors():
    with pytest.raises(ValueError, match=r"tensor: expected sequence of length 2 at dim 1 \(got 1\). Pad"):
        cygrad.tensor([[1, 2], [3]])
    with pytest.raises(RuntimeError, match=r"zeros: no such device \(got 'cuda', expected 'cpu'\)"):
        cygrad.zeros(2, device="cuda")
    with pytest.raises(RuntimeError, match="zeros: pin_memory is not supported"):
        cygrad.zeros(2, pin_memory=True)
    with pytest.raises(TypeError, match=r"zeros: sizes must be integers \(got 1.5 of type float at position 2\)"):
        cygrad.zeros(2, 1.5)
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        cygrad.zeros(2, cygrad.tensor(2.5))
    with pytest.raises(ValueError, match="too many dimensions"):
        cygrad.zeros((1,) * 65)
    with pytest.raises((MemoryError, RuntimeError)):
        cygrad.empty(2**58)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex64", "complex128"])
def test_buffer_protocol(dtype):
    x = cygrad.ones(2, 3, dtype=getattr(cygrad, dtype)).t()
    view = memoryview(x)
    assert (view.shape, view.strides) == ((3, 2), tuple(x.itemsize * step for step in x.stride()))
    array = np.asarray(x)
    assert array.dtype == dtype
    assert np.shares_memory(array, x.numpy())
    del x
    assert array.sum() == 6
    if array.dtype.kind == "f":
        with pytest.raises(RuntimeError, match="requires grad"):
            np.asarray(cygrad.ones(2, requires_grad=True))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_keep_infinite_parts_and_signs_of_zeros(name):
    dtype, wide = getattr(cygrad, name), cygrad.complex128
    numbers = [complex(*parts) for parts in itertools.product((0.0, -0.0, 1.5, math.inf, -math.inf), repeat=2)]
    expected = [(repr(number.real), repr(number.imag)) for number in numbers]

    def parts(tensor):
        return [(repr(number.real), repr(number.imag)) for number in tensor.tolist()]

    made = cygrad.tensor(numbers, dtype=dtype)
    assert parts(made) == expected
    assert parts(cygrad.stack([cygrad.full((), number, dtype=dtype) for number in numbers])) == expected
    assert parts(cygrad.asarray(np.array(numbers), dtype=dtype)) == expected
    for other in (cygrad.complex32, cygrad.complex64, wide):
        assert parts(made.to(other).to(dtype)) == expected
    filled = cygrad.zeros(len(numbers), dtype=dtype)
    for place, number in enumerate(numbers):
        filled[place] = number
    assert parts(filled) == expected
    np.testing.assert_array_equal(cygrad.cumsum(made[:, None], 1)[:, 0].numpy(), np.array(numbers, name))
    reals = cygrad.tensor([0.0, -0.0, math.inf, -math.inf], dtype=cygrad.float64)
    assert parts(reals.to(dtype)) == [(repr(number), "0.0") for number in reals.tolist()]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_deep_copy_has_a_copy_of_the_gradient(requires_grad):
    x = cygrad.ones(2, requires_grad=requires_grad)
    x.grad = cygrad.tensor([1.0, 2])
    twin, gradient = copy.deepcopy((x, x.grad))
    assert twin.grad.tolist() == [1, 2] and twin.grad is not x.grad
    assert twin.grad is gradient


def test_asarray_takes_capsules():
    source = cygrad.arange(3.0)
    shared = cygrad.asarray(cygrad.utils.dlpack.to_dlpack(source), copy=False)
    copied = cygrad.asarray(cygrad.utils.dlpack.to_dlpack(source), copy=True)
    source[0] = 5
    assert shared.tolist() == [5, 1, 2] and copied.tolist() == [0, 1, 2]
    assert cygrad.asarray(cygrad.utils.dlpack.to_dlpack(source), dtype=cygrad.int64).tolist() == [5, 1, 2]


def test_frombuffer_refuses_what_is_no_buffer_or_empty():
    buffer = bytearray(8)
    for arguments, options in (([[1, 2]], {}), ([buffer], {"count": 0}), ([buffer], {"offset": 8}),
                               ([buffer], {"offset": -1}), ([bytearray()], {}), ([buffer], {"count": 3}),
                               ([buffer], {"offset": 3})):
        with pytest.raises(ValueError, match="buffer"):
            cygrad.frombuffer(*arguments, dtype=cygrad.int32, **options)
    with pytest.warns(UserWarning, match="^frombuffer: the array is read-only"):
        found = cygrad.frombuffer(bytes(4), dtype=cygrad.int32)
    with pytest.raises(RuntimeError, match="read-only"):
        found.add_(1)


def test_storages_are_read_in_their_dtype_or_as_bytes():
    x = cygrad.tensor([1.0, 2.0, 3.0])
    assert cygrad.tensor(x.storage()).tolist() == [1, 2, 3]
    assert cygrad.tensor(x.untyped_storage(), dtype=cygrad.float32).tolist() == [1, 2, 3]
    assert cygrad.tensor(x.untyped_storage()).dtype is cygrad.uint8
    with pytest.raises(RuntimeError, match=r"tensor: expected a storage of .*int64"):
        cygrad.tensor(x.storage(), dtype=cygrad.int64)
    wide = cygrad.zeros(1, dtype=cygrad.float64)
    for source in (x.storage(), x):
        with pytest.raises(RuntimeError, match=r"set_: .*float64"):
            wide.set_(source)
    assert wide.set_(x.untyped_storage()).shape == (1,)
    assert cygrad.zeros(1).set_(x.untyped_storage(), 1, (2,)).tolist() == [2, 3]
    assert not x.storage().is_shared() and x.share_memory_().storage().is_shared()


def test_complex_parts_have_one_floating_dtype():
    for function in (cygrad.complex, cygrad.polar):
        for second in (cygrad.ones(2, dtype=cygrad.float64), cygrad.ones(2, dtype=cygrad.int64)):
            with pytest.raises(RuntimeError, match="same dtype"):
                function(cygrad.ones(2), second)
    assert cygrad.polar(cygrad.ones(1).double(), cygrad.zeros(1).double()).dtype is cygrad.complex128


def test_tensors_without_elements_have_no_address():
    x = cygrad.zeros(3)
    assert x[3:].data_ptr() == cygrad.empty(0).data_ptr() == 0 != x.data_ptr()
    assert not x[3:].is_set_to(x[3:]) and x.is_set_to(x.detach())


def test_methods_of_python_functions_refuse_a_history():
    x, leaf = cygrad.zeros(2), cygrad.ones(2, requires_grad=True)
    for name, call in (("apply_", lambda: leaf.apply_(abs)), ("map_", lambda: x.map_(leaf, max)),
                       ("map2_", lambda: x.map2_(x, leaf, max))):
        with pytest.raises(RuntimeError, match=f"{name}: cannot be called on tensors that require grad"):
            call()


def test_order_of_dimensions_is_checked_for_ambiguity():
    assert cygrad.ones(2, 3).t().dim_order(ambiguity_check=True) == (1, 0)
    formats = [cygrad.contiguous_format, cygrad.channels_last]
    assert cygrad.ones(1, 2, 2, 1).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    for x, check in ((cygrad.ones(2, 1), True), (cygrad.ones(3, 1).expand(3, 2), True),
                     (cygrad.ones(2, 1, 2, 2), formats)):
        with pytest.raises(RuntimeError, match="unique order"):
            x.dim_order(ambiguity_check=check)
    for wrong in ("yes", [1], 1):
        with pytest.raises(TypeError, match="ambiguity_check"):
            cygrad.ones(2).dim_order(ambiguity_check=wrong)


def test_numbers_may_be_tensors_without_dimensions():
    x = cygrad.tensor([0.0, 0.5, 1.0])
    assert cygrad.logit(x, cygrad.tensor(0.25)).equal(cygrad.logit(x, 0.25))
    assert cygrad.isclose(x, x + 1, cygrad.tensor(1), cygrad.tensor(2)).all()
    for wrong in (cygrad.ones(1), cygrad.tensor(0.25, requires_grad=True), cygrad.tensor(1j)):
        with pytest.raises(TypeError, match="eps"):
            cygrad.logit(x, wrong)


def test_forms_of_methods_that_take_types_and_sizes():
    assert cygrad.ones(2, dtype=cygrad.int64).type(cygrad.Tensor).dtype is cygrad.get_default_dtype()
    assert cygrad.ones(2).new(size=(3, 4)).shape == cygrad.ones(2).new(3, 4).shape == (3, 4)
    assert format(cygrad.empty((), device="meta")) == repr(cygrad.empty((), device="meta"))
    for arguments, options in (([1], {}), ([True], {"warn_only": 1})):
        with pytest.raises(TypeError, match="must be a bool"):
            cygrad.use_deterministic_algorithms(*arguments, **options)


@pytest.fixture
def deterministic():
    cygrad.use_deterministic_algorithms(True)
    yield
    cygrad.use_deterministic_algorithms(False)


@pytest.mark.parametrize("make", [
    lambda dtype: cygrad.empty(2, 3, dtype=dtype), lambda dtype: cygrad.empty_like(cygrad.ones(2, 3, dtype=dtype)),
    lambda dtype: cygrad.ones(1, dtype=dtype).new_empty((2, 3)), lambda dtype: cygrad.empty(0, dtype=dtype).resize_(6),
    lambda dtype: cygrad.empty_strided((2, 3), (1, 2), dtype=dtype),
    lambda dtype: cygrad.empty_permuted((2, 3), (1, 0), dtype=dtype)])
def test_deterministic_algorithms_fill_uninitialized_memory(deterministic, make, monkeypatch):
    for dtype in (cygrad.float16, cygrad.float32, cygrad.complex64):
        assert make(dtype).isnan().all()
    largest = {cygrad.bool: True, cygrad.uint8: 255, cygrad.int64: 2**63 - 1, cygrad.uint64: 2**64 - 1}
    for dtype, value in largest.items():
        assert make(dtype).flatten().tolist() == [value] * 6
    assert cygrad.empty(2, requires_grad=True).is_leaf and cygrad.empty(2, device="meta").is_meta
    from cygrad.compatibility import switches
    monkeypatch.setattr(switches, "fill_uninitialized_memory", False)
    with monkeypatch.context() as patch:
        patch.setattr(switches, "tensor", lambda *_: pytest.fail("the memory is filled"))
        make(cygrad.float32)


def test_fill_writes_overlapping_elements():
    x = cygrad.zeros(6)
    x.as_strided((2, 3), (2, 1)).fill_(2)
    assert x.tolist() == [2, 2, 2, 2, 2, 0]
    assert x[:1].expand(4).fill_(3).tolist() == [3] * 4 and x.tolist() == [3, 2, 2, 2, 2, 0]


def test_resize_as_preserves_channels_last_if_asked():
    image = cygrad.ones(2, 3, 4, 4).contiguous(memory_format=cygrad.channels_last)
    flat = cygrad.arange(96.0)
    assert flat.resize_as_(image, memory_format=cygrad.preserve_format).stride() == image.stride()
    assert flat.resize_as_(image).stride() == image.stride()          # of that shape already
    assert cygrad.ones(96).resize_as_(image).is_contiguous()
    for like in (cygrad.ones(2, 3, 4, 4), cygrad.ones(3, 2).t()):
        found = cygrad.ones(like.numel()).resize_as_(like, memory_format=cygrad.preserve_format)
        assert found.is_contiguous() and found.shape == like.shape
