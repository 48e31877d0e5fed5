"""An interrupt at any line of the code that enters or leaves a block leaves the modes as they were."""

import os
import sys

import pytest

import cygrad

PACKAGE = os.path.dirname(cygrad.__file__)
BLOCKS = {
    "autocast": lambda: cygrad.autocast("cpu"),
    "autocast disabled": lambda: cygrad.autocast("cpu", enabled=False),
    "detect_anomaly": cygrad.autograd.detect_anomaly,
    "no_grad": cygrad.no_grad,
    "enable_grad": cygrad.enable_grad,
    "inference_mode": cygrad.inference_mode,
    "saved_tensors_hooks": lambda: cygrad.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
}


def modes():
    """Return the modes of this thread."""
    x = cygrad.ones(1, requires_grad=True)
    y = x.exp()
    return (cygrad.is_autocast_enabled(), cygrad.is_anomaly_enabled(), cygrad.is_grad_enabled(),
            cygrad.is_inference_mode_enabled(), None if y.grad_fn is None else y.grad_fn._saved_result is y)


def interrupted(block, at):
    """Enter and leave the block, interrupted at an event of Python's lines; return whether there are as many."""
    events = 0

    def trace(frame, event, argument):
        nonlocal events
        if frame.f_code.co_filename.startswith(PACKAGE):
            events += 1
            if events == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with block:
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.filterwarnings("ignore:Anomaly detection")
@pytest.mark.parametrize("name", BLOCKS)
def test_an_interrupt_of_a_block_leaves_the_modes_as_before(name):
    before, at = modes(), 1
    while interrupted(BLOCKS[name](), at):
        assert modes() == before, f"interrupted at event {at}"
        at += 1
    assert modes() == before


def test_an_error_of_entering_leaves_no_state_to_restore():
    class Wrong(cygrad.autocast):
        def _change(self):
            restore, state, change, wanted = super()._change()
            return restore, state, change, (*wanted, "one too many")

    block = Wrong("cpu")
    with pytest.raises(TypeError):
        block.__enter__()
    with pytest.raises(RuntimeError, match="__exit__ requires a call of __enter__"):
        block.__exit__()
