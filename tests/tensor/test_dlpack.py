"""DLPack in both directions, buffers, NumPy's interface, and invalid capsules."""

import array
import gc
import random

import numpy as np
import pytest
import torch

import cygrad
from tests.capsules import LIES, Capsule
from tests.tools import leaf


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_is_shared_and_given_back_once(versioned):
    made = Capsule((2, 3), versioned=versioned)
    tensor = cygrad.from_dlpack(made.capsule())
    assert tensor.shape == (2, 3) and tensor.dtype is cygrad.float64
    if versioned:
        tensor.fill_(2.5)
        assert np.frombuffer(made.memory, dtype=np.uint8).any()
    else:
        with pytest.raises(RuntimeError, match="read-only"):
            tensor.fill_(2.5)
    view = tensor[1:]
    del tensor
    gc.collect()
    assert made.given_back == 0
    del view
    cygrad.zeros(1).add_(1)                    # foreign memory is released with the GIL held
    gc.collect()
    assert made.given_back == 1


def test_read_only_memory_is_shared_and_not_written_to():
    made = Capsule(flags=1)
    tensor = cygrad.from_dlpack(made.capsule())
    assert (tensor + 1).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="read-only"):
        tensor.add_(1)
    copy = cygrad.from_dlpack(Capsule(flags=1).capsule(), copy=True)
    assert copy.add_(1).tolist() == [1.0, 1.0, 1.0]
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    shared = cygrad.from_dlpack(fixed)
    assert np.shares_memory(shared.numpy(), fixed)
    assert not np.from_dlpack(shared).flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        shared.__dlpack__()                    # a capsule without version cannot say so
    assert cygrad.asarray(fixed).add_(1).tolist() == [1.0, 2.0, 3.0]           # not shared: a copy
    with pytest.raises(ValueError, match="cannot be shared"):
        cygrad.asarray(fixed, copy=False)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("versioned", [True, False])
def test_capsules_that_lie_are_refused(lie, versioned):
    if "major" in lie and not versioned:
        return
    made = Capsule(**{"versioned": versioned, **lie})
    with pytest.raises((BufferError, ValueError, TypeError, RuntimeError, MemoryError)):
        cygrad.from_dlpack(made.capsule())
    gc.collect()
    assert made.given_back <= 1


def test_random_capsules():
    generator = random.Random(5)
    kept = []
    for _ in range(1500):
        shape = [generator.choice([0, 1, 2, 3]) for _ in range(generator.choice([0, 1, 1, 2, 3]))]
        strides = None if generator.random() < 0.5 else [generator.choice([-4, -3, -1, 0, 1, 2, 4, 6]) for _ in shape]
        fields = {}
        if generator.random() < 0.3:
            fields = generator.choice([lie for lie in LIES if "shape" not in lie and "name" not in lie])
        code, bits = generator.choice([(0, 8), (0, 64), (1, 8), (2, 32), (2, 64), (5, 64), (6, 8)])
        made = Capsule(shape, strides, **{"code": code, "bits": bits, "flags": generator.choice([0, 1, 2]), **fields})
        try:
            tensor = cygrad.from_dlpack(made.capsule())
        except (BufferError, ValueError, TypeError, RuntimeError):
            continue
        assert tuple(tensor.shape) == tuple(shape)
        kept.append((made, tensor.clone() if generator.random() < 0.5 else tensor))
        assert tensor.tolist() == tensor.numpy().tolist()
        if made.tensor.flags & 1:
            with pytest.raises(RuntimeError):
                tensor.zero_()


@pytest.mark.parametrize("dtype", [cygrad.bool, cygrad.uint8, cygrad.int32, cygrad.float32, cygrad.complex128])
def test_tensors_come_back_from_other_libraries(dtype):
    tensor = cygrad.arange(6).reshape(2, 3).to(dtype)
    for view in (tensor, tensor.t(), tensor[:, ::2], tensor[1], tensor[:0], tensor[0, 0]):
        for there in (np.from_dlpack, torch.from_dlpack):
            back = cygrad.from_dlpack(there(view))
            assert back.dtype is dtype and back.tolist() == view.tolist()
            assert back.data_ptr() == view.data_ptr() or not view.numel()
    backward = cygrad.from_dlpack(np.arange(4.0)[::-1])
    assert backward.tolist() == np.from_dlpack(backward).tolist() == [3.0, 2.0, 1.0, 0.0]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("name", ["bfloat16", "complex32"])
