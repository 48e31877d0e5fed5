"""Anomaly mode: the line of the forward that a failing node comes from, and where nan first appears."""

from cygrad._core.elementwise.nan_watch cimport holds_nan
from cygrad._core.graph.modes cimport ANOMALY_NAN, ANOMALY_ON, thread_state
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.user_warnings import warn_user


cdef object explain(Node node, object error):
    stack = None if node.notes is None else node.notes.get("traceback_")
    if not thread_state().anomaly & ANOMALY_ON:      # only a profiler is active
        return None
    if stack is None:
        text = (f"Error detected in {node.name()}. No forward pass information is available: switch anomaly mode on "
                "during the forward too.")
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    texts = [text]
    # A node created by a backward: the nodes for which it was created, nested.
    seen = {node}
    while node.notes is not None and node.notes.get("parent_") not in (None, *seen):
        node = node.notes["parent_"]
        seen.add(node)
        stack = (node.notes or {}).get("traceback_")
        texts.append(f"Previous calculation was induced by {node.name()}. " + (
            "No forward pass information is available." if stack is None else
            f"Traceback of forward call that induced the previous calculation:\n{''.join(stack)}"))
    for text in texts:
        try:
            warn_user(text)
        except Warning:                  # warnings are errors: raise the error of backward instead
            error.add_note(text)


cdef int raise_nan(Node node, int number) except -1:
    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")


cdef int look_for_nan(Node node, list results) except -1:
    cdef int i
    for i in range(len(results)):
        if results[i] is not None and holds_nan((<Tensor>results[i]).array):
            raise_nan(node, i)
    return 0


def anomaly_state():
    """
    Return whether anomaly mode is on in this thread, and whether it checks for nan.

    Returns
    -------
    tuple of bool
    """
    cdef int flags = thread_state().anomaly
    return bool(flags & ANOMALY_ON), bool(flags & ANOMALY_NAN)


def set_anomaly_state(mode, check_nan):
    """
    Set anomaly mode in this thread.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Look for nan in every gradient.
    """
    cdef int flags = thread_state().anomaly & ~(ANOMALY_ON | ANOMALY_NAN)
    thread_state().anomaly = flags | ((ANOMALY_ON | (ANOMALY_NAN if check_nan else 0)) if mode else 0)
