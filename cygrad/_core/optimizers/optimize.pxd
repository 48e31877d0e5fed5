"""SGD and Adam steps: declarations for traced steps."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.mode_stack cimport Mode
from cygrad._core.graph.tensor cimport Tensor

# --------------------------------------------------------------------------------------------------------- update batch

# The updates of one optimizer step, and the state of each parameter.

cdef extern from "optimizers/options.h" nogil:
    enum:
        SGD_RULE
        ADAM_RULE
        NADAM_RULE
        RADAM_RULE
        ADAMAX_RULE
        ADAGRAD_RULE
        ADADELTA_RULE
        RMSPROP_RULE
        RPROP_RULE
        ASGD_RULE
    ctypedef struct rule_t:
        int kind
        int maximize
        int nesterov
        int decoupled
        int amsgrad
        int centered
        double rate
        double weight_decay
        double momentum
        double dampening
        double beta1
        double beta2
        double eps
        double schedule[4]
    ctypedef struct update_range_t:
        char *memory[5]
        int64_t n
        int double_precision
        int first
        double factor[3]

cdef enum:
    ROLES = 5                 # parameter, gradient, three of state: the order of update_range_t.memory

# The update of one parameter.
cdef struct update_t:
    array_t *given[ROLES]     # the user's arrays; NULL where there is none
    array_t *work[ROLES]      # the same, contiguous and of the parameter's dtype
    update_range_t range      # all its elements, as real numbers
    int64_t end               # elements of this update and of all before it

# Sets the state of a parameter and the factors of its step in the update.
ctypedef int (*prepare_t)(update_t *update, dict state, Tensor parameter, const rule_t *rule) except -1

cdef class UpdateMode(Mode):
    """A mode that sees optimizer steps, too."""
    # Before a step; without a rule, before gradients are set to None. 1: skip the step.
    cdef int begin_step(self, list parameters, object state, const rule_t *rule, str operation) except -1

# Add a step to the trace of this thread, if there is one.
cdef int trace_step(list parameters, object state, const rule_t *rule, str operation) except -1

# Run the arithmetic of a step without the GIL, then release contiguous copies.
cdef int run_updates(update_t *updates, int n, const rule_t *rule) noexcept nogil
cdef void release_work(update_t *updates, int n) noexcept nogil

# Return the options that all rules have; the others are zero.
cdef rule_t rule_of(int kind, double lr, double weight_decay, bint maximize) noexcept
# Run a step for all parameters with a gradient; `prepare` may be NULL for a rule without state.
cdef int run_step(list parameters, object state, const rule_t *rule, prepare_t prepare, str operation) except -1

# Return the array of state[name], a new reference; created and filled with `start` if missing.
cdef array_t *state_array(dict state, str name, Tensor parameter, double start, bint *made) except NULL
# Return the 0-dim tensor state[name] as a number; created with `start` if missing.
cdef Tensor state_number(dict state, str name, double start)
cdef double read_number(Tensor tensor) noexcept
cdef void write_number(Tensor tensor, double value) noexcept
# Increment state["step"] and return it.
cdef double count_step(dict state) except -1

# ------------------------------------------------------------------------------------------------------------- optimize

# Scale factors of Adam after n steps.
cdef void adam_factors(update_t *update, const rule_t *rule, double step) noexcept nogil
