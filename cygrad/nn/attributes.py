"""Attributes of a module: assignment decides what is a parameter, a buffer or a child module."""

from cygrad import Tensor
from cygrad._core.graph.plain_lookup import look_up_plainly
from cygrad.nn.parameter import Buffer, Parameter
from cygrad.nn.registry import BUFFER, MODULE, PARAMETER, REGISTERING, TRANSIENT, Part, Transient

__all__ = ["Attributes"]

_EXPECTED = {PARAMETER: "a Parameter or None", BUFFER: "a Tensor or None", TRANSIENT: "a Tensor or None",
             MODULE: "a Module or None"}


class Attributes:
    """
    What `Module` knows of its attributes.

    Their values are in ``__dict__`` as those of any object, so reading them costs nothing more; ``_kinds`` remembers
    which of them are parameters, buffers and modules, in the order of their registration.
    """

    def __init__(self):
        self.__dict__["_kinds"] = {}

    _parameters = Part("The module's own parameters by name; None where one is left out.", PARAMETER)
    _buffers = Part("The module's own buffers by name.", BUFFER, TRANSIENT)
    _modules = Part("The module's children by name.", MODULE)

    @property
    def _non_persistent_buffers_set(self):
        """The names of the buffers that state_dict leaves out."""
        return Transient(self)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        look_up_plainly(cls, Attributes.__getattr__)

    def __getattr__(self, name):
        """
        A parameter, buffer or module, for subclasses that define this method and call it of their base.

        Where they do not, Python never calls it: attributes that are there need no help.
        """
        values = self.__dict__
        if name in values.get("_kinds", ()):
            return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _registered(self, *kinds):
        """Pairs (name, value) of the attributes of these kinds: quicker than by way of the mappings above."""
        values = self.__dict__
        return [(name, values[name]) for name, kind in values["_kinds"].items() if kind in kinds]

    def __setattr__(self, name, value):
        kinds = self.__dict__.get("_kinds")
        if kinds is None:
            if isinstance(value, (Parameter, Buffer, Attributes)):
                raise AttributeError(f"cannot assign {type(value).__name__} {name!r} before Module.__init__() call. "
                                     "Call super().__init__() first.")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            if kinds.get(name) != PARAMETER:
                self._forget(name)
            self.register_parameter(name, value)
        elif kinds.get(name) == PARAMETER:
            self._replace(name, value, value is None)
        elif isinstance(value, Attributes):
            if kinds.get(name) != MODULE:
                self._forget(name)
                kinds[name] = MODULE
            self.__dict__[name] = self._watched(MODULE, name, value)
        elif kinds.get(name) == MODULE:
            self._replace(name, value, value is None)
        elif isinstance(value, Buffer):
            if kinds.get(name) not in (BUFFER, TRANSIENT):
                self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif name in kinds:
            self._replace(name, value, value is None or isinstance(value, Tensor))
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if name in self.__dict__.get("_kinds", ()):
            del self.__dict__["_kinds"][name]
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted(name for name in super().__dir__() if not name[:1].isdigit())

    def _forget(self, name):
        """Make room for an attribute of another kind."""
        self.__dict__["_kinds"].pop(name, None)
        self.__dict__.pop(name, None)

    def _replace(self, name, value, fits):
        """Another value for a registered attribute, which keeps its kind."""
        kind = self.__dict__["_kinds"][name]
        if not fits:
            raise TypeError(f"cannot assign {type(value).__name__!r} object as {kind} {name!r} "
                            f"({_EXPECTED[kind]} expected). Delete the attribute first.")
        self.__dict__[name] = value

    def _watched(self, kind, name, value):
        """The value, or what a hook for what is registered makes of it."""
        for hook in list(REGISTERING[kind].values()):
            changed = hook(self, name, value)
            value = value if changed is None else changed
        return value

    def _check_name(self, name, kinds, operation):
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"{operation}: cannot be called before Module.__init__() call. "
                                 "Call super().__init__() first.")
        if not isinstance(name, str):
            raise TypeError(f"{operation}: the name must be a string (got {type(name).__name__}).")
        if name == "" or "." in name:
            raise KeyError(f"{operation}: the name cannot be empty or contain a dot (got {name!r}).")
        if hasattr(self, name) and self.__dict__["_kinds"].get(name) not in kinds:
            raise KeyError(f"{operation}: attribute {name!r} already exists.")

    def register_parameter(self, name, param):
        """
        Add a parameter under `name`.

        Parameters
        ----------
        name : str
        param : Parameter or None
            None keeps the name for a parameter that is left out.

        Raises
        ------
        KeyError
            If the name is taken, empty or has a dot.
        TypeError
            If `param` is not a Parameter.
        ValueError
            If it is not a leaf.
        """
        self._check_name(name, (PARAMETER,), "register_parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter: expected a Parameter or None for {name!r} "
                            f"(got {type(param).__name__}). Wrap it in nn.Parameter.")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"register_parameter: a parameter must be a leaf (got {name!r} made by "
                             f"{param.grad_fn.name()}). Compute it in forward() instead.")
        param = self._watched(PARAMETER, name, param)
        self.__dict__["_kinds"][name] = PARAMETER
        self.__dict__[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """
        Add a buffer: a tensor that belongs to the module's state but is not learned.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool, default True
            Whether `state_dict` includes it.

        Raises
        ------
        KeyError
            If the name is taken, empty or has a dot.
        TypeError
            If `tensor` is not a Tensor.
        """
        self._check_name(name, (BUFFER, TRANSIENT), "register_buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: expected a Tensor or None for {name!r} (got {type(tensor).__name__}).")
        tensor = self._watched(BUFFER, name, tensor)
        self.__dict__["_kinds"][name] = BUFFER if persistent else TRANSIENT
        self.__dict__[name] = tensor

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
            If the name is taken, empty or has a dot.
        TypeError
            If `module` is not a Module.
        """
        self._check_name(name, (MODULE,), "add_module")
        if module is not None and not isinstance(module, Attributes):
            raise TypeError(f"add_module: expected a Module or None for {name!r} (got {type(module).__name__}).")
        module = self._watched(MODULE, name, module)
        self.__dict__["_kinds"][name] = MODULE
        self.__dict__[name] = module

    register_module = add_module
