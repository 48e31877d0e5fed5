"""Errors of kernels and programs that serve many operations: the operation that was called is named here."""

# Raise the exception for `status`, as `check` does; a message that begins with ":" gets `operation` in front of it, or
# the public Python function through which the user called it. `inplace` adds the underscore.
cdef int check_operation(int status, str operation, bint inplace) except -1
