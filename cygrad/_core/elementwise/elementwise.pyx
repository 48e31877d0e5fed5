"""
Element-wise expressions, executed tile by tile in one pass over memory.

Small problems whose operands have the same layout take a fast path: a few checks, then the loops on the whole.
"""

from cygrad._core.arrays.array cimport (
    ARRAY, MAX_DIMS, array_empty_like, exclusive, release, retain, same_shape, set_array, shape_text, share_memory,
)
from cygrad._core.arrays.dtype cimport category, dtype_name, itemsize
from cygrad._core.elementwise.copying cimport (
    array_for_operands, as_copy, check_writable, copy_like, nest_add, nest_add_value, nest_begin, nest_finish,
    same_place,
)
from cygrad._core.elementwise.tiles cimport (
    LISTEN, MAX_CELLS, clear_invalid, discard, how_to_watch, may_hold_nan, nan_watchers, place_cells, run_steps,
    run_task, slots_t, specialize, specialized_t, task_t, watch,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, message, sizes_text
from cygrad._core.memory.storage cimport NO_ELEMENTS
from cygrad._core.primitives.primitive_table cimport cast_loops, loop_status, set_loop_status
from cygrad._core.threads.grain cimport CHUNK
from libc.stdint cimport uintptr_t
from libc.stdio cimport snprintf

cdef enum:
    SMALL = 16384         # bytes of temporaries on the stack in the fast path
    LARGE = 16384         # elements from which a transposed operand is copied first
    FAR_ROWS = 256        # ... if it has that many rows, whose cache lines evict each other


cdef int evaluate(expression_t *expression, const value_t *inputs, uint32_t reuse,
                  array_t *into, array_t **result) noexcept nogil:
    cdef int status = OK
    cdef specialized_t *specialized = specialize(expression, inputs, &status)
    if specialized == NULL:
        return status
    status = _run_short(specialized, inputs, reuse, into, result)
    if status < 0:
        status = _run_long(specialized, inputs, reuse, into, result)
    if specialized.temporary:
        discard(specialized)
    return status


cdef inline array_t *_reusable(const value_t *inputs, int n, uint32_t reuse, int dtype, int ndim,
                               const int64_t *shape) noexcept nogil:
    """Return an input in whose memory the result may be computed, retained; or NULL."""
    cdef int i, d
    cdef array_t *array
    for i in range(n):
        if not (reuse >> i) & 1 or inputs[i].kind != ARRAY:
            continue
        array = inputs[i].of.array
        if array.dtype != dtype or array.ndim != ndim or not exclusive(array):
            continue
        for d in range(ndim):
            if array.shape[d] != shape[d]:
                break
        else:
            return retain(array)
    return NULL


cdef int _run_short(const specialized_t *expression, const value_t *inputs, uint32_t reuse, array_t *into,
                    array_t **result) noexcept nogil:
    """Fast path: small, all arrays contiguous and of one shape or 0-dim. -> -1 if it does not apply."""
    cdef array_t *first = NULL
    cdef array_t *array
    cdef array_t *out = into
    cdef slots_t slots
    cdef double complex[MAX_CELLS] numbers
    cdef char[SMALL + 64] memory
    cdef int64_t n, capacity
    cdef int i, watched
    for i in range(expression.n_inputs):
        if inputs[i].kind != ARRAY:
            continue
        array = inputs[i].of.array
        if first == NULL:
            first = array
        elif array != first and not same_shape(array, first):
            if array.ndim == 0:
                continue
            if first.ndim:
                return -1
            first = array
        if not array.contiguous:
            return -1
    if first == NULL or first.size == 0:
        return -1
    n = first.size
    if n * expression.cost > CHUNK:
        return -1
    capacity = (n + 15) & ~15
    if expression.n_buffers and expression.n_buffers * expression.width * capacity > SMALL:
        return -1
    if into != NULL:
        if not into.contiguous or into.dtype != expression.dtype or not same_shape(into, first):
            return -1
        for i in range(expression.n_inputs):
            if (inputs[i].kind == ARRAY and inputs[i].of.array.data != into.data
                    and share_memory(inputs[i].of.array, into)):
                return -1
            if (inputs[i].kind == ARRAY and inputs[i].of.array.data == into.data
                    and not same_place(inputs[i].of.array, into)):
                return -1
    else:
        if reuse:
            out = _reusable(inputs, expression.n_inputs, reuse, expression.dtype, first.ndim, first.shape)
        if out == NULL:
            out = array_empty_like(first, expression.dtype)
            if out == NULL:
                return MEMORY_ERROR
    for i in range(expression.n_inputs):
        if inputs[i].kind == ARRAY:
            array = inputs[i].of.array
            slots.data[i] = array.data
            slots.steps[i] = 0 if array.ndim == 0 else itemsize(array.dtype)
    if expression.n_cells:
        place_cells(expression, inputs, &slots, numbers)
    slots.out = out.data
    slots.out_step = itemsize(expression.dtype)
    watched = how_to_watch() if nan_watchers else 0
    if watched == LISTEN:
        clear_invalid()
    run_steps(expression, &slots, <char *>((<uintptr_t>memory + 63) & ~<uintptr_t>63), capacity, n)
    if watched and may_hold_nan(watched, out.data, expression.dtype, n):
        watch().nan = 1
    if expression.partial and loop_status() != OK:
        i = loop_status()
        set_loop_status(OK)
        if into == NULL:
            release(out)
        return i
    if into == NULL:
        result[0] = out
    return OK


cdef int _run_long(const specialized_t *expression, const value_t *inputs, uint32_t reuse, array_t *into,
                   array_t **result) noexcept nogil:
    """General path: a nest of loops, cut into tiles."""
    cdef task_t task
    cdef double complex[MAX_CELLS] numbers
    cdef array_t *aside[MAX_INPUTS]
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *out = into
    cdef array_t *array
    cdef int i, status = OK, ndim = broadcast_shape(inputs, expression.n_inputs, shape)
    if ndim < 0:
        return RUNTIME_ERROR
    if into != NULL:
        status = _check_into(expression, into, ndim, shape)
        if status != OK:
            return status
    else:
        out = _reusable(inputs, expression.n_inputs, reuse, expression.dtype, ndim, shape) if reuse else NULL
        if out == NULL:
            out = array_for_operands(expression.dtype, ndim, shape, inputs, expression.n_inputs)
        if out == NULL:
            return MEMORY_ERROR
        if out.storage.size_class == NO_ELEMENTS:
            result[0] = out
            return OK
    if out.size:
        task.expression = expression
        task.move[0] = cast_loops[expression.dtype][out.dtype] if expression.dtype != out.dtype else NULL
        task.itemsize[0] = itemsize(out.dtype)
        nest_begin(&task.nest, ndim, shape)
        nest_add(&task.nest, out)
        for i in range(expression.n_inputs):
            aside[i] = NULL
            if inputs[i].kind != ARRAY:
                nest_add_value(&task.nest, NULL)
                continue
            array = inputs[i].of.array
            if status == OK and (should_copy_transposed(array, out) or (
                    into != NULL and share_memory(into, array) and not same_place(into, array))):
                aside[i] = array = (as_copy(array, array.dtype) if out.contiguous or not same_shape(array, out)
                                    else copy_like(array, out, -1))
                if array == NULL:
                    status = MEMORY_ERROR
                    array = inputs[i].of.array
            nest_add(&task.nest, array)
            task.move[i + 1] = cast_loops[array.dtype][array.dtype]
            task.itemsize[i + 1] = itemsize(array.dtype)
        if status == OK:
            nest_finish(&task.nest)
            place_cells(expression, inputs, &task.cells, numbers)
            status = run_task(&task)
        for i in range(expression.n_inputs):
            if aside[i] != NULL:
                release(aside[i])
    if into == NULL:
        if status == OK:
            result[0] = out
        else:
            release(out)
    return status


cdef bint should_copy_transposed(const array_t *array, const array_t *out) noexcept nogil:
    cdef int d, last = array.ndim - 1
    cdef int64_t size, step
    if (array.contiguous and out.contiguous) or array.size < LARGE:
        return False
    if out.contiguous:
        while array.shape[last] == 1:
            last -= 1
    elif not same_shape(array, out):
        return False
    else:
        for d in range(out.ndim):
            if out.shape[d] > 1 and (out.shape[last] == 1 or out.strides[d] < out.strides[last]):
                last = d
    step = array.strides[last] if array.strides[last] >= 0 else -array.strides[last]
    for d in range(array.ndim):
        size = array.strides[d] if array.strides[d] >= 0 else -array.strides[d]
        if d != last and 0 < size < step and array.shape[d] > 1 and array.shape[last] >= FAR_ROWS:
            return True
    return False


cdef int _check_into(const specialized_t *expression, array_t *into, int ndim,
                     const int64_t *shape) noexcept nogil:
    """Check that the result can be written to `into`. The message omits the operation, as `check_operation` expects."""
    cdef int d
    cdef bint fits = into.ndim == ndim
    if fits:
        for d in range(ndim):
            fits = fits and into.shape[d] == shape[d]
    if not fits:
        snprintf(message(), MESSAGE, b": output with shape %s doesn't match the broadcast shape %s of the result. Use "
                 b"the form that returns a new tensor.", shape_text(into), sizes_text(ndim, <const long long *>shape))
        return RUNTIME_ERROR
    if category(expression.dtype) > category(into.dtype):
        snprintf(message(), MESSAGE, b": the result type %s can't be cast to the desired output type %s. Use the form "
                 b"that returns a new tensor.", dtype_name(expression.dtype), dtype_name(into.dtype))
        return RUNTIME_ERROR
    return check_writable(into, b"")


cdef int result_dtype(expression_t *expression, const value_t *inputs) noexcept nogil:
    cdef int status = OK, dtype
    cdef specialized_t *specialized = specialize(expression, inputs, &status)
    if specialized == NULL:
        return -status
    dtype = specialized.dtype
    if specialized.temporary:
        discard(specialized)
    return dtype


# Accumulation: the expression "a + b".
cdef primitive_call_t _addition
cdef expression_t _sum


cdef int accumulate(array_t *a, array_t *b) noexcept nogil:
    cdef value_t[2] operands
    cdef char *pointers[3]
    cdef int64_t steps[3]
    cdef int64_t n = a.size
    cdef int watched, status
    cdef const entry_t *entry = &entries[_addition.primitive][a.dtype]
    if (a.contiguous and b.contiguous and a.dtype == b.dtype and n <= CHUNK and entry.loop != NULL
            and same_shape(a, b) and (a.data == b.data or not share_memory(a, b))):
        pointers[0] = pointers[2] = a.data
        pointers[1] = b.data
        steps[0] = steps[1] = steps[2] = itemsize(a.dtype)
        watched = LISTEN if nan_watchers and how_to_watch() else 0
        if watched:
            clear_invalid()
        if n:
            entry.loop(pointers, &n, steps, entry.data)
        if watched and may_hold_nan(watched, a.data, a.dtype, n):
            watch().nan = 1
        return OK
    set_array(&operands[0], a)
    set_array(&operands[1], b)
    if nan_watchers:
        watch().plain = 1
    status = evaluate(&_sum, operands, 0, a, NULL)
    if nan_watchers:
        watch().plain = 0
    return status


def _initialize():
    _addition.primitive = primitive("add")
    _addition.out = 2
    _addition.inputs[0] = 0
    _addition.inputs[1] = 1
    _addition.inputs[2] = -1
    _sum.n_inputs = 2
    _sum.n_instructions = 1
    _sum.n_registers = 3
    _sum.result = 2
    _sum.code = &_addition


_initialize()
