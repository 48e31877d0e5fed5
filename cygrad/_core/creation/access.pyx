"""The elements of a tensor for Python: one number, or a NumPy array over the same memory."""

from opcode import opmap

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from cygrad._core.arrays.array cimport array_t, array_view, retain, shape_text
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, dtype_code, itemsize,
    numpy_typenum)
from cygrad._core.arrays.interop cimport owned_ndarray, pass_door
from cygrad._core.creation.sequences cimport numpy_view as any_numpy_view
from cygrad._core.graph.meta cimport check_elements
from cygrad._core.graph.override cimport is_entry
from cygrad._core.graph.modes cimport grad_enabled
from cygrad._core.graph.tensor cimport Tensor, wrap

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

cdef int _store = opmap["STORE_SUBSCR"]


def item(Tensor input not None):
    """
    The only element as a Python number.

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
    pass_door()
    if array.size != 1:
        raise RuntimeError(f"item: only a tensor of one element is a number (got shape {shape_text(array).decode()}). "
                           "Use tolist() for more.")
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
    What conversions start from.

    NumPy's ``array[0] = tensor`` calls ``float`` as users do; the instruction that runs tells which of both it is.
    """
    cdef int position = -1
    cdef bytes code
    if grad_enabled() and input.requires_grad:
        code = running_code(&position)
        if 0 <= position < len(code) and <unsigned char>code[position] == _store:
            raise RuntimeError(f"{kind}: a tensor that requires grad would lose its history as an element of an array. "
                               "Write into a Tensor, such as numpy.zeros_like(tensor), or write item().")
    return item(input) if type(input) is Tensor else input.item()


def as_float(Tensor input not None):
    """The only element as a Python float."""
    return float(_number(input, "float"))


def as_int(Tensor input not None):
    """The only element as a Python int."""
    return int(_number(input, "int"))


def as_complex(Tensor input not None):
    """The only element as a Python complex."""
    return complex(_number(input, "complex"))


def numpy_view(Tensor input not None):
    """
    A NumPy array over the memory of the tensor, which it keeps alive.

    It holds the memory, not the tensor: that may be given other memory while the array is in use.
    """
    if is_entry(input):
        return input.numpy()             # which refuses
    check_elements(input.array, "numpy")
    return owned_ndarray(retain(input.array))


def seen_as(Tensor input not None, dtype not None):
    """The same memory as elements of another dtype of the same size, without history."""
    cdef array_t *array = input.array
    cdef int code = dtype_code(dtype, "view")
    if itemsize(code) != itemsize(array.dtype):
        raise RuntimeError(f"view: the elements of both dtypes must have one size (got {input.dtype} and {dtype}).")
    return wrap(array_view(array, code, array.ndim, array.shape, array.strides, 0))


def elements(Tensor input not None):
    """What `numpy_view` gives, to be read only: of a dtype that NumPy does not have a copy in a wider one."""
    check_elements(input.array, "numpy")
    return any_numpy_view(input.array) if numpy_typenum(input.array.dtype) < 0 else numpy_view(input)
