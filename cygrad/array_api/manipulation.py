"""The standard's functions that move elements."""

import cygrad as c
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import joining, shapes

__all__ = ["FUNCTIONS"]

_shapes, _joining = shapes.rows, joining.rows

FUNCTIONS = finished("cygrad.array_api", {
    "broadcast_arrays": lambda *arrays: shapes.broadcast_arrays(*arrays),
    "broadcast_shapes": lambda *shapes: tuple(c.broadcast_shapes(*shapes)),
    "broadcast_to": lambda x, /, shape: _shapes["broadcast_to"](x, shape),
    "concat": lambda arrays, /, *, axis=0: joining.concatenate(arrays, axis),
    "expand_dims": lambda x, /, axis: shapes.expand_dims(x, axis),
    "flip": lambda x, /, *, axis=None: _shapes["flip"](x, axis),
    "moveaxis": lambda x, source, destination, /: _shapes["moveaxis"](x, source, destination),
    "permute_dims": lambda x, /, axes: shapes.transpose(x, axes),
    "repeat": lambda x, repeats, /, *, axis=None: shapes.repeat(x, repeats, axis),
    "reshape": lambda x, /, shape, *, copy=None: shapes.reshape(x, shape, copy=copy),
    "roll": lambda x, /, shift, *, axis=None: shapes.roll(x, shift, axis),
    "squeeze": lambda x, /, axis: shapes.squeeze(x, axis),
    "stack": lambda arrays, /, *, axis=0: joining.stack(arrays, axis),
    "tile": lambda x, repetitions, /: _shapes["tile"](x, repetitions),
    "unstack": lambda x, /, *, axis=0: _shapes["unstack"](x, axis=axis)})
