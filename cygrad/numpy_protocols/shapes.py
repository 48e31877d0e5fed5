"""NumPy's functions that only move elements: reshape, transpose, flip, split and others."""

from types import SimpleNamespace

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols.arrays import Rows, as_tensor, axes, cast, our_dtype, promoted, widened

__all__ = ["rows", "strides"]


def _reversed_axes(a):
    return a.permute(tuple(range(a.ndim))[::-1])


def reshape(a, /, shape=None, order="C", *, newshape=None, copy=None):
    a, shape = as_tensor(a), newshape if shape is None else shape
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if copy is False and order == "C":
        try:
            return a.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: needs a copy (got copy=False): {error}") from None
    try:
        result = _reversed_axes(_reversed_axes(a).reshape(shape[::-1])) if order == "F" else a.reshape(shape)
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return result.clone() if copy else result


def transpose(a, axes=None):
    a = as_tensor(a)
    return _reversed_axes(a) if axes is None else a.permute(normalize_axis_tuple(axes, a.ndim))


def expand_dims(a, axis):
    a = as_tensor(a)
    axis = axis if isinstance(axis, (tuple, list)) else (axis,)
    new = normalize_axis_tuple(axis, a.ndim + len(axis))
    sizes = iter(a.shape)
    return a.reshape([1 if dim in new else next(sizes) for dim in range(a.ndim + len(new))])


def squeeze(a, axis=None):
    a = as_tensor(a)
    gone = [dim for dim, size in enumerate(a.shape) if size == 1] if axis is None else axes(a, axis)
    if any(a.shape[dim] != 1 for dim in gone):
        raise ValueError(f"squeeze: only axes of size 1 can be removed (got axis {axis} of shape {tuple(a.shape)}).")
    return a.reshape([size for dim, size in enumerate(a.shape) if dim not in gone]) if gone else a


def rollaxis(a, axis, start=0):
    a = as_tensor(a)
    axis = normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return a.movedim(axis, start - 1 if axis < start else start)


def roll(a, shift, axis=None):
    a = as_tensor(a)
    if axis is None:
        return c.roll(a.reshape(-1), int(np.sum(shift)), 0).reshape(a.shape)
    shift, axis = np.broadcast_arrays(shift, axis)
    return c.roll(a, shift.reshape(-1).tolist(), normalize_axis_tuple(axis.reshape(-1).tolist(), a.ndim, "axis", True))


def repeat(a, repeats, axis=None):
    a = as_tensor(a)
    a, axis = (a.reshape(-1), 0) if axis is None else (a, normalize_axis_index(axis, a.ndim))
    repeats = repeats if isinstance(repeats, int) else as_tensor(repeats)
    if isinstance(repeats, Tensor):
        repeats = int(repeats.reshape(()).item()) if repeats.numel() == 1 else repeats
    return c.repeat_interleave(a, repeats, axis)


def broadcast_arrays(*args, subok=False):
    arrays = [as_tensor(value) for value in args]
    shape = c.broadcast_shapes(*[value.shape for value in arrays])
    return tuple([value.expand(shape) for value in arrays])


def _at_least(function):
    def at_least(*arys):
        found = [function(as_tensor(value)) for value in arys]
        return found[0] if len(found) == 1 else tuple(found)
    return at_least


def _split(name, exact):
    def split(ary, indices_or_sections, axis=0):
        ary = as_tensor(ary)
        if isinstance(indices_or_sections, Tensor):
            indices_or_sections = indices_or_sections.tolist()
        if isinstance(indices_or_sections, (int, np.integer)):
            if exact and ary.shape[axis] % indices_or_sections:
                raise ValueError(f"{name}: the array does not divide into equal parts (got {indices_or_sections} for "
                                 f"size {ary.shape[axis]}).")
            return list(c.tensor_split(ary, int(indices_or_sections), axis))
        return list(c.tensor_split(ary, tuple(map(int, indices_or_sections)), axis))
    return split


_exact = _split("split", True)


def _split_along(name, dim, least):
    def split(ary, indices_or_sections):
        ary = as_tensor(ary)
        if ary.ndim < least:
            raise ValueError(f"{name}: only works on arrays of {least} or more dimensions (got shape "
                             f"{tuple(ary.shape)}).")
        return _exact(ary, indices_or_sections, min(dim, ary.ndim - 1))
    return split


