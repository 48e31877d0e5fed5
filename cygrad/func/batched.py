"""
Tensors under `vmap`: each represents one entry of a batch, and refers to the tensor with all entries.

The value of a `Batched` is an ordinary tensor of the graph, with the batch as its first dimension. Backward and forward
mode are therefore independent of batches, and as fast as without them.
"""

import threading
from itertools import count

from cygrad._core.creation.factories import empty
from cygrad._core.graph.modes import no_grad
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.type_slots import make_subclass
from cygrad._core.table.operator import operators

__all__ = ["Batched", "Level", "active_levels", "dress", "entry", "levels_of", "peel", "restore", "strip", "value_at"]

_state = threading.local()         # .levels: running levels of this thread, outermost first
_numbers = count(1)


def active_levels():
    """Return the running levels of this thread, outermost first."""
    try:
        return _state.levels
    except AttributeError:
        _state.levels = []
        return _state.levels


class Level:
    """A `vmap`: its batch size, its mode of random numbers, and whether it has ended."""

    ended = False

    def __init__(self, size, randomness):
        self.number, self.size, self.randomness = next(_numbers), size, randomness

    def __enter__(self):
        active_levels().append(self)
        return self

    def __exit__(self, *error):
        active_levels().remove(self)
        self.ended = True


class Batched(Tensor):
    """
    A tensor under `vmap`. Shape and dtype are those of an entry; elements are in `_value`, whose first dimension is the
    batch of `_level`.
    """

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Call the function with the whole batch."""
        from cygrad.func.batching import call
        return call(func, args, dict(kwargs or {}))

    def __repr__(self):
        return f"Batched(level={self._level.number}, size={self._level.size}, value={self._value!r})"

    def __setitem__(self, key, value):
        from cygrad.func.batching import call
        call(Tensor.__setitem__, (self, key, value), {})

    # Attributes of a Tensor that need no operator.
    @property
    def requires_grad(self):
        """Whether operations on the batch are recorded."""
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if value:
            self.requires_grad_()

    grad_fn = property(lambda self: self._value.grad_fn)
    is_leaf = property(lambda self: self._value.is_leaf)
    device = property(lambda self: self._value.device)
    is_cpu = property(lambda self: self._value.is_cpu)
    is_meta = property(lambda self: self._value.is_meta)
    data = property(lambda self: entry(self._value.data, self._level))
    _version = property(lambda self: self._value._version)

    def detach(self):
        """Return the tensor outside of the graph."""
        return entry(self._value.detach(), self._level)

    def stride(self, dim=None):
        """Strides of an entry."""
        steps = self._value.stride()[1:]
        return steps if dim is None else steps[dim]

    def is_contiguous(self, **options):
        """Return whether the elements of all entries are contiguous in row-major order."""
        return self._value.is_contiguous(**options)

    def storage_offset(self):
        """Storage offset of the first entry."""
        return self._value.storage_offset()

    def item(self):
        """Return the only element as a Python number; it must be equal in all entries of the batch."""
        if self.numel() != 1:
            raise RuntimeError(f"item: a Tensor with {self.numel()} elements cannot be converted to Scalar (got shape "
                               f"{tuple(self.shape)}, expected one element).")
        return self._common("item").item()

    def tolist(self):
        """Return the elements as nested lists; they must be equal in all entries of the batch."""
        return self._common("tolist").tolist()

    def _common(self, operation):
        """Return the common value of all entries."""
        with no_grad():
            values = self._value.detach()
            first = operators.select(values, 0, 0) if self._level.size else values.new_zeros(tuple(self.shape))
            if not operators.equal(values, operators.expand(first, tuple(values.shape))):
                what = f"{operation}() of a tensor" if operation != "bool" else (
                    "data-dependent control flow: if, while, and, or, not or assert on a tensor")
                raise RuntimeError(f"vmap: {what} depends on the entry of the batch (got different values). Select "
                                   "elements with where(), or call the function without vmap.")
        return first

    def _entries(self):
        from cygrad.func.randomness import entries_of
        return entries_of(self.detach())

    def new_zeros(self, *size, **options):
        """Return zeros for each entry: they can be written to."""
        return self._new("new_zeros", size, options)

    def new_ones(self, *size, **options):
        """Return ones for each entry."""
        return self._new("new_ones", size, options)

    def new_empty(self, *size, **options):
        """Return uninitialized memory for each entry."""
        return self._new("new_empty", size, options)

    def new_full(self, size, fill_value, **options):
        """Return a filled tensor for each entry."""
        return self._new("new_full", (size,), options, fill_value)

    def _new(self, method, size, options, *value):
        size = options.pop("size", size[0] if len(size) == 1 else size)
        size = tuple(size) if isinstance(size, (list, tuple)) else (size,)
        return entry(getattr(self._value, method)((self._level.size, *size), *value, **options), self._level)

    def _refused(self, *args, **options):
        raise RuntimeError("vmap: elements, hooks and gradients of a single entry are not available (got a call that "
                           "needs them). Call it outside of vmap, or use func.grad for derivatives.")

    numpy = __array__ = __dlpack__ = __reduce_ex__ = backward = register_hook = retain_grad = set_ = resize_ = _refused

    def requires_grad_(self, requires_grad=True):
        """Raise: the arguments of `grad` and similar transforms define what to differentiate."""
        raise RuntimeError("vmap: requires_grad_() is not supported for an entry of a batch (got a call under vmap). "
                           "Use the functions of cygrad.func for derivatives.")


def entry(value, level):
    """Return the `Batched` for a tensor whose first dimension is the batch."""
    made = make_subclass(Batched, empty(tuple(value.shape)[1:], dtype=value.dtype, device="meta"))
    made._value, made._level = value, level
    return made


def value_at(tensor, level):
    """Return the tensor with the batch as first dimension; None if it is the same for all entries."""
    return tensor._value if type(tensor) is Batched and tensor._level is level else None


def levels_of(tensor):
    """Return the levels of a tensor, outermost first."""
    found = []
    while type(tensor) is Batched:
        found.append(tensor._level)
        tensor = tensor._value
    return found[::-1]


def peel(tensor):
    """Return the tensor with all entries, and the levels of its first dimensions."""
    levels = levels_of(tensor)
    for _ in levels:
        tensor = tensor._value
    return tensor, levels


def dress(tensor, levels):
    """Return the `Batched` for a tensor whose first dimensions are those of these levels."""
    for level in levels:
        tensor = entry(tensor, level)
    return tensor


def strip(tensor, levels):
    """
    Return the tensor with the dimensions of these levels first, expanded if it does not depend on them. Other levels
    remain.
    """
    if not levels and type(tensor) is not Batched:
        return tensor
    tensor, present = peel(tensor)
    every = [level for level in levels if level not in present] + present
    every.sort(key=lambda level: level.number)
    for place, level in enumerate(every):
        if level not in present:
            tensor = operators.unsqueeze(tensor, place)
    kept = [level for level in present if level not in levels]
    if len(every) > len(present):
        tensor = operators.expand(tensor, (*[level.size for level in every], *tensor.shape[len(every):]))
    if kept:
        tensor = operators.movedim(tensor, tuple(map(every.index, kept)), tuple(range(len(kept))))
    return dress(tensor, kept)


def restore(tensor, levels):
    """Return the `Batched` for a tensor with the dimensions of these levels first; the inverse of `strip`."""
    if not levels:
        return tensor
    tensor, outer = peel(tensor)
    if outer:
        places = tuple(range(len(outer), len(outer) + len(levels)))
        tensor = operators.movedim(tensor, places, tuple(range(len(levels))))
    return dress(tensor, [*levels, *outer])