def test_dtypes_that_numpy_lacks_are_exchanged(name):
    dtype, theirs = getattr(cygrad, name), getattr(torch, name)
    there = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, 8.0]]).to(theirs)
    for view in (there, there.t(), there[:, ::2], there[1], there[:0], there[0, 0]):
        here = cygrad.from_dlpack(view)
        assert here.dtype is dtype and here.tolist() == view.tolist() and here.stride() == view.stride()
        back = torch.from_dlpack(here)
        assert back.dtype is theirs and back.tolist() == view.tolist()
        assert back.data_ptr() == view.data_ptr() == here.data_ptr() or not view.numel()
    cygrad.from_dlpack(there)[0, 0] = 7
    assert there[0, 0] == 7
    assert cygrad.asarray(there).dtype is dtype
    copied = cygrad.from_dlpack(there, copy=True)
    assert copied.dtype is dtype and copied.data_ptr() != there.data_ptr() and copied.tolist() == there.tolist()
    for options in ({}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True, "dl_device": (1, 0)}):
        capsule = cygrad.from_dlpack(there).__dlpack__(**options)
        assert cygrad.from_dlpack(capsule).tolist() == there.tolist()
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(copied)
    code, bits = {"bfloat16": (4, 16), "complex32": (5, 32)}[name]
    for versioned in (True, False):
        made = Capsule(code=code, bits=bits, versioned=versioned, flags=1)
        fixed = cygrad.from_dlpack(made.capsule())
        assert fixed.dtype is dtype and fixed.tolist() == [0, 0, 0]
        with pytest.raises(RuntimeError, match="read-only"):
            fixed.add_(1)
        with pytest.raises(BufferError, match="readonly"):
            fixed.__dlpack__()
        assert cygrad.asarray(fixed.detach(), copy=True).add_(1).tolist() == [1, 1, 1]
        del fixed
        cygrad.zeros(1).add_(1)
        gc.collect()
        assert made.given_back == 1


def test_options_of_the_exchange():
    tensor = cygrad.ones(3)
    assert "versioned" in repr(tensor.__dlpack__(max_version=(1, 0))) and "versioned" not in repr(tensor.__dlpack__())
    copied = cygrad.from_dlpack(tensor, copy=True)
    assert copied.data_ptr() != tensor.data_ptr()
    assert cygrad.from_dlpack(tensor, device="cpu", copy=False).data_ptr() == tensor.data_ptr()
    for options in ({"dl_device": (2, 0)}, {"stream": 3}):
        with pytest.raises((BufferError, RuntimeError)):
            tensor.__dlpack__(**options)
    with pytest.raises(RuntimeError):
        cygrad.from_dlpack(tensor, device="cuda")
    with pytest.raises(BufferError, match="lose its history"):
        leaf(1.0).__dlpack__()
    with pytest.raises(BufferError, match="lose its history"):
        np.from_dlpack(leaf(1.0))


def test_buffers_and_the_interface_of_numpy():
    tensor = cygrad.arange(6, dtype=cygrad.float64).reshape(2, 3)
    buffer = memoryview(tensor.t())
    assert (buffer.format, buffer.shape, buffer.strides, buffer.readonly) == ("d", (3, 2), (8, 24), False)
    buffer[0, 1] = 7.0
    assert tensor[1, 0].item() == 7.0
    assert tensor.__array_interface__["data"] == (tensor.data_ptr(), False)
    assert tensor.__array_interface__["typestr"] == "<f8"
    for ask in (lambda: memoryview(leaf(1.0)), lambda: leaf(1.0).__array_interface__):
        with pytest.raises(RuntimeError, match="lose its history"):
            ask()

    class Offers:
        __array_interface__ = tensor.__array_interface__

    assert cygrad.asarray(Offers()).data_ptr() == tensor.data_ptr()
    asarray = cygrad.array_api.asarray
    numbers = array.array("d", [1.0, 2.0])
    shared = asarray(numbers)
    numbers[0] = 5.0
    assert shared.tolist() == [5.0, 2.0]
    assert asarray(b"ab").tolist() == [97, 98]
    assert asarray(memoryview(np.arange(3, dtype=np.int16))).dtype is cygrad.int16


@pytest.mark.parametrize("keep", [lambda x: x, lambda x: x * leaf([1.0, 2.0, 3.0], dtype="float64")],
                         ids=["tensor", "saved by a node"])
def test_an_error_survives_the_end_of_foreign_memory(keep):
    def fail():
        raise KeyError("on its way")

    capsule = Capsule()
    with pytest.raises(KeyError, match="on its way"):
        (keep(cygrad.from_dlpack(capsule.capsule())), fail())
    assert capsule.given_back == 1


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("code", [2, 4])
@pytest.mark.parametrize("wanted", ["no valid shape", "no memory", "negative size"])
def test_pointers_that_are_null_are_refused(versioned, code, wanted):
    made = Capsule((3,), versioned=versioned, code=code, bits=64 if code == 2 else 16)
    if wanted == "negative size":
        made.shape[0] = -3
    else:
        setattr(made.tensor.contents, "data" if wanted == "no memory" else "shape", None)
    with pytest.raises(BufferError, match=wanted):
        cygrad.from_dlpack(made.capsule())


def test_an_empty_capsule_needs_no_memory():
    assert cygrad.from_dlpack(Capsule((2, 0), data=None).capsule()).shape == (2, 0)
    assert cygrad.from_dlpack(Capsule((), data=Capsule().tensor.contents.data or None).capsule()).shape == ()
