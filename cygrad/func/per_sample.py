"""Per-sample gradients from a single backward and the saved tensors of the nodes that use the parameters."""

from functools import cache

from cygrad._core.creation.factories import ones_like, zeros
from cygrad._core.dispatch.per_sample import product_gradients
from cygrad._core.dispatch.tangent_rules import layout_of
from cygrad._core.dispatch.tangents import fitted
from cygrad._core.engine.engine import GradientEdge, run_backward
from cygrad._core.engine.plan import order
from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.graph.modes import no_grad
from cygrad._core.graph.native import NativeNode
from cygrad._core.graph.node import AccumulateGrad
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad._core.table.signature import OPERAND, TENSOR, TENSORS
from cygrad.func.batching import row_function
from cygrad.func.vmap import vmap

__all__ = ["per_sample_grad"]

# Arguments that are the same for all samples, of any shape.
SHARED = {"weight", "bias", "panels", "back"}


@names_arguments
def per_sample_grad(losses, parameters):
    """
    Return the gradients of the loss of each sample, after one call of a model for the whole batch.

    One backward computes the gradients of the outputs of all layers; the gradients of parameters are then computed for
    each sample from these and the saved tensors of the layers. The result equals that of `func.vmap` of `func.grad` for
    layers that process samples independently: linear, convolution, layer and group normalization, embedding, recurrent
    layers, and products and sums with parameters.

    Parameters
    ----------
    losses : Tensor of shape (n,)
        The loss of each sample.
    parameters : iterable of Tensor
        Leaves that the losses depend on, used by layers whose outputs have the samples in their first dimension (in the
        second one for sequences with ``batch_first=False``).

    Returns
    -------
    tuple of Tensor
        One for each parameter, of shape (n, ...).

    Raises
    ------
    RuntimeError
        If a parameter is used by another operator, or the sample dimension is ambiguous.

    Notes
    -----
    Interactions between samples are not detected. Where samples interact, as in batch normalization or in differences
    from a batch mean, the gradient of a sample is the part of the gradient of ``losses.sum()`` that passes through the
    rows of this sample; use `func.vmap` of `func.grad` there, or the module in evaluation mode.

    Examples
    --------
    >>> x, w = cygrad.tensor([[1.0, 2.0], [3.0, 4.0]]), cygrad.ones(1, 2, requires_grad=True)
    >>> losses = cygrad.nn.functional.linear(x, w).squeeze(1)
    >>> cygrad.autograd.per_sample_grad(losses, [w])
    (tensor([[[1., 2.]],
    <BLANKLINE>
            [[3., 4.]]]),)
    """
    parameters = list(parameters)
    if not isinstance(losses, Tensor) or losses.ndim != 1 or losses.grad_fn is None:
        raise RuntimeError("per_sample_grad: losses must be a Tensor of shape (n,) with a graph (got "
                           f"{tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__}). Use "
                           "reduction='none'.")
    found = product_gradients(losses, parameters)
    if found is None:
        with no_grad():
            uses = _Uses(losses, parameters)
            found = [uses.gradient(("leaf", number), parameter) for number, parameter in enumerate(parameters)]
    for number, gradient in enumerate(found):
        if gradient is None:
            found[number] = zeros((losses.shape[0], *parameters[number].shape), dtype=parameters[number].dtype)
    return tuple(found)


class _Uses:
    """
    Find nodes that use the parameters, and tensors computed from parameters only; with the gradients of their outputs.
    """

    def __init__(self, losses, parameters):
        self.count = losses.shape[0]
        places = {id(parameter): ("leaf", number) for number, parameter in enumerate(parameters)}
        self.users, self.shared = {}, set()
        for node in reversed(order([losses.grad_fn])):
            edges = [None if target is None else places.get(id(target.variable), "other")
                     if type(target) is AccumulateGrad else target for target, _ in node.next_functions]
            known = [edge for edge, target in enumerate(edges)
                     if target is not None and target != "other" and (type(target) is tuple or target in self.shared)]
            for edge in known:
                self.users.setdefault(edges[edge], []).append((node, edge))
            if known and len(known) == len(edges) and _of_parameters_only(node):
                self.shared.add(node)
        nodes = list({node: None for users in self.users.values() for node, _ in users})
        found = run_backward("per_sample_grad", [losses], [ones_like(losses)], True, False,
                             [GradientEdge(node, 0, None) for node in nodes], False, True) if nodes else []
        self.gradients = dict(zip(nodes, found, strict=True))

    def gradient(self, target, like):
        """Return the per-sample gradients of a parameter, or of a tensor computed from parameters."""
        total, products = None, []
        for node, edge in self.users.get(target, ()):
            gradient = self.gradients[node]
            if gradient is None:
                continue
            if node in self.shared:
                gradient = self.gradient(node, gradient)
                part = None if gradient is None else _pulled(node, edge, gradient, like)
            else:
                part = _parts(node, edge, gradient, like, self.count, products)
            total = part if total is None else total if part is None else total + part
        if products:
            part = _product_of(products)
            total = part if total is None else total + part
        return total


@cache
def _differentiable(operator):
    """Return the indices of the arguments of edges; None if the operator mixes the samples of a batch."""
    if isinstance(operator.row["per_sample"], str) or operator.row["list"] or TENSORS in [
            kind for name, kind, *_ in operator.row["arguments"] if name in operator.formulas]:
        return None
    return [number for number, name in enumerate(operator.arguments) if name in operator.formulas]


