"""
The updates of one step of an optimizer: all parameters of a group in one pass over memory, without the GIL.

Under the GIL a `Batch` collects what the step works on: memory of the parameters, their gradients (taken from the
gradient slots, no Tensor is made for them) and their state. Then the arithmetic runs, see optimize_rules.h.
Arrays that are not contiguous or have another dtype go through contiguous copies, so there is one arithmetic.

Every array is held while the step runs, so any number of threads may step, or run backward for, the same parameters
at the same time. They race on values then, as Hogwild training intends: an update may be lost, memory stays sound.
"""

from cpython.object cimport PyObject
cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport array_empty, array_empty_like, array_t, release, retain, same_shape, shape_text
from cygrad._core.arrays.dtype cimport (
    FLOAT32, FLOAT64, computed_in, default_float, is_complex, is_differentiable, itemsize, real_of)
from cygrad._core.arrays.value cimport REAL, value_t
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.graph.inplace cimport check_inplace
from cygrad._core.graph.mode_stack cimport Mode, mode_at
from cygrad._core.graph.modes cimport TRACING_MODE, is_tracing, thread_state
from cygrad._core.graph.source_location cimport running_code
from cygrad._core.graph.tensor cimport Tensor, describe, wrap
from cygrad._core.graph.version_errors cimport remember_code
from cygrad._core.memory.atomic cimport atomic_increment, lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.references cimport drop_reference
from cygrad._core.primitives.cast cimport number_to_cell
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "optimizers/optimize_rules.h" nogil:
    void apply_rule(const update_range_t *range, const rule_t *rule)

cdef enum:
    STEP_GRAIN = 1 << 18      # elements per chunk of a parallel step; smaller ones end before a helper arrives
    LARGE = 1 << 14           # elements from which the GIL is released


cdef class Batch:
    """The updates of one step; holds all their arrays."""
    cdef update_t *updates
    cdef int n
    cdef int capacity
    cdef rule_t rule

    def __cinit__(self, int capacity):
        self.capacity = capacity
        self.updates = <update_t *>calloc(max(capacity, 1), sizeof(update_t))
        if self.updates == NULL:
            raise MemoryError("step: no memory for the list of updates")

    def __dealloc__(self):
        cdef int i, role
        if self.updates == NULL:
            return
        release_work(self.updates, self.n)
        for i in range(self.n):
            for role in range(ROLES):
                release(self.updates[i].given[role])
        free(self.updates)

    cdef update_t *add(self, Tensor parameter, str operation) except? NULL:
        """Add an update for the parameter; NULL if it has no gradient."""
        cdef array_t *gradient
        cdef update_t *update
        if parameter.gradient == NULL:
            return NULL
        lock_patiently(&parameter.gradient.lock)
        gradient = parameter.gradient.value
        if gradient != NULL:
            retain(gradient)
        unlock(&parameter.gradient.lock)
        if gradient == NULL:
            return NULL
        if self.n == self.capacity:
            release(gradient)
            raise RuntimeError(f"{operation}: the list of parameters changed during the step.")
        update = &self.updates[self.n]
        self.n += 1
        update.given[0] = retain(parameter.array)
        update.given[1] = gradient
        if not is_differentiable(parameter.array.dtype) or not is_differentiable(gradient.dtype):
            raise RuntimeError(f"{operation}: parameters must be floating point or complex "
                               f"(got a {describe(parameter)}).")
        if is_complex(gradient.dtype) and not is_complex(parameter.array.dtype):
            raise RuntimeError(f"{operation}: a complex gradient cannot change a real parameter "
                               f"(got a {describe(parameter)}). Set its .grad to None first.")
        if not same_shape(parameter.array, gradient):
            raise RuntimeError(f"{operation}: the gradient must have the shape of its parameter (got "
                               f"{shape_text(gradient).decode()}, expected {shape_text(parameter.array).decode()}). "
                               "Set .grad to None after changing .data.")
        check_inplace(parameter, operation, False)
        return update

    cdef int run(self) except -1:
        """Run all updates."""
        cdef int i, status, offset = 0
        cdef int64_t total = 0
        cdef PyObject *code
        for i in range(self.n):
            total += self.updates[i].given[0].size
        if total < LARGE:
            status = run_updates(self.updates, self.n, &self.rule)
        else:
            with nogil:
                status = run_updates(self.updates, self.n, &self.rule)
        check(status)
        code = running_code(&offset)             # for the message about modified saved tensors
        for i in range(self.n):
            if self.updates[i].given[0].version != NULL:
                remember_code(self.updates[i].given[0].version, code, offset)
        drop_reference(code)
        return 0


# ---- the arithmetic, without the GIL

cdef struct update_run_t:
    update_t *updates
    int n
    const rule_t *rule


cdef int run_updates(update_t *updates, int n, const rule_t *rule) noexcept nogil:
    """Run contiguous copies first, then the rule over all elements, then copies back and version counts."""
    cdef update_run_t run
    cdef int i, role, status
    cdef int64_t total = 0
    for i in range(n):
        status = _prepare(&updates[i])
        if status != OK:
            return status
        total += updates[i].range.n
        updates[i].end = total
    run.updates, run.n, run.rule = updates, n, rule
    parallel_for(_run_piece, &run, total, STEP_GRAIN)
    for i in range(n):
        for role in range(ROLES):
            if role != 1 and updates[i].work[role] != updates[i].given[role]:
                status = copy_into(updates[i].given[role], updates[i].work[role])
                if status != OK:
                    return status
        if updates[i].given[0].version != NULL:
            atomic_increment(&updates[i].given[0].version.value)
    return OK


cdef void release_work(update_t *updates, int n) noexcept nogil:
    cdef int i, role
    for i in range(n):
        for role in range(ROLES):
            release(updates[i].work[role])
            updates[i].work[role] = NULL


