"""The gradient slot of a leaf: created once, read and replaced as a whole."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.graph.tensor cimport Tensor

# Return the slot of a leaf, created if necessary. Raises MemoryError in the name of `operation`.
cdef gradient_t *slot_of(Tensor leaf, const char *operation) except NULL
# Return ``.grad``, a Tensor or None, and always the same object for the same array.
cdef Tensor gradient_of(Tensor leaf)
# Replace .grad; None removes it.
cdef object set_gradient(Tensor leaf, Tensor value)
# The same if .grad is still `former` at this version; else return False.
cdef bint replace_gradient(Tensor leaf, Tensor former, int64_t version, Tensor value) except -1
cdef int64_t version_of_gradient(const array_t *array) noexcept nogil
