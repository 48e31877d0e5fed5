"""Conversion of parameters to a vector and back."""

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import names_arguments

__all__ = ["parameters_to_vector", "vector_to_parameters"]


@names_arguments
def parameters_to_vector(parameters):
    """
    Concatenate all parameters to one vector; differentiable.

    Parameters
    ----------
    parameters : iterable of Tensor

    Returns
    -------
    Tensor
        1-dimensional.

    Examples
    --------
    >>> cygrad.nn.utils.parameters_to_vector([cygrad.ones(2, 1), cygrad.zeros(3)])
    tensor([1., 1., 0., 0., 0.])
    """
    return cygrad.cat([parameter.reshape(-1) for parameter in parameters])


@names_arguments
def vector_to_parameters(vec, parameters):
    """
    Set the parameters to views of a vector: the inverse of `parameters_to_vector`.

    Parameters
    ----------
    vec : Tensor
        1-dimensional.
    parameters : iterable of Tensor
        Their ``.data`` is replaced.

    Raises
    ------
    TypeError
        If `vec` is not a Tensor.

    Examples
    --------
    >>> layer = nn.Linear(2, 1)
    >>> nn.utils.vector_to_parameters(cygrad.arange(3.0), layer.parameters())
    >>> layer.bias.item()
    2.0
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: expected torch.Tensor, but got: {type(vec).__name__}. "
                        "Convert it with cygrad.tensor first.")
    start = 0
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.data = vec[start:stop].view(parameter.shape).data
        start = stop
