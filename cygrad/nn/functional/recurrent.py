"""
Forward of `nn.RNN`, `nn.LSTM` and `nn.GRU` for one layer and direction.

One matrix product projects the input of all steps. A step is then a product with the state, which adds the projected
input, and one operation for everything element-wise.
"""

from typing import Any

import cygrad
from cygrad._core.dispatch import operator_modes
from cygrad._core.kernels.linalg.matmul import ROWS
from cygrad._core.table.operator import operators

__all__ = ["run_direction"]

_linear, _linear_in_panels, _unbind, _lstm_gates, _gru_gates, _tanh, _relu = (
    operators.linear, operators.linear_in_panels, operators.unbind, operators.lstm_gates, operators.gru_gates,
    operators.tanh, operators.relu)


def _panels(matrix):
    """Return the rows packed in panels of `ROWS`, contiguous for each column; the last panel is padded with zeros."""
    rows, columns = matrix.shape
    if rows % ROWS:
        matrix = cygrad.nn.functional.pad(matrix, (0, 0, 0, -rows % ROWS))
    return matrix.reshape(-1, ROWS, columns).transpose(1, 2).contiguous()


def _in_panels(weight):
    """Return w_hh, its packed rows and, if grad mode is enabled, its packed columns."""
    plain = weight.detach()
    return weight, _panels(plain), _panels(plain.t()) if cygrad.is_grad_enabled() else None


def _lstm_step(share, state, weight, bias, projection):
    logits = _linear_in_panels(state[0], *weight, share)
    hidden, cell, _ = _lstm_gates(logits, state[1])
    return (hidden if projection is None else _linear(hidden, projection)), cell


def _gru_step(share, state, weight, bias, projection):
    return (_gru_gates(share, _linear_in_panels(state[0], *weight, bias), state[0])[0],)


def _tanh_step(share, state, weight, bias, projection):
    return (_tanh(_linear_in_panels(state[0], *weight, share)),)


def _relu_step(share, state, weight, bias, projection):
    return (_relu(_linear_in_panels(state[0], *weight, share)),)


_STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN_TANH": _tanh_step, "RNN_RELU": _relu_step}


def run_direction(mode, input, state, weights, reverse=False, sizes=None):
    """
    Run one layer in one direction.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    input : Tensor
        Of shape (steps, batch, features); of shape (elements, features), if there are `sizes`.
    state : tuple of Tensor
        Initial state, of shape (batch, units): hidden state and, for an LSTM, cell.
    weights : (w_ih, w_hh, b_ih, b_hh, w_hr)
        The last three may be None.
    reverse : bool, default False
        Whether to run from the last step to the first.
    sizes : list of int, optional
        Batch size of each step of a packed input, in decreasing order.

    Returns
    -------
    Tensor, tuple of Tensor
        Hidden states of all steps in the form of the input, and the state after the last step of each sequence.
    """
    short = operator_modes.current()
    if short is not None:                        # cast once for all steps; an LSTM runs in the short dtype
        weights = operator_modes.cast(weights, short)
        if mode == "LSTM":
            input, state = operator_modes.cast(input, short), tuple(operator_modes.cast(state, short))
    w_ih, w_hh, b_ih, b_hh, projection = weights
    if b_hh is not None and mode != "GRU":       # a GRU multiplies w_hh @ h + b_hh by a gate
        b_ih, b_hh = b_ih + b_hh, None
    shares = _linear(input, w_ih, b_ih)
    step = _STEPS[mode]
    weight = _in_panels(w_hh)
    if sizes is not None:
        return _run_packed(step, shares.split(sizes), state, weight, b_hh, projection, reverse, sizes)
    hidden = []
    shares = _unbind(shares, 0)
    for share in reversed(shares) if reverse else shares:
        state = step(share, state, weight, b_hh, projection)
        hidden.append(state[0])
    if reverse:
        hidden.reverse()
    return cygrad.stack(hidden), state


def _run_packed(step, shares, state, weight, bias, projection, reverse, sizes):
    """Run sequences of different lengths, sorted by length: the active ones come first."""
    initial, left = state, []
    hidden: list[Any] = [None] * len(sizes)
    order = range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes))
    size = sizes[order[0]] if sizes else 0
    state = tuple(part[:size] for part in state)
    for k in order:
        if sizes[k] < size:
            left.append(tuple(part[sizes[k]:] for part in state))
            state = tuple(part[:sizes[k]] for part in state)
        elif sizes[k] > size:
            state = tuple(cygrad.cat((part, start[size:sizes[k]]))
                          for part, start in zip(state, initial, strict=True))
        size = sizes[k]
        state = step(shares[k], state, weight, bias, projection)
        hidden[k] = state[0]
    if left:
        state = tuple(cygrad.cat(parts) for parts in zip(state, *reversed(left), strict=True))
    return cygrad.cat(hidden), state
