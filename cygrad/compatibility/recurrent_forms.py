"""Recurrent layers and segment reductions as functions, with the parameters of PyTorch's top level."""

import cygrad
from cygrad import nn

__all__ = ["gru", "lstm", "rnn_relu", "rnn_tanh", "segment_reduce"]

_SCATTERED = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "max": ("amax", -cygrad.inf), "min": ("amin", cygrad.inf),
              "prod": ("prod", 1.0)}


def _layer(kind, name, **fixed):
    def layer(input, *args):
        packed = isinstance(args[0], cygrad.Tensor) and isinstance(args[2], (list, tuple))
        sizes, args = (args[0], args[1:]) if packed else (None, args)
        hx, params, has_biases, num_layers, dropout, train, bidirectional, *batch_first = args
        module = kind(input.shape[-1], params[1].shape[1], num_layers, bias=has_biases, dropout=dropout,
                      bidirectional=bidirectional, batch_first=bool(batch_first and batch_first[0]), device="meta",
                      **fixed).train(train)
        named = dict(zip((key for key, _ in module.named_parameters()), params, strict=True))
        state = tuple(hx) if kind is nn.LSTM else hx
        if packed:
            input = nn.utils.rnn.PackedSequence(input, sizes)
        output, last = cygrad.func.functional_call(module, named, (input, state))
        return output.data if packed else output, *(last if kind is nn.LSTM else (last,))
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"""The layers of `nn.{kind.__name__}` with the weights `params`, in the order of its parameters.

    The arguments are ``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, and
    ``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`` for packed sequences.
    """
    return layer


lstm, gru = _layer(nn.LSTM, "lstm"), _layer(nn.GRU, "gru")
rnn_tanh, rnn_relu = (_layer(nn.RNN, f"rnn_{name}", nonlinearity=name) for name in ("tanh", "relu"))


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
