"""Anomaly mode: errors and nan in backward name the line of the forward that they come from."""

import functools

from cygrad._core.engine.engine import anomaly_state, set_anomaly_state
from cygrad._core.graph.modes import Restoring
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def is_anomaly_enabled():
    """
    Return whether anomaly mode is on in this thread.

    Returns
    -------
    bool

    Examples
    --------
    >>> cygrad.autograd.is_anomaly_enabled()
    False
    """
    return anomaly_state()[0]


def is_anomaly_check_nan_enabled():
    """
    Return whether anomaly mode checks for nan in this thread.

    Returns
    -------
    bool

    Examples
    --------
    >>> cygrad.autograd.is_anomaly_check_nan_enabled()
    True
    """
    enabled, check_nan = anomaly_state()
    return check_nan or not enabled


class _Anomaly(Restoring):
    """A state of anomaly mode, as a context manager or decorator."""

    def __init__(self, mode, check_nan):
        self.wanted = (bool(mode), bool(check_nan))

    def __enter__(self):
        self.push(set_anomaly_state, *anomaly_state())
        set_anomaly_state(*self.wanted)

    def __call__(self, function):
        """Decorate a function."""
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with _Anomaly(*self.wanted):
                return function(*args, **kwargs)
        return wrapper


class detect_anomaly(_Anomaly):
    """
    Find out where errors and nan in backward come from, within the block, in this thread.

    Nodes made inside remember the Python stack; when one of them raises in a backward run inside, a warning shows the
    forward call that made it; a node that was made by a backward also shows the node for which it was made. A node that
    computes a gradient with nan raises.

    Remembering the stack makes the forward slow. The look for nan costs little: element-wise formulas look at what they
    write while it is in the first-level cache, or only at the processor's status flag if they do arithmetic with
    gradients alone; what other kernels compute is scanned. That is 2 to 5 % of the backward of a network, and up to
    15 % of one that consists of passes over memory.

    Parameters
    ----------
    check_nan : bool, default True
        Look for nan in every gradient.

    Examples
    --------
    >>> import cygrad, warnings
    >>> warnings.simplefilter("ignore")
    >>> x = cygrad.zeros(1, requires_grad=True)
    >>> with cygrad.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).backward()
    Traceback (most recent call last):
    ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
        warn_user("Anomaly detection has been enabled. It makes everything slower and is meant for debugging.")


class set_detect_anomaly(_Anomaly):
    """
    Set anomaly mode in this thread.

    Called as a function it takes effect immediately; as a context manager it restores the former state on exit.

    Parameters
    ----------
    mode : bool
        Whether to switch it on.
    check_nan : bool, default True
        Look for nan in every gradient.

    Examples
    --------
    >>> with cygrad.autograd.set_detect_anomaly(True):
    ...     cygrad.autograd.is_anomaly_enabled()
    True
    """

    def __init__(self, mode, check_nan=True):
        super().__init__(mode, check_nan)
        self.former = anomaly_state()
        set_anomaly_state(*self.wanted)

    def __enter__(self):
        self.push(set_anomaly_state, *(anomaly_state() if self.former is None else self.former))
        self.former = None
        set_anomaly_state(*self.wanted)

    def __call__(self, function):
        if self.former is not None:        # a decorator changes nothing outside the function
            set_anomaly_state(*self.former)
        return super().__call__(function)
