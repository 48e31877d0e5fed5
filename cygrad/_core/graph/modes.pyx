# distutils: extra_compile_args = -O1
"""Grad mode and inference mode, as context managers and decorators."""

cimport cython

import functools
import inspect
from cygrad._core.graph.user_warnings import warn_user

cdef extern from * nogil:
    """
    #include "graph/thread_state.h"
    #include "memory/thread_variable.h"
    THREAD_VARIABLE thread_state_t this_thread;
    """
    thread_state_t this_thread


cdef void _disable_recording(bint reports_grad) noexcept nogil:
    """Disable recording in inference mode, even under enable_grad, which changes only is_grad_enabled()."""
    this_thread.grad_disabled = this_thread.inference = 1
    this_thread.reports_grad = reports_grad


cdef thread_state_t *thread_state() noexcept nogil:
    return &this_thread


def is_grad_enabled():
    """
    Return whether this thread records operations for backward.

    Returns
    -------
    bool

    Examples
    --------
    >>> with cygrad.no_grad():
    ...     cygrad.is_grad_enabled()
    False
    """
    return bool(this_thread.reports_grad if this_thread.inference else not this_thread.grad_disabled)


def is_inference_mode_enabled():
    """
    Return whether this thread is in inference mode.

    Returns
    -------
    bool

    Examples
    --------
    >>> cygrad.is_inference_mode_enabled()
    False
    """
    return bool(this_thread.inference)


@cython.binding(False)      # methods check the type of self
@cython.auto_pickle(False)
cdef class _Mode:
    """
    Base of context managers and decorators that set the mode of a thread.

    Entering pushes the previous state, so that one object can be entered repeatedly; leaving restores it without
    allocating memory.
    """

    cdef int grad_disabled
    cdef int inference         # -1: leave unchanged
    cdef tuple entered         # (grad_disabled, inference, reports_grad, what was entered before), or None

    def __enter__(self):
        self.entered = (this_thread.grad_disabled, this_thread.inference, this_thread.reports_grad, self.entered)
        this_thread.grad_disabled = self.grad_disabled
        if self.inference >= 0:
            this_thread.inference = self.inference
        if this_thread.inference:
            _disable_recording(not self.grad_disabled and self.inference != 1)
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # a tuple might fail to allocate
        if self.entered is None:
            raise RuntimeError(f"{self.__class__.__name__}: __exit__ requires a call of __enter__ (got none).")
        this_thread.grad_disabled, this_thread.inference, this_thread.reports_grad, self.entered = self.entered
        return False

    def clone(self):
        """Return a new manager of the same kind (a decorated function may run in several threads)."""
        return type(self)()

    def __call__(self, function):
        """Decorate a function, a generator function or a coroutine function."""
        if not callable(function):
            raise TypeError(f"{type(self).__name__}: can only decorate a function "
                            f"(got {type(function).__name__}).")
        return _decorate(self, function)


@cython.binding(False)
@cython.auto_pickle(False)
cdef class Restoring:
    """
    Base of context managers in Python that change a state of the thread.

    Interpreted code can be interrupted or run out of memory at any line. So it only tells what to change, by the method
    `_change`, and this compiled code changes and restores it: an interrupt comes before or after.
    """

    cdef tuple entered

    def __enter__(self):
        """Call ``set_state(*wanted)`` after ``self._change()`` has returned (restore, state, set_state, wanted)."""
        restore, state, set_state, wanted = self._change()
        self.entered = restore, state, self.entered
        try:
            set_state(*wanted)
        except BaseException:
            self.entered = self.entered[2]
            raise
        return self

    def __exit__(self, type=None, value=None, traceback=None):
        if self.entered is None:
            raise RuntimeError(f"{self.__class__.__name__}: __exit__ requires a call of __enter__ (got none).")
        restore, state, self.entered = self.entered
        restore(*state)
        return False


