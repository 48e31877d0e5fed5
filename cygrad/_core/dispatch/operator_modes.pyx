# distutils: extra_compile_args = -O1
"""Modes set by Python code: profilers, modes written in Python, and precomputed results."""

cimport cython
from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport NOTHING, clear, retain, set_array, set_arrays, value_t
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, dtype, dtype_object, is_floating
from cygrad._core.dispatch.dispatch cimport call, call_boxed, call_inplace
from cygrad._core.graph.boxing cimport box, frame_t, override, python_arguments, unbox
from cygrad._core.graph.mode_stack cimport Mode, exchange_mode, mode_at
from cygrad._core.graph.modes cimport AUTOCAST_MODE, PRECOMPUTED_MODE, PROFILER_MODE, USER_MODE, grad_enabled
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.errors cimport check
from cygrad._core.table.operator cimport LIST_RESULT, MAX_ARGUMENTS, MAX_RESULTS, Operator, operator_t

import threading
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------- operator modes

cdef inline object _proceed(Operator operator, PyObject **arguments, object out, bint inplace):
    return call_inplace(operator, arguments) if inplace else call(operator, arguments, out)


# ---- profilers

@cython.binding(False)
cdef class ProfilerMode(Mode):
    """Reports calls and nodes, except nested calls, to a recorder."""

    cdef object recorder

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        event = self.recorder.begin(operator.name + "_" if inplace else operator.name, "operator",
                                    [<object>arguments[i] for i in range(operator.descriptor.n_arguments)])
        try:
            return _proceed(operator, arguments, out, inplace)
        finally:
            self.end_node(event)

    cdef object begin_node(self, str name):
        return self.recorder.begin(name, "node", [])

    cdef int end_node(self, object event) except -1:
        if event is not None:
            self.recorder.end(event)
        return 0


def recorder():
    """Return the recorder of this thread, or None."""
    cdef Mode mode = mode_at(PROFILER_MODE)
    return None if mode is None else (<ProfilerMode>mode).recorder


def set_recorder(recorder):
    """
    Report every operator and node of this thread to `recorder`, or stop with None; return the former one.

    It has the methods ``begin(name, kind, arguments)``, which returns an event or None, and ``end(event)``.
    """
    cdef ProfilerMode mode = None
    if recorder is not None:
        mode = ProfilerMode()
        mode.recorder = recorder
    former = exchange_mode(PROFILER_MODE, mode)
    return None if former is None else (<ProfilerMode>former).recorder


# ---- modes written in Python

@cython.binding(False)
cdef class UserMode(Mode):
    """Passes calls to ``handler(name, arguments, options, out, inplace)``, which returns the result of the call."""

    cdef object handler

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        positional, options = python_arguments(operator, arguments)
        return self.handler(operator.name, positional, options, out, inplace)


def push_user_mode(handler):
    """Push a mode on this thread that passes calls to `handler` first."""
    cdef UserMode mode = UserMode()
    mode.handler, mode.outer = handler, mode_at(USER_MODE)
    exchange_mode(USER_MODE, mode)
    return mode.outer


def call_in_user_mode(function):
    """Return ``function(handler)`` of the innermost mode, called outside of it; None without a mode."""
    cdef UserMode mode = mode_at(USER_MODE)
    if mode is None:
        return None
    exchange_mode(USER_MODE, mode.outer)
    try:
        return function(mode.handler)
    finally:
        exchange_mode(USER_MODE, mode)


def set_user_mode(Mode mode):
    """Set the innermost mode: one that push_user_mode() returned, or None; return the former one."""
    return exchange_mode(USER_MODE, mode)


# ---- precomputed results

@cython.binding(False)
cdef class PrecomputedMode(Mode):
    """Sets precomputed results of one operator: its call records the node without computing them."""

    cdef str name
    cdef tuple results

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        cdef frame_t frame
        cdef value_t[MAX_RESULTS] values
        cdef int i
        if self.name != operator.name or inplace:
            return _proceed(operator, arguments, out, inplace)
        self.name = None
        _keep_alive = box(operator, arguments, &frame)
        if frame.overridden:                 # handled by the class of an argument
            unbox(&frame)
            return override(operator, arguments, out, False)
        for i in range(MAX_RESULTS):
            values[i].kind = NOTHING
        try:
            _fill(self.results, operator.descriptor, values)
        except BaseException:
            unbox(&frame)
            for i in range(MAX_RESULTS):
                clear(&values[i])
            raise
        return call_boxed(operator, &frame, out, values)


def call_precomputed(str name, tuple results, function, arguments, options):
    """Call the function of an operator with precomputed `results`, so that it only records its node."""
    cdef PrecomputedMode mode = PrecomputedMode()
    mode.name, mode.results = name, results
    cdef Mode user = exchange_mode(USER_MODE, None)           # other modes count the operations
    cdef Mode profiler = exchange_mode(PROFILER_MODE, None)
    cdef Mode outer = exchange_mode(PRECOMPUTED_MODE, mode)
    try:
        return function(*arguments, **options)
    finally:
        exchange_mode(PRECOMPUTED_MODE, outer)
        exchange_mode(PROFILER_MODE, profiler)
        exchange_mode(USER_MODE, user)


cdef int _fill(tuple given, const operator_t *op, value_t *results) except -1:
    """Return the results as a kernel does, in arrays without a Tensor."""
    cdef int i
    if op.flags & LIST_RESULT:
        check(set_arrays(&results[0], len(given)))
    for i in range(len(given)):
        tensor = <Tensor>(<Tensor?>given[i]).detach()
        if op.flags & LIST_RESULT:
            results[0].of.arrays[i] = retain((<Tensor>tensor).array)
        else:
            set_array(&results[i], retain((<Tensor>tensor).array))
    return 0


# ------------------------------------------------------------------------------------------------------------- autocast

# Automatic mixed precision: operators whose operands `autocast` casts.
#
# The key `autocast` of a row says how its operands are cast; other operators compute in the dtypes of their arguments.
# Casts are recorded, so gradients have the dtypes of the original tensors.

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
    """Return the state of this thread for `leave`."""
    return block, keeps_casts


def exchange(dtype wanted, bint keeps):
    """Enter a block of a dtype, or none; return the state for `leave`."""
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
    """Cast floating point tensors of up to 32 bits, also in lists and tuples; return other values unchanged."""
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
    """Cast the operands of a call by the key `autocast` of its row."""

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
