"""Whether a tensor takes part in backward, where it may be a view that was made without recording."""

from cygrad._core.graph.tensor cimport Tensor, requires_grad

# A view requires grad if its base does, even where no gradient gets from one to the other.
cdef inline bint takes_part(Tensor tensor) noexcept:
    return requires_grad(tensor) or (tensor.base is not None and requires_grad(tensor.base))
