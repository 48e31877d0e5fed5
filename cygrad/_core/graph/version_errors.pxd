"""Records of in-place operations, for messages that name the line."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.node cimport node_t
from cygrad._core.memory.storage cimport version_t

# Record the running Python code as the last to modify the memory of this counter. Needs the GIL.
cdef void remember_place(version_t *version) noexcept
# The same for the result of `running_code`, if it modifies several.
cdef void remember_code(version_t *version, PyObject *code, int offset) noexcept
# Record that no particular line modified the memory: a gradient was accumulated, for example.
cdef inline void forget_place(version_t *version) noexcept nogil:
    version.offset = -1
# Write the message about a saved tensor that was modified; returns RUNTIME_ERROR. `maker` and `output_nr` say which
# output of which node it is (NULL: unknown).
cdef int version_error(const char *operation, const char *name, const array_t *array, int64_t expected,
                       const node_t *maker, int64_t output_nr) noexcept nogil
# Return the name of a node's type, without the module.
cdef const char *node_name(const node_t *node) noexcept nogil
