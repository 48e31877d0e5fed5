"""Rarely used functions and types of PyTorch's namespace."""

import builtins
import contextlib
import enum
import math
from numbers import Number

import numpy as np

import cygrad
from cygrad import Size, Tensor
from cygrad import device as Device
from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.table.operator import operators

__all__ = [
    "SDPBackend", "compiled_with_cxx11_abi", "empty_permuted", "empty_strided", "from_file", "frombuffer", "get_device",
    "get_device_module", "histogramdd", "is_distributed", "is_vulkan_available", "narrow_copy", "range", "sdpa_kernel",
    "sym_float", "sym_int", "sym_max", "sym_min", "sym_not", "sym_sqrt", "typename",
]

_TensorOrTensors = Tensor | tuple[Tensor, ...]
_dtype, _device, _size, _int, _float, _bool = cygrad.dtype, Device, Size, builtins.int, builtins.float, builtins.bool
_layout = cygrad.layout
Tensor = Tensor
# Types of sizes for annotations.
_scalar_or_tuple_any_t = _size_any_t = builtins.int | tuple[builtins.int, ...]
_size_1_t = _size_2_t = _size_3_t = _size_4_t = _size_5_t = _size_6_t = _size_any_t
_ratio_2_t = _ratio_3_t = _ratio_any_t = _size_any_t
_scalar_or_tuple_1_t = _scalar_or_tuple_2_t = _scalar_or_tuple_3_t = _size_any_t
Number, Device, Storage = Number, Device, object
sym_float, sym_int, sym_max, sym_min, sym_sqrt = builtins.float, builtins.int, max, min, math.sqrt


def sym_not(a):
    """Return ``not a``."""
    return not a


def typename(obj):
    """Return the qualified name of the type of an object; of a tensor that of its dtype."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def get_device(input):
    """Return the index of a tensor's accelerator; -1 for the CPU."""
    return input.get_device()


def get_device_module(device=None):
    """Return the module of a device: ``cpu``, or that of an unavailable one."""
    return getattr(cygrad, cygrad.device("cpu" if device is None else device).type)


def is_distributed(input):
    """Return False: there are no distributed tensors."""
    return False


def is_vulkan_available():
    """Return False: the device is unavailable."""
    return False


def compiled_with_cxx11_abi():
    """Return True, PyTorch's setting of the C++ ABI."""
    return True


def range(start=0, end=None, step=1, **options):
    """
    Return values from `start` to `end`, inclusive. Deprecated: use `arange`.

    Examples
    --------
    >>> cygrad.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    if end is None:
        start, end = 0, start
    dtype = options.pop("dtype", None) or cygrad.get_default_dtype()
    count = math.floor((end - start) / step) + 1
    return cygrad.arange(0, count, dtype=dtype, **options).mul_(step).add_(start)


def empty_strided(size, stride, **options):
    """
    Return an uninitialized tensor with given strides.

    Parameters
    ----------
    size, stride : tuple of int
    **options
        As for `empty`.

    Examples
    --------
    >>> cygrad.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    size, stride = (as_sizes("empty_strided", name, value) for name, value in (("size", size), ("stride", stride)))
    if len(size) != len(stride):
        raise RuntimeError(f"empty_strided: expected one stride for each size (got {size} and {stride}).")
    needs_grad = options.pop("requires_grad", False)
    if any(step < 0 for step in stride):
        raise RuntimeError(f"empty_strided: strides must not be negative (got {stride}).")
    reach = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if math.prod(size) else 0
    memory = cygrad.empty(reach, **options)
    made = cygrad.empty(size, **options) if memory.is_meta else memory.as_strided(size, stride).detach()
    return made.requires_grad_(needs_grad)


