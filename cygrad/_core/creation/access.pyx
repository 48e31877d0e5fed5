"""Access to the elements of a tensor from Python: as one number, or as a NumPy array over the same memory."""

from opcode import opmap

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, retain, shape_text
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, dtype_code, itemsize,
    numpy_typenum)
from cygrad._core.arrays.interop cimport owned_ndarray
from cygrad._core.creation.sequences cimport numpy_view as any_numpy_view
from cygrad._core.graph.meta cimport check_elements
from cygrad._core.graph.override cimport is_entry
from cygrad._core.graph.modes cimport grad_enabled
from cygrad._core.graph.tensor cimport Tensor, data_escapes, wrap

from cygrad._core.arrays.dtype import library_name
from cygrad._core.graph.override import call_override

cdef extern from *:
    """
    /* The bytes of the code that calls, and where in them it is. */
    static PyObject *running_code(int *position) {
        PyFrameObject *frame = PyEval_GetFrame();
        PyCodeObject *code;
        PyObject *instructions;
        if (frame == NULL)
            return PyBytes_FromStringAndSize(NULL, 0);
        code = PyFrame_GetCode(frame);
        *position = PyFrame_GetLasti(frame);
        instructions = PyCode_GetCode(code);
        Py_DECREF(code);
        return instructions;
    }
    """
    bytes running_code(int *position)

cdef int _store = opmap["STORE_SUBSCR"], _build_slice = opmap["BUILD_SLICE"]


def item(Tensor input not None):
    """
    Return the only element as a Python number.

    Returns
    -------
    bool, int, float or complex

    Raises
    ------
    RuntimeError
        If the tensor has more than one element, or none.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([2.5]).item()
    2.5
    """
    cdef array_t *array = input.array
    cdef char *data = array.data
    check_elements(array, "item")
    data_escapes()
    if array.size != 1:
        raise RuntimeError(f"item: a Tensor with {array.size} elements cannot be converted to Scalar (got shape "
                           f"{shape_text(array).decode()}, expected one element). Use tolist() for more.")
    if array.dtype == FLOAT32:
        return (<float *>data)[0]
    if array.dtype == FLOAT64:
        return (<double *>data)[0]
    if array.dtype == INT64:
        return (<int64_t *>data)[0]
    if array.dtype == BOOL:
        return (<uint8_t *>data)[0] != 0
    if array.dtype == INT32:
        return (<int32_t *>data)[0]
    if array.dtype == INT16:
        return (<int16_t *>data)[0]
    if array.dtype == INT8:
        return (<int8_t *>data)[0]
    if array.dtype == UINT8:
        return (<uint8_t *>data)[0]
    if array.dtype == COMPLEX64:
        return complex((<float *>data)[0], (<float *>data)[1])
    if array.dtype == COMPLEX128:
        return complex((<double *>data)[0], (<double *>data)[1])
    return any_numpy_view(array).item()


cdef object _number(Tensor input, str kind):
    """
    Return the element for a conversion to a number.

    NumPy's ``array[0] = tensor`` calls ``float`` as users do; the running bytecode instruction tells them apart,
    because programs for PyTorch record their losses so. Where a slice has just been built, a list runs an iterator, as
    in ``losses[:] = map(float, tensors)``: NumPy takes such values as arrays.
    """
    cdef int position = -1
    cdef bytes code
    if grad_enabled() and input.requires_grad:
        code = running_code(&position)
        if (2 <= position < len(code) and <unsigned char>code[position] == _store
                and <unsigned char>code[position - 2] != _build_slice and library_name() == "cygrad"):
            raise RuntimeError(f"{kind}: a tensor that requires grad would lose its history as an element of an array. "
                               "Write into a Tensor, such as numpy.zeros_like(tensor), or write item().")
    if input.array.size != 1 and not is_entry(input):
        raise ValueError(f"{kind}: only one element tensors can be converted to Python scalars (got shape "
                         f"{shape_text(input.array).decode()}). Use tolist() for more.")
    number = item(input) if type(input) is Tensor else input.item()
    if isinstance(number, complex) and kind != "complex":
        if number.imag != 0:
            raise RuntimeError(f"{kind}: a complex value cannot be converted without losing its imaginary part (got "
                               f"{number}). Use .real or abs().")
        return number.real
    return number


def as_float(Tensor input not None):
    """Return the only element as a Python float."""
    return float(_number(input, "float"))


def as_int(Tensor input not None):
    """Return the only element as a Python int."""
    return int(_number(input, "int"))


def as_complex(Tensor input not None):
    """Return the only element as a Python complex."""
    return complex(_number(input, "complex"))


def numpy_view(Tensor input not None):
    """
    Return a NumPy array over the memory of the tensor, which it keeps alive.

    It holds the memory, not the tensor, whose memory may be replaced while the array is in use.
    """
    if is_entry(input) and type(input).numpy is not Tensor.numpy:
        return input.numpy()             # raises
    check_elements(input.array, "numpy")
    data_escapes()
    return owned_ndarray(retain(input.array))


def seen_as(Tensor input not None, dtype not None):
    """Return the same memory with another dtype, without history."""
    cdef array_t *array = input.array
    cdef int code = dtype_code(dtype, "view"), i, last = array.ndim - 1
    cdef int64_t old = itemsize(array.dtype), new = itemsize(code)
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    if old == new:
        return wrap(array_view(array, code, array.ndim, array.shape, array.strides, 0))
    given = input.stride()
    if last < 0 or given[last] != 1:
        raise RuntimeError(f"view: the last dimension must be dense to get elements of another size (got {input.dtype} "
                           f"of shape {tuple(input.shape)} and strides {given}, and {dtype}). Call "
                           "contiguous() first.")
    for i in range(last + 1):
        shape[i], strides[i] = array.shape[i], 1 if i == last else given[i] * old // new
        if (shape[i] if i == last else given[i]) * old % new:
            raise RuntimeError(f"view: the last dimension and all strides must be multiples of {new // old} to get "
                               f"elements of {dtype} (got {input.dtype} of shape {tuple(input.shape)} and strides "
                               f"{given}).")
    if input.storage_offset() * old % new:
        raise RuntimeError(f"view: the tensor must begin at an element of {dtype} (got {input.dtype} at offset "
                           f"{input.storage_offset()}). Call clone() first.")
    shape[last] = shape[last] * old // new
    # Without memory there are no strides either.
    return wrap(array_view(array, code, array.ndim, shape, array.strides if array.storage == NULL else strides, 0))


def view_as(Tensor input not None, dtype not None):
    """Return what `Tensor.view` gives for a dtype: a view for its own, else the same bytes as other elements."""
    if is_entry(input):
        return call_override(view_as, (input,), (input, dtype), {})
    return input.view(tuple(input.shape)) if input.dtype is dtype else seen_as(input, dtype)


def elements(Tensor input not None):
    """Return a read-only `numpy_view`, or a copy in a wider dtype if NumPy lacks the dtype."""
    check_elements(input.array, "numpy")
    return any_numpy_view(input.array) if numpy_typenum(input.array.dtype) < 0 else numpy_view(input)
