"""Private functions of PyTorch that compute Jacobians."""

import cygrad
from cygrad._core.graph.user_warnings import warn_user
from cygrad.autograd.run import grad

__all__ = ["_construct_standard_basis_for", "get_analytical_jacobian", "get_numerical_jacobian"]


def _check(name, grad_out):
    warn_user(f"`{name}` was part of PyTorch's private API and is deprecated. Use gradcheck or autograd.functional.",
              FutureWarning)
    if grad_out != 1.0:
        raise ValueError(f"{name}: Expected grad_out to be 1.0 (got {grad_out}).")


def _differentiable(inputs):
    return [value for value in inputs if isinstance(value, cygrad.Tensor) and value.requires_grad]


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """
    Return the Jacobian of an output for each input, of shape (input elements, output elements); whether a second
    backward gives the same; and whether the gradients have the shapes and the dtypes of the inputs.
    """
    _check("get_analytical_jacobian", grad_out)
    inputs = _differentiable(inputs)
    units = cygrad.eye(output.numel(), dtype=output.dtype).reshape(-1, *output.shape)

    def rows():
        found = [grad(output, inputs, unit, retain_graph=True, materialize_grads=True) for unit in units]
        return [[row[place] for row in found] for place in range(len(inputs))]
    first, second = rows(), rows()
    jacobians, again = ([cygrad.stack([gradient.reshape(-1) for gradient in column], 1) for column in part]
                        for part in (first, second))
    return (tuple(jacobians), all((a - b).abs().max() <= nondet_tol for a, b in zip(jacobians, again, strict=True)),
            all(gradient.shape == place.shape for place, column in zip(inputs, first, strict=True)
                for gradient in column),
            all(gradient.dtype == place.dtype for place, column in zip(inputs, first, strict=True)
                for gradient in column))


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Return central differences of the first output of ``fn(inputs)`` for each input, or those in `target`."""
    from cygrad.autograd.gradcheck import _numerical
    _check("get_numerical_jacobian", grad_out)
    targets = _differentiable(inputs if target is None else target if isinstance(target, (tuple, list)) else (target,))
    places = [next(place for place, value in enumerate(inputs) if value is wanted) for wanted in targets]
    return [cygrad.tensor(_numerical(lambda *values: fn(values), inputs, place, eps, [0])[0]) for place in places]


def _construct_standard_basis_for(tensors, tensor_numels):
    """Return for each tensor the part of all unit vectors of the concatenated elements that belongs to it."""
    total, begin, parts = sum(tensor_numels), 0, []
    for tensor, size in zip(tensors, tensor_numels, strict=True):
        parts.append(cygrad.eye(total, dtype=tensor.dtype)[:, begin:begin + size])
        begin += size
    return tuple(parts)
