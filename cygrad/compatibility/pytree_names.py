"""Further names of ``torch.utils._pytree``: key paths, and containers."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from cygrad.utils.pytree import _kind, tree_flatten, tree_leaves, tree_unflatten

__all__ = ["GetAttrKey", "KeyEntry", "MappingKey", "SequenceKey", "keystr", "tree_flatten_with_path", "tree_is_leaf",
           "tree_leaves_with_path", "tree_map_with_path"]

Context = KeyEntry = PyTree = Any


@dataclass(frozen=True)
class SequenceKey:
    """Index of a child in a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """Return the child."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """Key of a child in a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """Return the child."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """Name of a child that is an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """Return the child."""
        return getattr(obj, self.name)


def _dict_flatten(node):
    return list(node.values()), list(node)


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(node):
    return [(MappingKey(key), value) for key, value in node.items()], list(node)


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys


def _list_flatten(node):
    return list(node), None


def _list_unflatten(values, context):
    return list(values)


def _list_flatten_with_keys(node):
    return [(SequenceKey(place), value) for place, value in enumerate(node)], None


_tuple_flatten, _tuple_flatten_with_keys = _list_flatten, _list_flatten_with_keys


def _tuple_unflatten(values, context):
    return tuple(values)


def is_structseq_instance(obj):
    """Return whether an object is a struct sequence of C."""
    return False


def is_namedtuple_instance(obj):
    """Return whether an object is a named tuple."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


def tree_is_leaf(tree, is_leaf=None):
    """Return whether an object is a leaf."""
    return _kind(tree, is_leaf) is None


def tree_leaves_with_path(tree, is_leaf=None):
    """Return pairs of path and leaf."""
    kind = _kind(tree, is_leaf)
    if kind is None:
        return [((), tree)]
    children, _ = kind[0](tree)
    if isinstance(tree, dict):
        keys = [MappingKey(key) for key in tree]
    elif is_namedtuple_instance(tree):
        keys = [GetAttrKey(name) for name in tree._fields]
    else:
        keys = [SequenceKey(place) for place in range(len(children))]
    return [((key, *path), leaf) for key, child in zip(keys, children, strict=True)
            for path, leaf in tree_leaves_with_path(child, is_leaf)]


def tree_flatten_with_path(tree, is_leaf=None):
    """Return pairs of path and leaf, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """Map a function of path and leaf over a tree."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(path, leaf, *rest) for (path, leaf), *rest in zip(pairs, *others, strict=True)], spec)


def keystr(path):
    """Return a path as text."""
    return "".join(map(str, path))


def key_get(obj, path):
    """Return the subtree at a path."""
    for key in path:
        obj = key.get(obj)
    return obj