def _of_parameters_only(node):
    """Return whether all tensor arguments of a node's operator have edges."""
    return isinstance(node, NativeNode) and all(
        name in node._operator().formulas for name, kind, *_ in node._operator().row["arguments"]
        if kind in (TENSOR, TENSORS, OPERAND))


def _used(node, edge):
    """Return the operator of a node, if it supports per-sample gradients, and the argument of an edge."""
    operator = node._operator() if isinstance(node, NativeNode) else None
    arguments = None if operator is None else _differentiable(operator)
    if arguments is None:
        rules = operator and operator.row["per_sample"]
        raise RuntimeError(f"per_sample_grad: {node.name()} has no rule for per-sample "
                           f"gradients{': ' + rules if isinstance(rules, str) else ''} (got a parameter that it uses). "
                           "Use vmap(grad(...)) of cygrad.func.")
    return operator, arguments[edge]


def _formula(operator, argument):
    """Return the formula of an argument as a function of the gradient and the saved values."""
    formula, others = operator.derivative(argument), (None,) * (len(operator.row["results"]) - 1)
    return lambda gradient, saved: formula((gradient, *others), tuple(saved))


def _pulled(node, edge, gradient, like):
    """Propagate per-sample gradients through a node that has parameters only."""
    operator, argument = _used(node, edge)
    formula = _formula(operator, argument)
    saved = [getattr(node, f"_saved_{entry.name}") for entry in layout_of(operator)]
    return vmap(lambda gradient: fitted(formula(gradient, saved), like))(gradient)


def _parts(node, edge, gradient, like, count, products):
    """Return the per-sample gradient of one use of a parameter; None if it was added to `products`."""
    operator, argument = _used(node, edge)
    dim = _dimension(node, operator, gradient, count)
    found = _by_rule(node, operator, argument, gradient, like, dim)
    if isinstance(found, tuple):
        products.append(found)
        return None
    if found is not None:
        return found
    formula = _formula(operator, argument)

    def entries(tensor):
        """Return stacked batches of one sample."""
        return operators.unsqueeze(operators.movedim(tensor, dim, 0), dim + 1)

    layout = layout_of(operator)
    saved = [getattr(node, f"_saved_{entry.name}") for entry in layout]
    places = [number for number, (entry, value) in enumerate(zip(layout, saved, strict=True))
              if isinstance(value, Tensor) and entry.name not in SHARED and value.ndim > dim
              and value.shape[dim] == count and (entry.from_result or entry.index != argument)]

    def of_sample(gradient, *values):
        own = list(saved)
        for place, value in zip(places, values, strict=True):
            own[place] = value
        return fitted(formula(gradient, own), like)

    return vmap(of_sample)(entries(gradient), *[entries(saved[place].detach()) for place in places])


def _by_rule(node, operator, argument, gradient, like, dim):
    """
    Return the per-sample gradient by the rule in the row of an argument; None without a rule, or if it does not apply.
    The rule `outer` gives the factors of a product.
    """
    rule = (operator.row["per_sample"] or {}).get(operator.arguments[argument])
    if rule is None:
        return None
    gradient = operators.movedim(gradient, dim, 0) if dim else gradient

    def saved(name):
        value = getattr(node, f"_saved_{name}")
        value = value.detach() if isinstance(value, Tensor) else value
        return operators.movedim(value, dim, 0) if dim and isinstance(value, Tensor) else value

    if rule == "outer":
        values = saved("self")
        fits = like.ndim == 2 and values.ndim == gradient.ndim > 1 and not gradient.is_complex()
        return (gradient, values) if fits else None
    part = gradient if rule == "sum" else row_function(rule)(gradient, saved, like)
    return None if part is None or part.ndim <= like.ndim else _summed(part, like)


def _summed(part, like):
    """Sum to the shape of a broadcast parameter, for each sample."""
    shape = (1,) * (part.ndim - like.ndim) + tuple(like.shape)
    dims = [dim for dim in range(1, part.ndim) if shape[dim] == 1 and part.shape[dim] != 1]
    return (part.sum(dims, keepdim=True) if dims else part).reshape(part.shape[0], *like.shape)


def _product_of(pairs):
    """Sum the outer products of gradients (n, ..., out) and inputs (n, ..., in) over uses and steps: (n, out, in)."""
    gradient, values = pairs[0]
    if len(pairs) == 1 and gradient.ndim == 2:
        return operators.matmul(gradient.unsqueeze(2), values.unsqueeze(1))
    rows = [[part.reshape(part.shape[0], -1, part.shape[-1]) for part in pair] for pair in pairs]
    gradient, values = (side[0] if len(side) == 1 else operators.cat(list(side), 1) for side in zip(*rows, strict=True))
    return operators.matmul(gradient.mT, values)


def _dimension(node, operator, gradient, count):
    """Return which dimension of an output is the sample dimension."""
    sequences = operator.name in ("linear", "matmul") and gradient.ndim == 3
    first = gradient.ndim > 0 and gradient.shape[0] == count
    second = sequences and gradient.shape[1] == count
    if first == second:
        what = "both of the first two dimensions can be the dimension of" if first else "no dimension is that of"
        raise RuntimeError(f"per_sample_grad: {node.name()}: {what} the {count} samples (got an output of shape "
                           f"{tuple(gradient.shape)}). Use vmap(grad(...)) of cygrad.func.")
    return 0 if first else 1
