"""Parametrizations: tensors of a module that are computed from learned tensors."""

import copy
import threading
from collections.abc import Sequence
from contextlib import contextmanager, suppress

import cygrad
from cygrad import Tensor
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import as_items, names_arguments
from cygrad.nn.container import ModuleDict, ModuleList
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]
__dir__ = _public_dir(__name__)

_cache = threading.local()             # .values: (module, name) -> tensor, and .depth of `cached`


@contextmanager
def cached():
    """
    Cache parametrized tensors on this thread within the context.

    Examples
    --------
    >>> from cygrad.nn.utils import parametrize
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache.depth = getattr(_cache, "depth", 0) + 1
    if _cache.depth == 1:
        _cache.values = {}
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values = {}


def _keep(module, name, tensor):
    """Register a tensor as a parameter or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """
    Parametrizations of one tensor and its original tensors.

    Parameters
    ----------
    modules : sequence of Module
        Parametrizations, applied in order.
    original : Tensor
        Initial value. If modules have ``right_inverse``, its result is stored as ``original``, or ``original0``,
        ``original1``, ... if it returns several tensors.
    unsafe : bool, default False
        Whether shape and dtype may change.

    Examples
    --------
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> type(layer.parametrizations.weight).__name__
    'ParametrizationList'
    """

    def __init__(self, modules, original, unsafe=False):
        modules = as_items("ParametrizationList", "modules", modules, Module)
        if not modules:
            raise ValueError("ParametrizationList: requires one or more modules (got none).")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = original
        with cygrad.no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):      # as if right_inverse did not exist
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError("register_parametrization: right_inverse must return a Tensor or a sequence of Tensors "
                             f"(got {type(new).__name__}).")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if new.dtype != dtype:
                raise ValueError("register_parametrization: right_inverse must keep the dtype of the tensor "
                                 f"(got {new.dtype}, expected {dtype}).")
            if new is not original:                  # keep the parameter object, which an optimizer may hold
                original.data = new.detach()
            _keep(self, "original", original)
        else:
            for number, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError("register_parametrization: right_inverse must return a Tensor or a sequence of "
                                     f"Tensors (got element {number} of type {type(part).__name__}).")
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _keep(self, f"original{number}", part)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(f"register_parametrization: A parametrization must return a tensor (got "
                                 f"{type(result).__name__}).")
            if result.dtype != dtype or result.shape != shape:
                raise ValueError("register_parametrization: Registering a parametrization may not change dtype or "
                                 f"shape of the tensor (got {result.dtype} of shape {tuple(result.shape)}, expected "
                                 f"{dtype} of shape {tuple(shape)}). Pass `unsafe=True` if it should.")

    def originals(self):
        """Return the original tensors as a list."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{n}") for n in range(self.ntensors)]

    def right_inverse(self, value):
        """Set the original tensors to the ``right_inverse`` of `value`."""
        with cygrad.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrized tensor: {type(module).__name__} does not implement "
                                       "right_inverse, so the tensor cannot be set. Set its originals instead.")
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if not isinstance(values, Sequence) or len(values) != self.ntensors:
                raise ValueError(f"parametrized tensor: 'right_inverse' must return a sequence of tensors of length "
                                 f"{self.ntensors} (got {type(value).__name__}).")
            for number, (original, new) in enumerate(zip(self.originals(), values, strict=True)):
                if not isinstance(new, Tensor):
                    raise ValueError("parametrized tensor: 'right_inverse' should return a sequence of tensors (got "
                                     f"element {number} of type {type(new).__name__}).")
                if original.dtype != new.dtype:
                    raise ValueError(f"parametrized tensor: Tensor {number} returned by `right_inverse` has another "
                                     f"dtype than `original{number}` (got {new.dtype}, expected {original.dtype}).")
                if original.shape == new.shape:
                    original.copy_(new)
                else:
                    original.data = new.detach()

    def forward(self):
        """Return the tensor."""
        modules = list(self)
        result = modules[0](*self.originals())
        for module in modules[1:]:
            result = module(result)
        return result


def _parametrized_class(module):
    """Create a subclass for one module; its properties compute the tensors."""
    base = type(module)

    def refuse(self):
        raise RuntimeError("pickle: a module with parametrizations cannot be pickled. Save its state_dict().")

    def deepcopy(self, memo):
        twin = memo.get(id(self))
        if twin is None:
            twin = memo[id(self)] = object.__new__(type(self))
            twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    return type(f"Parametrized{base.__name__}", (base,), {
        "__doc__": base.__doc__, "__module__": base.__module__, "__getstate__": refuse, "__deepcopy__": deepcopy,
        "_parametrized": base})


def _property(name):
    """Return a property that computes the tensor on access and calls ``right_inverse`` on assignment."""
    def get(self):
        parametrization = self.parametrizations[name]
        if not getattr(_cache, "depth", 0):
            return parametrization()
        key = id(self), name
        found = _cache.values.get(key)
        if found is None:
            found = _cache.values[key] = parametrization()
        return found

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


@names_arguments
def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """
    Register a parametrization of a parameter or buffer.

    ``module.<tensor_name>`` then calls `parametrization` with the original tensor,
    ``module.parametrizations.<tensor_name>.original``, on each access (see `cached`). If `parametrization` has a method
    ``right_inverse``, the current value is preserved, and the tensor can be assigned.

    Parameters
    ----------
    module : Module
    tensor_name : str
        Name of a parameter or buffer. If it is parametrized already, parametrizations are chained.
    parametrization : Module
        Called with the original tensors.
    unsafe : bool, default False
        Whether dtype and shape may change.

    Returns
    -------
    Module
        `module`; its class becomes a subclass.

    Raises
    ------
    ValueError
        If the tensor does not exist, or the parametrization changes its dtype or shape.

    Examples
    --------
    >>> from cygrad.nn.utils import parametrize
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).t()
    >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> cygrad.equal(layer.weight, layer.weight.t())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            result = parametrization(value)
            if not isinstance(result, Tensor) or result.dtype != value.dtype or result.shape != value.shape:
                raise ValueError("register_parametrization: Registering a parametrization may not change dtype or "
                                 "shape of the tensor. Pass `unsafe=True` if it should.")
            with suppress(NotImplementedError):              # as if right_inverse did not exist
                before = parametrization.right_inverse(result) if hasattr(parametrization, "right_inverse") else value
                if not isinstance(before, Tensor) or before.dtype != value.dtype or before.shape != value.shape:
                    raise ValueError("register_parametrization: parametrization.right_inverse may not change dtype or "
                                     "shape of the tensor. Pass `unsafe=True` if it should.")
        chain.append(parametrization)
        chain.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"register_parametrization: Module '{type(module).__name__}' does not have a parameter, a "
                         f"buffer, or a parametrized element with name '{tensor_name}'.")
    chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _parametrized_class(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = chain
    return module


def is_parametrized(module, tensor_name=None):
    """
    Return whether a module has parametrized tensors.

    Parameters
    ----------
    module : Module
    tensor_name : str, optional
        Check this tensor only.

    Returns
    -------
    bool

    Examples
    --------
    >>> nn.utils.parametrize.is_parametrized(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), "weight")
    True
    """
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def type_before_parametrizations(module):
    """
    Return the class of a module before it was parametrized.

    Parameters
    ----------
    module : Module

    Returns
    -------
    type

    Examples
    --------
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module)._parametrized if is_parametrized(module) else type(module)


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """
    Remove the parametrizations of a tensor.

    Parameters
    ----------
    module : Module
    tensor_name : str
    leave_parametrized : bool, default True
        Whether to keep the current value instead of the original tensor.

    Returns
    -------
    Module
        `module`

    Raises
    ------
    ValueError
        If the tensor is not parametrized, or there are several original tensors and not `leave_parametrized`.

    Examples
    --------
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> layer = nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: Module {type(module).__name__} does not have a "
                         f"parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    original = chain.originals()[0]
    if leave_parametrized:
        with cygrad.no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if chain.is_tensor and original.dtype == value.dtype:
            original.data = value          # keep the parameter object, which an optimizer may hold
        else:
            original = Parameter(value, original.requires_grad) if isinstance(original, Parameter) else value
    elif not chain.is_tensor:
        raise ValueError("remove_parametrizations: leave_parametrized=False requires a single original tensor (got "
                         "several).")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _keep(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module)._parametrized
    return module


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """
    Copy parametrizations and their parameters to another module.

    Parameters
    ----------
    from_module, to_module : Module
    tensor_name : str, optional
        Copy those of this tensor only.

    Returns
    -------
    Module
        `to_module`

    Examples
    --------
    >>> source, target = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), nn.Linear(3, 2)
    >>> target = nn.utils.parametrize.transfer_parametrizations_and_params(source, target)
    >>> cygrad.equal(source.weight, target.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        raise ValueError(f"transfer_parametrizations_and_params: Module {type(from_module).__name__} does not "
                         f"have a parametrization on {tensor_name}")
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        chain = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(chain.originals()[0].detach().clone()))
        for part in chain:
            register_parametrization(to_module, name, copy.deepcopy(part), unsafe=chain.unsafe)
        for number, value in enumerate(chain.originals()):
            target = to_module.parametrizations[name].originals()[number]
            target.data = value.detach().clone()
    return to_module
