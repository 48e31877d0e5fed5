"""Jacobian-vector products of functions, by forward mode."""

from cygrad._core.creation.factories import zeros_like
from cygrad._core.dispatch import tangents
from cygrad._core.engine.engine import run_backward
from cygrad._core.graph.modes import inference_mode, is_grad_enabled
from cygrad._core.table.operator import operators
from cygrad.func.batched import active_levels, restore, strip
from cygrad.func.inputs import (
    as_arrays,
    as_tensor,
    differentiable,
    outputs_of,
    plain,
    pullback_of,
    same_tree,
    tensor_of,
    with_aux,
)
from cygrad.utils.pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["jvp", "linearize", "push_forward"]


def _duals(operation, primals, given):
    """Return batched tensors, and their tangents."""
    leaves, spec = tree_flatten(primals)
    directions = tree_flatten(given)[0]
    if tree_flatten(given)[1] != spec:
        raise RuntimeError(f"{operation}: primals and tangents must have the same python structure (got "
                           f"{tree_flatten(given)[1]!r}, expected {spec!r}).")
    levels = list(active_levels())
    held = [strip(as_tensor(operation, "primals", leaf), levels) for leaf in leaves]
    vectors = [strip(as_tensor(operation, "tangents", leaf), levels) for leaf in directions]
    for leaf, vector in zip(held, vectors, strict=True):
        if tuple(leaf.shape) != tuple(vector.shape) or leaf.dtype != vector.dtype:
            raise RuntimeError(f"{operation}: a tangent must have the dtype and shape of its primal (got a "
                               f"{vector.dtype} tensor of shape {tuple(vector.shape)[len(levels):]}, expected "
                               f"{leaf.dtype} and {tuple(leaf.shape)[len(levels):]}).")
    return levels, held, vectors, spec


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """
    Return the value of a function, and its Jacobian times a vector.

    Parameters
    ----------
    func : callable
        Takes and returns Tensors; with `has_aux`, returns a pair of that and an auxiliary output.
    primals : tuple
        Arguments of `func`.
    tangents : tuple
        The vector, with the structure of `primals`.
    strict : bool, default False
        Whether to raise an error for results that do not depend on `primals`, instead of returning zeros.
    has_aux : bool, default False

    Returns
    -------
    output
        ``func(*primals)``.
    jvp
        The product, with the structure of the output.
    aux
        With `has_aux`: what `func` gave besides.

    Raises
    ------
    RuntimeError
        If primals and tangents do not match, or `strict` and a result does not depend on `primals`.

    Examples
    --------
    >>> cygrad.func.jvp(cygrad.sin, (cygrad.zeros(2),), (cygrad.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise RuntimeError(f"jvp: primals and tangents must be tuples with at least one entry (got "
                           f"{type(primals).__name__} and {type(tangents).__name__}).")
    given, directions = tree_flatten(primals)[0], tree_map(tensor_of, tangents)
    return as_arrays(push_forward(func, tree_map(tensor_of, primals), directions, strict, has_aux), given)


def push_forward(func, primals, directions, strict=False, has_aux=False):
    if tangents.current_level() is not None:
        return _by_backward(func, primals, directions, strict, has_aux)
    levels, held, vectors, spec = _duals("jvp", primals, directions)
    with tangents.Level():
        duals = []
        for leaf, vector in zip(held, vectors, strict=True):
            if not differentiable(leaf):
                duals.append(leaf)
                continue
            if any(step == 0 and size > 1 for step, size in zip(leaf.stride(), leaf.shape, strict=True)):
                leaf = operators.clone(leaf)         # expanded, but its tangent is not required to be
            dual = leaf.view_as(leaf)
            with tangents.paused():
                if not tangents.has_same_layout(vector, leaf):
                    vector = tangents.laid_out(vector, leaf, True)
            tangents.attach(dual, vector)
            duals.append(dual)
        arguments = tree_unflatten([restore(dual, levels) for dual in duals], spec)
        results, aux = with_aux("jvp", func(*arguments), has_aux)
        leaves, out_spec = outputs_of("jvp", results)
        pushed = []
        for number, leaf in enumerate(leaves):
            value = strip(leaf, levels)
            tangent = tangents.tangent(value)
            if tangent is None and strict:
                raise RuntimeError(f"jvp: output {number} does not depend on primals (got strict=True). Pass "
                                   "strict=False to get zeros.")
            with tangents.paused():
                pushed.append(restore(zeros_like(value) if tangent is None else tangent, levels))
    answer = (results, tree_unflatten(pushed, out_spec))
    return (*answer, aux) if has_aux else answer


def _by_backward(func, primals, directions, strict, has_aux):
    """Compute the product inside of another forward mode: differentiate ``u J`` with respect to u."""
    _, _, vectors, _ = _duals("jvp", primals, directions)
    with tangents.ByBackward():
        inputs, results, aux, held, spec = pullback_of("jvp", func, primals, has_aux)
    pushed = push(inputs, held, vectors, strict)
    answer = (results, tree_unflatten([restore(tangent, inputs.levels) for tangent in pushed], spec))
    return (*answer, aux) if has_aux else answer


def transposed(inputs, held):
    """Return ``u J`` as a graph: u, and the product."""
    with inference_mode(False):
        places = [zeros_like(output).requires_grad_() if output.requires_grad else None for output in held]
        pairs = [(output, place) for output, place in zip(held, places, strict=True) if place is not None]
        if not pairs:
            return places, []
        products = run_backward("jvp", [output for output, _ in pairs], [place for _, place in pairs], True, True,
                                inputs.places, False, True)
    return places, [(product, number) for number, product in enumerate(products)
                    if product is not None and product.requires_grad]


def push(inputs, held, vectors, strict=False, graph=None):
    """Multiply the Jacobian by vectors."""
    places, products = transposed(inputs, held) if graph is None else graph
    found = [None] * len(held)
    wanted = [number for number, place in enumerate(places) if place is not None]
    if products and wanted:
        chosen = [vectors[number] for _, number in products]
        create = is_grad_enabled() and (inputs.leads_out(held) or any(vector.requires_grad for vector in chosen))
        gradients = run_backward("jvp", [product for product, _ in products], chosen, True, create,
                                 [places[number] for number in wanted], False, True)
        for number, gradient in zip(wanted, gradients, strict=True):
            found[number] = gradient if gradient is None or create else plain(gradient)
    for number, gradient in enumerate(found):
        if gradient is None and strict:
            raise RuntimeError(f"jvp: output {number} does not depend on primals (got strict=True). Pass strict=False "
                               "to get zeros.")
    return [zeros_like(output) if gradient is None else gradient for output, gradient in zip(held, found, strict=True)]


def linearize(func, *primals):
    """
    Return the value of a function at a point, and a function that multiplies its Jacobian by vectors.

    Parameters
    ----------
    func : callable
        Takes and returns Tensors. It is called once.
    *primals
        Arguments of `func`.

    Returns
    -------
    output
        ``func(*primals)``.
    jvp_fn : callable
        Takes a vector for each of `primals`, and returns the product, with the structure of the output.

    Raises
    ------
    RuntimeError
        If results or arguments are not Tensors.

    Examples
    --------
    >>> y, push = cygrad.func.linearize(cygrad.sin, cygrad.zeros(2))
    >>> push(cygrad.tensor([1.0, 2.0])), push(cygrad.tensor([0.0, 1.0]))
    (tensor([1., 2.]), tensor([0., 1.]))
    """
    inputs, results, _, held, spec = pullback_of("linearize", func, primals, False)
    graph = transposed(inputs, held)

    def jvp_fn(*directions):
        given = [as_tensor("jvp_fn", "tangents", vector)
                 for vector in same_tree("jvp_fn", "tangents", inputs.spec, tuple(directions))]
        for vector, place in zip(given, inputs.places, strict=True):
            shape = tuple(place.shape)[len(inputs.levels):]
            if tuple(vector.shape) != shape:
                raise RuntimeError(f"jvp_fn: a tangent has the wrong shape (got {tuple(vector.shape)}, expected "
                                   f"{shape}).")
        pushed = push(inputs, held, [strip(vector, inputs.levels) for vector in given], graph=graph)
        return inputs.returned(tree_unflatten([restore(tangent, inputs.levels) for tangent in pushed], spec))

    return inputs.returned(results), jvp_fn