cdef int _prepare(update_t *update) noexcept nogil:
    """
    Make every array contiguous and of the parameter's dtype, or its compute dtype; complex ones are twice as many
    reals.
    """
    cdef int role, dtype = computed_in(update.given[0].dtype)
    update.range.n = update.given[0].size * (2 if is_complex(dtype) else 1)
    update.range.double_precision = real_of(dtype) != FLOAT32
    for role in range(ROLES):
        if update.given[role] == NULL:
            continue
        if not same_shape(update.given[role], update.given[0]):
            snprintf(message(), MESSAGE, b"step: the optimizer's state does not fit its parameter (got shape %s, "
                     b"expected %s). Make a new optimizer.",
                     shape_text(update.given[role]), shape_text(update.given[0]))
            return RUNTIME_ERROR
        update.work[role] = as_contiguous(update.given[role], dtype)
        if update.work[role] == NULL:
            return MEMORY_ERROR
        update.range.memory[role] = update.work[role].data
    return OK


cdef void _run_piece(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Run the rule on elements begin..end of all parameters concatenated."""
    cdef update_run_t *run = <update_run_t *>context
    cdef int low = 0, high = run.n - 1, middle, role
    cdef int64_t start, size
    cdef update_range_t range_
    while low < high:
        middle = (low + high) // 2
        if run.updates[middle].end > begin:
            high = middle
        else:
            low = middle + 1
    while begin < end:
        range_ = run.updates[low].range
        size = 8 if range_.double_precision else 4
        start = begin - (run.updates[low].end - range_.n)
        range_.n = min(end, run.updates[low].end) - begin
        for role in range(ROLES):
            if range_.memory[role] != NULL:
                range_.memory[role] += start * size
        if range_.n > 0:
            apply_rule(&range_, run.rule)
        begin += range_.n
        low += 1


cdef rule_t rule_of(int kind, double lr, double weight_decay, bint maximize) noexcept:
    cdef rule_t rule
    memset(&rule, 0, sizeof(rule))
    rule.kind, rule.rate, rule.weight_decay, rule.maximize = kind, lr, weight_decay, maximize
    return rule


@cython.binding(False)      # methods check the type of self
cdef class UpdateMode(Mode):

    cdef int begin_step(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        return 0


cdef int trace_step(list parameters, object state, const rule_t *rule, str operation) except -1:
    return (<UpdateMode>mode_at(TRACING_MODE)).begin_step(parameters, state, rule, operation) if is_tracing() else 0


cdef int run_step(list parameters, object state, const rule_t *rule, prepare_t prepare, str operation) except -1:
    cdef Batch batch = Batch(len(parameters))
    cdef update_t *update
    cdef Tensor parameter
    cdef int32_t grad_disabled = thread_state().grad_disabled
    if trace_step(parameters, state, rule, operation):
        return 0
    batch.rule = rule[0]
    thread_state().grad_disabled = 1
    try:
        for parameter in parameters:
            update = batch.add(parameter, operation)
            if update != NULL and prepare != NULL:
                prepare(update, state[parameter], parameter, rule)
        batch.run()
    finally:
        thread_state().grad_disabled = grad_disabled
    return 0


# ---- state, under the GIL

cdef array_t *state_array(dict state, str name, Tensor parameter, double start, bint *made) except NULL:
    cdef array_t *array
    cdef Tensor tensor
    cdef value_t number
    cdef char[16] cell
    cdef int64_t i, n
    value = state.get(name)
    if made != NULL:
        made[0] = value is None
    if value is None:
        array = array_empty_like(parameter.array, -1)
        tensor = wrap(array)
        if start == 0:
            memset(array.data, 0, array.size * itemsize(array.dtype))
        else:                                   # complex numbers get it in both parts, which are scaled separately
            number.kind, number.of.real = REAL, start
            number_to_cell(&number, real_of(array.dtype), cell)
            n = array.size * (2 if is_complex(array.dtype) else 1)
            for i in range(n):
                memcpy(array.data + i * itemsize(real_of(array.dtype)), cell, itemsize(real_of(array.dtype)))
        state[name] = tensor
    elif isinstance(value, Tensor):
        tensor = <Tensor>value
        check_inplace(tensor, "step", False)
    else:
        raise TypeError(f"step: state {name!r} must be a Tensor (got {type(value).__name__}).")
    return retain(tensor.array)


cdef Tensor state_number(dict state, str name, double start):
    cdef Tensor tensor
    cdef int dtype
    value = state.get(name)
    if isinstance(value, Tensor):
        tensor = <Tensor>value
        dtype = tensor.array.dtype
        if tensor.array.ndim == 0 and (dtype == FLOAT32 or dtype == FLOAT64):
            check_inplace(tensor, "step", False)
            return tensor
    tensor = wrap(array_empty(computed_in(default_float()), 0, NULL))
    write_number(tensor, start if value is None else float(value))
    state[name] = tensor
    return tensor


cdef double read_number(Tensor tensor) noexcept:
    """Return the value of the tensor of `state_number`."""
    if tensor.array.dtype == FLOAT32:
        return (<float *>tensor.array.data)[0]
    return (<double *>tensor.array.data)[0]


cdef void write_number(Tensor tensor, double value) noexcept:
    """Set the value of the tensor of `state_number`."""
    if tensor.array.dtype == FLOAT32:
        (<float *>tensor.array.data)[0] = <float>value
    else:
        (<double *>tensor.array.data)[0] = value


cdef double count_step(dict state) except -1:
    cdef Tensor tensor = state_number(state, "step", 0)
    write_number(tensor, read_number(tensor) + 1)
    return read_number(tensor)
