"""Changing the dtype of everything that a module holds."""

import warnings

import cygrad
from cygrad import Tensor

__all__ = ["apply_to_all", "caster", "dtype_of"]


def dtype_of(args, kwargs):
    """The dtype that the arguments of ``Module.to`` ask for, or None."""
    unknown = set(kwargs) - {"device", "dtype", "non_blocking", "tensor"}
    if unknown:
        raise TypeError(f"to: unknown keyword arguments (got {', '.join(sorted(unknown))}).")
    wanted = None
    for value in [*args, *kwargs.values()]:
        if isinstance(value, cygrad.dtype):
            wanted = value
        elif isinstance(value, Tensor):
            wanted = value.dtype
        elif value is not None and not isinstance(value, bool) and str(value) not in ("cpu", "cpu:0"):
            raise RuntimeError(f"to: expected a dtype, a tensor or the device 'cpu' (got {value!r}).")
    if wanted is not None and not (wanted.is_floating_point or wanted.is_complex):
        raise TypeError(f"to: parameters can only become floating point or complex (got {wanted}).")
    if wanted is not None and wanted.is_complex:
        warnings.warn("to: complex parameters are new; not all modules work with them.", stacklevel=3)
    return wanted


def caster(dtype):
    """A function that converts floating point and complex tensors to `dtype` and leaves others alone."""
    def cast(tensor):
        return tensor.to(dtype) if tensor.is_floating_point() or tensor.is_complex() else tensor
    return cast


def apply_to_all(module, fn, recurse=True):
    """Replace values of parameters, their gradients and buffers by ``fn`` of them, each tensor once."""
    done = set()
    with cygrad.no_grad():
        for part in module.modules() if recurse else (module,):
            for parameter in part._parameters.values():
                if parameter is not None and parameter not in done:
                    done.add(parameter)
                    _replace(parameter, fn)
            buffers = part._buffers
            for name, buffer in buffers.items():
                if buffer is not None:
                    buffers[name] = fn(buffer)


def _replace(parameter, fn):
    data, grad = parameter.data, parameter.grad
    value = fn(data)
    if value is data:
        return
    parameter.grad = None              # it has to fit at every moment
    parameter.data = value
    if grad is not None:
        parameter.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
