"""Module attributes: assignment registers parameters, buffers and child modules."""

import inspect

from cygrad import Tensor
from cygrad._core.graph.type_slots import call_module, fill_slots
from cygrad.nn.parameter import Buffer, Parameter, UninitializedBuffer
from cygrad.nn.registry import BUFFER, MODULE, PARAMETER, REGISTERING

__all__ = ["Attributes"]

_EXPECTED = {PARAMETER: "a Parameter or None", BUFFER: "a Tensor or None", MODULE: "a Module or None"}
_PARTS = {"_parameters": PARAMETER, "_buffers": BUFFER, "_modules": MODULE}


class Attributes:
    """Attribute handling of `Module`."""

    call_super_init = False         # whether `__init__` calls that of the next class of the MRO

    def __new__(cls, *args, **kwargs):
        """Reject data passed as options: ``MSELoss(input, target)``."""
        if any(isinstance(value, Tensor) and value.ndim for value in args) and cls.__module__.count(".") == 2 and (
                cls.__module__.startswith("cygrad.nn.")):
            names = [*inspect.signature(cls).parameters]
            for name, value in zip(names, args, strict=False):
                if isinstance(value, Tensor) and name not in ("weight", "pos_weight", "_weight"):
                    raise TypeError(f"{cls.__name__}: the constructor takes options, not data (got a Tensor for "
                                    f"{name!r}). Create the module, then call it: {cls.__name__}()(input, ...).")
        return super().__new__(cls)

    # Classes without `__init__` take no arguments.
    __new__.__signature__ = inspect.Signature([inspect.Parameter("cls", inspect.Parameter.POSITIONAL_ONLY)])  # type: ignore[attr-defined]

    def __init__(self):
        self.__dict__.update(training=True, _parameters={}, _buffers={}, _non_persistent_buffers_set=set(), _modules={})
        if type(self).call_super_init:
            super().__init__()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        for name in ("_wrapped_call_impl", "_call_impl"):          # PyTorch's names of ``__call__``
            if name in own and "__call__" not in own:
                cls.__call__ = own[name]  # type: ignore[method-assign]
        fill_slots(cls, Attributes.__getattr__, Attributes.__call__)

    def __call__(self, *args, **kwargs):
        """Run forward, and the hooks around it."""
        return call_module(self, args, kwargs)

    _call_impl = _wrapped_call_impl = __call__       # names that overrides of `__call__` use

    def __getattr__(self, name):
        """Look up a parameter, buffer or module; called only if a subclass overrides this method."""
        values = self.__dict__
        for part in _PARTS:
            if name in values.get(part, ()):
                return values[part][name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name, value):
        values = self.__dict__
        parameters = values.get("_parameters")
        if parameters is None:
            if isinstance(value, (Parameter, Buffer, Attributes)):
                raise AttributeError(f"cannot assign {type(value).__name__} {name!r} before Module.__init__() call. "
                                     "Call super().__init__() first.")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            if name not in parameters:
                self._forget(name)
            self.register_parameter(name, value)
        elif name in parameters:
            self._replace(PARAMETER, parameters, name, value, value is None)
        elif isinstance(value, Attributes):
            if name not in values["_modules"]:
                self._forget(name)
            values["_modules"][name] = self._watched(MODULE, name, value)
        elif name in values["_modules"]:
            self._replace(MODULE, values["_modules"], name, value, value is None)
        elif isinstance(value, Buffer | UninitializedBuffer):
            self.register_buffer(name, value, value.persistent)
        elif name in values["_buffers"]:
            self._replace(BUFFER, values["_buffers"], name, value, value is None or isinstance(value, Tensor))
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        values = self.__dict__
        for part in _PARTS:
            if name in values.get(part, ()):
                del values[part][name]
                values["_non_persistent_buffers_set"].discard(name)
                return
        object.__delattr__(self, name)

    def __setstate__(self, state):
        """
        Restore a pickled or copied state; old pickles store all attributes in one dict, with their kinds.
        """
        Attributes.__init__(self)
        state = dict(state)
        for name, kind in state.pop("_kinds", {}).items():
            part = next((part for part, known in _PARTS.items() if known == kind), "_buffers")
            self.__dict__[part][name] = state.pop(name)
            if kind not in _EXPECTED:
                self._non_persistent_buffers_set.add(name)
        self.__dict__.update(state)

    def __dir__(self):
        registered = [name for part in _PARTS for name in self.__dict__.get(part, ())]
        return sorted(name for name in {*super().__dir__(), *registered} if not name[:1].isdigit())

    def _forget(self, name):
        """Remove the attribute from all dicts."""
        values = self.__dict__
        for place in (values, values["_parameters"], values["_buffers"], values["_modules"]):
            place.pop(name, None)
        values["_non_persistent_buffers_set"].discard(name)

    def _replace(self, kind, part, name, value, fits):
        """Set the value of a registered attribute; its kind stays."""
        if not fits:
            raise TypeError(f"cannot assign {type(value).__name__!r} object as {kind} {name!r} ({_EXPECTED[kind]} "
                            "expected). Delete the attribute first.")
        part[name] = value

    def _watched(self, kind, name, value):
        """Return the value, or the result of a registration hook."""
        for hook in list(REGISTERING[kind].values()):
            changed = hook(self, name, value)
            value = value if changed is None else changed
        return value

    def _check_name(self, name, part, operation):
        if part not in self.__dict__:
            raise AttributeError(f"{operation}: cannot be called before Module.__init__() call. Call "
                                 "super().__init__() first.")
        if not isinstance(name, str):
            raise TypeError(f"{operation}: the name must be a string (got {type(name).__name__}).")
        if name == "" or "." in name:
            raise KeyError(f"{operation}: the name cannot be empty or contain a dot (got {name!r}).")
        if hasattr(self, name) and name not in self.__dict__[part]:
            raise KeyError(f"{operation}: attribute {name!r} already exists.")

    def register_parameter(self, name, param):
        """
        Add a parameter under `name`.

        Parameters
        ----------
        name : str
        param : Parameter or None
            None reserves the name.

        Raises
        ------
        KeyError
            If the name exists, is empty or contains a dot.
        TypeError
            If `param` is not a Parameter.
        ValueError
            If it is not a leaf.
        """
        self._check_name(name, "_parameters", "register_parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter: expected a Parameter or None for {name!r} (got "
                            f"{type(param).__name__}). Wrap it in nn.Parameter.")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"register_parameter: a parameter must be a leaf (got {name!r} created by "
                             f"{param.grad_fn.name()}). Compute it in forward() instead.")
        self.__dict__["_parameters"][name] = self._watched(PARAMETER, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """
        Add a buffer: a tensor of the module's state that is not a parameter.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool, default True
            Whether `state_dict` includes it.

        Raises
        ------
        KeyError
            If the name exists, is empty or contains a dot.
        TypeError
            If `tensor` is not a Tensor.
        """
        self._check_name(name, "_buffers", "register_buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: expected a Tensor or None for {name!r} (got {type(tensor).__name__}).")
        self.__dict__["_buffers"][name] = self._watched(BUFFER, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """
        Add a child module under `name`.

        Parameters
        ----------
        name : str
        module : Module or None

        Raises
        ------
        KeyError
            If the name exists, is empty or contains a dot.
        TypeError
            If `module` is not a Module.
        """
        self._check_name(name, "_modules", "add_module")
        if module is not None and not isinstance(module, Attributes):
            given = type(module).__name__ if not isinstance(module, type) else (
                f"the class {module.__name__}; write {module.__name__}()")
            raise TypeError(f"add_module: expected a Module or None for {name!r} (got {given}).")
        self.__dict__["_modules"][name] = self._watched(MODULE, name, module)

    def register_module(self, name, module):
        """Add a child module under `name`; calls `add_module`."""
        self.add_module(name, module)
