"""Recurrent cells, which compute one step."""

import math

import cygrad
from cygrad._core.graph.argument_errors import as_integer
from cygrad.nn import init
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """
    Base class of `RNNCell`, `LSTMCell` and `GRUCell`.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    num_chunks : int
        Number of gates.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : Parameter
        Of shape (num_chunks * hidden_size, input_size), (num_chunks * hidden_size, hidden_size) and
        (num_chunks * hidden_size,) twice. All are initialized uniformly in ±1/sqrt(hidden_size).

    Examples
    --------
    >>> issubclass(nn.LSTMCell, nn.RNNCellBase)
    True
    """

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = math.prod(as_integer(type(self).__name__, name, value) for name, value in (
            ("num_chunks", num_chunks), ("hidden_size", hidden_size)))
        self.weight_ih = Parameter(cygrad.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(cygrad.empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(cygrad.empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize the parameters."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, input, states):
        """Check the shapes of input and states."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: input has inconsistent input_size: got {input.shape[-1]} expected "
                               f"{self.input_size}")
        expected = (*input.shape[:-1], self.hidden_size)
        for state in states:
            if state.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {state.ndim}D instead")
            if tuple(state.shape) != expected:
                raise RuntimeError(f"{name}: hidden state has the wrong shape for the input (got {tuple(state.shape)}, "
                                   f"expected {expected})")

    def _zeros(self, input):
        return cygrad.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self):
        """Return sizes and non-default options."""
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """
    Compute one step of an Elman network, `rnn_tanh_cell` or `rnn_relu_cell`.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    nonlinearity : {"tanh", "relu"}
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> cell = nn.RNNCell(4, 3)
    >>> state = cygrad.zeros(2, 3)
    >>> for x in cygrad.randn(5, 2, 4):
    ...     state = cell(x, state)
    >>> state.shape
    (2, 3)
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        """Map input (batch, features) and state (batch, units), or both without the batch, to the new state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"RNNCell: Unknown nonlinearity: {self.nonlinearity}")
        hx = self._zeros(input) if hx is None else hx
        self._check(input, (hx,))
        cell = cygrad.rnn_tanh_cell if self.nonlinearity == "tanh" else cygrad.rnn_relu_cell
        return cell(input, hx, *self._weights())


class LSTMCell(RNNCellBase):
    """
    Compute one step of an LSTM, `lstm_cell`.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> cell = nn.LSTMCell(4, 3)
    >>> h, c = cygrad.zeros(2, 3), cygrad.zeros(2, 3)
    >>> for x in cygrad.randn(5, 2, 4):
    ...     h, c = cell(x, (h, c))
    >>> h.shape
    (2, 3)
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        """Map input (batch, features) and a pair of states (batch, units), or all unbatched, to the new pair."""
        hx = (self._zeros(input),) * 2 if hx is None else hx
        self._check(input, hx)
        return cygrad.lstm_cell(input, hx, *self._weights())


class GRUCell(RNNCellBase):
    """
    Compute one step of a gated recurrent unit, `gru_cell`.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional

    Examples
    --------
    >>> cell = nn.GRUCell(4, 3)
    >>> state = cygrad.zeros(2, 3)
    >>> for x in cygrad.randn(5, 2, 4):
    ...     state = cell(x, state)
    >>> state.shape
    (2, 3)
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        """Map input (batch, features) and state (batch, units), or both without the batch, to the new state."""
        hx = self._zeros(input) if hx is None else hx
        self._check(input, (hx,))
        return cygrad.gru_cell(input, hx, *self._weights())
