"""The functions backward() and grad()."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from cygrad._core.engine.engine import GradientEdge, run_backward
from cygrad._core.graph.argument_errors import described
from cygrad._core.graph.tensor import Tensor, provide
from cygrad._core.graph.user_warnings import warn_user

if TYPE_CHECKING:
    import cygrad


def _sequence(operation, value):
    """Return a sequence or a single value as a tuple."""
    if isinstance(value, (Tensor, GradientEdge)):
        return (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"{operation}: expected a Tensor or a sequence of Tensors (got {described(value)}).")
    return tuple(value)


def _gradients(operation, outputs, gradients):
    """Return one gradient or None per output."""
    if gradients is None:
        return (None,) * len(outputs)
    gradients = _sequence(operation, gradients)
    if len(gradients) != len(outputs):
        raise RuntimeError(
            f"{operation}: got {len(outputs)} tensors and {len(gradients)} gradients. Pass one for each "
            "output, None where it is a scalar.")
    return gradients


def _any_have(name, values):
    """Return whether a tensor has an attribute of another class: an entry of a transform, or a sparse tensor."""
    return any(type(value) is not Tensor and hasattr(value, name) for value in values)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None,
             grad_variables=None) -> None:
    """
    Add the gradients of `tensors` with respect to the leaves of the graph to the leaves' ``.grad``.

    Parameters
    ----------
    tensors : Tensor, GradientEdge or sequence of them
        Outputs to differentiate.
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The vector of the vector-Jacobian product for each output, of its shape and dtype. Scalars need none.
    retain_graph : bool, optional
        Whether to keep saved tensors for another backward. Default: the value of `create_graph`.
    create_graph : bool, default False
        Whether to record the computation of the gradients, so that they can be differentiated.
    inputs : Tensor, GradientEdge or sequence of them, optional
        Tensors whose gradients are accumulated; only nodes on paths to them run. Default: all leaves.
    grad_variables : optional
        Deprecated name of `grad_tensors`.

    Raises
    ------
    RuntimeError
        If an output does not require grad, a non-scalar output has no gradient, shapes differ, or the graph is freed.

    Examples
    --------
    >>> x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> cygrad.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("backward: grad_tensors and grad_variables are mutually exclusive (got both). Pass "
                               "grad_tensors only.")
        warn_user("backward: grad_variables is deprecated; use grad_tensors.", FutureWarning)
        grad_tensors = grad_variables
    outputs = _sequence("backward", tensors)
    gradients = _gradients("backward", outputs, grad_tensors)
    if inputs is not None:
        inputs = list(_sequence("backward", inputs))
        if not inputs:
            raise RuntimeError("backward: inputs cannot be empty. Pass None for all leaves.")
    if (type(tensors) is not Tensor or inputs is not None) and _any_have("with_values", (*outputs, *(inputs or ()))):
        import cygrad
        outputs, gradients, found = cygrad.sparse.functions.values_of("backward", outputs, gradients, inputs or ())
        inputs = None if inputs is None else found
    keep = create_graph if retain_graph is None else retain_graph
    run_backward("backward", outputs, gradients, bool(keep), bool(create_graph), inputs, True, True)


