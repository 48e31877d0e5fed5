"""Tensors from sizes, numbers, sequences and NumPy arrays."""

import numpy as np

from cygrad._core.arrays.placement import STRIDED
from cygrad._core.arrays.size import Size

cimport numpy as cnp
from cpython.list cimport PyList_Check
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_Check
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t
from cygrad._core.arrays.dtype cimport (
    BOOL, default_float, dtype_code, dtype_name, is_complex, is_differentiable, itemsize)
from cygrad._core.arrays.interop cimport array_from_numpy
from cygrad._core.arrays.placement cimport meta_place
from cygrad._core.creation.sequences cimport array_of, numpy_view, store_number
from cygrad._core.graph.meta cimport is_meta, meta_array, without_elements
from cygrad._core.graph.tensor cimport Tensor, data_escapes, protocol, wrap
from cygrad._core.graph.tensor cimport requires_grad as needs_gradient
from cygrad._core.graph.tensor_identity cimport adopt
from cygrad._core.kernels.arguments cimport check_sizes
from cygrad._core.memory.errors cimport check
from cygrad._core.threads.parallel cimport parallel_for

from cygrad._core.creation.dlpack_types import as_integers, checked_capsule
from cygrad._core.table.operator import operators
from cygrad._core.graph.user_warnings import warn_user

cnp.import_array()

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8(object) except NULL

cdef enum:
    FILL_GRAIN = 1 << 18      # elements per chunk of a parallel fill

cdef object _numpy_scalar = np.generic


# ---- sizes ---------------------------------------------------------------------------------------

cdef int64_t _one_size(object value, int position, str operation) except? -1:
    if PyLong_CheckExact(value):
        return value
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{operation}: sizes must be integers (got {value!r} of type {type(value).__name__} at "
                        f"position {position})")
    return value.__index__()


cdef int read_sizes(object size, int64_t *shape, str operation) except -1:
    cdef int i, ndim
    cdef int64_t count
    if PyTuple_Check(size) or PyList_Check(size):
        size = tuple(size)                       # a snapshot: converting an entry may change the list
        if len(size) == 1 and not PyLong_CheckExact(size[0]) and hasattr(size[0], "__len__") and (
                PyTuple_Check(size[0]) or PyList_Check(size[0]) or not hasattr(size[0], "__index__")):
            size = tuple(size[0])                # zeros((2, 3)) is zeros(2, 3)
        if len(size) > MAX_DIMS:
            raise ValueError(f"{operation}: too many dimensions (got {len(size)}, expected at most {MAX_DIMS})")
        ndim = len(size)
        for i in range(ndim):
            shape[i] = _one_size(size[i], i + 1, operation)
    else:
        ndim = 1
        shape[0] = _one_size(size, 1, operation)
    check(check_sizes(PyUnicode_AsUTF8(operation), ndim, shape, &count))
    return ndim


# ---- tensors of one value ------------------------------------------------------------------------

cdef struct fill_t:
    char *data
    int64_t size              # bytes of an element
    char[16] element


