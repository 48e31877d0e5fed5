"""Verify programs after each pass, as in debug builds."""

import numpy as np
import pytest

import cygrad
from cygrad._core.compiler import lowering


@pytest.fixture(autouse=True)
def verified_passes(monkeypatch):
    monkeypatch.setattr(lowering, "VERIFY", True)


def seen(value):
    """Return all observable properties of a value, for comparison."""
    if isinstance(value, cygrad.Tensor):
        return (np.ascontiguousarray(value.detach().numpy()).tobytes(), value.dtype, value.shape, value.stride(),
                value.requires_grad, value.is_leaf, value.is_inference() or value._version,
                seen(value.grad) if value.is_leaf else None)
    if isinstance(value, BaseException):
        return type(value), str(value)
    if isinstance(value, (list, tuple)):
        return type(value), [seen(part) for part in value]
    return (dict, [(key, seen(part)) for key, part in value.items()]) if isinstance(value, dict) else value


@pytest.fixture
def agree():
    """
    Run a script eagerly and compiled; return the report on the last function that it compiled.

    A script is called with what compiles and with what takes down values and the results, or errors, of calls.
    """
    def agree(script, executions=None, reason=None):
        notes, compiled = [], []

        def made(function):
            compiled.append(cygrad.compile(function))
            return compiled[-1]

        for compile in (lambda function: function, made):
            notes.append([])

            def note(*values, call=None):
                try:
                    notes[-1].append(seen(values if call is None else call(*values)))
                except Exception as error:
                    notes[-1].append(seen(error))

            cygrad.manual_seed(0)
            script(compile, note)
            note(cygrad.get_rng_state())
        assert notes[0] == notes[1]
        report = cygrad.compiling.explain(compiled[-1])
        assert executions is None or report.executions == executions, str(report)
        assert reason is None or any(reason in found for found in report.reasons), str(report)
        return report

    return agree
