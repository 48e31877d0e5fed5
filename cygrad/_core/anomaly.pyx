"""Anomaly mode: which line of the forward a failing node comes from, and where nan begins."""

from cygrad._core.dtype cimport is_differentiable
from cygrad._core.modes cimport ANOMALY_NAN, ANOMALY_ON, thread_state, thread_state_t
from cygrad._core.node cimport Node
from cygrad._core.tensor cimport SLOT_NE, Tensor, protocol

import warnings


cdef object explain(Node node):
    name = node.name()
    stack = None if node.notes is None else node.notes.get("traceback_")
    if stack is None:
        text = (f"Error detected in {name}. No forward pass information is available: switch anomaly mode on during "
                "the forward too.")
    else:
        text = f"Error detected in {name}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    warnings.warn(text, stacklevel=2)


cdef int look_for_nan(Node node, list results) except -1:
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled, i
    state.grad_disabled = 1
    try:
        for i in range(len(results)):
            if results[i] is None or not is_differentiable((<Tensor>results[i]).array.dtype):
                continue
            if bool(protocol.binary(SLOT_NE, results[i], results[i]).any()):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    finally:
        state.grad_disabled = disabled
    return 0


def anomaly_state():
    """
    Whether anomaly mode is on in this thread, and whether it looks for nan.

    Returns
    -------
    tuple of bool
    """
    cdef int flags = thread_state().anomaly
    return bool(flags & ANOMALY_ON), bool(flags & ANOMALY_NAN)


def set_anomaly_state(mode, check_nan):
    """
    Switch anomaly mode in this thread.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Look for nan in every gradient.
    """
    thread_state().anomaly = (ANOMALY_ON | (ANOMALY_NAN if check_nan else 0)) if mode else 0
