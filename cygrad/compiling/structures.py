"""Flatten arguments and results to leaves and their structure."""

from cygrad import Tensor

__all__ = ["IMMUTABLE", "classes_of", "flatten", "rebuilder", "unflatten"]

# Immutable types that a program may hold.
IMMUTABLE = (int, float, complex, str, bytes, bool, type(None))


def _flatten(value, leaves, containers):
    kind = type(value)
    if kind is tuple or is_namedtuple(kind):
        return kind, tuple([_flatten(item, leaves, containers) for item in value])
    if kind is list:
        containers.append(id(value))
        return kind, tuple([_flatten(item, leaves, containers) for item in value])
    if kind is dict:
        containers.append(id(value))
        return kind, tuple([(key if type(key) is str else (type(key), key), _flatten(item, leaves, containers))
                            for key, item in value.items()])
    fields = _fields(value, kind) if is_dataclass(kind) else None
    if fields is not None:
        containers.append(id(value))
        return kind, tuple([(name, _flatten(item, leaves, containers)) for name, item in fields.items()])
    leaves.append(value)
    return None


def is_namedtuple(kind):
    """Return whether it is a class of named tuples without attributes?"""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and kind.__dictoffset__ == 0


def is_dataclass(kind):
    """Return whether it is a class whose bases are all dataclasses, all with a dict or all with slots."""
    bases = kind.__mro__[:-1]
    return all("__dataclass_fields__" in base.__dict__ for base in bases) and (
        len({"__slots__" in base.__dict__ for base in bases}) == 1)


def _fields(value, kind):
    """Return the fields of an instance of such a class; None if it has other attributes, or lacks one."""
    names = kind.__dataclass_fields__.keys()
    if "__slots__" not in kind.__dict__:
        return value.__dict__ if value.__dict__.keys() == names else None
    try:
        fields = {name: object.__getattribute__(value, name) for name in names}
    except AttributeError:
        return None
    return fields if {*names, "__weakref__"}.issuperset(name for base in kind.__mro__[:-1]
                                                        for name in base.__slots__) else None


def classes_of(structure):
    """Return the dataclasses and classes of named tuples in the structure of arguments."""
    if not isinstance(structure, tuple):
        return []
    kind = structure[0] if structure else None
    found = [kind] if isinstance(kind, type) and (is_dataclass(kind) or is_namedtuple(kind)) else []
    return found + [kind for part in structure for kind in classes_of(part)]


def flatten(args, kwargs):
    """
    Return the leaves of the arguments, their structure, and the ids of lists and dicts among them.

    The structure is None if all arguments are positional and none is a container.
    """
    leaves, containers = [], []
    positional = tuple([_flatten(value, leaves, containers) for value in args])
    named = tuple([(name, _flatten(value, leaves, containers)) for name, value in kwargs.items()])
    plain = not named and positional == (None,) * len(args)
    return tuple(leaves), None if plain else (positional, named), containers


def unflatten(structure, leaves):
    """Put an iterator of leaves back into their structure."""
    if structure is None:
        return next(leaves)
    kind, parts = structure
    if kind is dict:
        return {key if type(key) is str else key[1]: unflatten(part, leaves) for key, part in parts}
    if is_dataclass(kind):
        made = object.__new__(kind)
        for name, part in parts:
            object.__setattr__(made, name, unflatten(part, leaves))
        return made
    items = [unflatten(part, leaves) for part in parts]
    return kind(items) if kind in (tuple, list) else tuple.__new__(kind, items)


def rebuilder(result, known=()):
    """
    Return the distinct tensors of a result, and its builder; raise TypeError for other contents.

    `known` are ids of containers that the function has not made.

    The builder is a function of a list of tensors, None for a single tensor, or (value,) for a result without tensors.
    """
    leaves, tensors, containers = [], {}, []
    structure = _flatten(result, leaves, containers)
    if not set(known).isdisjoint(containers):
        raise TypeError("it returns a list, dict or dataclass that it was given or reads from a variable. Return a "
                        "copy")
    if len(set(containers)) < len(containers):
        raise TypeError("it returns a list or dict that contains the same list or dict twice")
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            tensors.setdefault(id(leaf), leaf)
        elif type(leaf) not in IMMUTABLE:
            raise TypeError(f"it returns a {type(leaf).__name__}")
    distinct = [*tensors.values()]
    if structure is None:
        return distinct, None if distinct else (result,)
    if len(distinct) == len(leaves) and structure[0] in (tuple, list) and all(part is None for part in structure[1]):
        return distinct, structure[0]
    numbers = {id(tensor): number for number, tensor in enumerate(distinct)}
    kept = [(numbers[id(leaf)], None) if isinstance(leaf, Tensor) else (-1, leaf) for leaf in leaves]

    def rebuild(made):
        return unflatten(structure, iter([leaf if number < 0 else made[number] for number, leaf in kept]))

    return distinct, rebuild
