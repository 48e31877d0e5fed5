"""Rules of forward mode, named by the key `jvp` of a row.

linear      The result is linear in all tensors that it can be differentiated by: the operator itself, applied to the
            tangents.
as_strided  The same for `as_strided`, relative to the storage offset of the tangent.
index_put   The same for `index_put`, which writes to a copy of the tangent.
elementwise Each element of the result depends on one element of each argument, and is real or a holomorphic function:
            the derivative formula of each argument, applied to its tangent instead of the gradient.
transpose   Everything else, and always right: the derivative formulas are linear in the gradient, u -> J^T u, and the
            derivative of that with respect to u, applied to the tangent, is J t. (The formulas are differentiable, as
            gradients of gradients need that too.)
"""

from cygrad._core.creation.factories import zeros_like
from cygrad._core.dispatch.tangents import fitted, laid_out
from cygrad._core.engine.engine import run_backward
from cygrad._core.graph.modes import enable_grad, inference_mode, is_grad_enabled
from cygrad._core.graph.saved import memory_of
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators


def push(operator, arguments, tangents, results):
    """
    Return the tangents of the results of an operator.

    Parameters
    ----------
    operator : Operator
    arguments : list
        Arguments as Python objects.
    tangents : list
        Tangent of each argument: a Tensor, None, or a list of both for a list of tensors.
    results : tuple
        Results of the operator.

    Returns
    -------
    tuple of Tensor or None
        One for each result.
    """
    if not any(isinstance(result, Tensor) and differentiable(result.dtype) for result in results):
        return (None,) * len(results)
    found = RULES[operator.jvp](operator, arguments, tangents, results)
    pushed = [tangent if tangent is None else fit(tangent, result)
              for tangent, result in zip(found, results, strict=True)]
    if not operator.row["view"]:
        # If the derivative is 1, the tangent itself is returned; in-place operations must not modify it.
        given = {memory_of(tangent)[0] for tangent in flat(tangents)}
        pushed = [laid_out(tangent, result) if tangent is not None and memory_of(tangent)[0] in given else tangent
                  for tangent, result in zip(pushed, results, strict=True)]
    return tuple(pushed)


def push_copy(operator, arguments, tangents):
    """
    Return the tangent of the result of an in-place operation, computed before the operation runs.

    Copies the tensor to be modified, in `arguments` and `tangents`, because rules and nodes save it.
    """
    arguments[0] = arguments[0].clone()
    modified = None if tangents[0] is None else memory_of(tangents[0])[0]
    for number, tangent in enumerate(tangents):
        if isinstance(tangent, Tensor) and memory_of(tangent)[0] == modified:
            tangents[number] = tangent.clone()
    options = dict(zip(operator.arguments[1:], arguments[1:], strict=True))
    result = getattr(operators, operator.name)(arguments[0], **options)
    return push(operator, arguments, tangents, (result,))[0]


def flat(tangents):
    """Return all tangents, including those in lists."""
    for tangent in tangents:
        if isinstance(tangent, list):
            yield from flat(tangent)
        elif tangent is not None:
            yield tangent


def fit(tangent, result):
    """
    Return the tangent with the shape, dtype and strides of the result, so that views of one are views of the other.
    """
    if tangent.dtype.is_complex and not result.dtype.is_complex:
        tangent = operators.real(tangent)
    if tangent.dtype != result.dtype:
        tangent = operators.cast(tangent, result.dtype)
    if tuple(tangent.shape) != tuple(result.shape):
        tangent = operators.expand(tangent, tuple(result.shape))
    return tangent if tuple(tangent.stride()) == tuple(result.stride()) else laid_out(tangent, result)


def linear(operator, arguments, tangents, results):
    """Apply the operator itself; arguments without a tangent have the tangent zero."""
    given = [directed(argument, tangent) if name in operator.formulas else argument
             for name, argument, tangent in zip(operator.arguments, arguments, tangents, strict=True)]
    first, *others = given
    pushed = getattr(operators, operator.name)(first, **dict(zip(operator.arguments[1:], others, strict=True)))
    return pushed if isinstance(pushed, tuple) else (pushed,)


