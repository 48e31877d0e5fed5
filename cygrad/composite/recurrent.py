"""Recurrent cells as functions."""

from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"]


def _check(operation, input, hidden, w_ih, w_hh, gates):
    """Check the arguments of a cell with `gates` blocks of rows."""
    for name, tensor in (("input", input), ("hx", hidden), ("w_ih", w_ih), ("w_hh", w_hh)):
        as_tensor_argument(operation, name, tensor)
    for name, tensor in (("w_ih", w_ih), ("w_hh", w_hh)):
        if tensor.ndim != 2 or tensor.shape[0] != gates * hidden.shape[-1]:
            raise RuntimeError(f"{operation}: {name} must be a matrix with {gates} rows for each unit (got shape "
                               f"{tuple(tensor.shape)} and {hidden.shape[-1]} units).")
    if input.shape[:-1] != hidden.shape[:-1]:
        raise RuntimeError(f"{operation}: Input batch size {list(input.shape[:-1])} doesn't match hidden batch size "
                           f"{list(hidden.shape[:-1])}.")


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """
    Compute one step of an LSTM (Hochreiter and Schmidhuber, 1997).

    Parameters
    ----------
    input : Tensor of shape (..., n)
    hx : (Tensor, Tensor)
        Hidden state and cell of shape (..., m).
    w_ih, w_hh : Tensor of shape (4 * m, n) and (4 * m, m)
        Blocks of m rows: input gate, forget gate, candidate, output gate.
    b_ih, b_hh : Tensor of shape (4 * m,), optional

    Returns
    -------
    (Tensor, Tensor)
        The new hidden state ``o * tanh(cell)`` and ``cell = f * old cell + i * g``, with sigmoid gates i, f, o and ``g
        = tanh(...)``.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> state = cygrad.zeros(1, 1), cygrad.ones(1, 1)
    >>> cygrad.lstm_cell(cygrad.ones(1, 2), state, cygrad.zeros(4, 2), cygrad.zeros(4, 1))
    (tensor([[0.2311]]), tensor([[0.5000]]))
    """
    hidden, cell = hx
    _check("lstm_cell", input, hidden, w_ih, w_hh, 4)
    logits = operators.linear(hidden, w_hh, b_hh) + operators.linear(input, w_ih, b_ih)
    return operators.lstm_gates(logits, cell)[:2]


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """
    Compute one step of a gated recurrent unit (Cho et al., 2014).

    Parameters
    ----------
    input : Tensor of shape (..., n)
    hx : Tensor of shape (..., m)
        Hidden state.
    w_ih, w_hh : Tensor of shape (3 * m, n) and (3 * m, m)
        Blocks of m rows: reset gate, update gate, candidate.
    b_ih, b_hh : Tensor of shape (3 * m,), optional

    Returns
    -------
    Tensor
        The new hidden state ``(1 - z) * n + z * hx``, with sigmoid gates r, z and the candidate ``n = tanh(x + r *
        h)``, where x and h are the projections of input and state.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.gru_cell(cygrad.ones(1, 2), cygrad.ones(1, 1), cygrad.zeros(3, 2), cygrad.zeros(3, 1))
    tensor([[0.5000]])
    """
    _check("gru_cell", input, hx, w_ih, w_hh, 3)
    return operators.gru_gates(operators.linear(input, w_ih, b_ih), operators.linear(hx, w_hh, b_hh), hx)[0]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """
    Compute one step of an Elman network: ``tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh)``.

    Parameters
    ----------
    input : Tensor of shape (..., n)
    hx : Tensor of shape (..., m)
        Hidden state.
    w_ih, w_hh : Tensor of shape (m, n) and (m, m)
    b_ih, b_hh : Tensor of shape (m,), optional

    Returns
    -------
    Tensor
        The new hidden state.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.rnn_tanh_cell(cygrad.ones(1, 2), cygrad.ones(1, 1), cygrad.ones(1, 2), cygrad.zeros(1, 1))
    tensor([[0.9640]])
    """
    _check("rnn_tanh_cell", input, hx, w_ih, w_hh, 1)
    return operators.tanh(operators.linear(input, w_ih, b_ih) + operators.linear(hx, w_hh, b_hh))


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """
    Compute one step of an Elman network: ``relu(w_ih @ input + b_ih + w_hh @ hx + b_hh)``.

    Parameters
    ----------
    input : Tensor of shape (..., n)
    hx : Tensor of shape (..., m)
        Hidden state.
    w_ih, w_hh : Tensor of shape (m, n) and (m, m)
    b_ih, b_hh : Tensor of shape (m,), optional

    Returns
    -------
    Tensor
        The new hidden state. Derivative of relu 0 at 0.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.

    Examples
    --------
    >>> cygrad.rnn_relu_cell(cygrad.ones(1, 2), cygrad.ones(1, 1), cygrad.ones(1, 2), cygrad.zeros(1, 1))
    tensor([[2.]])
    """
    _check("rnn_relu_cell", input, hx, w_ih, w_hh, 1)
    return operators.relu(operators.linear(input, w_ih, b_ih) + operators.linear(hx, w_hh, b_hh))
