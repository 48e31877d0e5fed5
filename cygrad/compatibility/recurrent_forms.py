"""Recurrent layers and segment reductions as functions, with the parameters of PyTorch's top level."""

import cygrad
from cygrad import nn
from cygrad.nn.recurrent import GATES

__all__ = ["gru", "lstm", "rnn_relu", "rnn_tanh", "segment_reduce"]

_SCATTERED = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "max": ("amax", -cygrad.inf), "min": ("amin", cygrad.inf),
              "prod": ("prod", 1.0)}


class _Layers:
    """What `RNNBase.forward` reads of a module, over given weights: making a module costs more than a step."""

    check_input, _initial, forward = nn.RNNBase.check_input, nn.RNNBase._initial, nn.RNNBase.forward
    mode: str

    def __init__(self, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        directions, least = 1 + bool(bidirectional), 4 if has_biases else 2
        size, rest = divmod(len(params), max(1, num_layers * directions))
        if num_layers < 1 or rest or size not in (least, least + (self.mode == "LSTM")):
            raise RuntimeError(f"{type(self).__name__}: params must hold {least} weights for each layer and direction "
                               f"(got {len(params)} for {num_layers} layers in {directions} directions).")
        self.weight_ih_l0, self.input_size = params[0], params[0].shape[-1]
        self.hidden_size = params[0].shape[0] // GATES[self.mode]
        self.proj_size = params[size - 1].shape[0] if size > least else 0
        self.num_layers, self.bidirectional, self.batch_first = num_layers, bidirectional, batch_first
        self.dropout, self.training = dropout, train
        absent = () if has_biases else (None, None)
        self._groups = [(*params[k:k + 2], *absent, *params[k + 2:k + size], *(() if size > least else (None,)))
                        for k in range(0, len(params), size)]

    def _weights(self, layer, suffix):
        return self._groups[layer * (1 + bool(self.bidirectional)) + bool(suffix)]


def _layer(kind, name, mode):
    layers = type(name, (_Layers,), {"mode": mode})

    def layer(input, *args):
        packed = isinstance(args[0], cygrad.Tensor) and isinstance(args[2], (list, tuple))
        sizes, args = (args[0], args[1:]) if packed else (None, args)
        hx, params, has_biases, num_layers, dropout, train, bidirectional, *batch_first = args
        module = layers(params, has_biases, num_layers, dropout, train, bidirectional,
                        bool(batch_first and batch_first[0]))
        if packed:
            input = nn.utils.rnn.PackedSequence(input, sizes)
        output, last = module.forward(input, tuple(hx) if mode == "LSTM" else hx)
        return output.data if packed else output, *(last if mode == "LSTM" else (last,))
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"""The layers of `nn.{kind.__name__}` with the weights `params`, in the order of its parameters.

    The arguments are ``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, and
    ``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`` for packed sequences.
    """
    return layer


lstm, gru = _layer(nn.LSTM, "lstm", "LSTM"), _layer(nn.GRU, "gru", "GRU")
rnn_tanh, rnn_relu = (_layer(nn.RNN, f"rnn_{name}", f"RNN_{name.upper()}") for name in ("tanh", "relu"))


def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """
    Reduce consecutive segments along a dimension.

    Parameters
    ----------
    data : Tensor
    reduce : {"sum", "mean", "max", "min", "prod"}
    lengths, offsets : Tensor
        Lengths of the segments, or their starts and the end of the last one: one of the two. Dimensions before the last
        one are those of `data` before `axis`.
    indices, unsafe : optional
        Ignored.
    axis : int
    initial : float, optional
        Initial value of each segment.

    Examples
    --------
    >>> cygrad.segment_reduce(cygrad.tensor([1.0, 2.0, 3.0]), "sum", lengths=cygrad.tensor([1, 2]))
    tensor([1., 5.])
    """
    if reduce not in _SCATTERED or (lengths is None) == (offsets is None):
        raise RuntimeError(f"segment_reduce: expected one of {', '.join(_SCATTERED)}, and either lengths or offsets "
                           f"(got {reduce!r}).")
    lengths = offsets.diff() if lengths is None else lengths
    way, neutral = _SCATTERED[reduce]
    axis, rest = axis % data.ndim, data.shape[axis % data.ndim + 1:]
    flat, counts = data.reshape(-1, *rest), lengths.reshape(-1)
    if int(counts.sum()) != flat.shape[0]:
        raise RuntimeError(f"segment_reduce: lengths must add up to the size of dimension {axis} (got "
                           f"{int(counts.sum())}, expected {flat.shape[0]}).")
    index = cygrad.repeat_interleave(cygrad.arange(counts.numel()), counts)
    start = cygrad.full((counts.numel(), *rest), neutral if initial is None else initial, dtype=data.dtype)
    places = index.reshape(-1, *(1,) * len(rest)).expand_as(flat)
    result = start.scatter_reduce(0, places, flat, way)
    if reduce == "mean":
        count = counts.reshape(-1, *(1,) * len(rest)).to(data.dtype)
        result = result / (count if initial is None else count.clamp(min=1))
    return result.reshape(*data.shape[:axis], -1, *rest)
