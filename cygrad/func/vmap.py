"""`vmap`: vectorization of functions."""

import functools

from numpy import ndarray

from cygrad._core.creation.creation import tensor
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.func.batched import Level, entry, value_at
from cygrad.func.inputs import as_arrays
from cygrad.func.randomness import Chunks, drawing
from cygrad.utils.pytree import tree_flatten, tree_unflatten

__all__ = ["vmap"]

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """
    Vectorize a function: apply it to all entries of a batch at once.

    Parameters
    ----------
    func : callable
        Takes and returns Tensors or containers of them. It is called once, with tensors that behave like single
        entries.
    in_dims : int, None, or nested containers of them, default 0
        Batch dimension of each argument; None for arguments that are the same for all entries. A single value applies
        to all tensors of a container.
    out_dims : int, None, or nested containers of them, default 0
        Batch dimension of each result; None for results that are the same for all entries or are not Tensors.
    randomness : {"error", "different", "same"}, default "error"
        Whether random numbers are different or the same for all entries; "error" raises an error for random numbers.
    chunk_size : int, optional
        Number of entries computed at once. Default: all.

    Returns
    -------
    callable
        Takes the arguments of `func` with the additional batch dimensions of `in_dims`; keyword arguments are the same
        for all entries.

    Raises
    ------
    ValueError
        On call: if dimensions and arguments do not match, or `func` returns other values than Tensors where `out_dims`
        is not None.
    RuntimeError
        On call: if `func` needs the values of elements, or draws random numbers with ``randomness="error"``.

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
    """Return one dimension for each leaf of a tree, from a prefix tree."""
    if prefix is None or (isinstance(prefix, int) and not isinstance(prefix, bool)):
        return [prefix] * len(tree_flatten(tree)[0])
    children, spec = tree_flatten(tree, lambda node: node is not tree)
    if spec.is_leaf():
        raise ValueError(f"{what}: is not compatible with the structure: it must be an int, None or a python "
                         f"collection of ints (got {prefix!r} for a leaf).")
    if isinstance(prefix, dict) and isinstance(tree, dict) and prefix.keys() == tree.keys():
        parts = [prefix[key] for key in tree]
    elif isinstance(prefix, (list, tuple)) and isinstance(tree, (list, tuple)) and len(prefix) == len(tree):
        parts = list(prefix)
    else:
        raise ValueError(f"{what}: is not compatible with the structure (got {prefix!r} for a {type(tree).__name__} "
                         f"of {len(children)}). Pass one dimension for all tensors, or the same containers.")
    return [dim for part, child in zip(parts, children, strict=True) for dim in spread(part, child, what)]


def _inputs(name, in_dims, args):
    """Return the leaves of the arguments, their batch dimensions, and the tree structure."""
    what = f"vmap({name}, in_dims={in_dims!r}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(f"{what}: in_dims must be an integer, or have the structure of the arguments (got "
                         f"{type(in_dims).__name__}).")
    if not args:
        raise ValueError(f"{what}: got no inputs (expected at least one positional argument).")
    leaves, spec = tree_flatten(args)
    leaves = [tensor(leaf) if isinstance(leaf, ndarray) else leaf for leaf in leaves]
    dims = spread(in_dims if isinstance(in_dims, int) else tuple(in_dims), args, what)
    found = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            found.append(None)
            continue
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{what}: Got in_dim={dim} for an input but the input is of type "
                             f"{type(leaf)} (expected a Tensor). Pass None for it.")
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of "
                             f"dimensionality {leaf.ndim} (expected an integer from {-leaf.ndim} to {leaf.ndim - 1}).")
        found.append(dim % leaf.ndim)
    return leaves, found, spec


def _size(name, leaves, dims):
    sizes = {leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None}
    if not sizes:
        raise ValueError(f"vmap({name}, ...)(<inputs>): all in_dims are None (expected a batch dimension for at "
                         "least one Tensor).")
    if len(sizes) > 1:
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension (got sizes "
                         f"{sorted(sizes)}).")
    return sizes.pop()


def _run(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness, chunks=None):
    with Level(size, randomness) as level, drawing(level, chunks):
        given = [leaf if dim is None else entry(operators.movedim(leaf, dim, 0) if dim else leaf, level)
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


def _dims_of_results(name, out_dims, results):
    """Return one dimension for each leaf of the results; that of a single Tensor may be in a tuple."""
    what = f"vmap({name}, ..., out_dims={out_dims!r})(<inputs>): out_dims"
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(results, Tensor):
        out_dims = out_dims[0]
    return spread(out_dims, results, what)


def _collected(results, name, out_dims, level):
    """Return the results of all entries."""
    found, spec = tree_flatten(results)
    dims = _dims_of_results(name, out_dims, results)
    made = []
    for result, dim in zip(found, dims, strict=True):
        if dim is None and not isinstance(result, Tensor):
            made.append(result)
            continue
        if not isinstance(result, Tensor):
            raise ValueError(f"vmap({name}, ...): the function must return Tensors (got type {type(result)}). "
                             "Return only tensors, or pass None as the out_dim of this result.")
        value = value_at(result, level)
        if dim is None:
            if value is not None:
                raise ValueError(f"vmap({name}, ...): can not return a BatchedTensor when out_dim is None (got a "
                                 "result that depends on the entry). Pass a dimension for it.")
            made.append(result)
            continue
        if not -result.ndim - 1 <= dim <= result.ndim:
            raise IndexError(f"vmap({name}, ...): Dimension out of range (got out_dim {dim} for a result of "
                             f"{result.ndim} dimensions).")
        if value is None:
            value = operators.expand(result, (level.size, *result.shape))
        made.append(operators.movedim(value, 0, dim) if dim else value)
    return tree_unflatten(made, spec)


def _in_chunks(func, name, leaves, dims, spec, kwargs, out_dims, size, randomness, chunk_size):
    """Run the batch chunk by chunk, and concatenate the results."""
    parts, chunks = [], Chunks() if randomness == "same" else None
    for begin in range(0, size, chunk_size):
        count = min(chunk_size, size - begin)
        given = [leaf if dim is None else operators.narrow(leaf, dim, begin, count)
                 for leaf, dim in zip(leaves, dims, strict=True)]
        parts.append(_run(func, name, given, dims, spec, kwargs, out_dims, count, randomness, chunks))
    _, out_spec = tree_flatten(parts[0])
    columns = zip(*[tree_flatten(part)[0] for part in parts], strict=True)
    joined = [column[0] if dim is None else operators.cat(list(column), dim)
              for column, dim in zip(columns, _dims_of_results(name, out_dims, parts[0]), strict=True)]
    return tree_unflatten(joined, out_spec)