def _decorate(manager, function):
    if inspect.isclass(function):
        warn_user(f"{type(manager).__name__}: Decorating classes is deprecated (got {function!r}): the mode holds "
                  "while objects are made, not in their methods, and the result is no class. Decorate __init__ or "
                  "the methods instead.", FutureWarning)
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def generator(*args, **kwargs):
            # The mode is active while the generator's code runs, not while it is suspended.
            running = function(*args, **kwargs)
            step, value = running.send, None
            while True:
                try:
                    with manager.clone():
                        item = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value = yield item
                    step = running.send
                except GeneratorExit:
                    with manager.clone():
                        running.close()
                    raise
                except BaseException as error:
                    step, value = running.throw, error
        return generator
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def coroutine(*args, **kwargs):
            return await _Steps(manager, function(*args, **kwargs))
        return coroutine

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with manager.clone():
            return function(*args, **kwargs)
    return wrapper


class _Steps:
    """Runs the steps of a coroutine in the mode, and the code between them outside of it."""

    def __init__(self, manager, coroutine):
        self.manager = manager
        self.coroutine = coroutine

    def __await__(self):
        value, step = None, self.coroutine.send
        while True:
            try:
                with self.manager.clone():
                    item = step(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield item
                step = self.coroutine.send
            except BaseException as error:
                step, value = self.coroutine.throw, error


cdef object _manager_or_decorated(object manager, object function):
    """Make ``@no_grad`` equivalent to ``@no_grad()``."""
    return manager if function is None else manager(function)


class no_grad(_Mode):
    """
    Disable recording in this thread: results do not require grad.

    A context manager and a decorator. Results can be used in recorded operations later.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, function=None):
        return _manager_or_decorated(_make(cls, 1, -1), function)

    def __init__(self, function=None):
        pass


class enable_grad(_Mode):
    """
    Enable recording in this thread, inside `no_grad` for example.

    A context manager and a decorator. It has no effect on tensors created in inference mode.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.no_grad(), cygrad.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __new__(cls, function=None):
        return _manager_or_decorated(_make(cls, 0, -1), function)

    def __init__(self, function=None):
        pass


class set_grad_enabled(_Mode):
    """
    Set whether this thread records operations.

    Takes effect immediately; as a context manager, it restores the previous state on exit.

    Parameters
    ----------
    mode : bool
        Whether to record.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: the mode must be a bool (got {type(mode).__name__}).")
        cdef _Mode manager = _make(cls, 0 if mode else 1, -1)
        # Restore the state before the call, which takes effect immediately.
        manager.entered = (this_thread.grad_disabled, this_thread.inference, this_thread.reports_grad, None)
        this_thread.grad_disabled = manager.grad_disabled
        if this_thread.inference:
            _disable_recording(not manager.grad_disabled)
        return manager

    def __init__(self, mode):
        self.mode = bool(mode)

    def __enter__(self):
        _enter_set(self)
        return self

    def __call__(self, function):
        _Mode.__exit__(self)       # a decorator has no effect outside the function
        return _decorate(self, function)

    def clone(self):
        return _make(_plain, 0 if self.mode else 1, -1)


class _plain(_Mode):
    """Return the mode that a decorated function enters."""

    def __new__(cls):
        return _Mode.__new__(cls)


class inference_mode(_Mode):
    """
    Disable recording, and create tensors without version counter and view tracking.

    Faster than `no_grad`; tensors created inside cannot be saved for backward later.

    Parameters
    ----------
    mode : bool, default True
        Whether to enable inference mode; False disables it within an outer block.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    def __new__(cls, mode=True):
        function = None
        if callable(mode):
            function, mode = mode, True
        cdef object manager = _make(cls, 1 if mode else 0, 1 if mode else 0)
        manager.mode = bool(mode)
        return _manager_or_decorated(manager, function)

    def __init__(self, mode=True):
        pass

    def clone(self):
        return inference_mode(self.mode)


cdef _Mode _make(type cls, int grad_disabled, int inference):
    cdef _Mode manager = _Mode.__new__(cls)
    manager.grad_disabled = grad_disabled
    manager.inference = inference
    return manager


def _enter_set(_Mode manager not None):
    if (manager.entered is not None and manager.entered[3] is None
            and this_thread.grad_disabled == manager.grad_disabled):
        return                     # the call has already set the mode
    _Mode.__enter__(manager)


for _class in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _class.__module__ = "cygrad"
