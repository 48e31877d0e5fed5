"""Deprecated call forms that PyTorch still accepts."""

from cygrad._core.graph.tensor import Tensor

__all__ = ["factors_first"]


def factors_first(function, arguments, names, **options):
    """
    ``addmm(beta, input, alpha, mat1, mat2)`` and similar: each factor precedes its operand.

    Parameters
    ----------
    function : callable
        Takes the tensors, and the factors as keywords.
    arguments : tuple
        Tensors and numbers; one number too few means that the last factor is left out.
    names : tuple of str
        Those of the factors, in the order in which they stand.
    **options
        Passed on; None is left out.
    """
    tensors = [value for value in arguments if isinstance(value, Tensor)]
    factors = [value for value in arguments if not isinstance(value, Tensor)]
    if not factors and len(names) == 1 and arguments[1].ndim == 0:             # add_(step, x) of a step in a tensor
        factors.append(tensors.pop(1).item())
    if not factors or len(factors) > len(names):
        raise TypeError(f"{function.__name__}: too many positional arguments (got {len(arguments)}). "
                        f"Pass {' and '.join(names)} by name.")
    options = {name: value for name, value in options.items() if value is not None}
    return function(*tensors, **dict(zip(names, factors, strict=False)), **options)
