"""Steps of gradient descent and of the family of Adam: what a recorded step needs of them."""

from cygrad._core.optimizers.update_batch cimport rule_t, update_t

# By what Adam scales, after n steps.
cdef void adam_factors(update_t *update, const rule_t *rule, double step) noexcept nogil
