"""`vmap`: a function of single entries, called for a whole batch."""

import functools

from numpy import ndarray

from cygrad._core.creation.creation import tensor
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func.batched import Level, entry, value_at
from cygrad.func.inputs import as_arrays
from cygrad.func.randomness import drawing
from cygrad.utils.pytree import tree_flatten, tree_unflatten

__all__ = ["vmap"]

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """
    Vectorize a function: apply it to all entries of a batch together.

    Parameters
    ----------
    func : callable
        Takes Tensors, and containers of them, and gives such. It is called once, with tensors that look like single
        entries.
    in_dims : int, None, or nested containers of them, default 0
        For each argument which dimension counts the entries; None for what is the same for all. One for several tensors
        in a container holds for all of them.
    out_dims : int, None, or nested containers of them, default 0
        Which dimension of the results is to count the entries; None for results that are the same for all.
    randomness : {"error", "different", "same"}, default "error"
        Whether random numbers are drawn for each entry, or once for all of them; "error" refuses to draw.
    chunk_size : int, optional
        How many entries are computed together. Default: all.

    Returns
    -------
    callable
        Takes what `func` takes, with one more dimension where `in_dims` says so; arguments by name are the same for all
        entries.

    Raises
    ------
    ValueError
        When it is called: if dimensions and arguments do not fit, or `func` gives something else than Tensors.
    RuntimeError
        When `func` needs to know elements, or draws random numbers without being allowed to.

    Examples
    --------
    >>> x, y = cygrad.arange(6.0).reshape(3, 2), cygrad.ones(3, 2)
    >>> cygrad.vmap(cygrad.dot)(x, y)
    tensor([1., 5., 9.])
    >>> cygrad.vmap(lambda row, factor: row * factor, in_dims=(0, None), out_dims=1)(x, cygrad.tensor(10.0))
    tensor([[ 0., 20., 40.],
            [10., 30., 50.]])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"vmap: randomness must be 'error', 'different' or 'same' (got {randomness!r}).")
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"vmap: chunk_size must be a positive integer or None (got {chunk_size!r}).")
    name = getattr(func, "__name__", type(func).__name__)

    @functools.wraps(func)
    def of_batch(*args, **kwargs):
        given = tree_flatten(args)[0]
        leaves, dims, spec = _inputs(name, in_dims, args)
        size = _size(name, leaves, dims)
        if chunk_size is None or chunk_size >= size:
            found = _run(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness)
        else:
            found = _in_chunks(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness, chunk_size)
        return as_arrays(found, [leaf for leaf, dim in zip(given, dims, strict=True) if dim is not None])

    return of_batch


def spread(prefix, tree, what):
    """Return one dimension for each leaf of a tree, from a tree that may end earlier."""
    if prefix is None or (isinstance(prefix, int) and not isinstance(prefix, bool)):
        return [prefix] * len(tree_flatten(tree)[0])
    children, spec = tree_flatten(tree, lambda node: node is not tree)
    if spec.is_leaf():
        raise ValueError(f"{what}: expected an integer or None for a leaf (got {prefix!r}).")
    if isinstance(prefix, dict) and isinstance(tree, dict) and prefix.keys() == tree.keys():
        parts = [prefix[key] for key in tree]
    elif isinstance(prefix, (list, tuple)) and isinstance(tree, (list, tuple)) and len(prefix) == len(tree):
        parts = list(prefix)
    else:
        raise ValueError(f"{what}: is not compatible with the structure of what it is for (got {prefix!r} for a "
                         f"{type(tree).__name__} of {len(children)}). Give one dimension for all of it, or the same "
                         "containers.")
    return [dim for part, child in zip(parts, children, strict=True) for dim in spread(part, child, what)]


def _inputs(name, in_dims, args):
    """Return the leaves of the arguments, the batch dimension of each, and their containers."""
    what = f"vmap({name}, in_dims={in_dims!r}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(f"{what}: in_dims must be an integer, or containers of them like those of the arguments (got "
                         f"{type(in_dims).__name__}).")
    if not args:
        raise ValueError(f"{what}: expected at least one positional argument (got none). Pass tensors.")
    leaves, spec = tree_flatten(args)
    leaves = [tensor(leaf) if isinstance(leaf, ndarray) else leaf for leaf in leaves]
    dims = spread(in_dims if isinstance(in_dims, int) else tuple(in_dims), args, what)
    found = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            found.append(None)
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{what}: only Tensors have dimensions (got in_dim {dim} for a {type(leaf).__name__}). "
                             "Give None for it.")
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(f"{what}: in_dim is out of range (got {dim} for a Tensor of {leaf.ndim} dimensions, "
                             f"expected an integer from {-leaf.ndim} to {leaf.ndim - 1}).")
        found.append(dim % leaf.ndim)
    return leaves, found, spec


def _size(name, leaves, dims):
    sizes = {leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None}
    if not sizes:
        raise ValueError(f"vmap({name}, ...)(<inputs>): all in_dims are None (got nothing to count the entries by). At "
                         "least one input needs a dimension.")
    if len(sizes) > 1:
        raise ValueError(f"vmap: the dimensions that count the entries differ in size (got {sorted(sizes)}). All "
                         "arguments need the same number of entries.")
    return sizes.pop()


def _run(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness):
    with Level(size, randomness) as level, drawing(level):
        given = [leaf if dim is None else entry(operators.movedim(leaf, dim, 0), level)
                 for leaf, dim in zip(leaves, dims, strict=True)]
        results = func(*tree_unflatten(given, spec), **kwargs)
        made = _collected(results, name, out_dims, level)
    if not any(_is_meta(leaf) for leaf in leaves):
        for result in tree_flatten(made)[0]:
            if _is_meta(result):
                raise NotImplementedError(f"vmap({name}, ...): a function has no batching rule (its result is a meta "
                                          f"tensor). Call it outside of vmap.")
    return made


def _is_meta(value):
    return type(value) is Tensor and value.is_meta


def _collected(results, name, out_dims, level):
    """Return the results of all entries."""
    found, spec = tree_flatten(results)
    dims = spread(out_dims, results, f"vmap({name}, ..., out_dims={out_dims!r})(<inputs>): out_dims")
    made = []
    for result, dim in zip(found, dims, strict=True):
        if not isinstance(result, Tensor):
            raise ValueError(f"vmap({name}, ...): the function must return Tensors (got {type(result).__name__}). "
                             f"Return only tensors.")
        value = value_at(result, level)
        if dim is None:
            if value is not None:
                raise ValueError(f"vmap({name}, ...): a result whose out_dim is None must be the same for all entries "
                                 "(got one that depends on the entry). Give it a dimension.")
            made.append(result)
            continue
        if not -result.ndim - 1 <= dim <= result.ndim:
            raise IndexError(f"vmap({name}, ...): out_dim is out of range (got {dim} for a result of {result.ndim} "
                             "dimensions).")
        if value is None:
            value = operators.expand(result, (level.size, *result.shape))
        made.append(operators.movedim(value, 0, dim))
    return tree_unflatten(made, spec)


def _in_chunks(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness, chunk_size):
    """Run the batch chunk by chunk, and concatenate the results."""
    parts = []
    for begin in range(0, size, chunk_size):
        count = min(chunk_size, size - begin)
        given = [leaf if dim is None else operators.narrow(leaf, dim, begin, count)
                 for leaf, dim in zip(leaves, dims, strict=True)]
        parts.append(_run(func, name, given, dims, spec, kwargs, out_dims, count, randomness))
    _, out_spec = tree_flatten(parts[0])
    columns = zip(*[tree_flatten(part)[0] for part in parts], strict=True)
    joined = [column[0] if dim is None else operators.cat(list(column), dim)
              for column, dim in zip(columns, spread(out_dims, parts[0], "vmap: out_dims"), strict=True)]
    return tree_unflatten(joined, out_spec)
