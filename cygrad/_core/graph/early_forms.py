"""Deprecated call forms that PyTorch still accepts."""

from cygrad._core.graph.tensor import Tensor

__all__ = ["factors_first"]


def factors_first(function, arguments, names, **options):
    """
    Call forms such as ``addmm(beta, input, alpha, mat1, mat2)``, where each factor precedes its operand.

    Parameters
    ----------
    function : callable
        Function of the tensors, with the factors as keywords.
    arguments : tuple
        Tensors and numbers; the last factor can be omitted.
    names : tuple of str
        Names of the factors, in the order of the arguments.
    **options
        Passed to the function, except for None.
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