def as_strided(operator, arguments, tangents, results):
    """Apply as_strided: the tangent has the strides of its tensor, but another storage offset."""
    tensor, size, stride, offset = arguments
    offset = tangents[0].storage_offset() + (0 if offset is None else offset - tensor.storage_offset())
    return (operators.as_strided(tangents[0], size, stride, offset),)


def index_put(operator, arguments, tangents, results):
    """Apply index_put, which writes to its argument, to a copy of the tangent."""
    tensor, indices, values, accumulate = arguments
    return (directed(tensor, tangents[0]).clone().index_put_(indices, directed(values, tangents[2]), accumulate),)


def directed(argument, tangent):
    """Return the tangent of an argument, zeros if it has none."""
    if isinstance(argument, list):
        tangent = [None] * len(argument) if tangent is None else tangent
        return [directed(*pair) for pair in zip(argument, tangent, strict=True)]
    if tangent is not None:
        return tangent
    return zeros_like(argument) if isinstance(argument, Tensor) else None if argument is None else 0


def elementwise(operator, arguments, tangents, results):
    """Sum the formulas, conjugated twice, because gradients are those of conjugate Wirtinger calculus."""
    saved = saved_values(operator, arguments, results)
    conj, total = operators.conj, None
    twisted = results[0].dtype.is_complex or any(isinstance(argument, Tensor) and argument.dtype.is_complex
                                                 for argument in arguments)
    for number, tangent in enumerate(tangents):
        if tangent is not None and operator.arguments[number] in operator.formulas:
            part = operator.derivative(number)((conj(tangent) if twisted else tangent,), saved)
            if part is not None:
                total = part if total is None else operators.add(total, part)
    if total is None:
        return (None,)
    return (conj(total) if twisted else total,)


def transpose(operator, arguments, tangents, results):
    """Differentiate the backward formulas with respect to their incoming gradient."""
    recorded = is_grad_enabled()
    with inference_mode(False), enable_grad():
        if not recorded:
            arguments, results = outside(arguments), outside(results)
        saved = saved_values(operator, arguments, results)
        places = [None if result is None or not (operator.is_differentiable(number) and differentiable(result.dtype))
                  else zeros_like(result).requires_grad_() for number, result in enumerate(results)]
        pulled, directions = [], []
        for number, tangent in enumerate(tangents):
            if tangent is not None and operator.arguments[number] in operator.formulas:
                gradient = operator.derivative(number)(tuple(places), saved)
                pairs = (zip(gradient or (), tangent, arguments[number], strict=False) if isinstance(tangent, list)
                         else [(gradient, tangent, arguments[number])])
                for gradient, tangent, argument in pairs:
                    if gradient is not None and tangent is not None:
                        gradient = fitted(gradient, argument)
                        if gradient.requires_grad:
                            pulled.append(gradient)
                            directions.append(outside(tangent) if tangent.is_inference() else tangent)
        wanted = [place for place in places if place is not None]
        if not pulled:
            return (None,) * len(results)
        found = iter(run_backward("jvp", pulled, directions, recorded, recorded, wanted, False, True))
    return tuple(None if place is None else next(found) for place in places)


def differentiable(dtype):
    """Return whether tensors of this dtype are differentiable."""
    return dtype.is_floating_point or dtype.is_complex


def outside(value):
    """Return the tensor outside of the graph and of inference mode."""
    if isinstance(value, list | tuple):
        return type(value)(outside(item) for item in value)
    if not isinstance(value, Tensor):
        return value
    return value.clone() if value.is_inference() else value.detach()


def saved_values(operator, arguments, results):
    """Return the values that a node of the operator saves."""
    return tuple(results[entry.index] if entry.from_result else arguments[entry.index]
                 for entry in layout_of(operator))


def layout_of(operator):
    """Return the layout of saved values of the operator; read from its formulas once."""
    found = _layouts.get(operator.name)
    if found is None:
        from cygrad._core.table.layout import saved_layout  # imported here: it loads the formula parser
        found = _layouts[operator.name] = saved_layout(operator.row)
    return found


_layouts = {}


RULES = {"linear": linear, "as_strided": as_strided, "index_put": index_put, "elementwise": elementwise,
         "transpose": transpose}