cdef void _fill_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Fill begin..end by doubling what is written already."""
    cdef fill_t *fill = <fill_t *>context
    cdef char *data = fill.data + begin * fill.size
    cdef int64_t total = (end - begin) * fill.size
    cdef int64_t done = fill.size
    cdef int64_t part
    memcpy(data, fill.element, fill.size)
    while done < total:
        # Copies of about a page stay in the L1 cache.
        part = done if done < 4096 else 4096
        if part > total - done:
            part = total - done
        memcpy(data + done, data, part)
        done += part


cdef void _zero_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    memset(<char *>context + begin, 0, end - begin)


cdef void fill_array(array_t *array, const char *element) noexcept nogil:
    cdef fill_t fill
    cdef int64_t size = itemsize(array.dtype)
    cdef int64_t i
    cdef bint zero = True
    if array.size == 0:
        return
    for i in range(size):
        zero = zero and element[i] == 0
    if zero and array.size <= FILL_GRAIN:
        memset(array.data, 0, array.size * size)
        return
    if zero:
        parallel_for(_zero_piece, array.data, array.size * size, FILL_GRAIN * 4)
        return
    fill.data = array.data
    fill.size = size
    memcpy(fill.element, element, size)
    parallel_for(_fill_piece, &fill, array.size, FILL_GRAIN)


cdef Tensor empty_tensor(object size, int dtype, bint meta, str operation):
    cdef int64_t[MAX_DIMS] shape
    cdef int ndim = read_sizes(size, shape, operation)
    return wrap(meta_array(dtype, ndim, shape) if meta else array_empty(dtype, ndim, shape))


cdef Tensor full_tensor(object size, object value, int dtype, bint meta, str operation):
    cdef int64_t[MAX_DIMS] shape
    cdef char[16] element
    cdef array_t *array
    cdef int ndim = read_sizes(size, shape, operation)
    read_element(value, dtype, element, operation)
    if meta:
        return wrap(meta_array(dtype, ndim, shape))
    array = array_empty(dtype, ndim, shape)
    if array != NULL:
        with nogil:
            fill_array(array, element)
    return wrap(array)


cdef int read_element(object value, int dtype, char *element, str operation) except -1:
    value = plain_number(value, operation)
    if isinstance(value, complex) and not is_complex(dtype) and dtype != BOOL:
        raise RuntimeError(f"{operation}: value cannot be converted to type {dtype_name(dtype).decode()} without "
                           f"overflow (got {value!r}). Use a complex dtype.")
    return store_number(element, dtype, value, False, operation)


cdef object plain_number(object value, str operation):
    if PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return value
    if isinstance(value, (float, int, complex)) and not isinstance(value, _numpy_scalar):
        return value
    if isinstance(value, Tensor) and not needs_gradient(<Tensor>value) and (<Tensor>value).array.ndim == 0:
        return numpy_view((<Tensor>value).array).item()
    if isinstance(value, _numpy_scalar) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    raise TypeError(f"{operation}: expected a number (got {type(value).__name__})")


# ---- tensors of data -----------------------------------------------------------------------------

cdef Tensor tensor_from(object data, int dtype, str operation):
    return wrap(array_of(data, dtype, operation))


cdef object finish(Tensor result, bint needs_grad, bint meta):
    if meta:
        result = without_elements(result)
    if needs_grad:
        if not is_differentiable(result.array.dtype):
            raise RuntimeError("requires_grad: only Tensors of floating point and complex dtype can require gradients "
                               f"(got {dtype_name(result.array.dtype).decode()})")
        result.leaf_requires_grad = True
    return result


cdef int check_place(object device, object layout, object pin_memory, str operation) except -1:
    if layout is not None and layout is not STRIDED and layout != "strided":
        raise RuntimeError(f"{operation}: no such layout (got {layout!r}, expected strided). Leave it out.")
    if pin_memory:
        raise RuntimeError(f"{operation}: memory cannot be pinned without an accelerator. Leave pin_memory out.")
    return meta_place(device, operation)


cdef int dtype_or(object dtype, int default, str operation) except? -1:
    return default if dtype is None else dtype_code(dtype, operation)


def tensor(data, *, dtype=None, device=None, bint requires_grad=False, pin_memory=False):
    """
    A new tensor with a copy of data.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor
        All sequences at one depth have the same length. Of a Tensor only the values are copied, not
        the history.
    dtype : dtype, optional
        Default: that of an ndarray, Tensor or NumPy scalar; bool, int64, the default floating or the
        default complex dtype for Python numbers, whichever holds all of them.
    device : str, optional
        Only ``"cpu"``.
    requires_grad : bool, default False
        Record operations on the result.
    pin_memory : bool, default False
        Only False.

    Returns
    -------
    Tensor
        A leaf that shares no memory with `data`.

    Raises
    ------
    ValueError
        If sequences at one depth differ in length, or an integer does not fit into 64 bits.
    RuntimeError
        If data are no numbers, a value does not fit into `dtype`, or an integer tensor is to require grad.
    TypeError
        If numbers and sequences stand at one depth, or the dtype is not supported.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> cygrad.tensor([0, 1]).dtype
    cygrad.int64
    """
    cdef bint meta = check_place(device, None, pin_memory, "tensor")
    if isinstance(data, Tensor):
        warn_user("tensor: to copy a tensor, x.detach().clone() is recommended (or "
                  "x.detach().clone().requires_grad_(True)): it says what happens to the history")
    return finish(tensor_from(data, dtype_or(dtype, -1, "tensor"), "tensor"), requires_grad, meta)


operators.tensor = tensor


def scalar_tensor(value, *, dtype=None, device=None, layout=None, bint requires_grad=False, pin_memory=False):
    """
    A 0-dim tensor of a number, in the default floating dtype unless told otherwise.

    Parameters
    ----------
    value : number
    dtype : dtype, optional
        Default: the default floating dtype, whatever the type of `value`.
    device, layout, pin_memory : optional
        Only their defaults.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        Of shape ``()``.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.scalar_tensor(3)
    tensor(3.)
    """
    cdef bint meta = check_place(device, layout, pin_memory, "scalar_tensor")
    return finish(full_tensor((), value, dtype_or(dtype, default_float(), "scalar_tensor"), meta, "scalar_tensor"),
                  requires_grad, meta)


def from_numpy(array):
    """
    A tensor over the memory of an ndarray: changes of one are seen in the other.

    Parameters
    ----------
    array : numpy.ndarray
        With elements of a supported dtype, aligned, in native byte order. Any strides, negative ones
        included.

    Returns
    -------
    Tensor
        It keeps `array` alive.

    Raises
    ------
    TypeError
        If it is no ndarray, or of another dtype.
    ValueError
        If its elements cannot be shared.

    Warns
    -----
    UserWarning
        If the array is read-only. In-place operations on the result are then refused.

    Examples
    --------
    >>> import numpy, cygrad
    >>> array = numpy.zeros(3)
    >>> _ = cygrad.from_numpy(array).add_(1)
    >>> array
    array([1., 1., 1.])
    """
    cdef Tensor result = _over(array)
    if not array.flags.writeable:
        warn_user("from_numpy: the array is read-only, so in-place operations on the tensor will be refused. "
                  "Copy it with tensor(array) to have one that can be written to.")
    return result


cdef bint _shareable(object array):
    """Can a tensor share the memory of this ndarray? Not if a byte other than 1 stands for True."""
    if array.dtype.kind == "b" and array.view("u1").max(initial=0) > 1:
        return False
    return (array.dtype.isnative and array.flags.aligned and array.flags.writeable
            and all(stride % max(array.itemsize, 1) == 0 for stride in array.strides))


def as_tensor(data, dtype=None, device=None):
    """
    Convert data to a tensor, sharing memory and the graph where possible.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor
        A Tensor is returned itself, or cast as a recorded operation; the memory of a writable ndarray is shared.
    dtype : dtype, optional
        Default: inferred as `tensor` does.
    device : str, optional
        Only ``"cpu"``.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.tensor([1., 2.])
    >>> cygrad.as_tensor(x) is x
    True
    """
    cdef bint meta = check_place(device, None, False, "as_tensor")
    cdef int code = dtype_or(dtype, -1, "as_tensor")
    if isinstance(data, Tensor):
        if device is not None and meta != is_meta((<Tensor>data).array):
            data = data.to(device)
        if code < 0 or (<Tensor>data).array.dtype == code:
            return data
        return data.to(dtype)
    if isinstance(data, np.ndarray) and _shareable(data) and (code < 0 or dtype_code(data.dtype, "as_tensor") == code):
        return finish(_over(data), False, meta)
    return finish(tensor_from(data, code, "as_tensor"), False, meta)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """
    Return a tensor of any data: tensors, arrays, DLPack objects, buffers, numbers and sequences.

    Parameters
    ----------
    obj : object
        Memory of tensors, writable ndarrays, DLPack objects and buffers is shared where possible.
    dtype : dtype, optional
        Default: inferred. Buffers (``bytes``, ``bytearray``, ``memoryview``) are read as elements of it.
    device : str, optional
        Only ``"cpu"``.
    copy : bool, optional
        True: always copy. False: never, and raise if that is impossible. None: only if needed.
    requires_grad : bool, optional
        Default: as `obj`. False for a tensor that requires grad detaches the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `copy` is False and `obj` cannot be shared.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.asarray([1, 2], dtype=cygrad.float32)
    tensor([1., 2.])
    """
    cdef bint meta = check_place(device, None, False, "asarray")
    cdef int code = dtype_or(dtype, -1, "asarray")
    original = obj
    if isinstance(obj, Tensor):
        result = obj
        if copy:
            result = result.clone()
        if code >= 0 and (<Tensor>result).array.dtype != code:
            if copy is not None and not copy:
                raise ValueError(f"asarray: another dtype needs a copy (got copy=False, a tensor of {obj.dtype} and "
                                 f"dtype={dtype})")
            result = result.to(dtype)
        if requires_grad is None:
            return result
        if not requires_grad or (<Tensor>result).node is not None:
            result = result.detach()
        return finish(result, True, meta) if requires_grad else result
    if not isinstance(obj, (np.ndarray, np.generic, list, tuple, str)):
        if hasattr(obj, "__dlpack__"):
            obj, known = _offered(obj, {})
            if known is not None:
                return asarray(_of_offer(obj, known), dtype=dtype, device=device, requires_grad=requires_grad,
                               copy=True if copy is None and not obj.flags.writeable else copy)
        elif isinstance(obj, (bytes, bytearray, memoryview)):
            obj = np.frombuffer(obj, dtype=_dtype_object_of(code))
        elif hasattr(obj, "__array_interface__"):
            obj = np.asarray(obj)
    if isinstance(obj, np.ndarray) and not copy and _shareable(obj) and (
            code < 0 or dtype_code(obj.dtype, "asarray") == code):
        result = _over(obj)
    else:
        if copy is not None and not copy:
            raise ValueError(f"asarray: the data cannot be shared without a copy (got copy=False and "
                             f"{type(original).__name__})")
        result = tensor_from(obj, code, "asarray")
    return finish(result, bool(requires_grad), meta)


cdef object _dtype_object_of(int code):
    """Return the NumPy dtype for a code, -1 for the default floating one."""
    return np.dtype(dtype_name(default_float() if code < 0 else code).decode())


class _Offer:
    """Wraps a capsule that was requested already as an object with ``__dlpack__``."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class _Checked:
    """Wraps a DLPack object and checks its capsule before NumPy reads it."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **options):
        return checked_capsule(self.given.__dlpack__(**options))

    def __dlpack_device__(self):
        return self.given.__dlpack_device__()


cdef tuple _offered(object given, dict options):
    """Return an ndarray over what an object exports, and the dtype of its elements if NumPy lacks it."""
    try:
        return np.from_dlpack(_Checked(given), **options), None
    except RuntimeError:                 # among others, a dtype that NumPy lacks
        asked = {name: value for name, value in options.items() if name == "copy"}
        try:
            capsule = given.__dlpack__(max_version=(1, 0), **asked)
        except TypeError:                # an older version
            capsule = given.__dlpack__()
        known = as_integers(capsule)
        if known is None:
            raise
    return np.from_dlpack(_Offer(capsule)), known


cdef Tensor _over(object ndarray):
    """A Tensor over the memory of an ndarray, which others may write to."""
    data_escapes()
    return wrap(array_from_numpy(ndarray, False))


cdef Tensor _of_offer(object shared, object known):
    data_escapes()
    cdef array_t *array = array_from_numpy(shared, False)
    if known is not None and array != NULL:
        array.dtype = dtype_code(known, "from_dlpack")
    return wrap(array)


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """
    Return a tensor over the memory of any object with ``__dlpack__``, of any DLPack version.

    Memory that its owner calls read-only is shared, too; in-place operations on the tensor are refused then. So they
    are where the owner cannot say, as its DLPack is older than version 1.

    Parameters
    ----------
    ext_tensor : object with ``__dlpack__`` and ``__dlpack_device__``, or a capsule
        On the CPU, or willing to copy itself there.
    device : device or str, optional
        Only the CPU.
    copy : bool, optional
        True: always copy. False: never. None: only if the owner has to.

    Returns
    -------
    Tensor
        It shares the memory, and keeps the object alive.

    Raises
    ------
    TypeError
        If the object does not offer DLPack, or its dtype is not supported.
    ValueError
        If its elements are not aligned, or cannot be had without the copy that is forbidden.
    BufferError
        If it is on another device.

    Examples
    --------
    >>> import numpy, cygrad
    >>> cygrad.from_dlpack(numpy.array([1., 2.]))
    tensor([1., 2.], dtype=cygrad.float64)
    """
    cdef bint meta = check_place(device, None, False, "from_dlpack")
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Offer(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: the object does not offer DLPack (got {type(ext_tensor).__name__}, expected an "
                        "array with __dlpack__). Use asarray() for other data.")
    options = {} if device is None else {"device": "cpu"}
    if copy is not None and not isinstance(ext_tensor, _Offer):
        options["copy"] = bool(copy)
    shared, known = _offered(ext_tensor, options)
    try:
        result = _of_offer(shared, known)
    except BaseException:
        shared = None  # drop the reference here: code of its owner must not run while an exception propagates
        raise
    return finish(result.clone() if copy and isinstance(ext_tensor, _Offer) else result, False, meta)


cdef Tensor _convert(object value, str operation):
    """Convert an argument of an operator that is no Tensor."""
    return tensor_from(value, -1, operation)


protocol.convert = _convert


def constructed(dtype, tuple arguments not None, dict options not None, str operation not None):
    """
    Construct a tensor for the tensor types: of sizes (uninitialized), or of data in a dtype.

    Parameters
    ----------
    dtype : dtype
        None: the default floating one.
    arguments : tuple
        Nothing: no elements. Integers or a Size: sizes. Else one sequence, ndarray or Tensor; a Tensor shares its
        memory and keeps its dtype if none is asked for.
    options : dict
        At most ``device``.
    """
    cdef int code = dtype_or(dtype, default_float(), operation)
    cdef bint meta = check_place(options.get("device"), None, False, operation)
    if set(options) - {"device"} or (len(arguments) != 1 and not all([hasattr(n, "__index__") for n in arguments])):
        raise TypeError(f"{operation}: takes sizes, or one argument with the data (got {arguments} and "
                        f"{sorted(options)}). Use tensor(), empty() or zeros() for more.")
    data = arguments[0] if len(arguments) == 1 else arguments
    if isinstance(data, Tensor):
        if dtype is not None and (<Tensor>data).array.dtype != code:
            raise TypeError(f"{operation}: the tensor has another dtype (got {data.dtype}, expected {dtype}). Convert "
                            "it with to().")
        return data.detach()
    if isinstance(data, Size) or len(arguments) != 1 or (isinstance(data, (int, np.integer))
                                                         and not isinstance(data, bool)):
        return empty_tensor(arguments or (0,), code, meta, operation)
    if not hasattr(data, "__len__") or isinstance(data, str):
        raise TypeError(f"{operation}: the data must be a sequence (got {type(data).__name__}). Use tensor() for a "
                        "number.")
    return finish(tensor_from(data, code, operation), False, meta)


def construct(Tensor self not None, tuple arguments not None, dict options not None):
    """Implement ``Tensor(...)``: the tensor gets the memory of a `constructed` one."""
    adopt(self, constructed(None, arguments, options, "Tensor"), False)
