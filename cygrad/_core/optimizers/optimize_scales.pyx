"""Steps of the optimizers that scale each element by its own history; see `optimize`."""

from libc.math cimport fmax, pow
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.update_batch cimport (
    ADADELTA_RULE, ADAGRAD_RULE, ASGD_RULE, RMSPROP_RULE, RPROP_RULE, count_step,
    read_number, rule_of, rule_t, run_step, state_array, state_number, update_t, write_number)


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
        If a parameter cannot be modified in place, or gradient or state do not fit it.
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