if TYPE_CHECKING:
    @overload
    def grad(outputs: Any, inputs: dict[Any, Any], *args: Any, **kwargs: Any) -> dict[Any, cygrad.Tensor]: ...

    @overload
    def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> tuple[cygrad.Tensor, ...]: ...


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """
    Return the gradients of `outputs` with respect to `inputs`, leaving ``.grad`` unchanged.

    Parameters
    ----------
    outputs : Tensor, GradientEdge or sequence of them
        Tensors to differentiate.
    inputs : Tensor, GradientEdge, sequence or dict of them
        Tensors to differentiate with respect to.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        The vector of the vector-Jacobian product for each output. Scalars need none.
    retain_graph : bool, optional
        Whether to keep saved tensors for another backward. Default: the value of `create_graph`.
    create_graph : bool, default False
        Whether to record the computation, for higher-order gradients.
    only_inputs : bool, default True
        Accepted and ignored; gradients of other leaves are never accumulated.
    allow_unused : bool, optional
        Whether to return None for inputs that the outputs do not depend on, instead of raising an error. Default: the
        value of `materialize_grads`.
    is_grads_batched : bool, default False
        Whether the first dimension of each of `grad_outputs` is a batch of vectors; results are stacked.
    materialize_grads : bool, default False
        Whether to return zeros instead of None for unused inputs.

    Returns
    -------
    tuple of Tensor, or dict of Tensor
        One gradient per input, of its shape and dtype; with the keys of `inputs` if that is a dict.

    Raises
    ------
    RuntimeError
        As in `backward`, and for unused inputs.

    Examples
    --------
    >>> x = cygrad.tensor(3.0, requires_grad=True)
    >>> cygrad.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    keys = list(inputs) if type(inputs) is dict else None
    outputs = _sequence("grad", outputs)
    inputs = list(_sequence("grad", inputs) if keys is None else inputs.values())
    if not inputs:
        raise ValueError("grad requires non-empty inputs (got an empty sequence, expected Tensors).")
    others = () if len(outputs) == len(inputs) == 1 and type(outputs[0]) is type(inputs[0]) is Tensor else [
        value for value in (*outputs, *inputs) if type(value) is not Tensor]
    if others and _any_have("with_values", others):
        import cygrad
        outputs, gradients, places = cygrad.sparse.functions.values_of(
            "grad", outputs, _gradients("grad", outputs, grad_outputs), inputs)
        found = grad(outputs, places, gradients, retain_graph, create_graph, True, allow_unused, is_grads_batched,
                     materialize_grads)
        found = [place.with_values(result) if _any_have("with_values", (place,)) and result is not None else result
                 for place, result in zip(inputs, found, strict=True)]
        return tuple(found) if keys is None else dict(zip(keys, found, strict=True))
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError("grad: Expected allow_unused to be True or not passed when materialize_grads=True (got "
                         "False). Omit allow_unused.")
    keep = bool(create_graph if retain_graph is None else retain_graph)
    if others and _any_have("_entries", outputs):
        import cygrad
        results = cygrad.func.inputs.gradients_of_entries(
            outputs, inputs, _gradients("grad", outputs, grad_outputs), keep, bool(create_graph), bool(allow_unused))
    elif is_grads_batched:
        results = _batched(outputs, inputs, grad_outputs, keep, create_graph, allow_unused)
    else:
        results = run_backward("grad", outputs, _gradients("grad", outputs, grad_outputs), keep, bool(create_graph),
                               inputs, False, bool(allow_unused))
    if materialize_grads:
        results = [_zeros(place, bool(create_graph)) if result is None else result
                   for result, place in zip(results, inputs, strict=False)]
    return tuple(results) if keys is None else dict(zip(keys, results, strict=True))


def _zeros(place, recorded):
    """Return a gradient of zeros for an unused input; it is differentiable if others are."""
    from cygrad import zeros_like
    if not isinstance(place, Tensor):
        raise RuntimeError("grad: materialize_grads cannot be used when the given input is a GradientEdge that is not "
                           "used (got one, expected a Tensor). Use allow_unused=True.")
    return zeros_like(place, requires_grad=recorded)


def _batched(outputs, inputs, grad_outputs, keep, create_graph, allow_unused):
    """Compute a batch of vector-Jacobian products, one for each entry of the first dimension."""
    from cygrad import vmap
    gradients = _gradients("grad", outputs, grad_outputs)
    if any(gradient is None for gradient in gradients):
        raise RuntimeError("grad: is_grads_batched=True requires a batch of gradients for every output (got None).")
    sizes = {gradient.shape[0] if gradient.ndim else None for gradient in gradients}
    if len(sizes) != 1 or None in sizes:
        raise RuntimeError(f"grad: with is_grads_batched=True the first dimension of all grad_outputs must have the "
                           f"same size (got {[tuple(gradient.shape) for gradient in gradients]}).")
    reached = []

    def pull(*vectors):
        found = run_backward("grad", outputs, list(vectors), keep, bool(create_graph), list(inputs), False,
                             bool(allow_unused))
        reached[:] = [gradient is not None for gradient in found]
        return tuple(gradient for gradient in found if gradient is not None)

    found = iter(vmap(pull, randomness="different")(*gradients))
    return [next(found) if there else None for there in reached]


provide(backward=backward)
