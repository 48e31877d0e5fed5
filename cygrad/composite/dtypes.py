"""Dtype conversions and predicates."""

import functools

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.array import as_device, is_meta_place, refuse
from cygrad._core.arrays.array import device as Device
from cygrad._core.arrays.dtype import dtype as Dtype
from cygrad._core.arrays.dtype import get_default_dtype, promote_types
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.type_slots import placed
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["METHODS", "can_cast", "is_complex", "is_floating_point", "is_tensor", "numel", "result_type"]

_RETURNED = "bool"

BOOL, INTEGER, FLOATING, COMPLEX = range(4)
# Legacy tensor types, which `type` accepts and returns.
TENSOR_TYPES = {
    "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32",
    "LongTensor": "int64", "FloatTensor": "float32", "DoubleTensor": "float64", "ComplexFloatTensor": "complex64",
    "ComplexDoubleTensor": "complex128", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16",
    "ComplexHalfTensor": "complex32", "UInt16Tensor": "uint16", "UInt32Tensor": "uint32", "UInt64Tensor": "uint64",
}


# ---- conversions: methods of Tensor

def _converted(tensor, dtype, copy=False, memory_format=None):
    """Return the tensor itself if it has the dtype, unless a copy or memory format is requested."""
    found = tensor if tensor.dtype is dtype else operators.cast(tensor, dtype)
    if memory_format is not None and memory_format != "preserve_format":
        found = found.contiguous(memory_format=memory_format)
    return found.clone() if copy and found is tensor else found


def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """Convert the tensor to another dtype: a method of Tensor.

    Parameters
    ----------
    *args : dtype, Tensor or str
        ``to(dtype)``, ``to(other)`` for the dtype of another tensor, ``to("cpu")``, ``to("cpu", dtype)``;
        then `non_blocking` and `copy`.
    dtype : dtype, optional
    device : device or str, optional
        ``"cpu"``; ``"meta"`` for a tensor of the same shape without memory.
    non_blocking : optional
        Accepted and ignored.
    copy : bool, default False
        Whether to copy even if nothing is converted.
    memory_format : memory_format, optional
        Memory format of the result, such as ``channels_last``.

    Returns
    -------
    Tensor
        `self` if nothing is converted and not `copy`.

    Raises
    ------
    TypeError
        If an argument is something else.
    RuntimeError
        If the device is not available.

    Examples
    --------
    >>> cygrad.tensor([1.5, 2.]).to(cygrad.int64)
    tensor([1, 2])
    """
    flags = []
    for value in args:
        if isinstance(value, bool):
            flags.append(value)
        elif isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, (str, Device)):
            device = value
        elif isinstance(value, Dtype) or value in (float, int, bool, complex):
            dtype = value
        elif value is not None:
            raise TypeError(f"to: expected a dtype, a Tensor or 'cpu' (got {value!r}).")
    copy = flags[1] if len(flags) > 1 else copy
    if device is not None:
        self = placed(self, is_meta_place(device, "to"))
    return _converted(self, self.dtype if dtype is None else _plain_dtype(dtype), copy, memory_format)


def _plain_dtype(value):
    """Convert a Python or NumPy type to a dtype."""
    return value if isinstance(value, Dtype) else promote_types(value, value)


def on_device(function):
    """Add the parameter ``device`` to a function that creates tensors."""
    @functools.wraps(function)
    def made(*args, device=None, **options):
        if device is None:
            return function(*args, **options)
        is_meta_place(device, function.__name__)
        with as_device(device, function.__name__):
            return function(*args, **options)
    return made


def as_type(self, dtype=None, non_blocking=False, memory_format=None):
    """Convert the tensor to another dtype, or return its type as a string: the method ``Tensor.type``.

    Parameters
    ----------
    dtype : dtype or str, optional
        A dtype, or a tensor type such as ``FloatTensor`` or ``"cygrad.FloatTensor"``.
    non_blocking : bool, optional
        Ignored.
    memory_format : memory_format, optional
        As for `to`.

    Returns
    -------
    Tensor, or str if no dtype is given

    Raises
    ------
    ValueError
        If the type is unknown.

    Examples
    --------
    >>> cygrad.tensor([1.5]).type()
    'cygrad.FloatTensor'
    >>> cygrad.tensor([1.5]).type(cygrad.int64)
    tensor([1])
    """
    if dtype is None:
        names = {name: tensor_type for tensor_type, name in TENSOR_TYPES.items()}
        return f"{dtypes.library_name()}.{names[self.dtype.name]}"
    if isinstance(dtype, str):
        name = TENSOR_TYPES.get(dtype.rpartition(".")[2])
        if name is None:
            raise ValueError(f"type: no such tensor type (got {dtype!r}, expected a dtype or one of "
                             f"{', '.join(TENSOR_TYPES)}).")
        dtype = getattr(dtypes, name)
    if dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    elif isinstance(dtype, type):                       # a tensor type
        dtype = getattr(dtype, "dtype", dtype)
    if not isinstance(dtype, Dtype):
        raise ValueError(f"type: invalid type (got {dtype!r}, expected a dtype).")
    return _converted(self, dtype) if memory_format is None else to(self, dtype, memory_format=memory_format)


@documented()
def type_as(self, other):
    """Convert the tensor to the dtype of another tensor: a method of Tensor.

    Parameters
    ----------
    other : Tensor

    Examples
    --------
    >>> cygrad.tensor([1, 2]).type_as(cygrad.tensor(0.5))
    tensor([1., 2.])
    """
    return _converted(self, as_tensor_argument("type_as", "other", other).dtype)


