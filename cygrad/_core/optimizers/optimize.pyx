"""SGD and Adam-like steps for all parameters of a group, and zero_grad."""

cimport cython
from cpython.object cimport PyObject
from libc.math cimport fmax, pow, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    REAL, array_empty, array_empty_like, array_t, release, retain, same_shape, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    FLOAT32, FLOAT64, computed_in, default_float, is_complex, is_differentiable, itemsize, real_of,
)
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.graph.inplace cimport check_inplace
from cygrad._core.graph.mode_stack cimport Mode, mode_at
from cygrad._core.graph.modes cimport TRACING_MODE, is_tracing, thread_state
from cygrad._core.graph.node cimport remember_code, running_code
from cygrad._core.graph.tensor cimport Tensor, describe, is_meta, set_gradient, wrap
from cygrad._core.memory.atomic cimport atomic_increment, lock_patiently, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport drop_reference
from cygrad._core.primitives.primitive_table cimport number_to_cell
from cygrad._core.threads.grain cimport CHUNK
from cygrad._core.threads.parallel cimport parallel_for


# --------------------------------------------------------------------------------------------------------- update batch

# The updates of one step of an optimizer: all parameters of a group in one pass over memory, without the GIL.
#
# Under the GIL a `Batch` collects what the step works on: memory of the parameters, their gradients (taken from the
# gradient slots, no Tensor is made for them) and their state. Then the arithmetic runs, see loops.h.
# Arrays that are not contiguous or have another dtype go through contiguous copies, so there is one arithmetic.
#
# Every array is held while the step runs, so any number of threads may step, or run backward for, the same parameters
# at the same time. They race on values then, as Hogwild training intends: an update may be lost, memory stays sound.

cdef extern from "optimizers/options.h" nogil:
    void apply_rule(const update_range_t *range, const rule_t *rule)

