"""The module: a tree of parameters, buffers and child modules, and a forward function."""

import importlib

import cygrad
from cygrad._core.optimizers.optimize import forget_gradients, zero_gradients
from cygrad.nn import conversion
from cygrad.nn.attributes import Attributes
from cygrad.nn.hooks import VIEWS, ModuleHooks, register
from cygrad.nn.state import below_of
from cygrad.nn.stateful import Stateful

__all__ = ["Module"]

class Module(Stateful, Attributes):
    """
    Base class of all networks and layers.

    A subclass calls ``super().__init__()``, assigns parameters and other modules to attributes and defines
    ``forward``. Parameters, buffers and modules are read as attributes, and stand in the dicts ``_parameters``,
    ``_buffers`` and ``_modules``.

    Attributes
    ----------
    training : bool
        Set by `train` and `eval`; for modules that behave differently then. It has nothing to do with grad mode.

    Examples
    --------
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(4, 8)
    ...         self.out = nn.Linear(8, 2)
    ...     def forward(self, input):
    ...         return self.out(self.hidden(input).relu())
    >>> Net()
    Net(
      (hidden): Linear(in_features=4, out_features=8, bias=True)
      (out): Linear(in_features=8, out_features=2, bias=True)
    )
    """

    training: bool
    _hooks = None            # ModuleHooks if there are hooks of this module or global ones
    dump_patches = call_super_init = False         # flags of PyTorch's modules, without effect here

    def forward(self, *args, **kwargs):
        """Compute the result; defined by every subclass."""
        name = type(self).__name__
        raise NotImplementedError(f"forward: Module [{name}] is missing the required \"forward\" function. " + (
            "It only holds modules: call them one by one, or use Sequential." if name in ("ModuleList", "ModuleDict")
            else "Add a method forward(self, ...)."))

    # ---- the tree of modules

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yield pairs (path, module): this one, then all below it, depth first; `memo` holds those to skip."""
        seen = set() if memo is None else memo
        stack = [(prefix, self, ())]
        while stack:
            path, module, above = stack.pop()
            if remove_duplicate:
                if module in seen:
                    continue
                seen.add(module)
            else:
                above = below_of("named_modules", module, path, above)
            yield path, module
            below = [(f"{path}.{name}" if path else name, child, above) for name, child in module._modules.items()
                     if child is not None]
            stack.extend(reversed(below))

    def modules(self):
        """Yield this module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        """Yield pairs (name, module) of the direct children, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """Yield the direct children, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield pairs (path, parameter) of this module and, unless `recurse` is False, of all below it."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yield the parameters of this module and, unless `recurse` is False, of all below it."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield pairs (path, buffer) of this module and, unless `recurse` is False, of all below it."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield the buffers of this module and, unless `recurse` is False, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        """Return the module at the path `target` ("" is this one); AttributeError if there is none."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"get_submodule: {type(module).__name__} has no attribute {name!r} "
                                     f"(got the path {target!r}).")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"get_submodule: {name!r} is not a Module (got the path {target!r}).")
        return module

    def set_submodule(self, target, module, strict=False):
        """
        Set the module at the path `target`.

        Parameters
        ----------
        target : str
            A path; all but its last part must be there.
        module : Module
        strict : bool, default False
            Whether there must be a module already.

        Raises
        ------
        ValueError
            If the path is empty, or `module` is no Module.
        AttributeError
            If the path leads through something that is not there, or is no Module.
        """
        if not target:
            raise ValueError("set_submodule: the target must be a name (got an empty one).")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: expected a Module (got {type(module).__name__}).")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"set_submodule: {type(parent).__name__} has no attribute {name!r}.")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"set_submodule: {name!r} is not a Module (got the path {target!r}).")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """Return the parameter at the path `target`; AttributeError if there is none."""
        return self._get_member(target, lambda module: module._parameters, "get_parameter")

    def get_buffer(self, target):
        """Return the buffer at the path `target`; AttributeError if there is none."""
        return self._get_member(target, lambda module: module._buffers, "get_buffer")

    def _get_member(self, target, part, operation):
        path, _, name = target.rpartition(".")
        members = part(self.get_submodule(path))
        if name not in members:
            raise AttributeError(f"{operation}: not found: {target!r} (got {name!r}, expected one of "
                                 f"{sorted(members)}).")
        return members[name]

    # ---- all submodules

    def apply(self, fn):
        """Call ``fn(module)`` for all modules below this one, then for this one; -> self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Set ``training`` here and in all modules below; -> self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: the mode must be a bool (got {mode!r}).")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Switch to evaluation mode: ``train(False)``; -> self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of all parameters; -> self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Set ``.grad`` of all parameters to None, or fill existing ones with zeros."""
        if set_to_none:
            forget_gradients(self.parameters())
        else:
            zero_gradients(self.parameters())

    def to(self, *args, **kwargs):
        """
        Convert parameters and buffers, in place.

        Parameters
        ----------
        *args, **kwargs
            A dtype for those that are floating point or complex, a device, a tensor whose dtype and device are meant;
            ``memory_format=`` for those of four or five dimensions.

        Returns
        -------
        Module
            self

        Raises
        ------
        TypeError
            If the dtype is neither floating point nor complex.
        """
        move = conversion.mover(args, kwargs)
        return self if move is None else self._apply(move)

    def float(self):
        """Convert floating point parameters and buffers to float32; -> self."""
        return self._apply(lambda tensor: tensor.to(cygrad.float32) if tensor.is_floating_point() else tensor)

    def double(self):
        """Convert floating point parameters and buffers to float64; -> self."""
        return self._apply(lambda tensor: tensor.to(cygrad.float64) if tensor.is_floating_point() else tensor)

    def half(self):
        """Convert floating point parameters and buffers to float16; -> self."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self):
        """Convert floating point parameters and buffers to bfloat16; -> self."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def type(self, dst_type):
        """Convert all parameters and buffers to a dtype; -> self."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def compile(self, *args, **options):
        """Accept the arguments of PyTorch's compiler without effect. `cygrad.compile` returns a compiled module."""

    def to_empty(self, *, device=None, recurse=True):
        """
        Give all parameters and buffers new, uninitialized memory.

        Parameters
        ----------
        device : device or str, optional
            Default: where they are.
        recurse : bool, default True
            Whether to do so in all modules below too.

        Returns
        -------
        Module
            self
        """
        return self._apply(lambda tensor: cygrad.empty_like(tensor, device=device), recurse)

    def share_memory(self):
        """Move parameters and buffers to memory that is shared with other processes; -> self."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
            if tensor.is_leaf and tensor.grad is not None:
                tensor.grad = tensor.grad.share_memory_()
        return self

    def cpu(self):
        """Move parameters and buffers to the CPU; -> self."""
        return self.to("cpu")

    def cuda(self, device=None):
        """Raise: there is no such device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def _apply(self, fn, recurse=True):
        """Replace the values of all parameters and buffers, and the gradients, by those that `fn` returns."""
        conversion.apply_to_all(self, fn, recurse)
        return self

    def _replicate_for_data_parallel(self):
        """Return a module of the same attributes, without parameters of its own, for one of several devices."""
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__, _parameters={}, _buffers=self._buffers.copy(),
                                _modules=self._modules.copy(), _is_replica=True)
        return replica

    # ---- hooks

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """
        Call ``hook(module, args)`` before each forward.

        Parameters
        ----------
        hook : callable
            May return new arguments: a tuple, or a single value. With `with_kwargs` it is called as
            ``hook(module, args, kwargs)`` and may return ``(args, kwargs)``.
        prepend : bool, default False
            Run it before those registered already.
        with_kwargs : bool, default False

        Returns
        -------
        RemovableHandle
        """
        return register(self._ensure_hooks().before, (hook, with_kwargs), prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """
        Call ``hook(module, args, result)`` after each forward.

        Parameters
        ----------
        hook : callable
            May return a result that replaces it. With `with_kwargs` it is called as
            ``hook(module, args, kwargs, result)``.
        prepend : bool, default False
            Run it before those registered already.
        with_kwargs : bool, default False
        always_call : bool, default False
            Call it even if forward, or a hook before it, has raised.

        Returns
        -------
        RemovableHandle
        """
        return register(self._ensure_hooks().after, (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """
        Call ``hook(module, grad_output)`` when the gradients of this module's outputs have been computed.

        Parameters
        ----------
        hook : callable
            `grad_output` is a tuple with the gradient of each output, None for those without one. It may return a
            tuple that replaces it.
        prepend : bool, default False
            Run it before those registered already.

        Returns
        -------
        RemovableHandle

        See Also
        --------
        register_full_backward_hook
        """
        return register(self._ensure_hooks().backward_before, (hook,), prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """
        Call ``hook(module, grad_input, grad_output)`` when the gradients of this module's inputs have been computed.

        Inputs and outputs pass through a function that watches them, so forward gets views of its arguments and
        must not modify them in place; nor may its result be modified in place. The result must be a Tensor or a tuple.

        Parameters
        ----------
        hook : callable
            `grad_input` and `grad_output` are tuples with the gradient of each positional argument and of each
            output, None for those that are no Tensors or need no gradient. It may return a tuple that replaces
            `grad_input`. If no argument requires grad, it is called when the gradients of the outputs are there, and
            may replace nothing.
        prepend : bool, default False
            Run it before those registered already.

        Returns
        -------
        RemovableHandle

        Examples
        --------
        >>> layer = nn.Tanh()
        >>> handle = layer.register_full_backward_hook(
        ...     lambda module, grad_input, grad_output: print(grad_output, "->", grad_input))
        >>> x = cygrad.zeros(1, requires_grad=True)
        >>> layer(x).backward()
        (tensor([1.]),) -> (tensor([1.]),)
        """
        return self._register_backward(hook, True, prepend)

    def register_backward_hook(self, hook):
        """
        Call ``hook(module, grad_input, grad_output)`` when the node that made the result has run: the deprecated
        form.

        The gradients are those of that node, whatever it is; `register_full_backward_hook` gives those of the module.

        Parameters
        ----------
        hook : callable
            May return a tuple that replaces `grad_input`.

        Returns
        -------
        RemovableHandle

        Raises
        ------
        RuntimeError
            If the module has full backward hooks.
        """
        return self._register_backward(hook, False, False)

    def _register_backward(self, hook, full, prepend):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(f"{type(self).__name__}: a module has full backward hooks or legacy ones (got both). "
                               "Use register_full_backward_hook() for all.")
        return register(self._ensure_hooks().backward_after, (hook, full), prepend)

    @property
    def _is_full_backward_hook(self):
        """Return the kind of the backward hooks; None if there are none."""
        hooks = self.__dict__.get("_hooks")
        return next((full for _, full in hooks.backward_after.values()), None) if hooks is not None else None

    def _ensure_hooks(self):
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = ModuleHooks()
        return self._hooks

    # ---- repr

    def extra_repr(self):
        """Return the text between the parentheses of `repr`; for subclasses."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if not children and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *(extra.split("\n") if extra else []), *children]) + "\n)"

    def _repr_html_(self):
        return importlib.import_module("cygrad.notebook").module_html(self)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return importlib.import_module("cygrad.notebook").mimebundle(self, include, exclude)


for _name, _view in VIEWS.items():
    setattr(Module, _name, _view)
