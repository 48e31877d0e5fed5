"""Source locations: the running Python function and its bytecode offset, converted to file and line on demand."""

from cpython.object cimport PyObject

# Return a new reference to the code object of the running function - the user's, if it called one of this package's -
# and the offset of its current instruction, or NULL. Needs the GIL. The text can be read later without it.
cdef PyObject *running_code(int *offset) noexcept
# Write "FILE:LINE, in FUNCTION" into `text`, of which `capacity` bytes are left; returns its length.
cdef int write_place(char *text, int capacity, PyObject *code, int offset) noexcept nogil