cdef enum:
    STEP_CHUNK = 4 * CHUNK     # elements per chunk of a parallel step
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
        if is_meta(gradient) and not is_meta(parameter.array):
            raise RuntimeError(f"{operation}: a gradient without data cannot change a parameter "
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
    parallel_for(_run_chunk, &run, total, STEP_CHUNK)
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
            snprintf(message(), MESSAGE, b"step: the optimizer's state does not match its parameter (got shape %s, "
                     b"expected %s). Make a new optimizer.",
                     shape_text(update.given[role]), shape_text(update.given[0]))
            return RUNTIME_ERROR
        update.work[role] = as_contiguous(update.given[role], dtype)
        if update.work[role] == NULL:
            return MEMORY_ERROR
        update.range.memory[role] = update.work[role].data
    return OK


cdef void _run_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
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


# ------------------------------------------------------------------------------------------------------------- optimize

# ---- gradient descent

cdef int _prepare_sgd(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Set the momentum buffer, which does not exist before the first step."""
    cdef bint made
    update.given[2] = state_array(state, "momentum_buffer", parameter, 0, &made)
    update.range.first = made
    return 0


def sgd(list parameters, object state, double lr, double momentum, double dampening, double weight_decay,
        bint nesterov, bint maximize):
    """
    Run a step of stochastic gradient descent for all parameters with a gradient.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``momentum_buffer``.
    lr, momentum, dampening, weight_decay : float
    nesterov, maximize : bool

    Raises
    ------
    RuntimeError
        If a parameter cannot be modified in place, or gradient or state do not match it.
    """
    cdef rule_t rule = rule_of(SGD_RULE, lr, weight_decay, maximize)
    rule.momentum, rule.dampening, rule.nesterov = momentum, dampening, nesterov
    cdef prepare_t prepare = NULL            # no state without momentum
    if momentum != 0:
        prepare = _prepare_sgd
    run_step(parameters, state, &rule, prepare, "SGD.step")


# ---- Adam-like: running means of the gradient and of its square

cdef double _prepare_moments(update_t *update, dict state, Tensor parameter, str second) except -1:
    """Set both running means; return the number of the step."""
    cdef double step = count_step(state)
    update.given[2] = state_array(state, "exp_avg", parameter, 0, NULL)
    update.given[3] = state_array(state, second, parameter, 0, NULL)
    return step


cdef int _prepare_adam(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Bias correction: means are divided by the sum of their weights."""
    cdef double step = _prepare_moments(update, state, parameter, "exp_avg_sq")
    if rule.amsgrad:
        update.given[4] = state_array(state, "max_exp_avg_sq", parameter, 0, NULL)
    adam_factors(update, rule, step)
    return 0


cdef void adam_factors(update_t *update, const rule_t *rule, double step) noexcept nogil:
    update.range.factor[0] = rule.rate / (1 - pow(rule.beta1, step))
    update.range.factor[1] = 1 / sqrt(1 - pow(rule.beta2, step))


def adam(list parameters, object state, double lr, double beta1, double beta2, double eps, double weight_decay,
         bint amsgrad, bint maximize, bint decoupled):
    """
    Run a step of Adam for all parameters with a gradient.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``exp_avg``, ``exp_avg_sq`` and, with `amsgrad`, ``max_exp_avg_sq``.
    lr, beta1, beta2, eps, weight_decay : float
    amsgrad, maximize : bool
    decoupled : bool
        Weight decay acts on the parameter itself (AdamW), else through the gradient.

    Raises
    ------
    RuntimeError
        If a parameter cannot be modified in place, or gradient or state do not match it.
    """
    cdef rule_t rule = rule_of(ADAM_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.beta2, rule.eps, rule.amsgrad, rule.decoupled = beta1, beta2, eps, amsgrad, decoupled
    run_step(parameters, state, &rule, _prepare_adam, "AdamW.step" if decoupled else "Adam.step")


cdef double _rounded(Tensor number, double value) noexcept:
    """Round the value to the precision of `state_number`."""
    return <float>value if number.array.dtype == FLOAT32 else value


cdef int _prepare_nadam(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """The momentum follows a schedule; the means are divided by its product."""
    cdef double step = _prepare_moments(update, state, parameter, "exp_avg_sq")
    cdef Tensor product = state_number(state, "mu_product", 1)
    cdef double momentum = rule.beta1 * (1 - 0.5 * pow(0.96, step * rule.schedule[0]))
    cdef double following = rule.beta1 * (1 - 0.5 * pow(0.96, (step + 1) * rule.schedule[0]))
    write_number(product, read_number(product) * _rounded(product, momentum))
    update.range.factor[0] = -rule.rate * (1 - momentum) / (1 - read_number(product))
    update.range.factor[1] = -rule.rate * following / (1 - read_number(product) * following)
    update.range.factor[2] = 1 - pow(rule.beta2, step)
    return 0


def nadam(list parameters, object state, double lr, double beta1, double beta2, double eps, double weight_decay,
          double momentum_decay, bint decoupled, bint maximize):
    """
    Run a step of NAdam; see `adam`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``mu_product``, ``exp_avg`` and ``exp_avg_sq``.
    lr, beta1, beta2, eps, weight_decay, momentum_decay : float
    decoupled, maximize : bool
    """
    cdef rule_t rule = rule_of(NADAM_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.beta2, rule.eps, rule.decoupled = beta1, beta2, eps, decoupled
    rule.schedule[0] = momentum_decay
    run_step(parameters, state, &rule, _prepare_nadam, "NAdam.step")


cdef int _prepare_radam(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Rectification, once the variance of the scale is finite: more than 5 effective steps."""
    cdef double step = _prepare_moments(update, state, parameter, "exp_avg_sq")
    cdef double power = pow(rule.beta2, step)
    cdef double longest = 2 / (1 - rule.beta2) - 1
    cdef double length = longest - 2 * step * power / (1 - power)
    update.range.factor[0] = rule.rate / (1 - pow(rule.beta1, step))
    update.range.factor[1] = 0
    if length > 5:
        update.range.factor[1] = sqrt(1 - power) * sqrt(
            (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
    return 0


def radam(list parameters, object state, double lr, double beta1, double beta2, double eps, double weight_decay,
          bint decoupled, bint maximize):
    """
    Run a step of RAdam; see `adam`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``exp_avg`` and ``exp_avg_sq``.
    lr, beta1, beta2, eps, weight_decay : float
    decoupled, maximize : bool
    """
    cdef rule_t rule = rule_of(RADAM_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.beta2, rule.eps, rule.decoupled = beta1, beta2, eps, decoupled
    run_step(parameters, state, &rule, _prepare_radam, "RAdam.step")


cdef int _prepare_adamax(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """The largest gradient replaces the mean square."""
    cdef double step = _prepare_moments(update, state, parameter, "exp_inf")
    update.range.factor[0] = rule.rate / (1 - pow(rule.beta1, step))
    return 0


def adamax(list parameters, object state, double lr, double beta1, double beta2, double eps, double weight_decay,
           bint maximize):
    """
    Run a step of Adamax; see `adam`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``exp_avg`` and ``exp_inf``.
    lr, beta1, beta2, eps, weight_decay : float
    maximize : bool
    """
    cdef rule_t rule = rule_of(ADAMAX_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.beta2, rule.eps = beta1, beta2, eps
    run_step(parameters, state, &rule, _prepare_adamax, "Adamax.step")


# ---- zero_grad

def forget_gradients(parameters):
    """
    Set ``.grad`` of all parameters to None.

    Parameters
    ----------
    parameters : iterable of Tensor
    """
    cdef Tensor parameter
    if is_tracing():
        parameters = list(parameters)
        trace_step(parameters, None, NULL, "")
    for parameter in parameters:
        if parameter is None:
            raise TypeError("zero_grad: the parameters must be tensors (got None).")
        if parameter.gradient != NULL:
            set_gradient(parameter, None)


def zero_gradients(parameters):
    """
    Fill ``.grad`` of all parameters that have one with zeros, in place and outside of any graph.

    Parameters
    ----------
    parameters : iterable of Tensor
    """
    cdef Tensor parameter, gradient
    cdef int32_t grad_disabled = thread_state().grad_disabled
    thread_state().grad_disabled = 1
    try:
        for parameter in parameters:
            if parameter is None:
                raise TypeError("zero_grad: the parameters must be tensors (got None).")
            if parameter.gradient == NULL or parameter.gradient.value == NULL:
                continue
            gradient = parameter.grad
            if gradient is not None:
                if gradient.grad_fn is not None:
                    gradient.detach_()
                else:
                    gradient.requires_grad_(False)
                gradient.zero_()
    finally:
        thread_state().grad_disabled = grad_disabled


# ------------------------------------------------------------------------------------------------------ optimize scales

# Steps of the optimizers that scale each element by its own history; see `optimize`.

cdef int _prepare_adagrad(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """schedule: decay of the rate, and initial value of sums."""
    cdef double step = count_step(state)
    update.given[2] = state_array(state, "sum", parameter, rule.schedule[1], NULL)
    update.range.factor[0] = rule.rate / (1 + (step - 1) * rule.schedule[0])
    return 0


def adagrad(list parameters, object state, double lr, double lr_decay, double weight_decay, double initial, double eps,
            bint maximize):
    """
    Run a step of Adagrad for all parameters with a gradient.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step`` and ``sum``.
    lr, lr_decay, weight_decay, initial, eps : float
    maximize : bool

    Raises
    ------
    RuntimeError
        If a parameter cannot be modified in place, or gradient or state do not match it.
    """
    cdef rule_t rule = rule_of(ADAGRAD_RULE, lr, weight_decay, maximize)
    rule.eps, rule.schedule[0], rule.schedule[1] = eps, lr_decay, initial
    run_step(parameters, state, &rule, _prepare_adagrad, "Adagrad.step")


cdef int _prepare_adadelta(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Set mean squares of gradients and of changes."""
    count_step(state)
    update.given[2] = state_array(state, "square_avg", parameter, 0, NULL)
    update.given[3] = state_array(state, "acc_delta", parameter, 0, NULL)
    return 0


def adadelta(list parameters, object state, double lr, double rho, double eps, double weight_decay, bint maximize):
    """
    Run a step of Adadelta; see `adagrad`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``square_avg`` and ``acc_delta``.
    lr, rho, eps, weight_decay : float
    maximize : bool
    """
    cdef rule_t rule = rule_of(ADADELTA_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.eps = rho, eps
    run_step(parameters, state, &rule, _prepare_adadelta, "Adadelta.step")


cdef int _prepare_rmsprop(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Set the mean square; momentum buffer and mean if requested."""
    count_step(state)
    update.given[2] = state_array(state, "square_avg", parameter, 0, NULL)
    if rule.momentum > 0:
        update.given[3] = state_array(state, "momentum_buffer", parameter, 0, NULL)
    if rule.centered:
        update.given[4] = state_array(state, "grad_avg", parameter, 0, NULL)
    return 0


def rmsprop(list parameters, object state, double lr, double alpha, double eps, double weight_decay, double momentum,
            bint centered, bint maximize):
    """
    Run a step of RMSprop; see `adagrad`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``square_avg``, with `momentum` ``momentum_buffer``, and with `centered` ``grad_avg``.
    lr, alpha, eps, weight_decay, momentum : float
    centered, maximize : bool
    """
    cdef rule_t rule = rule_of(RMSPROP_RULE, lr, weight_decay, maximize)
    rule.beta1, rule.eps, rule.momentum, rule.centered = alpha, eps, momentum, centered
    run_step(parameters, state, &rule, _prepare_rmsprop, "RMSprop.step")


cdef int _prepare_rprop(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """Set the previous gradient, and a step size for each element."""
    count_step(state)
    update.given[2] = state_array(state, "prev", parameter, 0, NULL)
    update.given[3] = state_array(state, "step_size", parameter, rule.rate, NULL)
    return 0


def rprop(list parameters, object state, double lr, double shrink, double grow, double least, double most,
          bint maximize):
    """
    Run a step of Rprop; see `adagrad`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``prev`` and ``step_size``.
    lr : float
        Size of the first step.
    shrink, grow : float
        Factors for the size of a step.
    least, most : float
        Its bounds.
    maximize : bool
    """
    cdef rule_t rule = rule_of(RPROP_RULE, lr, 0, maximize)
    rule.beta1, rule.beta2, rule.dampening, rule.momentum = shrink, grow, least, most
    run_step(parameters, state, &rule, _prepare_rprop, "Rprop.step")


cdef int _prepare_asgd(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1:
    """schedule: decay term, power of the rate's decay, and the step at which averaging starts."""
    cdef double step = count_step(state)
    cdef double decay = rule.schedule[0]
    cdef Tensor rate = state_number(state, "eta", rule.rate)
    cdef Tensor share = state_number(state, "mu", 1)
    update.given[2] = state_array(state, "ax", parameter, 0, NULL)
    update.range.factor[0] = read_number(rate)
    update.range.factor[1] = 1 - decay * read_number(rate)
    update.range.factor[2] = read_number(share)
    write_number(rate, rule.rate / pow(1 + decay * rule.rate * step, rule.schedule[1]))     # of the next step
    write_number(share, 1 / fmax(1, step - rule.schedule[2]))
    return 0


def asgd(list parameters, object state, double lr, double lambd, double alpha, double t0, double weight_decay,
         bint maximize):
    """
    Run a step of averaged gradient descent; see `adagrad`.

    Parameters
    ----------
    parameters : list of Tensor
    state : mapping from parameter to dict
        Keeps ``step``, ``eta``, ``mu`` and the average ``ax``.
    lr, lambd, alpha, t0, weight_decay : float
    maximize : bool
    """
    cdef rule_t rule = rule_of(ASGD_RULE, lr, weight_decay, maximize)
    rule.schedule[0], rule.schedule[1], rule.schedule[2] = lambd, alpha, t0
    run_step(parameters, state, &rule, _prepare_asgd, "ASGD.step")
