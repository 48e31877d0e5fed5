"""Lazy modules, whose parameters get their shapes from the first input."""

from typing import TYPE_CHECKING, Any

import cygrad
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.layers import Linear
from cygrad.nn.parameter import UninitializedParameter, is_lazy

__all__ = ["LazyLinear", "LazyModuleMixin"]


class LazyModuleMixin:
    """
    Mixin of lazy modules; inherited before the module.

    The class creates each parameter as `UninitializedParameter` and defines ``initialize_parameters(*args, **kwargs)``,
    which materializes them from the arguments of the first call. Then the module becomes an instance of
    ``cls_to_become``, if set. Loading a state dict materializes parameters too.

    Before, parameters have no shape: call the module once before creating an optimizer.
    """

    cls_to_become: Any = None
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...     # of the module

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__["_load_hook"] = self._register_load_state_dict_pre_hook(_take_sizes, with_module=True)
        self.__dict__["_initialize_hook"] = self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs):
        """Materialize the parameters."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """
        Return whether any parameter or buffer of the module itself is uninitialized.

        Returns
        -------
        bool
        """
        return any(is_lazy(value) for value in [*self._parameters.values(), *self._buffers.values()])

    def _become(self):
        """Become an instance of ``cls_to_become``."""
        for name in "_load_hook", "_initialize_hook":
            self.__dict__.pop(name).remove()
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become


def _initialize(module, args, kwargs):
    """Materialize parameters before the first forward."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"{type(module).__name__}: module has not been fully initialized (initialize_parameters "
                           "left parameters without a shape).")
    module._become()


def _take_sizes(module, state_dict, prefix, *_):
    """Materialize parameters with the shapes of a state dict before loading it."""
    for name, value in [*module._parameters.items(), *module._buffers.items()]:
        given = state_dict.get(prefix + name)
        if is_lazy(value) and isinstance(given, cygrad.Tensor) and not is_lazy(given):
            with cygrad.no_grad():
                value.materialize(given.shape)


class LazyLinear(LazyModuleMixin, Linear):
    """
    A `Linear` layer whose ``in_features`` is inferred from its first input.

    Parameters
    ----------
    out_features : int
    bias : bool, default True
    device : optional
        The CPU.
    dtype : dtype, optional

    Examples
    --------
    >>> layer = cygrad.nn.LazyLinear(2)
    >>> layer(cygrad.ones(5, 3)).shape
    (5, 2)
    >>> layer
    Linear(in_features=3, out_features=2, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(dtype=dtype)

    def initialize_parameters(self, input):
        """Infer ``in_features`` from the last dimension of the input."""
        if self.has_uninitialized_params():
            with cygrad.no_grad():
                self.in_features = as_tensor_argument(type(self).__name__, "input", input).shape[-1]
                self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
                self.reset_parameters()
        elif self.in_features == 0:                        # a state dict was loaded
            self.in_features = self.weight.shape[-1]

    def reset_parameters(self):
        """Initialize, if materialized."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()
