"""requires_grad of views that were created without recording."""

from cygrad._core.graph.tensor cimport Tensor, requires_grad

# A view requires grad if its base does, even if no gradient flows between them.
cdef inline bint takes_part(Tensor tensor) noexcept:
    return requires_grad(tensor) or (tensor.base is not None and requires_grad(tensor.base))
