"""Containers of parameters: ParameterList, ParameterDict."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_pairs
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


def _kept(value):
    """Convert a tensor to a parameter; return other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(name, value, kind_of_elements="dtype"):
    """Return a line of `repr`; PyTorch names the dtype in lists and the type of tensor in dicts."""
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else type(value).__name__
        sizes = "x".join(str(size) for size in value.shape)
        elements = value.type() if kind_of_elements == "type" else value.dtype
        return f"  ({name}): {kind} containing: [{elements} of size {sizes}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """
    Hold parameters in a list and register them.

    Parameters
    ----------
    values : iterable, optional
        Tensors become parameters; other objects stay.

    Examples
    --------
    >>> weights = cygrad.nn.ParameterList([cygrad.ones(2), cygrad.zeros(2, 3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _place(self, index):
        position = index.__index__()
        if not -self._size <= position < self._size:
            raise IndexError(f"ParameterList: index {position} is out of range (got {self._size} values).")
        return str(position % self._size)

    def __getitem__(self, index):
        if isinstance(index, slice):
            made = type(self)()
            return made.extend([self[position] for position in range(*index.indices(self._size))])
        return getattr(self, self._place(index))

    def __setitem__(self, index, value):
        setattr(self, self._place(index), _kept(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[position] for position in range(self._size)])

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        """Append a value and return self."""
        name, self._size = str(self._size), self._size + 1
        setattr(self, name, _kept(value))
        return self

    def extend(self, values):
        """Append all values of an iterable and return self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend: expected an iterable (got {type(values).__name__}).")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        """Return a line for each value."""
        return "\n".join(_line(position, value) for position, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("forward: ParameterList should not be called.")


class NotThere(KeyError, AttributeError):
    """Raised for a missing key of a `ParameterDict`; KeyError of mappings and AttributeError of PyTorch."""


class ParameterDict(Module):
    """
    Hold parameters in a dict and register them.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
        Keys are strings. Tensors become parameters; other objects stay.

    Examples
    --------
    >>> weights = cygrad.nn.ParameterDict({"a": cygrad.ones(2)})
    >>> "a" in weights, len(weights)
    (True, 1)
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._names = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(name):
        if not isinstance(name, str):
            raise TypeError(f"ParameterDict: keys must be strings (got {type(name).__name__}).")
        return name

    def __getitem__(self, name):
        if name not in self._names:
            raise NotThere(name)
        return getattr(self, self._attribute(name))

    def __setitem__(self, name, value):
        attribute = self._attribute(name)
        if name not in self._names and hasattr(self, attribute):
            raise KeyError(f"ParameterDict: attribute {name!r} already exists.")
        self._names[name] = None
        setattr(self, attribute, _kept(value))

    def __delitem__(self, name):
        del self._names[name]
        delattr(self, self._attribute(name))

    def __len__(self):
        return len(self._names)

    def __iter__(self):
        return iter(self._names)

    def __reversed__(self):
        return reversed(list(self._names))

    def __contains__(self, name):
        return name in self._names

    def __or__(self, other):
        return self.copy().update(other)

    def __ror__(self, other):
        return type(self)(other).update(self)

    def __ior__(self, other):
        return self.update(other)

    def copy(self):
        """Return a copy with the same values."""
        return type(self)(self.items())

    def get(self, key, default=None):
        """Return the value at `key`, or `default`."""
        return self[key] if key in self._names else default

    def setdefault(self, key, default=None):
        """Return the value at `key`, set to `default` if missing."""
        if key not in self._names:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Remove the value at `key` and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the last pair of name and value and return it."""
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self):
        """Remove all values."""
        for name in list(self._names):
            del self[name]

    def fromkeys(self, keys, default=None):
        """Return a new dict with the given keys and one value."""
        return type(self)((key, default) for key in keys)

    def keys(self):
        """Return the names."""
        return self._names.keys()

    def items(self):
        """Return pairs of name and value."""
        return [(name, self[name]) for name in self._names]

    def values(self):
        """Return the values."""
        return [self[name] for name in self._names]

    def update(self, parameters):
        """Add all values of a mapping or of pairs and return self; a plain dict is sorted by key."""
        if not isinstance(parameters, Iterable):
            raise TypeError("ParameterDict.update: expected a mapping or pairs of names and values (got "
                            f"{type(parameters).__name__}).")
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        else:
            pairs = sorted(parameters.items()) if isinstance(parameters, Mapping) else parameters
        for name, value in as_pairs("ParameterDict.update", pairs):
            self[name] = value
        return self

    def extra_repr(self):
        """Return a line for each value."""
        return "\n".join(_line(name, value, "type") for name, value in self.items())

    def __call__(self, input):
        raise RuntimeError("forward: ParameterDict should not be called.")
