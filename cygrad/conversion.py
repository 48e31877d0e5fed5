"""Tensors to and from Python and NumPy: numbers, lists, arrays, pickles and copies."""

import copy
from numbers import Number

import numpy as np

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.creation import creation
from cygrad._core.creation.creation import from_numpy
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.type_slots import make_subclass


def numpy(input, *, force=False):
    """
    Return a NumPy array that shares the memory of the tensor.

    The version counter does not count writes through the array.

    Parameters
    ----------
    force : bool, default False
        Detach a tensor that requires grad instead of refusing it.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    RuntimeError
        If the tensor requires grad and `force` is false.

    Examples
    --------
    >>> cygrad.ones(2).numpy()
    array([1., 1.], dtype=float32)
    """
    if input.requires_grad and is_grad_enabled() and not force:
        raise RuntimeError("numpy: Can't call numpy() on Tensor that requires grad: it would lose its history in an "
                           "ndarray. Use detach().numpy().")
    return creation.numpy_view(input)


def values_of(input):
    """The elements without history, for checks; of a tensor under `vmap` those of all entries of the batch."""
    if type(input) is not Tensor and hasattr(input, "_entries"):
        return input._entries()
    return creation.elements(input.detach())


def _for_numpy(input):
    """Return the array of a tensor for NumPy's conversion."""
    if input.requires_grad and is_grad_enabled():
        raise RuntimeError("asarray: a tensor that requires grad would lose its history in an ndarray. Put tensors "
                           "together with numpy.stack([x, y]) or numpy.concatenate, or use detach().numpy().")
    return numpy(input)


def array(input, dtype=None, copy=None):
    """Implement ``numpy.asarray(tensor)``."""
    found = _for_numpy(input)
    if dtype is not None and found.dtype != dtype:
        if copy is False:
            raise ValueError(f"asarray: a copy is needed to convert {found.dtype} to {np.dtype(dtype)}.")
        return found.astype(dtype)
    return found.copy() if copy else found


def tolist(input):
    """
    Return the elements as nested lists of Python numbers, or a number for a 0-dim tensor.

    Examples
    --------
    >>> cygrad.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return creation.elements(input).tolist()


def dlpack(input, *, stream=None, max_version=None, dl_device=None, copy=None):
    """
    Hand the memory to another library that speaks DLPack: what ``from_dlpack(tensor)`` of that library calls.

    Parameters
    ----------
    stream : None
        The CPU has none.
    max_version : tuple of two int, optional
        The newest version of DLPack that the consumer knows; from (1, 0) on the capsule is one with a version, which
        says whether the memory is read-only.
    dl_device : tuple of two int, optional
        The device that the consumer wants; only the CPU, (1, 0).
    copy : bool, optional
        True: hand out a copy. False: never one. None: none is needed.

    Returns
    -------
    capsule

    Raises
    ------
    BufferError
        If the tensor requires grad, or the memory cannot be shared.

    Examples
    --------
    >>> import cygrad, numpy
    >>> numpy.from_dlpack(cygrad.ones(2))
    array([1., 1.], dtype=float32)
    """
    if input.requires_grad and is_grad_enabled():
        raise BufferError("__dlpack__: a tensor that requires grad would lose its history in another library. Use "
                          "detach() first.")
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    options = {name: value for name, value in options.items() if value is not None}
    if (known := input.dtype) in WITHOUT_NUMPY:
        view = creation.numpy_view(creation.seen_as(input.detach(), WITHOUT_NUMPY[known]))
        return creation.from_integers(view.__dlpack__(**options), known)
    return creation.numpy_view(input).__dlpack__(**options)


def interface(input):
    """Return the memory as NumPy's interface describes it, for libraries that share it without a copy."""
    return _for_numpy(input).__array_interface__


# Dtypes that NumPy lacks -> integers of the same size.
WITHOUT_NUMPY = {dtypes.bfloat16: dtypes.int16, dtypes.complex32: dtypes.int32}


def truth(input):
    """Return the truth of the only element."""
    if input.numel() != 1:
        count = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"bool: Boolean value of Tensor with {count} is ambiguous (got shape {tuple(input.shape)}). "
                           "Use any() or all().")
    if type(input) is not Tensor and hasattr(input, "_entries"):
        return bool(input._common("bool").item())
    return bool(input.item())


def index(input):
    """Return the only element of an integer tensor as an index."""
    if input.is_floating_point() or input.is_complex() or input.numel() != 1:
        raise TypeError("index: only integer tensors of a single element can be converted to an index "
                        f"(got dtype {input.dtype}, shape {tuple(input.shape)}).")
    return int(input.item())


def iterate(input):
    """Return the entries along the first dimension."""
    if input.ndim == 0:
        raise TypeError("iter: a tensor without dimensions cannot be iterated over (got shape ()).")
    return iter(input.unbind(0))


def contains(input, element):
    """Return whether some element equals `element`."""
    if not isinstance(element, (Tensor, Number, np.number)):
        raise RuntimeError(f"in: only Tensors and numbers can be elements (got {type(element).__name__}).")
    return bool((input == element).any())


def reduce(input, protocol):
    """Pickle elements and requires_grad, not the graph: the result is a leaf."""
    attributes = dict(input.__dict__) if input.__dict__ else None
    source = input
    if (known := input.dtype) in WITHOUT_NUMPY:            # its bits travel as integers
        source = creation.seen_as(input.detach(), WITHOUT_NUMPY[known])
    return _rebuild, (type(input), np.ascontiguousarray(creation.numpy_view(source)).reshape(tuple(input.shape)),
                      input.requires_grad, attributes, *((known,) if source is not input else ()))


def _rebuild(cls, elements, requires_grad, attributes, dtype=None):
    tensor = from_numpy(elements.copy() if not elements.flags.writeable else elements)
    if dtype is not None:
        tensor = creation.seen_as(tensor, dtype)
    if cls is not Tensor:
        tensor = make_subclass(cls, tensor, requires_grad)
    else:
        tensor.requires_grad = requires_grad
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def deep_copy(input, memo):
    """Return a deep copy; refuse non-leaves."""
    if id(input) in memo:
        return memo[id(input)]
    if input.grad_fn is not None:
        raise RuntimeError("deepcopy: Only Tensors created explicitly by the user can be copied (got one created by "
                           f"{input.grad_fn.name()}). Use clone(), or detach() first.")
    twin = input.detach().clone()
    if type(input) is not Tensor:
        twin = make_subclass(type(input), twin, input.requires_grad)
    else:
        twin.requires_grad = input.requires_grad
    memo[id(input)] = twin
    if input.is_leaf and input.grad is not None:
        twin.grad = copy.deepcopy(input.grad if input.grad.grad_fn is None else input.grad.detach(), memo)
    if input.__dict__:
        twin.__dict__.update(copy.deepcopy(input.__dict__, memo))
    return twin


METHODS = {
    "__array_interface__": property(interface),
    "item": creation.item, "numpy": numpy, "__array__": array, "__buffer__": numpy,
    "tolist": tolist, "__dlpack__": dlpack,
    "__float__": creation.as_float, "__int__": creation.as_int, "__complex__": creation.as_complex, "__bool__": truth,
    "__index__": index,
    "__iter__": iterate, "__contains__": contains, "__reduce_ex__": reduce, "__deepcopy__": deep_copy,
}
