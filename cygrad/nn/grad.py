"""Gradients of convolutions with respect to input and weight, given the gradient of the output."""

from cygrad._core.table.operator import operators
from cygrad.nn.functional.convolution import spread

__all__ = [f"conv{n}d_{part}" for n in (1, 2, 3) for part in ("input", "weight")]

_DOC = """
    Compute the gradient of ``conv{n}d`` with respect to its {part}.

    Parameters
    ----------
    {parameters}
    grad_output : Tensor
        Gradient of the output.
    stride, padding, dilation : int or tuple of int
    groups : int

    Returns
    -------
    Tensor
"""


def _options(n, operation, *values):
    return [spread(value, n, operation, name)
            for value, name in zip(values, ("stride", "padding", "dilation"), strict=True)]


def _of_input(n):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        options = _options(n, f"conv{n}d_input", stride, padding, dilation)
        return operators.convolution_input_backward(grad_output, weight.conj(), None, tuple(input_size), *options,
                                                       groups)
    return gradient, "input", "input_size : tuple of int\n    weight : Tensor"


def _of_weight(n):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        options = _options(n, f"conv{n}d_weight", stride, padding, dilation)
        return operators.convolution_weight_backward(grad_output, input.conj(), tuple(weight_size), *options, groups)
    return gradient, "weight", "input : Tensor\n    weight_size : tuple of int"


for _n in (1, 2, 3):
    for _function, _part, _parameters in (_of_input(_n), _of_weight(_n)):
        _function.__name__ = _function.__qualname__ = f"conv{_n}d_{_part}"
        _function.__doc__ = _DOC.format(n=_n, part=_part, parameters=_parameters)
        globals()[_function.__name__] = _function
