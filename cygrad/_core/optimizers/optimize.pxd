"""SGD and Adam steps: declarations for traced steps."""

from cygrad._core.optimizers.update_batch cimport rule_t, update_t

# Scale factors of Adam after n steps.
cdef void adam_factors(update_t *update, const rule_t *rule, double step) noexcept nogil