def resize(a, new_shape):
    a = as_tensor(a).reshape(-1)
    new_shape = new_shape if isinstance(new_shape, (tuple, list)) else (new_shape,)
    count = int(np.prod(new_shape, dtype=int))
    if not a.numel() or not count:
        return c.zeros(tuple(new_shape), dtype=a.dtype)
    return a.repeat(-(-count // a.numel()))[:count].reshape(tuple(new_shape))


def trim_zeros(filt, trim="fb", axis=None):
    filt = as_tensor(filt)
    nonzero = np.nonzero(filt.detach().numpy())
    for dim in axes(filt, axis):
        first, last = (int(nonzero[dim].min()), int(nonzero[dim].max()) + 1) if nonzero[dim].size else (0, 0)
        if not nonzero[dim].size:
            return filt.narrow(dim, 0, 0)
        start = first if "f" in trim.lower() else 0
        filt = filt.narrow(dim, start, (last if "b" in trim.lower() else filt.shape[dim]) - start)
    return filt


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    vectors = [as_tensor(value).reshape(-1) for value in xi]
    count = len(vectors)
    grids = []
    for place, vector in enumerate(vectors):
        place = 1 - place if indexing == "xy" and place < 2 and count > 1 else place
        grids.append(vector.reshape([-1 if dim == place else 1 for dim in range(count)]))
    return tuple(grids) if sparse else broadcast_arrays(*grids)


def diagonal(a, offset=0, axis1=0, axis2=1):
    return c.diagonal(as_tensor(a), offset, axis1, axis2)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    a = widened(a, dtype)
    return cast(c.sum(c.diagonal(a, offset, axis1, axis2), -1), a.dtype)


def astype(x, dtype, /, *, copy=True, device=None):
    x = as_tensor(x)
    result = x.to(our_dtype(dtype))
    return result.clone() if copy and result is x else result


def _modes(array, pads, mode, options):
    """Apply a function along one axis after the other."""
    for dim, (before, after) in enumerate(pads):
        size = array.shape[dim]
        if not before and not after:
            continue
        if mode == "edge":
            first, last = array.narrow(dim, 0, 1), array.narrow(dim, size - 1, 1)
            parts = [first] * before + [array] + [last] * after
        elif mode == "constant":
            low, high = options[dim]
            shape = list(array.shape)
            parts = []
            for count, value, place in ((before, low, 0), (after, high, 1)):
                shape[dim] = count
                parts.insert(2 * place, promoted(value, dtype=array.dtype)[0].expand(shape))
            parts.insert(1, array)
        else:
            places = np.pad(np.arange(size), (before, after), mode=mode, **options)
            array = c.index_select(array, dim, as_tensor(places))
            continue
        array = c.cat(parts, dim)
    return array


def pad(array, pad_width, mode="constant", **kwargs):
    array = as_tensor(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(dim, pad_width.get(dim - array.ndim, (0, 0))) for dim in range(array.ndim)]
        pad_width = [(width, width) if isinstance(width, int) else width for width in pad_width]
    pad_width = pad_width.tolist() if isinstance(pad_width, Tensor) else pad_width
    pads = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    if mode == "constant":
        values = kwargs.pop("constant_values", 0)
        kwargs = {**kwargs, **dict(enumerate(
            [(values, values)] * array.ndim if isinstance(values, Tensor)
            else [tuple(pair) for pair in np.broadcast_to(values, (array.ndim, 2)).tolist()]))}
    elif mode not in ("edge", "reflect", "symmetric", "wrap") or kwargs.get("reflect_type", "even") != "even":
        raise TypeError(f"pad: unsupported mode for Tensors (got {mode!r}, expected 'constant', 'edge', "
                        "'reflect', 'symmetric' or 'wrap').")
    return _modes(array, pads, mode, kwargs)


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    x = as_tensor(x)
    window_shape = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    for dim, size in zip(normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim, allow_duplicate=True),
                         window_shape, strict=True):
        x = x.unfold(dim, size, 1)
    return x


def size(a, axis=None):
    a = as_tensor(a)
    return a.numel() if axis is None else int(np.prod([a.shape[dim] for dim in axes(a, axis)]))


rows = Rows({
    "reshape": reshape, "transpose": transpose, "permute_dims": transpose, "expand_dims": expand_dims,
    "squeeze": squeeze, "rollaxis": rollaxis, "roll": roll, "repeat": repeat, "broadcast_arrays": broadcast_arrays,
    "resize": resize, "trim_zeros": trim_zeros, "meshgrid": meshgrid, "diagonal": diagonal, "trace": trace,
    "astype": astype, "pad": pad,
    "ravel": lambda a, order="C": reshape(a, -1, order),
    "matrix_transpose": lambda x, /: as_tensor(x).mT,
    "swapaxes": lambda a, axis1, axis2: as_tensor(a).transpose(axis1, axis2),
    "moveaxis": lambda a, source, destination: as_tensor(a).movedim(source, destination),
    "flip": lambda m, axis=None: c.flip(as_tensor(m), axes(as_tensor(m), axis)),
    "fliplr": lambda m: c.fliplr(as_tensor(m)), "flipud": lambda m: c.flipud(as_tensor(m)),
    "rot90": lambda m, k=1, axes=(0, 1): c.rot90(as_tensor(m), k, tuple(axes)),
    "tile": lambda A, reps: c.tile(as_tensor(A), tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)),
    "broadcast_to": lambda array, shape, subok=False: as_tensor(array).expand(shape),
    "atleast_1d": _at_least(c.atleast_1d), "atleast_2d": _at_least(c.atleast_2d), "atleast_3d": _at_least(c.atleast_3d),
    "split": _exact, "array_split": _split("array_split", False),
    "hsplit": _split_along("hsplit", 1, 1), "vsplit": _split_along("vsplit", 0, 2),
    "dsplit": _split_along("dsplit", 2, 3),
    "unstack": lambda x, /, *, axis=0: tuple(as_tensor(x).unbind(axis)),
    "diag": lambda v, k=0: c.diag(as_tensor(v), k), "diagflat": lambda v, k=0: c.diagflat(as_tensor(v), k),
    "tril": lambda m, k=0: c.tril(as_tensor(m), k), "triu": lambda m, k=0: c.triu(as_tensor(m), k),
    "copy": lambda a, order="K", subok=False: as_tensor(a).clone(),
    "shape": lambda a: tuple(as_tensor(a).shape), "ndim": lambda a: as_tensor(a).ndim, "size": size,
})


strides = SimpleNamespace(rows=Rows({"sliding_window_view": sliding_window_view}))
