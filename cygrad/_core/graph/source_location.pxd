"""Where Python code is: the function that runs and how far it has got, as a file name and a line when asked."""

from cpython.object cimport PyObject

# The function that is running - the user's, if it has called one of this package's - and the offset of its current
# instruction: a new reference to its code object, or NULL. Needs the GIL. The text can be read later without it.
cdef PyObject *running_code(int *offset) noexcept
# Writes "FILE:LINE, in FUNCTION" into `text`, of which `room` bytes are left; returns its length.
cdef int write_place(char *text, int room, PyObject *code, int offset) noexcept nogil
