"""Recurrent layers: multi-layer and bidirectional RNN, LSTM and GRU."""

import math

import cygrad
from cygrad._core.dispatch import operator_modes
from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.graph.user_warnings import warn_user
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.functional.recurrent import run_direction
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter
from cygrad.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

# Number of gates of each mode.
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


MAX_LAYERS = 1 << 16         # more than any practical model


def check_layers(operation, count):
    """Check the number of layers."""
    if (count if type(count) is int else as_integer(operation, "num_layers", count)) > MAX_LAYERS:
        raise ValueError(f"{operation}: too many layers (got {count}, expected at most {MAX_LAYERS}).")


def check_type(operation, kind, **arguments):
    """Check that each argument is of a type."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise TypeError(f"{operation}: {name} should be of type {kind.__name__}, got: {type(value).__name__}")


def _check_no_projection(proj_size):
    if proj_size:
        raise ValueError(f"RNN, GRU: proj_size argument is only supported for LSTM (got {proj_size}).")


class RNNBase(Module):
    """
    Base class of `RNN`, `LSTM` and `GRU`.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    input_size, hidden_size : int
    num_layers : int, default 1
    bias : bool, default True
    batch_first : bool, default False
        Whether input and output are (batch, steps, features) instead of (steps, batch, features).
    dropout : float, default 0.0
        Probability of `dropout` between layers.
    bidirectional : bool, default False
    proj_size : int, default 0
        Size to which the hidden state of an LSTM is projected; 0 for no projection.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 : Parameter
        Of shape (gates * hidden_size, features), (gates * hidden_size, state), (gates * hidden_size,) twice, and
        (proj_size, hidden_size); the same with l1, ... for further layers and with the suffix ``_reverse`` for the
        other direction. All are initialized uniformly in ±1/sqrt(hidden_size).

    Examples
    --------
    >>> nn.RNNBase("GRU", 4, 3).hidden_size
    3
    """

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        check_type(type(self).__name__, int, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_type(type(self).__name__, bool, bias=bias, batch_first=batch_first)
        check_layers(type(self).__name__, num_layers)
        if mode not in GATES:
            raise ValueError(f"{type(self).__name__}: Unrecognized RNN mode: {mode}")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(f"{type(self).__name__}: dropout should be a number in range [0, 1] (got "
                             f"{dropout!r}).")
        if dropout > 0 and num_layers == 1:
            warn_user(f"dropout is applied between layers and has no effect with a single layer (got dropout={dropout} "
                      f"and num_layers={num_layers}).")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise ValueError(f"{type(self).__name__}: {name} must be greater than zero")
        if proj_size < 0:
            raise ValueError(f"{type(self).__name__}: proj_size should be a positive integer or zero.")
        if proj_size >= hidden_size:
            raise ValueError(f"{type(self).__name__}: proj_size has to be smaller than hidden_size.")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows, state = GATES[mode] * hidden_size, proj_size or hidden_size
        self._flat_weights_names = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else state * (2 if bidirectional else 1)
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, state)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:1 + bool(bidirectional)]:
                for name, shape in shapes.items():
                    self.register_parameter(f"{name}_l{layer}{suffix}",
                                            Parameter(cygrad.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(f"{name}_l{layer}{suffix}")
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize the parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Do nothing; accepted for compatibility."""

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """Lists of the parameters of each layer and direction."""
        size = len(self._flat_weights_names) // (self.num_layers * (1 + bool(self.bidirectional)))
        weights = self._flat_weights
        return [weights[start:start + size] for start in range(0, len(weights), size)]

    def _weights(self, layer, suffix):
        """Return the five weights of a direction, None for missing ones."""
        return tuple(getattr(self, f"{name}_l{layer}{suffix}", None)
                     for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"))

    def check_input(self, input, batch_sizes):
        """Check dimensions, features and dtype of the input; `batch_sizes` is not None if it is packed."""
        name = type(self).__name__
        if batch_sizes is not None:
            if input.ndim != 2:
                raise RuntimeError(f"{name}: input must have 2 dimensions, got {input.ndim}")
        elif input.ndim not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: expected input with input_size features (got {input.shape[-1]}, expected "
                               f"{self.input_size}).")
        if input.dtype != self.weight_ih_l0.dtype and operator_modes.current() is None:
            raise ValueError(f"{name}: RNN input dtype ({input.dtype}) does not match weight dtype "
                             f"({self.weight_ih_l0.dtype}). Convert input: input.to({self.weight_ih_l0.dtype}), or "
                             f"convert model: model.to({input.dtype})")

    def _initial(self, hx, batch, unbatched, order, like):
        """Return the initial states: a tuple of tensors (layers * directions, batch, size)."""
        count = self.num_layers * (1 + bool(self.bidirectional))
        sizes = [self.proj_size or self.hidden_size] + [self.hidden_size] * (self.mode == "LSTM")
        if hx is None:
            return tuple(cygrad.zeros(count, batch, size, dtype=like.dtype) for size in sizes)
        name, given = type(self).__name__, hx if self.mode == "LSTM" else (hx,)
        if len(given) != len(sizes):
            raise RuntimeError(f"{name}: hx must be a pair of hidden state and cell (got {len(given)} values)")
        if any(part.ndim != (2 if unbatched else 3) for part in given):
            found = " and ".join(f"{part.ndim}-D" for part in given)
            raise RuntimeError(f"{name}: For {'unbatched 2-D' if unbatched else 'batched 3-D'} input, hx should also "
                               f"be {2 if unbatched else 3}-D but got {found} tensors")
        if unbatched:
            given = tuple(part.unsqueeze(1) for part in given)
        for position, (part, size) in enumerate(zip(given, sizes, strict=True)):
            if part.shape != (count, batch, size):
                which = f"hidden[{position}]" if len(sizes) > 1 else "hidden"
                raise RuntimeError(f"{name}: Expected {which} size {(count, batch, size)}, got {tuple(part.shape)}")
        return given if order is None else tuple(part.index_select(1, order) for part in given)

    def forward(self, input, hx=None):
        """
        Run over a sequence or a batch of sequences.

        Parameters
        ----------
        input : Tensor or PackedSequence
            Of shape (steps, batch, features), (batch, steps, features) if `batch_first`, or (steps, features).
        hx : Tensor of shape (layers * directions, batch, state), optional
            Initial state, zeros by default; a pair of hidden and cell state for an LSTM.

        Returns
        -------
        output, hx
            Hidden states of the last layer at all steps, with both directions concatenated, and the final states of all
            layers.
        """
        packed, sizes, order = input if isinstance(input, PackedSequence) else None, None, None
        unbatched = packed is None and input.ndim == 2
        if packed is not None:
            input, sizes, order = packed.data, packed.batch_sizes.tolist(), packed.sorted_indices
        self.check_input(input, packed and packed.batch_sizes)
        if packed is None:
            if unbatched:
                input = input.unsqueeze(1)
            elif self.batch_first:
                input = input.transpose(0, 1)
            if input.shape[0] == 0:
                raise RuntimeError(f"{type(self).__name__}: expected a sequence of at least one step (got none).")
        batch = sizes[0] if sizes is not None else input.shape[1]
        initial = [part.unbind(0) for part in self._initial(hx, batch, unbatched, order, input)]
        suffixes, states = ("", "_reverse")[:1 + bool(self.bidirectional)], []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(suffixes):
                state = tuple(part[layer * len(suffixes) + direction] for part in initial)
                output, state = run_direction(self.mode, input, state, self._weights(layer, suffix), direction == 1,
                                              sizes)
                outputs.append(output)
                states.append(state)
            input = outputs[0] if len(outputs) == 1 else cygrad.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                input = F.dropout(input, self.dropout, self.training)
        final = tuple(cygrad.stack(parts) for parts in zip(*states, strict=True))
        if packed is not None:
            input = PackedSequence(input, *packed[1:])
            if packed.unsorted_indices is not None:
                final = tuple(part.index_select(1, packed.unsorted_indices) for part in final)
        elif unbatched:
            input, final = input.squeeze(1), tuple(part.squeeze(1) for part in final)
        elif self.batch_first:
            input = input.transpose(0, 1)
        return input, final if self.mode == "LSTM" else final[0]

    def extra_repr(self):
        """Return sizes and non-default options."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
                              ("dropout", 0), ("bidirectional", False)):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


class RNN(RNNBase):
    """
    Apply an Elman network to a sequence: ``h = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)``.

    Parameters
    ----------
    input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout, bidirectional, device, dtype
        As in `RNNBase`; `nonlinearity` is "tanh" or "relu".

    Examples
    --------
    >>> output, hidden = cygrad.nn.RNN(3, 5)(cygrad.ones(7, 2, 3))
    >>> output.shape, hidden.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None, proj_size=0):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        _check_no_projection(proj_size)
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """
    Apply an LSTM (Hochreiter and Schmidhuber, 1997) to a sequence; see `lstm_cell`.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        As in `RNNBase`.

    Examples
    --------
    >>> output, (hidden, cell) = cygrad.nn.LSTM(3, 5, num_layers=2)(cygrad.ones(7, 2, 3))
    >>> output.shape, hidden.shape, cell.shape
    ((7, 2, 5), (2, 2, 5), (2, 2, 5))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)


class GRU(RNNBase):
    """
    Apply gated recurrent units (Cho et al., 2014) to a sequence; see `gru_cell`.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype
        As in `RNNBase`.

    Examples
    --------
    >>> output, hidden = cygrad.nn.GRU(3, 5, bidirectional=True)(cygrad.ones(7, 2, 3))
    >>> output.shape, hidden.shape
    ((7, 2, 10), (2, 2, 5))
    """

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None, proj_size=0):
        _check_no_projection(proj_size)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype)