def empty_permuted(size, physical_layout, **options):
    """
    Return an uninitialized tensor with a given order of dimensions in memory, the outermost first.

    Examples
    --------
    >>> cygrad.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    order = tuple(physical_layout)
    if sorted(order) != list(builtins.range(len(size))):
        raise RuntimeError(f"empty_permuted: the order must name each dimension once (got {order} for sizes {size}).")
    strides, step = [0] * len(order), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(size[dim], 1)
    return empty_strided(size, strides, **options)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """
    Return a tensor over the memory of an object with the buffer protocol.

    Parameters
    ----------
    buffer : object
    dtype : dtype
        Of its elements.
    count : int, default -1
        How many; -1: all.
    offset : int, default 0
        Bytes to leave out at the beginning.

    Examples
    --------
    >>> cygrad.frombuffer(bytearray(b"abc"), dtype=cygrad.uint8)
    tensor([97, 98, 99], dtype=cygrad.uint8)
    """
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError(f"frombuffer: the object has no buffer protocol (got {type(buffer).__name__}).") from None
    if not count or not 0 <= offset < size:
        raise ValueError("frombuffer: offset must be within the buffer, and count must not be 0 (got offset "
                         f"{offset}, count {count} and {size} bytes).")
    elements = np.frombuffer(buffer, dtype=cygrad.promote_types(dtype, dtype).numpy_dtype, count=count, offset=offset)
    return cygrad.from_numpy(elements).requires_grad_(requires_grad)


def from_file(filename, shared=False, size=0, *, dtype=None, **options):
    """Return a tensor over a memory-mapped file; `shared`: write changes to the file."""
    dtype = dtype or cygrad.get_default_dtype()
    return cygrad.from_numpy(np.memmap(filename, dtype.numpy_dtype, "r+" if shared else "c", shape=(size,)))


def narrow_copy(input, dim, start, length):
    """
    Return a copy of a part along one dimension; `narrow` returns a view.

    Examples
    --------
    >>> cygrad.narrow_copy(cygrad.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if dim >= input.ndim:
        raise RuntimeError(f"narrow_copy: dimension out of range (got {dim} for {input.ndim} dimensions).")
    return input.narrow(dim, start, length).clone(memory_format=cygrad.contiguous_format)


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """
    Return a histogram of points in several dimensions.

    Parameters
    ----------
    input : Tensor
        Floating, of shape (..., n): points with n coordinates.
    bins : int or sequence
        Number of bins of equal width, for all dimensions or for each; or the bin edges of each as a Tensor.
    range : sequence of float, optional
        Outer edges, two for each dimension; default: those of the coordinates.
    weight : Tensor, optional
        Weight of each point.
    density : bool, default False
        Whether to normalize to the integral 1.

    Returns
    -------
    (hist, bin_edges)
        A named tuple: n dimensions, and a Tensor for each.

    Examples
    --------
    >>> points = cygrad.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]])
    >>> cygrad.histogramdd(points, 2).hist
    tensor([[1., 0.],
            [0., 2.]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"histogramdd: the last dimension counts coordinates, those before it points (got shape "
                           f"{tuple(input.shape)}).")
    n = input.shape[-1]
    bins = (bins,) * n if isinstance(bins, builtins.int) else tuple(bins)
    if len(bins) != n or (range is not None and len(range) != 2 * n):
        raise RuntimeError(f"histogramdd: expected bins, and two limits, for each of the {n} coordinates (got "
                           f"{len(bins)} bins and {'no' if range is None else len(range)} limits).")
    points = input.detach().reshape(-1, n)
    if weight is not None and weight.numel() != points.shape[0]:
        raise RuntimeError(f"histogramdd: expected a weight for each point (got shape {tuple(weight.shape)} for points "
                           f"of shape {tuple(input.shape)}).")
    counted = points.new_ones(points.shape[0]) if weight is None else weight.detach().reshape(-1)
    inside, place, edges = points.new_ones(points.shape[0]).bool(), 0, []
    for axis, count in enumerate(bins):
        limits = None if range is None else range[2 * axis:2 * axis + 2]
        coordinate = points[:, axis].contiguous()
        edge = cygrad.histogram(coordinate, count, range=limits).bin_edges
        edges.append(edge)
        inside = inside & (coordinate >= edge[0]) & (coordinate <= edge[-1])
        found = (cygrad.searchsorted(edge, coordinate, right=True) - 1).clamp(0, edge.numel() - 2)
        place = place * (edge.numel() - 1) + found
    shape = [edge.numel() - 1 for edge in edges]
    hist = points.new_zeros(math.prod(shape)).index_add(0, place[inside], counted[inside]).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for axis, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1 if other == axis else 1 for other in builtins.range(n)])
    for origin in (input, *([] if weight is None else [weight])):
        hist = operators.underived(hist, origin, "histogramdd")
    return named_result("histogramdd", "hist", "bin_edges")(hist, tuple(edges))


class SDPBackend(enum.Enum):
    """Attention backends; accepted and ignored."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION, OVERRIDEABLE = -1, 0, 1, 2, 3, 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Select attention backends in a block; accepted and ignored."""
    yield
