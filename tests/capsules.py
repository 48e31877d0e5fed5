"""Hand-made DLPack capsules with arbitrary contents."""

import ctypes

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
    """A hand-made capsule over 512 bytes that counts calls of its deleter."""

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


LIES = [
    {"major": 2}, {"device": 2}, {"device": 99}, {"code": 77}, {"bits": 24}, {"lanes": 4}, {"lanes": 0},
    {"shape": (-1,)}, {"shape": (1,) * 70}, {"name": b"used_dltensor"}, {"name": b"nothing"}, {"byte_offset": 3},
    {"code": 4, "bits": 32}, {"code": 2, "bits": 128}, {"shape": (2**62, 2**62)},
]

