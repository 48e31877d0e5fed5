"""Abort a trace when unknown Python code or an impure C function runs."""

import os
import sys

from cygrad.compiling.purity import (
    IMPURE_BUILTINS,
    is_library_file,
    is_package_file,
    is_pure,
    module_of,
    of_package,
)

__all__ = ["Observer", "location"]


def location(code, line):
    """Return a position in a file as text."""
    return f"{os.path.basename(code.co_filename)}:{line}"


def user_location(frame):
    """Return the position of the user code that led to this frame."""
    while frame is not None and (is_package_file(frame.f_code.co_filename)
                                 or is_library_file(frame.f_code.co_filename)):
        frame = frame.f_back
    return "" if frame is None else f" ({location(frame.f_code, frame.f_lineno)})"


def is_importing(frame):
    """Does the frame run during an import by this package?"""
    while frame is not None and frame.f_globals.get("__name__") != "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None


class Observer:
    """
    Aborts the trace when unknown Python code or an impure C function runs.

    Parameters
    ----------
    known : set of code
        Code that the collector has found.
    abort : callable
        Called with a reason, and with True if a later call may be traced.
    """

    def __init__(self, known, abort):
        self.known, self.abort, self.active = known, abort, False
        self.ran = {}                 # code of this package that ran -> its global variables

    def __enter__(self):
        if sys.getprofile() is not None:
            self.abort("a profiler is active (sys.setprofile). Compile without it", True)
        else:
            self.active = True
            sys.setprofile(self.observe)
        return self

    def __exit__(self, *error):
        if self.active:
            sys.setprofile(None)

    def observe(self, frame, event, argument):
        """Handle an event of `sys.setprofile`."""
        if event == "c_call":
            self.check_call(frame, argument)
        elif event == "call" and frame.f_code not in self.known:
            if is_package_file(frame.f_code.co_filename):
                self.ran[frame.f_code] = frame.f_globals
            else:
                self.check_code(frame)

    def check_code(self, frame):
        """Check Python code; user code may not call libraries directly, but this package may."""
        code, module = frame.f_code, frame.f_globals.get("__name__")
        if not (is_library_file(code.co_filename) or of_package(module) or is_importing(frame)
                or (module or "").startswith("namedtuple_")):        # made by `collections`
            self.abort(f"it calls {code.co_qualname}() of the module {module!r}, which was not found in its variables"
                       f"{user_location(frame.f_back)}. Call it outside and pass the result as an argument")

    def check_call(self, frame, function):
        """Check a C function: user code may call pure ones only."""
        name = getattr(function, "__name__", "")
        if frame.f_code not in self.known:
            if name in ("print", "open", "input", "warn", "warn_explicit") and not is_pure(function):
                self.abort(f"it calls {name}(){user_location(frame)}, which each call has to do again")
            return
        if is_pure(function):
            return
        if name in IMPURE_BUILTINS:
            self.abort(f"it calls {name}(){user_location(frame)}. Call it outside of the function")
        else:
            self.abort(f"it calls {getattr(function, '__qualname__', name)}() of the module {module_of(function)!r}, "
                       f"which may give something else each time{user_location(frame)}. Call it outside and pass the "
                       "result as an argument")
