"""
The element-wise part of LSTM and GRU cells.

A row of logits has a block of n units per gate, in PyTorch's order: input, forget, candidate and output gate of an
LSTM; reset, update and candidate of a GRU. Activations have a first dimension for the gates instead; an LSTM's fifth
one is tanh of the new cell. Rows are independent, so results are bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, is_true, register_kernel, release, shape_text, value_t
from cygrad._core.arrays.dtype cimport FLOAT32, dtype_name, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, integer_argument, new_array, view_result
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.primitives.primitive_table cimport entries, primitive
from cygrad._core.threads.grain cimport EXPENSIVE, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/nn/recurrent_cells.h" nogil:
    void (*lstm_begin[2])(const void *gates, void *activations, int64_t rows, int64_t n, int64_t step)
    void (*lstm_cell[2])(void *activations, const void *cell, void *result, int64_t size, int64_t step)
    void (*lstm_hidden[2])(const void *activations, void *hidden, int64_t size, int64_t step)
    void (*lstm_backward[2])(const void *activations, const void *cell, const void *grad_hidden, const void *grad_cell,
                             void *result, int64_t rows, int64_t n, int64_t step)
    void (*gru_begin[2])(const void *gates, const void *hidden_gates, void *activations, int64_t rows, int64_t n,
                         int64_t step)
    void (*gru_hidden[2])(const void *activations, const void *hidden, void *result, int64_t size, int64_t step)
    void (*gru_backward[2])(const void *activations, const void *hidden_gates, const void *hidden, const void *grad,
                            void *result, int64_t rows, int64_t n, int64_t step, bint of_hidden)

cdef enum:
    OPERANDS = 4
    RESULTS = 3

ctypedef enum cell_task_t:
    LSTM                       # logits, cell -> hidden, next cell, activations
    LSTM_BACKWARD              # activations, cell, grad of hidden, grad of next cell -> grad of logits
    GRU                        # logits of input, logits of hidden, hidden -> next hidden, activations
    GRU_BACKWARD               # activations, logits of hidden, hidden, grad -> grad of logits

ctypedef struct cell_rows_t:
    cell_task_t task
    const char *name
    int dtype
    int64_t n                            # units of a row
    int64_t step                         # stride of the gates in the activations: elements of the state
    bint of_hidden
    array_t *held[OPERANDS]              # contiguous operands
    int64_t blocks[OPERANDS]             # row stride of each, in blocks of n elements
    array_t *made[RESULTS]
    int64_t made_blocks[RESULTS]

cdef int _tanh = primitive("tanh")


cdef inline void _take_tanh(int dtype, char *data, int64_t n) noexcept nogil:
    """Apply tanh to n contiguous elements, in-place."""
    cdef char *arguments[2]
    cdef int64_t steps[2]
    arguments[0] = arguments[1] = data
    steps[0] = steps[1] = itemsize(dtype)
    entries[_tanh][dtype].loop(arguments, &n, steps, entries[_tanh][dtype].data)


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef cell_rows_t *work = <cell_rows_t *>context
    cdef char *x[OPERANDS]
    cdef char *out[RESULTS]
    cdef int64_t n = work.n, unit = itemsize(work.dtype), rows = end - begin, step = work.step, size = rows * n
    cdef bint double_precision = work.dtype != FLOAT32
    cdef int i
    for i in range(OPERANDS):
        x[i] = work.held[i].data + begin * work.blocks[i] * n * unit if work.held[i] != NULL else NULL
    for i in range(RESULTS):
        out[i] = work.made[i].data + begin * work.made_blocks[i] * n * unit if work.made[i] != NULL else NULL
    if work.task == LSTM:
        lstm_begin[double_precision](x[0], out[2], rows, n, step)
        _take_tanh(work.dtype, out[2] + 2 * step * unit, size)
        lstm_cell[double_precision](out[2], x[1], out[1], size, step)
        _take_tanh(work.dtype, out[2] + 4 * step * unit, size)
        lstm_hidden[double_precision](out[2], out[0], size, step)
    elif work.task == GRU:
        gru_begin[double_precision](x[0], x[1], out[1], rows, n, step)
        _take_tanh(work.dtype, out[1] + 2 * step * unit, size)
        gru_hidden[double_precision](out[1], x[2], out[0], size, step)
    elif work.task == LSTM_BACKWARD:
        lstm_backward[double_precision](x[0], x[1], x[2], x[3], out[0], rows, n, step)
    else:
        gru_backward[double_precision](x[0], x[1], x[2], x[3], out[0], rows, n, step, work.of_hidden)


cdef void _start(cell_rows_t *work, cell_task_t task, const char *name) noexcept nogil:
    cdef int i
    work.task, work.name = task, name
    work.of_hidden = False
    for i in range(OPERANDS):
        work.held[i] = NULL
    for i in range(RESULTS):
        work.made[i] = NULL


cdef int _hold(cell_rows_t *work, int place, const char *what, const value_t *value, int64_t blocks,
               const array_t *state) noexcept nogil:
    """Read an operand whose rows are `blocks` times as long as those of the state."""
    cdef array_t *array
    cdef int64_t expected
    cdef bint fits
    cdef int i, status = array_argument(work.name, what, value, &array)
    if status != OK:
        return status
    fits = array.ndim == state.ndim and array.dtype == state.dtype
    for i in range(state.ndim):
        expected = state.shape[i] * (blocks if i == state.ndim - 1 else 1)
        fits = fits and array.shape[i] == expected
    if not fits:
        snprintf(message(), MESSAGE, b"%s: %s does not match the state %s of %s (got %s of %s, expected the same type "
                 b"and a last size %lld times as large).", work.name, what, shape_text(state), dtype_name(state.dtype),
                 shape_text(array), dtype_name(array.dtype), <long long>blocks)
        return RUNTIME_ERROR
    work.blocks[place] = blocks
    work.held[place] = as_contiguous(array, -1)
    return OK if work.held[place] != NULL else MEMORY_ERROR


cdef int _hold_activations(cell_rows_t *work, const value_t *value, int64_t blocks,
                           const array_t *state) noexcept nogil:
    """Read the activations: one block of the shape of the state per gate."""
    cdef array_t *array
    cdef bint fits
    cdef int i, status = array_argument(work.name, b"activations", value, &array)
    if status != OK:
        return status
    fits = array.ndim == state.ndim + 1 and array.dtype == state.dtype and array.shape[0] == blocks
    for i in range(state.ndim):
        fits = fits and array.shape[i + 1] == state.shape[i]
    if not fits:
        snprintf(message(), MESSAGE, b"%s: the activations do not match the state %s of %s (got %s of %s, expected "
                 b"%lld in front of it).", work.name, shape_text(state), dtype_name(state.dtype), shape_text(array),
                 dtype_name(array.dtype), <long long>blocks)
        return RUNTIME_ERROR
    work.blocks[0] = 1
    work.held[0] = as_contiguous(array, -1)
    return OK if work.held[0] != NULL else MEMORY_ERROR


cdef int _make_activations(cell_rows_t *work, int place, int64_t blocks, const array_t *state) noexcept nogil:
    cdef int64_t[MAX_DIMS + 1] shape
    cdef int i
    if state.ndim == MAX_DIMS:
        snprintf(message(), MESSAGE, b"%s: the state has too many dimensions (got %d).", work.name, state.ndim)
        return RUNTIME_ERROR
    shape[0] = blocks
    for i in range(state.ndim):
        shape[i + 1] = state.shape[i]
    work.made_blocks[place] = 1
    return new_array(work.name, work.dtype, state.ndim + 1, shape, &work.made[place])


cdef int _state(cell_rows_t *work, const char *what, const value_t *value, array_t **state) noexcept nogil:
    """Read the state, whose shape determines the other shapes."""
    cdef int status = array_argument(work.name, what, value, state)
    if status != OK:
        return status
    if not is_floating(state[0].dtype):
        snprintf(message(), MESSAGE, b"%s: needs float32 or float64 (got %s). Convert with to() first.", work.name,
                 dtype_name(state[0].dtype))
        return NOT_IMPLEMENTED
    if state[0].ndim == 0:
        snprintf(message(), MESSAGE, b"%s: %s needs a dimension of units (got shape ()).", work.name, what)
        return RUNTIME_ERROR
    work.dtype = state[0].dtype
    work.n = state[0].shape[state[0].ndim - 1]
    work.step = state[0].size
    return OK


cdef int _make(cell_rows_t *work, int place, int64_t blocks, const array_t *state) noexcept nogil:
    cdef int64_t[MAX_DIMS] shape
    cdef int i
    for i in range(state.ndim):
        shape[i] = state.shape[i]
    shape[state.ndim - 1] *= blocks
    work.made_blocks[place] = blocks
    return new_array(work.name, work.dtype, state.ndim, shape, &work.made[place])


cdef int _finish(cell_rows_t *work, int status, const array_t *state, int count, value_t *results) noexcept nogil:
    """Compute unless `status` is an error, and release the operands."""
    cdef int i
    if status == OK and state.size:
        parallel_for(_body, work, state.size // work.n, rows_per_chunk(work.n, EXPENSIVE))
    for i in range(OPERANDS):
        release(work.held[i])
    for i in range(count):
        if status == OK:
            array_result(work.made[i], &results[i])
        else:
            release(work.made[i])
    return status


cdef int lstm_gates_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """lstm_gates(logits, cell) -> hidden, next_cell, activations."""
    cdef cell_rows_t work
    cdef array_t *cell
    _start(&work, LSTM, b"lstm")
    cdef int status = _state(&work, b"cell", &arguments[1], &cell)
    if status != OK:
        return status
    status = _hold(&work, 0, b"the input of the gates", &arguments[0], 4, cell)
    if status == OK:
        status = _hold(&work, 1, b"cell", &arguments[1], 1, cell)
    if status == OK:
        status = _make(&work, 0, 1, cell)
    if status == OK:
        status = _make(&work, 1, 1, cell)
    if status == OK:
        status = _make_activations(&work, 2, 5, cell)
    return _finish(&work, status, cell, 3, results)


cdef int _run_backward(cell_rows_t *work, const char *what, const value_t *given_state, int64_t activations,
                       int64_t first, int64_t gates, const value_t *arguments, value_t *results) noexcept nogil:
    """Compute the gradient of the logits from activations and three operands, the first of `first` blocks."""
    cdef array_t *state
    cdef int i, status = _state(work, what, given_state, &state)
    if status != OK:
        return status
    status = _hold_activations(work, &arguments[0], activations, state)
    for i in range(1, OPERANDS):
        if status == OK:
            status = _hold(work, i, b"an operand", &arguments[i], first if i == 1 else 1, state)
    if status == OK:
        status = _make(work, 0, gates, state)
    return _finish(work, status, state, 1, results)


cdef int lstm_gates_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """lstm_gates_backward(activations, cell, grad_hidden, grad_cell)."""
    cdef cell_rows_t work
    _start(&work, LSTM_BACKWARD, b"lstm_gates_backward")
    return _run_backward(&work, b"cell", &arguments[1], 5, 1, 4, arguments, results)


cdef int gru_gates_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """gru_gates(logits, hidden_logits, hidden) -> next hidden, activations."""
    cdef cell_rows_t work
    cdef array_t *hidden
    _start(&work, GRU, b"gru")
    cdef int status = _state(&work, b"hidden", &arguments[2], &hidden)
    if status != OK:
        return status
    status = _hold(&work, 0, b"the input of the gates", &arguments[0], 3, hidden)
    if status == OK:
        status = _hold(&work, 1, b"the input of the gates from the hidden state", &arguments[1], 3, hidden)
    if status == OK:
        status = _hold(&work, 2, b"hidden", &arguments[2], 1, hidden)
    if status == OK:
        status = _make(&work, 0, 1, hidden)
    if status == OK:
        status = _make_activations(&work, 1, 3, hidden)
    return _finish(&work, status, hidden, 2, results)


cdef int gru_gates_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """gru_gates_backward(activations, hidden_logits, hidden, grad, of_hidden)."""
    cdef cell_rows_t work
    _start(&work, GRU_BACKWARD, b"gru_gates_backward")
    work.of_hidden = is_true(&arguments[4])
    return _run_backward(&work, b"hidden", &arguments[2], 3, 3, 3, arguments, results)


cdef int block_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """block(self, number, blocks): a view of one block of each row."""
    cdef array_t *self
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t number, blocks
    cdef int i, last, status = array_argument(b"block", b"input", &arguments[0], &self)
    if status == OK:
        status = integer_argument(b"block", b"number", &arguments[1], &number)
    if status == OK:
        status = integer_argument(b"block", b"blocks", &arguments[2], &blocks)
    if status != OK:
        return status
    last = self.ndim - 1
    if last < 0 or not 0 <= number < blocks or self.shape[last] % blocks:
        snprintf(message(), MESSAGE, b"block: block index out of range (got shape %s, part %lld of %lld).",
                 shape_text(self), <long long>number, <long long>blocks)
        return RUNTIME_ERROR
    for i in range(last):
        shape[i] = self.shape[i]
    shape[last] = self.shape[last] // blocks
    return view_result(self, self.ndim, shape, self.strides, number * shape[last] * self.strides[last], &results[0])


register_kernel("block", block_kernel)
register_kernel("lstm_gates", lstm_gates_kernel)
register_kernel("lstm_gates_backward", lstm_gates_backward_kernel)
register_kernel("gru_gates", gru_gates_kernel)
register_kernel("gru_gates_backward", gru_gates_backward_kernel)
