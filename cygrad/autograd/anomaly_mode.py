"""Anomaly mode: errors and nan in backward show the line of the forward that caused them."""

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
    """Context manager and decorator that sets anomaly mode."""

    def __init__(self, mode, check_nan):
        self.wanted = (bool(mode), bool(check_nan))

    def _change(self):
        """Return how to enter the block."""
        return set_anomaly_state, anomaly_state(), set_anomaly_state, self.wanted

    def __call__(self, function):
        """Decorate a function."""
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with _Anomaly(*self.wanted):
                return function(*args, **kwargs)
        return wrapper


class detect_anomaly(_Anomaly):
    """
    Find the cause of errors and nan in backward, within the block, in this thread.

    Nodes created in the block store the Python stack. If one of them raises an error in a backward run in the block, a
    warning shows the forward call that created it, and for a node created by a backward also its node. A gradient with
    nan raises an error.

    Storing the stack slows down the forward. The check for nan takes 2 to 5 % of the backward of a network, and up to
    15 % if it is bound by memory: element-wise formulas check their results in the first-level cache, or only the
    processor's status flag if they compute with gradients alone; results of other kernels are scanned.

    Parameters
    ----------
    check_nan : bool, default True
        Whether to check every gradient for nan.

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
        warn_user("Anomaly Detection has been enabled. It slows down programs and is meant for debugging.")


class set_detect_anomaly(_Anomaly):
    """
    Set anomaly mode in this thread.

    Takes effect immediately; as a context manager, it restores the previous state on exit.

    Parameters
    ----------
    mode : bool
        Whether to enable it.
    check_nan : bool, default True
        Whether to check every gradient for nan.

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

    def _change(self):
        """Return how to enter the block, whose former state is that before the object was made."""
        former, self.former = self.former, None
        return set_anomaly_state, anomaly_state() if former is None else former, set_anomaly_state, self.wanted

    def __call__(self, function):
        if self.former is not None:        # a decorator has no effect outside the function
            set_anomaly_state(*self.former)
        return super().__call__(function)
