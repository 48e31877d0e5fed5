"""Where memory was last changed in place, for the message that says so."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport node_t
from cygrad._core.memory.storage cimport version_t

# Remember the running Python code as the last to modify the memory of this counter. Needs the GIL.
cdef void remember_place(version_t *version) noexcept
# The same for the code that `running_code` has given, where it changes many.
cdef void remember_code(version_t *version, PyObject *code, int offset) noexcept
# The memory was changed by no particular line: a gradient was accumulated, for example.
cdef inline void forget_place(version_t *version) noexcept nogil:
    version.offset = -1
# Writes the message about a saved tensor that is not what it was; returns RUNTIME_ERROR. `maker` and `output_nr` say
# what the tensor is the output of (NULL: nothing that is known).
cdef int version_error(const char *operation, const char *name, const array_t *array, int64_t expected,
                       const node_t *maker, int64_t output_nr) noexcept nogil
# The name of a node's type, without the module.
cdef const char *node_name(const node_t *node) noexcept nogil
