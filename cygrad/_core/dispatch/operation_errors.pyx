"""Error messages of shared kernels and programs begin with the operation that was called."""

import sys

from libc.stdio cimport snprintf
from cygrad._core.memory.errors cimport MESSAGE, OK, check, message

# Modules whose functions call user functions: transforms and dispatchers are not the operation that failed.
_CALLERS = ("cygrad.func.", "cygrad.compiling.", "cygrad.utils.", "cygrad.autograd.", "cygrad._core.")


cdef int check_operation(int status, str operation, bint inplace) except -1:
    cdef bytes text
    if status == OK:
        return 0
    if message()[0] == b":":
        text = <bytes>message()
        name = (_public_caller() or (operation + "_" if inplace else operation)).encode()
        snprintf(message(), MESSAGE, b"%s%s", <char *>name, <char *>text)
    return check(status)


cdef object _public_caller():
    """Return the outermost public function of the package that user code called; None for an operator of the table."""
    frame, found = sys._getframe(), None
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if not module.startswith("cygrad."):
            break
        name = frame.f_code.co_name
        if not module.startswith(_CALLERS):
            if name in frame.f_globals.get("__all__", ()) or name in frame.f_globals.get("rows", ()):
                found = name
            elif module.startswith("cygrad.distributions.") and not name.startswith("_"):
                found = frame.f_code.co_qualname
        frame = frame.f_back
    return found
