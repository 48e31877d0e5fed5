"""Error messages of shared kernels and programs begin with the operation that was called."""

# Raise the exception for `status`, as `check` does; a message that begins with ":" gets `operation` in front of it, or
# the public Python function that the user called. `inplace` adds the underscore.
cdef int check_operation(int status, str operation, bint inplace) except -1
