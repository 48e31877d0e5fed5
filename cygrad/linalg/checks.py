"""Checks of the operands of linear algebra functions, and of the info that LAPACK returns."""

from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.composite.shapes import broadcast_shapes
from cygrad.conversion import values_of

__all__ = ["LinAlgError", "broadcast_batches", "check_info", "matrices", "square"]


class LinAlgError(RuntimeError):
    """
    Raised for singular matrices, matrices that are not positive definite, and iterations that do not converge.

    Examples
    --------
    >>> cygrad.linalg.inv(cygrad.zeros(2, 2))
    Traceback (most recent call last):
        ...
    cygrad.linalg.checks.LinAlgError: ...
    """


def matrices(operation, value, name="A"):
    """Return the value if it is a Tensor of matrices of floating point or complex dtype; raise otherwise."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}: argument '{name}' must be a Tensor (got {type(value).__name__}).")
    if value.ndim < 2:
        raise RuntimeError(f"{operation}: {name} must have two dimensions or more (got shape {tuple(value.shape)}).")
    return floating(operation, value)


def floating(operation, value):
    """Return the value if it is a Tensor of floating point or complex dtype; raise otherwise."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}: expected a Tensor (got {type(value).__name__}).")
    if not (value.is_floating_point() or value.is_complex()):
        raise RuntimeError(f"{operation}: expected a floating point or complex dtype (got {value.dtype}). "
                           "Convert it with to().")
    return value


def square(operation, value, name="A"):
    """Return the value if it is a Tensor of square matrices; raise otherwise."""
    matrices(operation, value, name)
    if value.shape[-1] != value.shape[-2]:
        raise RuntimeError(f"{operation}: {name} must hold square matrices (got matrices of {value.shape[-2]} rows and "
                           f"{value.shape[-1]} columns).")
    return value


def same_dtype(operation, *tensors):
    """Raise an error for operands of different dtypes."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{operation}: expected a Tensor (got {type(tensor).__name__}).")
    if any(tensor.dtype is not tensors[0].dtype for tensor in tensors):
        raise RuntimeError(f"{operation}: Expected all operands to have the same dtype (got "
                           f"{' and '.join(str(tensor.dtype) for tensor in tensors)}).")


def broadcast_batches(*tensors, dims=2):
    """Return the tensors with their leading dimensions, all but the last `dims`, broadcast against each other."""
    shapes = [tuple(tensor.shape[:tensor.ndim - dims]) for tensor in tensors]
    if all(shape == shapes[0] for shape in shapes):
        return tensors
    shape = broadcast_shapes(*shapes)
    return tuple(operators.expand(tensor, shape + tuple(tensor.shape[tensor.ndim - dims:])) for tensor in tensors)


def check_info(operation, info, text):
    """Raise LinAlgError with text(info) for the first matrix that LAPACK could not process."""
    values = values_of(info)
    if not values.any():
        return
    first = next(number for number, value in enumerate(values.reshape(-1)) if value)
    where = f"(Batch element {first}): " if values.ndim else ""
    raise LinAlgError(f"{operation}: {where}{text(int(values.reshape(-1)[first]))}")


def singular(info):
    """Return the error message for a singular matrix."""
    return (f"The matrix is singular: the factor U has a zero on its diagonal, at {info}. Use pinv or lstsq, or "
            "regularize it.")


def not_converged(info):
    """Return the error message for an iteration that did not converge."""
    if info < 0:
        return "The iteration did not converge: the matrix has nan or infinite elements."
    return ("The iteration did not converge: the matrix is ill-conditioned, or too many of its singular values or "
            f"eigenvalues are equal (LAPACK returned info {info}).")


def not_definite(info):
    """Return the error message for a matrix that is not positive definite."""
    return (f"The matrix is not positive-definite: the leading minor of order {info} is not positive.")
