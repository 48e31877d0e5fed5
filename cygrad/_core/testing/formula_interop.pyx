"""Operators and formulas on ndarrays from Python: how tests reach the layers below tensors."""

from libc.stdint cimport uint32_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, NOTHING, array_empty_like, array_from_numpy, array_t, clear, copy_value, release, set_array, set_arrays,
    value_t,
)
from cygrad._core.elementwise.elementwise cimport copy_into, evaluate
from cygrad._core.memory.errors cimport check
from cygrad._core.table.interpreter cimport constant_value
from cygrad._core.table.operator cimport (
    MAX_ARGUMENTS, MAX_SAVED, Operator, differentiate, operator_t, register_operator, table,
)
from cygrad._core.testing.kernel_interop cimport unbox_raw

import time
import numpy as np

cdef enum:
    MAX_GRADS = 64

cdef list _constants = []


cdef int _box(object argument, value_t *value) except -1:
    """Convert a Python object to a value that owns its parts."""
    cdef value_t constant
    value.kind = NOTHING
    if isinstance(argument, np.ndarray):
        set_array(value, array_from_numpy(argument, False))
    elif isinstance(argument, list):
        check(set_arrays(value, len(argument)))
        for i, entry in enumerate(argument):
            if entry is not None:
                value.of.arrays[i] = array_from_numpy(entry, False)
    else:
        constant_value(argument, &constant, _constants)
        check(copy_value(value, &constant))
    return 0


def register(dict row):
    """Register a row; return its Operator."""
    return register_operator(row)


def forget(str name):
    """Remove an operator from the table; it must not be used any more."""
    del table[name]


def is_registered(str name):
    """Return whether there is an operator of this name."""
    return name in table


def describe(str name):
    """
    Compile an operator and return the fields of its descriptor.

    Returns
    -------
    dict
        ``node_name``, ``flags``, ``n_required``, ``n_positional``, ``differentiable_results``, and ``saved``,
        a list of (name, from_result, index, meta, needed_by).
    """
    cdef Operator found = table[name]
    cdef operator_t *op = found.descriptor
    cdef int i
    found.compile()
    return {"node_name": op.node_name.decode(), "flags": op.flags, "n_required": op.n_required,
            "n_positional": op.n_positional, "differentiable_results": op.differentiable_results,
            "saved": [(op.saved[i].name.decode(), bool(op.saved[i].from_result), op.saved[i].index,
                       not op.saved[i].memory_by, op.saved[i].needed_by) for i in range(op.n_saved)]}


def recorded(str name, str argument):
    """Return the Python function f(grads, saved) of the derivative formula of `argument`."""
    cdef Operator found = table[name]
    return found.recorded_function(_number(found, argument))


def evaluate_arrays(str name, *arguments, int repeat=0):
    """Run the forward program of an element-wise operator on ndarrays and numbers.

    With `repeat`, run it that often and return the nanoseconds of one run.
    """
    cdef Operator found = table[name]
    cdef value_t[MAX_ARGUMENTS] values
    cdef value_t result
    cdef array_t *array = NULL
    cdef int i, status
    memset(values, 0, sizeof(values))
    found.ensure_program()
    if len(arguments) != found.descriptor.n_arguments:
        raise TypeError(f"{name}: takes {found.descriptor.n_arguments} arguments (got {len(arguments)})")
    try:
        for i in range(found.descriptor.n_arguments):
            _box(arguments[i], &values[i])
        if repeat:
            start = time.perf_counter_ns()
            with nogil:
                for i in range(repeat):
                    evaluate(found.descriptor.program, values, 0, NULL, &array)
                    release(array)
            return (time.perf_counter_ns() - start) / repeat
        with nogil:
            status = evaluate(found.descriptor.program, values, 0, NULL, &array)
        check(status)
        set_array(&result, array)
        try:
            return unbox_raw(&result)
        finally:
            clear(&result)
    finally:
        for i in range(MAX_ARGUMENTS):
            clear(&values[i])


def differentiate_arrays(str name, saved, grads, needed, *, give_up_grads=False, int repeat=0):
    """
    Run derivative formulas of an operator on ndarrays, in the native execution.

    Parameters
    ----------
    name : str
        An operator of the table.
    saved : list
        Values in the order of ``describe(name)["saved"]``.
    grads : list
        Gradients of the results, None where undefined.
    needed : iterable of str
        The arguments whose derivatives are wanted.
    give_up_grads : bool, default False
        Copy the gradients first into memory that is not shared: it may be computed in.
    repeat : int, default 0
        Run that often and return the nanoseconds of one run instead.

    Returns
    -------
    dict or float
        Argument name -> ndarray, list of ndarrays or None.
    """
    cdef Operator found = table[name]
    cdef value_t[MAX_SAVED] saved_values
    cdef value_t[MAX_GRADS] grad_values
    cdef value_t[MAX_GRADS] given
    cdef value_t[MAX_ARGUMENTS] results
    cdef uint32_t wanted = 0
    cdef int i, k, status = 0, n_saved = len(saved), n_grads = len(grads)
    if n_saved > MAX_SAVED or n_grads > MAX_GRADS:
        raise TypeError("differentiate_arrays: too many values")
    found.compile()
    for argument in needed:
        wanted |= <uint32_t>1 << _number(found, argument)
    memset(saved_values, 0, sizeof(saved_values))
    memset(given, 0, sizeof(given))
    memset(results, 0, sizeof(results))
    try:
        for i in range(n_saved):
            _box(saved[i], &saved_values[i])
        for i in range(n_grads):
            _box(grads[i], &given[i])
            if give_up_grads and given[i].kind == ARRAY:
                _own(&given[i])
        if repeat:
            start = time.perf_counter_ns()
            with nogil:
                for k in range(repeat):
                    for i in range(n_grads):
                        copy_value(&grad_values[i], &given[i])
                    differentiate(found.descriptor, saved_values, grad_values, n_grads, wanted, NULL, 0, results)
                    for i in range(found.descriptor.n_arguments):
                        clear(&results[i])
            return (time.perf_counter_ns() - start) / repeat
        for i in range(n_grads):
            grad_values[i] = given[i]
            if not give_up_grads:
                copy_value(&grad_values[i], &given[i])
            given[i].kind = NOTHING if give_up_grads else given[i].kind
        with nogil:
            status = differentiate(found.descriptor, saved_values, grad_values, n_grads, wanted, NULL, 0, results)
        check(status)
        gradients = {}
        for argument in needed:
            gradients[argument] = unbox_raw(&results[_number(found, argument)])
        return gradients
    finally:
        for i in range(MAX_ARGUMENTS):
            clear(&results[i])
        for i in range(n_saved):
            clear(&saved_values[i])
        for i in range(n_grads):
            clear(&given[i])


cdef int _number(Operator found, str argument) except -1:
    cdef int i
    for i in range(found.descriptor.n_arguments):
        if found.descriptor.arguments[i].name.decode() == argument:
            return i
    raise KeyError(f"{found.name}: no argument '{argument}'")


cdef int _own(value_t *value) except -1:
    """Replace the array by a contiguous copy in new memory."""
    cdef array_t *copy = array_empty_like(value.of.array, -1)
    if copy == NULL:
        raise MemoryError
    check(copy_into(copy, value.of.array))
    release(value.of.array)
    value.of.array = copy
    return 0
