"""Arguments and results as their leaves and the structure around them."""

from cygrad import Tensor

__all__ = ["IMMUTABLE", "flatten", "rebuilder", "unflatten"]

# Values that a program may hold: they cannot change.
IMMUTABLE = (int, float, complex, str, bytes, type(None))


def _take_apart(value, leaves):
    kind = type(value)
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return kind, tuple([_take_apart(item, leaves) for item in value])
    if kind is dict:
        return kind, tuple([(key, _take_apart(item, leaves)) for key, item in value.items()])
    leaves.append(value)
    return None


def flatten(args, kwargs):
    """The leaves of the arguments, and what they stand in; None if all are given by position, none in a container."""
    leaves = []
    positional = tuple([_take_apart(value, leaves) for value in args])
    named = tuple([(name, _take_apart(value, leaves)) for name, value in kwargs.items()])
    plain = not named and positional == (None,) * len(args)
    return tuple(leaves), None if plain else (positional, named)


def unflatten(structure, leaves):
    """Put leaves, an iterator, back into their structure."""
    if structure is None:
        return next(leaves)
    kind, parts = structure
    if kind is dict:
        return {key: unflatten(part, leaves) for key, part in parts}
    items = [unflatten(part, leaves) for part in parts]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def rebuilder(result):
    """
    The tensors of a result, and what makes the result of tensors like them; TypeError if it holds anything else.

    What makes it is a function of a list of tensors, None for the only one, or (value,) for a value without tensors.
    """
    leaves = []
    structure = _take_apart(result, leaves)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    for leaf in leaves:
        if not isinstance(leaf, (Tensor, *IMMUTABLE)):
            raise TypeError(f"it returns a {type(leaf).__name__}")
    if structure is None:
        return tensors, None if tensors else (result,)
    if len(tensors) == len(leaves) and structure is not None and structure[0] in (tuple, list) and all(
            part is None for part in structure[1]):
        return tensors, structure[0]

    kept = [Tensor if isinstance(leaf, Tensor) else leaf for leaf in leaves]

    def rebuild(made):
        made = iter(made)
        return unflatten(structure, iter([next(made) if leaf is Tensor else leaf for leaf in kept]))

    return tensors, rebuild
