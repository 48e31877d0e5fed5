"""What runs while a function is traced: code and functions that are not understood end the trace."""

import gc
import os
import sys

from cygrad.compiling.purity import (
    IMPURE_BUILTINS,
    is_library_file,
    is_package_file,
    is_pure,
    of_package,
)

__all__ = ["Observer", "location"]


def location(code, line):
    """A place in a file, as text."""
    return f"{os.path.basename(code.co_filename)}:{line}"


def user_location(frame):
    """Where the code of the user is that the frame belongs to, or was called by."""
    while frame is not None and (is_package_file(frame.f_code.co_filename)
                                 or is_library_file(frame.f_code.co_filename)):
        frame = frame.f_back
    return "" if frame is None else f" ({location(frame.f_code, frame.f_lineno)})"


def is_importing(frame):
    """Does the frame run because this package imports one of its modules?"""
    while frame is not None and frame.f_globals.get("__name__") != "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None


class Observer:
    """
    Ends the trace where code runs that was not found before, or a function of C that is not known to be pure.

    Parameters
    ----------
    known : set of code
        What was found and is understood.
    abort : callable
        Called with a reason, and with True if the next call may be traced.
    """

    def __init__(self, known, abort):
        self.known, self.abort, self.active = known, abort, False

    def __enter__(self):
        if sys.getprofile() is not None:
            self.abort("a profiler is active (sys.setprofile). Compile without it", True)
        else:
            self.active, self.collects = True, gc.isenabled()
            gc.disable()                         # finalizers of other objects are none of its code
            sys.setprofile(self.observe)

    def __exit__(self, *error):
        if self.active:
            sys.setprofile(None)
            if self.collects:
                gc.enable()

    def observe(self, frame, event, argument):
        """One event, as `sys.setprofile` reports it."""
        if event == "c_call":
            self.look_at_call(frame, argument)
        elif event == "call" and frame.f_code not in self.known and not is_package_file(frame.f_code.co_filename):
            self.look_at_code(frame)

    def look_at_code(self, frame):
        """Python code that was not found. Code of the user does not reach libraries; this package may call them."""
        code, module = frame.f_code, frame.f_globals.get("__name__")
        if not (is_library_file(code.co_filename) or of_package(module) or is_importing(frame)
                or (module or "").startswith("namedtuple_")):        # made by `collections`
            self.abort(f"it calls {code.co_qualname}() of the module {module!r}, which was not found in its variables"
                       f"{user_location(frame.f_back)}. Call it outside and pass the result as an argument")

    def look_at_call(self, frame, function):
        """A function of C: code of the user may call pure ones only."""
        name = getattr(function, "__name__", "")
        if frame.f_code not in self.known:
            if name in ("print", "open", "input", "warn", "warn_explicit") and not is_pure(function):
                self.abort(f"it calls {name}(){user_location(frame)}, which each call has to do again")
            return
        if is_pure(function):
            return
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None) or type(owner).__module__
        if name in IMPURE_BUILTINS:
            self.abort(f"it calls {name}(){user_location(frame)}. Call it outside of the function")
        else:
            self.abort(f"it calls {getattr(function, '__qualname__', name)}() of the module {module!r}, which may give "
                       f"something else each time{user_location(frame)}. Call it outside and pass the result as an "
                       "argument")
