"""
Automatic mixed precision: operators whose operands `autocast` casts.

The key `autocast` of a row says how its operands are cast; other operators compute in the dtypes of their arguments.
Casts are recorded, so gradients have the dtypes of the original tensors.
"""

import threading

from cpython.object cimport PyObject
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, dtype, dtype_object, is_floating
from cygrad._core.dispatch.dispatch cimport call, call_inplace
from cygrad._core.graph.mode_stack cimport Mode, exchange_mode
from cygrad._core.graph.modes cimport AUTOCAST_MODE, grad_enabled
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport MAX_ARGUMENTS, Operator, operator_t

from cygrad._core.table.operator import operators

cdef extern from * nogil:
    """
    #include "memory/thread_variable.h"
    THREAD_VARIABLE int block, keeps_casts;
    """
    int block             # 0, or the code of the dtype of this thread's block, plus one
    int keeps_casts       # of parameters

# Casts of parameters, by thread and id: (parameter, its version, grad mode, the dtype, the cast).
cdef object _kept = threading.local()


cdef int _set_block(int code) except -1:
    global block
    block = code
    exchange_mode(AUTOCAST_MODE, _mode if code else None)
    return 0


def current():
    """Return the dtype of this thread's block, or None."""
    return dtype_object(block - 1) if block else None


def state():
    """Return what `leave` needs to restore the block of this thread."""
    return block, keeps_casts


def exchange(dtype wanted, bint keeps):
    """Enter a block of a dtype, or none; -> what `leave` needs."""
    global keeps_casts
    before = state()
    _set_block(0 if wanted is None else wanted.code + 1)
    keeps_casts = keeps
    return before


def leave(tuple before not None):
    """Restore the state before `exchange`; the outermost block drops its cached casts."""
    global keeps_casts
    code, keeps_casts = before
    _set_block(code)
    if not block:
        forget()


class Again:
    """The block of the thread that creates it, to be entered later or by another thread."""

    def __init__(self):
        self.dtype = current()

    def __enter__(self):
        self.before = exchange(self.dtype, False)

    def __exit__(self, type=None, value=None, traceback=None):
        leave(self.before)


def forget():
    """Drop the cached casts of parameters of this thread."""
    _kept.__dict__.clear()


cdef inline bint _eligible(object value):
    return isinstance(value, Tensor) and is_floating((<Tensor>value).array.dtype) \
        and (<Tensor>value).array.dtype != FLOAT64


def cast(value, dtype target not None):
    """Cast floating tensors of up to 32 bits, alone or in lists and tuples; return all else as is."""
    if isinstance(value, (list, tuple)):
        return [cast(part, target) for part in value]
    if not _eligible(value) or (<Tensor>value).array.dtype == target.code:
        return value
    if not keeps_casts or not (<Tensor>value).leaf_requires_grad or (<Tensor>value).node is not None:
        return operators.cast(value, target)
    # One cast of a parameter serves all its uses in the block, in forward and in backward.
    state = (value._version, grad_enabled(), target)
    known = _kept.__dict__.get(id(value))
    if known is None or known[1] != state:
        known = _kept.__dict__[id(value)] = (value, state, operators.cast(value, target))
    return known[2]


cdef class AutocastMode(Mode):
    """Cast the operands of a call as its row says."""

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        cdef operator_t *op = operator.descriptor
        cdef PyObject *cast_arguments[MAX_ARGUMENTS]
        cdef dtype target = dtype_object(FLOAT32 if op.flags & WIDENS else block - 1)
        cdef list values = []
        cdef int i
        if inplace:
            return call_inplace(operator, arguments)
        if out is not None or not op.flags & AUTOCASTS:
            return call(operator, arguments, out)
        if op.flags & MEETS:
            for i in range(op.n_arguments):
                value = <object>arguments[i]
                for item in value if isinstance(value, (list, tuple)) else (value,):
                    if _eligible(item) and (<Tensor>item).array.dtype == FLOAT32:
                        target = dtype_object(FLOAT32)
        for i in range(op.n_arguments):
            values.append(cast(<object>arguments[i], target))
            cast_arguments[i] = <PyObject *>values[i]
        return call(operator, cast_arguments, None)


cdef Mode _mode = AutocastMode()
