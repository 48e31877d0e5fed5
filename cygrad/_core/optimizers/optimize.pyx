"""
SGD and Adam-like steps for all parameters of a group, and zero_grad.

Optimizers that scale each element by its own history are in `optimize_scales`.
"""

from libc.math cimport pow, sqrt
from libc.stdint cimport int32_t
from cygrad._core.arrays.dtype cimport FLOAT32
from cygrad._core.graph.gradients cimport set_gradient
from cygrad._core.graph.modes cimport is_tracing, thread_state
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.update_batch cimport (ADAM_RULE, ADAMAX_RULE, NADAM_RULE, RADAM_RULE, SGD_RULE, count_step,
    trace_step, prepare_t, read_number, rule_of, rule_t, run_step, state_array, state_number, update_t, write_number)


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
        If a parameter cannot be modified in place, or gradient or state do not fit it.
    """
    cdef rule_t rule = rule_of(SGD_RULE, lr, weight_decay, maximize)
    rule.momentum, rule.dampening, rule.nesterov = momentum, dampening, nesterov
    cdef prepare_t prepare = NULL            # no state without momentum
    if momentum != 0:
        prepare = _prepare_sgd
    run_step(parameters, state, &rule, prepare, "SGD.step")


# ---- Adam-like: running means of the gradient and of its square

cdef double _prepare_moments(update_t *update, dict state, Tensor parameter, str second) except -1:
    """Set both running means; -> the number of the step."""
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
        If a parameter cannot be modified in place, or gradient or state do not fit it.
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