@documented()
def cpu(self, memory_format=None):
    """Return the tensor, which is on the CPU: a method of Tensor.

    Parameters
    ----------
    memory_format : memory_format, optional
        As for `to`.

    Examples
    --------
    >>> x = cygrad.tensor([1.])
    >>> x.cpu() is x
    True
    """
    return to(self, "cpu", memory_format=memory_format)


def _elsewhere(name):
    """Return the method that would move a tensor to an unavailable device."""

    def move(self, device=None, *args, **options):
        refuse(Device(name) if device is None else device, name)

    move.__name__ = move.__qualname__ = name
    move.__doc__ = f"""Raise a RuntimeError, because there is no device {name}.

    Examples
    --------
    >>> cygrad.tensor([1.]).{name}()
    Traceback (most recent call last):
    UnavailableDevice: {name}: no such device (got '{name}', expected 'cpu'). cygrad supports only the CPU: select \
the device with cuda.is_available(), which returns False.
    """
    return move


def dlpack_device(self):
    """Return the device type and index, (1, 0) for the CPU: the method ``Tensor.__dlpack_device__``.

    Returns
    -------
    tuple of int

    Examples
    --------
    >>> cygrad.tensor(1.).__dlpack_device__()
    (1, 0)
    """
    return (1, 0)


def _conversion(name, dtype):
    """Return the method that converts to one dtype."""

    def convert(self, memory_format=None):
        return _converted(self, dtype, False, memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""Convert the tensor to {dtype.name}: a method of Tensor.

    Parameters
    ----------
    memory_format : memory_format, optional
        As for `to`.

    Returns
    -------
    Tensor
        `self` if it has the dtype.

    Examples
    --------
    >>> cygrad.tensor([0, 1]).{name}().dtype
    cygrad.{dtype.name}
    """
    return convert


CONVERSIONS = {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64", "chalf": "complex32",
    "cfloat": "complex64", "cdouble": "complex128",
}
# Methods only, because functions of these names would hide built-in ones.
METHODS = {name: _conversion(name, getattr(dtypes, dtype)) for name, dtype in CONVERSIONS.items()}
METHODS |= {name: _elsewhere(name) for name in ("cuda", "mps", "xpu")}
METHODS |= {"to": to, "type": as_type, "type_as": type_as, "cpu": cpu}
METHODS["__dlpack_device__"] = dlpack_device


# ---- predicates

def _category(dtype):
    if dtype.is_complex:
        return COMPLEX
    if dtype.is_floating_point:
        return FLOATING
    return BOOL if dtype is dtypes.bool else INTEGER


def result_type(tensor1, tensor2):
    """Return the dtype of an operation on two operands.

    Parameters
    ----------
    tensor1, tensor2 : Tensor or number

    Returns
    -------
    dtype
        Numbers and 0-dim tensors only participate if their category (bool, integer, floating point, complex) is higher
        than that of the other tensors.

    Examples
    --------
    >>> cygrad.result_type(cygrad.tensor([1]), 1.5)
    cygrad.float32
    """
    found = [None, None, None]         # of tensors with dimensions, 0-dim tensors, and numbers
    for value in (tensor1, tensor2):
        rank, dtype = _operand(value)
        found[rank] = dtype if found[rank] is None else promote_types(found[rank], dtype)
    dimensioned, zero_dim, number = found
    return _combined(dimensioned, _combined(zero_dim, number))


def _combined(higher, lower):
    """Promote two dtypes; the second only contributes a higher category."""
    if higher is None or lower is None or _category(lower) <= _category(higher):
        return lower if higher is None else higher
    if _category(higher) == FLOATING:            # keep the precision: float32 and complex128 give complex64
        return higher.to_complex()
    return promote_types(higher, lower)


def _operand(value):
    """Return the priority of an operand in promotion, and its dtype."""
    default = get_default_dtype()
    if isinstance(value, Tensor):
        return (0 if value.ndim else 1), value.dtype
    for kind, dtype in ((bool, dtypes.bool), (int, dtypes.int64), (float, default), (complex, default.to_complex())):
        if isinstance(value, kind):
            return 2, dtype
    raise TypeError(f"result_type: expected Tensors or numbers (got {type(value).__name__}).")


def can_cast(from_, to):
    """Return whether a result of one dtype may be written to a tensor of another dtype.

    Parameters
    ----------
    from_, to : dtype

    Returns
    -------
    bool
        False for a lower category: complex to real, floating point to integer, or any to bool.

    Examples
    --------
    >>> cygrad.can_cast(cygrad.float64, cygrad.float32), cygrad.can_cast(cygrad.float32, cygrad.int64)
    (True, False)
    """
    return _category(_plain_dtype(from_)) <= _category(_plain_dtype(to))


@documented(returns=_RETURNED)
def is_tensor(obj):
    """Return whether an object is a Tensor.

    Parameters
    ----------
    obj : object

    Examples
    --------
    >>> cygrad.is_tensor(cygrad.tensor(1.)), cygrad.is_tensor(1.)
    (True, False)
    """
    return isinstance(obj, Tensor)


def _checked(input, operation):
    if not isinstance(input, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(input).__name__}).")
    return input


@documented(returns=_RETURNED)
def is_floating_point(input):
    """Return whether the dtype is real floating point.

    Examples
    --------
    >>> cygrad.is_floating_point(cygrad.tensor([1, 2]))
    False
    """
    return _checked(input, "is_floating_point").dtype.is_floating_point


@documented(returns=_RETURNED)
def is_complex(input):
    """Return whether the dtype is complex.

    Examples
    --------
    >>> cygrad.is_complex(cygrad.tensor([1j]))
    True
    """
    return _checked(input, "is_complex").dtype.is_complex


@documented()
def numel(input):
    """Return the number of elements.

    Returns
    -------
    int

    Examples
    --------
    >>> cygrad.numel(cygrad.zeros(2, 3))
    6
    """
    return _checked(input, "numel").numel()
