"""Conversion of a module's dtype, device and memory format."""

import cygrad
from cygrad import Tensor
from cygrad._core.graph.user_warnings import warn_user
from cygrad.autograd.graph import increment_version

__all__ = ["apply_to_all", "mover"]


def mover(args, kwargs):
    """Return the conversion of tensors for the arguments of ``Module.to``, or None if they change nothing."""
    if "copy" in kwargs or sum(isinstance(value, bool) for value in args) > 1:
        raise RuntimeError(".to() does not accept copy argument: Module.to converts in place (got copy). Use "
                           "copy.deepcopy(module).to(...) for a copy.")
    unknown = set(kwargs) - {"device", "dtype", "memory_format", "non_blocking", "tensor"}
    if unknown:
        raise TypeError(f"to: unknown keyword arguments (got {', '.join(sorted(unknown))}).")
    memory_format = kwargs.pop("memory_format", None)
    dtype = device = None
    if len(args) > 1 and isinstance(args[0], str | cygrad.device | None) and isinstance(args[1], bool):
        raise TypeError(f"to: expected a dtype after the device (got {args[1]}). Pass non_blocking by its name.")
    if len([value for value in args if isinstance(value, cygrad.dtype)]) > 1:
        raise TypeError(f"to: expected one dtype (got {', '.join(str(value) for value in args)}).")
    if not isinstance(kwargs.get("dtype"), cygrad.dtype | type | None):
        raise TypeError(f"to: dtype must be a dtype (got {type(kwargs['dtype']).__name__}).")
    for value in [*args, *kwargs.values()]:
        if isinstance(value, cygrad.dtype) or value is float or value is complex:
            dtype = cygrad.promote_types(value, value)
        elif isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif value is not None and not isinstance(value, bool):
            device = cygrad.device(value)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"to: parameters can only become floating point or complex (got {dtype}).")
    if dtype is not None and dtype.is_complex:
        warn_user("to: complex modules are a new feature; not all modules support them.")
    if dtype is None and device is None and memory_format is None:
        return None

    def move(tensor):
        wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
        order = memory_format if tensor.ndim in (4, 5) else None
        return tensor.to(device, wanted, memory_format=order)
    return move


def apply_to_all(module, fn, recurse=True):
    """Replace parameters, their gradients and buffers by ``fn(tensor)``, each tensor once."""
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
    version, value = data._version, fn(data)
    if value is not data:
        parameter.grad = None              # .grad must match the data
        parameter.data = value
    elif data._version != version:         # modified in place: `data` has a version of its own
        increment_version(parameter)
    if grad is not None:
        former = grad.detach()
        found = fn(former)
        if found is not former and found.is_sparse:
            grad = found
        elif found is not former:
            grad.data = found                  # other references to the gradient see the new data
        if parameter.grad is not grad:
            parameter.grad = grad
