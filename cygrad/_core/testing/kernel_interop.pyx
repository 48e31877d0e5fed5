"""Kernels on ndarrays from Python: how tests reach them below tensors."""

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, NOTHING, REAL, TEXT, array_from_numpy, array_t, clear, find_kernel,
    kernel_t, owned_ndarray, retain, set_array, set_arrays, set_integers, value_t,
)
from cygrad._core.arrays.dtype cimport dtype
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.memory.errors cimport check

import numpy as np

cnp.import_array()

cdef enum:
    MAX_VALUES = 32       # arguments or results of a kernel

cdef list _interned = []      # TEXT values point into these bytes objects


cdef int _box(object argument, value_t *value) except -1:
    """Convert a Python argument to a value_t; see call_kernel."""
    cdef int i
    cdef cnp.ndarray integers
    value.kind = NOTHING
    if argument is None:
        return 0
    if isinstance(argument, np.ndarray):
        set_array(value, array_from_numpy(argument, False))
    elif isinstance(argument, (bool, np.bool_)):
        value.kind, value.of.integer = BOOLEAN, bool(argument)
    elif isinstance(argument, dtype):
        value.kind, value.of.integer = DTYPE, (<dtype>argument).code
    elif isinstance(argument, (int, np.integer)):
        value.kind, value.of.integer = INTEGER, argument
    elif isinstance(argument, (float, np.floating)):
        value.kind, value.of.real = REAL, argument
    elif isinstance(argument, (complex, np.complexfloating)):
        value.kind, value.of.real, value.imag = COMPLEX, argument.real, argument.imag
    elif isinstance(argument, str):
        text = argument.encode()
        if text not in _interned:
            _interned.append(text)
        value.kind, value.of.text = TEXT, <bytes>_interned[_interned.index(text)]
    elif isinstance(argument, (tuple, list)):
        if any(isinstance(entry, np.ndarray) for entry in argument):
            check(set_arrays(value, len(argument)))
            for i, entry in enumerate(argument):
                if entry is not None:
                    value.of.arrays[i] = array_from_numpy(entry, False)
        else:
            integers = np.array(argument, dtype=np.int64).reshape(-1)
            check(set_integers(value, <int>integers.size, <int64_t *>cnp.PyArray_DATA(integers)))
    else:
        raise TypeError(f"call_kernel: cannot pass a {type(argument).__name__}")
    return 0


cdef object _unbox(value_t *value):
    """Convert a result to a Python object; arrays become independent ndarrays."""
    cdef int i
    if value.kind == ARRAY:
        return _copied(value.of.array)
    if value.kind == ARRAYS:
        return [_copied(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    return plain_object(value)


cdef object _copied(array_t *array):
    """Return a copy as an ndarray with the array's strides order."""
    return np.array(_shared(array))


def call_kernel(str name, *arguments, raw=False):
    """
    Run a kernel on Python arguments, for tests below tensors.

    Import the module that registers the kernel first: ``import cygrad._core.kernels.linalg.matmul`` and then
    ``call_kernel("mm", a, b)[0]``. The kernel runs without the GIL, as it does for tensors.

    Parameters
    ----------
    name : str
        The name that the kernel was registered under.
    *arguments
        ndarray -> ARRAY (zero-copy, any strides); list or tuple with an ndarray in it -> ARRAYS (None
        for a missing entry); other list or tuple -> INTEGERS; bool, int, float, complex -> the number
        of that kind; None -> NOTHING; str -> TEXT; cygrad dtype -> DTYPE.
    raw : bool, default False
        Return arrays without a copy: ndarrays over the memory of the results, to see views.

    Returns
    -------
    list
        The results up to the last one that is not NOTHING.

    Raises
    ------
    KeyError
        If there is no such kernel.
    RuntimeError, TypeError, ValueError, IndexError, MemoryError, NotImplementedError
        What the kernel reports.
    """
    cdef value_t[MAX_VALUES] values
    cdef value_t[MAX_VALUES] results
    cdef kernel_t kernel = find_kernel(name)
    cdef int status, i, n = len(arguments)
    if kernel == NULL:
        raise KeyError(f"call_kernel: no kernel '{name}' is registered; is its module imported?")
    if n > MAX_VALUES:
        raise TypeError(f"call_kernel: too many arguments (got {n}, expected at most {MAX_VALUES})")
    memset(values, 0, sizeof(values))
    memset(results, 0, sizeof(results))
    try:
        for i in range(n):
            _box(arguments[i], &values[i])
        with nogil:
            status = kernel(values, results)
        check(status)
        n = MAX_VALUES
        while n > 0 and results[n - 1].kind == NOTHING:
            n -= 1
        return [unbox_raw(&results[i]) if raw else _unbox(&results[i]) for i in range(n)]
    finally:
        for i in range(MAX_VALUES):
            clear(&values[i])
            clear(&results[i])


cdef object unbox_raw(value_t *value):
    """As unbox, but arrays share the memory of the results."""
    cdef int i
    if value.kind == ARRAY:
        return _shared(value.of.array)
    if value.kind == ARRAYS:
        return [_shared(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    return _unbox(value)


cdef object _shared(array_t *array):
    """Return an ndarray over the memory of an array."""
    return owned_ndarray(retain(array))
