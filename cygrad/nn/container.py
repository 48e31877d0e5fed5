"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby

from cygrad._core.graph.argument_errors import as_pairs
from cygrad.nn.module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Base class of Sequential and ModuleList: children are named "0", "1", ..."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(list(self._modules.values()))

    def _index(self, index, end=False):
        size = len(self)
        position = index.__index__()
        if not -size <= position < size + end:
            raise IndexError(f"{type(self).__name__}: index {position} is out of range (got {size} modules).")
        return position % size if position < 0 else position

    def _get_abs_string_index(self, idx):
        """Return the name of the module at a position."""
        return str(self._index(idx))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._of(list(self._modules.items())[index])
        return list(self._modules.values())[self._index(index)]

    def __setitem__(self, index, module):
        setattr(self, list(self._modules)[self._index(index)], module)

    def __delitem__(self, index):
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [names[self._index(index)]]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules):
        for name in list(self._modules):
            delattr(self, name)
        for position, module in enumerate(modules):
            self.add_module(str(position), module)

    def append(self, module):
        """Append a module and return self."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Insert a module before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"insert: expected a Module (got {type(module).__name__}).")
        modules = list(self._modules.values())
        modules.insert(self._index(index, end=True), module)
        self._renumber(modules)
        return self

    def extend(self, modules):
        """Append all modules of an iterable and return self."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"extend: expected an iterable of modules (got {type(modules).__name__}).")
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key):
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return self._joined(chain(self, other))


def _repeated(modules, times):
    """Return the modules, repeated; they are the same objects."""
    if not isinstance(times, int) or isinstance(times, bool):
        raise TypeError(f"Sequential: can only be multiplied by an int (got {type(times).__name__}).")
    if times <= 0:
        raise ValueError(f"Sequential: can only be multiplied by a positive int (got {times}).")
    return list(modules) * times


class Sequential(_Numbered):
    """
    Call modules in sequence: the result of each is the input of the next.

    Parameters
    ----------
    *args : Module
        Or one OrderedDict from name to module.

    Examples
    --------
    >>> nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and not isinstance(args[0], Module) and isinstance(args[0], (list, tuple, Iterator)):
            raise TypeError(f"Sequential: expected modules (got a {type(args[0]).__name__} of them). Write "
                            "Sequential(*modules).")
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            if isinstance(module, type):
                raise TypeError(f"Sequential: expected modules (got the class {module.__name__} at index {name}). "
                                f"Write {module.__name__}().")
            self.add_module(str(name), module)

    def forward(self, input):
        """Run the modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __delitem__(self, index):
        # Keep names given by the user; renumber numeric names.
        chosen = any(not name.isdigit() for name in self._modules)
        if chosen:
            names = list(self._modules)
            for name in names[index] if isinstance(index, slice) else [names[self._index(index)]]:
                delattr(self, name)
        else:
            super().__delitem__(index)

    def _of(self, items):
        return Sequential(OrderedDict(items))

    @classmethod
    def _joined(cls, modules):
        return cls(*modules)

    def __mul__(self, times):
        return Sequential(*_repeated(self, times))

    __rmul__ = __mul__

    def __imul__(self, times):
        return self.extend(_repeated(self, times)[len(self):])


class ModuleList(_Numbered):
    """
    Hold modules in a list and register them.

    Parameters
    ----------
    modules : iterable of Module, optional

    Examples
    --------
    >>> nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _of(self, items):
        return type(self)(module for _, module in items)

    @classmethod
    def _joined(cls, modules):
        return cls(modules)

    def __repr__(self):
        lines, position = [], 0
        for text, same in groupby(repr(module) for module in self):
            count = len(list(same))
            label = f"({position}): " if count == 1 else f"({position}-{position + count - 1}): {count} x "
            lines.append("\n  " + label + text.replace("\n", "\n  "))
            position += count
        return f"{self._get_name()}({''.join(lines)}" + ("\n)" if lines else ")")


class ModuleDict(Module):
    """
    Hold modules in a dict and register them.

    Parameters
    ----------
    modules : mapping or iterable of pairs, optional

    Examples
    --------
    >>> nn.ModuleDict({"relu": nn.ReLU()})
    ModuleDict(
      (relu): ReLU()
    )
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key):
        """Remove the module at `key` and return it."""
        return self._modules.pop(key)

    def keys(self):
        """Return the names."""
        return self._modules.keys()

    def items(self):
        """Return pairs of name and module."""
        return self._modules.items()

    def values(self):
        """Return the modules."""
        return self._modules.values()

    def update(self, modules):
        """Add all modules of a mapping or of pairs (name, module)."""
        if not isinstance(modules, Iterable) or isinstance(modules, str):
            raise TypeError("ModuleDict.update: expected a mapping or pairs of name and module (got "
                            f"{type(modules).__name__}).")
        for name, module in as_pairs("ModuleDict.update", modules.items() if isinstance(
                modules, (Mapping, ModuleDict)) else modules):
            self[name] = module
