"""Jacobians and Hessians of functions."""

import functools

from cygrad._core.creation.factories import eye, zeros, zeros_like
from cygrad._core.table.operator import operators
from cygrad.func.batched import restore, strip
from cygrad.func.forward import push_forward
from cygrad.func.inputs import as_arrays, as_tensor, at_places, like_given, pullback_of, selected
from cygrad.func.vmap import vmap
from cygrad.utils.pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def _units(like):
    """Return the unit vectors of the space of a tensor."""
    count = like.numel()
    return eye(count, dtype=like.dtype).reshape((count, *like.shape))


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """
    Return a function that computes the Jacobian of another row by row, in backward mode.

    Parameters
    ----------
    func : callable
        Takes Tensors and gives Tensors; with `has_aux` a pair of that and anything else.
    argnums : int or tuple of int, default 0
        Which arguments to differentiate by.
    has_aux : bool, default False
    chunk_size : int, optional
        Number of rows computed at once. Default: all.

    Returns
    -------
    callable
        Returns a Tensor of the shape of the output followed by that of the input, for each output and input: the
        structure of the outputs, each with that of the inputs. With `has_aux`, a pair of that and the auxiliary output.

    Raises
    ------
    RuntimeError
        If results or arguments are not Tensors.

    Examples
    --------
    >>> cygrad.func.jacrev(lambda x: x * x.sum())(cygrad.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"jacrev: chunk_size must be a positive integer or None (got {chunk_size!r}).")

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        places, chosen, single = selected("jacrev", argnums, args)
        inputs, results, aux, held, spec = pullback_of("jacrev", at_places(func, places, args, kwargs), chosen, has_aux)
        outputs = tree_flatten(results)[0]

        def rows(number):
            def row(unit):
                found = inputs.pull([held[number]], [strip(unit, inputs.levels)], True)
                return tuple(restore(gradient, inputs.levels) for gradient in found)

            output = outputs[number]
            if not output.numel():
                return [zeros((*output.shape, *leaf.shape), dtype=leaf.dtype) for leaf in tree_flatten(inputs.tree)[0]]
            found = vmap(row, chunk_size=chunk_size)(_units(output))
            return [operators.reshape(part, (*output.shape, *part.shape[1:])) for part in found]

        blocks = []
        for number in range(len(held)):
            found = inputs.formed(rows(number))
            blocks.append(found[0] if single else found)
        answer = tree_unflatten(blocks, spec)
        return (answer, inputs.returned(aux)) if has_aux else answer

    return jacobian


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """
    Return a function that computes the Jacobian of another column by column, in forward mode.

    Parameters
    ----------
    func : callable
        Takes Tensors and gives Tensors; with `has_aux` a pair of that and anything else.
    argnums : int or tuple of int, default 0
        Which arguments to differentiate by.
    has_aux : bool, default False
    randomness : {"error", "different", "same"}, default "error"
        Mode of random numbers of `vmap` over the columns.

    Returns
    -------
    callable
        Returns the same as the function of `jacrev`; faster for fewer inputs than outputs.

    Raises
    ------
    RuntimeError
        If results or arguments are not Tensors.

    Examples
    --------
    >>> cygrad.func.jacfwd(lambda x: x * x.sum())(cygrad.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """
    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        places, chosen, single = selected("jacfwd", argnums, args)
        given, spec = tree_flatten(chosen)
        leaves = [as_tensor("jacfwd", "inputs", leaf) for leaf in given]
        chosen = tree_unflatten(leaves, spec)
        kept, of_chosen = [], at_places(func, places, args, kwargs)

        def columns(number):
            def column(unit):
                directions = [unit if place == number else zeros_like(leaf) for place, leaf in enumerate(leaves)]
                found = push_forward(of_chosen, chosen, tree_unflatten(directions, spec), has_aux=has_aux)
                tangent, kept[:] = tree_flatten(found[1]), [found[1]]
                return (tuple(tangent[0]), found[2]) if has_aux else (tuple(tangent[0]), ())

            leaf = leaves[number]
            found, aux = vmap(column, out_dims=(-1, 0), randomness=randomness)(_units(leaf))
            return [operators.reshape(part, (*part.shape[:-1], *leaf.shape)) for part in found], aux

        found = [columns(number) for number in range(len(leaves))]
        out_spec = tree_flatten(kept[0])[1]
        blocks = []
        for parts in zip(*[column for column, _ in found], strict=True):
            block = tree_unflatten(list(map(like_given, parts, given)), spec)
            blocks.append(block[0] if single else block)
        answer = tree_unflatten(blocks, out_spec)
        if not has_aux:
            return answer
        return answer, as_arrays(tree_map(lambda leaf: operators.select(leaf, 0, 0), found[0][1]), given)

    return jacobian


def hessian(func, argnums=0):
    """
    Return a function that computes the Hessian of another, in forward mode over backward mode.

    Parameters
    ----------
    func : callable
        Takes and returns Tensors; the Hessian of each element of the output is computed.
    argnums : int or tuple of int, default 0
        Which arguments to differentiate by.

    Returns
    -------
    callable
        Returns, for one argument, a Tensor of the shape of the output followed by twice that of the argument.

    Raises
    ------
    RuntimeError
        If results or arguments are not Tensors.

    Examples
    --------
    >>> cygrad.func.hessian(lambda x: (x[0] * x[1]) ** 2)(cygrad.tensor([1.0, 2.0]))
    tensor([[8., 8.],
            [8., 2.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
