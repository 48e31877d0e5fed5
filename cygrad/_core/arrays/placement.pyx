"""
Devices, layouts and memory formats.

Only the CPU is available. Other devices have names, so that programs can ask for them and get an error, and `meta` is
the device of tensors with a shape and a dtype but no memory.
"""

cimport cython
import threading

from cpython.unicode cimport PyUnicode_CheckExact
from cygrad._core.arrays.dtype import library_name

_TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
          "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")


@cython.binding(False)      # methods check the type of self
cdef class device:
    """
    A device: where the elements of a tensor are.

    Parameters
    ----------
    type : str, device
        ``"cpu"``, ``"meta"``, or the name of one that is not there; with a number as in ``"cpu:0"``.
    index : int, optional

    Notes
    -----
    As a context manager, and as a decorator, it makes the device the default of what is created on this thread.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.device("cpu:0")
    device(type='cpu', index=0)
    >>> with cygrad.device("meta"):
    ...     x = cygrad.zeros(1000, 1000)
    >>> x.is_meta, x.shape
    (True, (1000, 1000))
    """

    def __init__(self, type, index=None):
        if isinstance(type, device) and index is None:
            self.type, self.index = (<device>type).type, (<device>type).index
            return
        if isinstance(type, int) and not isinstance(type, bool) and index is None:
            type, index = "cuda", type           # a number alone names an accelerator
        if not isinstance(type, str):
            raise TypeError(f"device: expected a name such as 'cpu' (got {type!r}).")
        name, colon, number = type.partition(":")
        if not name.isascii() or not name.isalpha() or not name.islower() or colon and not (
                number.isascii() and number.isdigit() and number == str(int(number))):
            raise RuntimeError(f"device: Invalid device string: {type!r} (expected 'cpu', or a name and a number as in "
                               "'cpu:0').")
        if name not in _TYPES:
            raise RuntimeError(f"device: no such type (got {type!r}{', GPUs are named cuda' * (name == 'gpu')}). "
                               f"Expected one of {', '.join(_TYPES)} device type at start of device string: {type}")
        if colon:
            if index is not None:
                raise RuntimeError(f"device: the index was given twice (got {type!r} and index={index!r}).")
            index = int(number)
        if index is not None:
            index = index.__index__()
            if index < 0:
                raise RuntimeError(f"device: the index must not be negative (got {index}).")
        self.type, self.index = name, index

    def __repr__(self):
        return f"device(type={self.type!r})" if self.index is None else \
            f"device(type={self.type!r}, index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == (<device>other).type and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self):
        self.entered = getattr(_own, "default", None), self.entered
        _set_default(self)
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # a tuple or list might fail to allocate
        former, self.entered = self.entered
        _set_default(former)


CPU = device("cpu")
META = device("meta")
cdef device _cpu = CPU
_own = threading.local()                 # .default: the default device of this thread, or None
cdef bint _any_default = False           # some thread has had another default than the CPU


cdef int _set_default(device place) except -1:
    global _any_default
    if place is not None and place.type not in ("cpu", "meta"):
        refuse(place, "default device")
    _any_default = _any_default or place is not None
    _own.default = place
    return 0


def set_default_device(device):
    """
    Set the device that new tensors of this thread get when none is given.

    Parameters
    ----------
    device : device, str or None
        ``"cpu"``, ``"meta"``; None for the CPU.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.set_default_device("cpu")
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    _set_default(None if device is None else as_device(device, "set_default_device"))


def get_default_device():
    """
    The device that new tensors of this thread get when none is given.

    Returns
    -------
    device

    Examples
    --------
    >>> import cygrad
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    return getattr(_own, "default", None) or CPU


def as_device(place, str operation not None):
    """Return a device, from one or from its name."""
    if isinstance(place, device):
        return place
    if not isinstance(place, (str, int)) or isinstance(place, bool):
        raise TypeError(f"{operation}: expected a device or its name (got {place!r}).")
    return device(place)


def refuse(place, str operation not None):
    """Raise the error for an unavailable device."""
    asked = "backends.mps" if str(place).startswith("mps") else "cuda"
    raise RuntimeError(f"{operation}: no such device (got {str(place)!r}, expected 'cpu'). This library computes on "
                       f"the CPU: choose the device by {asked}.is_available(), which is False here.")


cdef int meta_place(object place, str operation) except -1:
    if place is None:
        if not _any_default:
            return 0
        place = getattr(_own, "default", None)
        if place is None:
            return 0
    if place is _cpu or (PyUnicode_CheckExact(place) and place == "cpu"):
        return 0
    cdef device asked = <device>as_device(place, operation)
    if asked.type == "cpu" and (asked.index is None or asked.index == 0):
        return 0
    if asked.type == "meta":
        return 1
    refuse(asked, operation)


def is_meta_place(place, str operation not None):
    """Return whether a device is `meta`; raise for unavailable ones."""
    return bool(meta_place(place, operation))


# ------------------------------------------------------------------------------------------- layouts and memory formats

class _Name:
    """A named constant."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{library_name()}.{self.name}"

    def __reduce__(self):
        return _named, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class layout(_Name):
    """The layout of a tensor. All tensors are ``strided``; the other names exist for comparisons."""

    __slots__ = ()


class memory_format(str):
    """The order of dimensions in memory: ``contiguous_format``, ``channels_last``, ..."""

    # A str, because operators take it as one; its repr is like that of the other names.
    __repr__ = __str__ = lambda self: f"{library_name()}.{self[:]}"

    def __reduce__(self):
        return _named, (self[:],)


LAYOUTS, MEMORY_FORMATS = {}, {}
for _name in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"):
    LAYOUTS[_name] = layout(_name)
for _name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
    MEMORY_FORMATS[_name] = memory_format(_name)
_NAMES = {**LAYOUTS, **MEMORY_FORMATS}
STRIDED = LAYOUTS["strided"]


def _named(name):
    return _NAMES[name]
