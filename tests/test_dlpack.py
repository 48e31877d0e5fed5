"""Memory shared with other libraries: DLPack in both directions, buffers, NumPy's interface; and capsules that lie."""

import array
import ctypes
import gc
import random

import numpy as np
import pytest
import torch

import cygrad
from tests.tools import leaf

NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
NEW_CAPSULE.restype = ctypes.py_object
NEW_CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Contents(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("contents", Contents), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("contents", Contents)]


class Capsule:
    """A capsule made by hand over 512 bytes, which counts how often it is given back."""

    def __init__(self, shape=(3,), strides=None, *, versioned=True, major=1, flags=0, name=None, **fields):
        self.memory = (ctypes.c_char * 1024)()
        self.given_back = 0

        def give_back(pointer):
            self.given_back += 1

        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(give_back)
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        self.tensor = (Versioned if versioned else Managed)()
        self.tensor.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        if versioned:
            self.tensor.major, self.tensor.flags = major, flags
        middle = ctypes.addressof(self.memory) // 64 * 64 + 512
        contents = {"data": middle, "device": 1, "ndim": len(shape), "code": 2, "bits": 64, "lanes": 1,
                    "shape": ctypes.addressof(self.shape),
                    "strides": None if strides is None else ctypes.addressof(self.strides), **fields}
        for field, value in contents.items():
            setattr(self.tensor.contents, field, value)
        self.name = (b"dltensor_versioned" if versioned else b"dltensor") if name is None else name

    def capsule(self):
        return NEW_CAPSULE(ctypes.addressof(self.tensor), self.name, None)


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
    cygrad.zeros(1).add_(1)                    # memory of others is given up where there is the interpreter's lock
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


LIES = [
    {"major": 2}, {"device": 2}, {"device": 99}, {"code": 77}, {"bits": 24}, {"lanes": 4}, {"lanes": 0},
    {"shape": (-1,)}, {"shape": (1,) * 70}, {"name": b"used_dltensor"}, {"name": b"nothing"}, {"byte_offset": 3},
    {"code": 4, "bits": 16}, {"code": 2, "bits": 128}, {"shape": (2**62, 2**62)},
]


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
