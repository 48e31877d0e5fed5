"""`Module`: parameters, buffers, child modules, hooks and forward."""

import importlib
from typing import Any

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

    A subclass calls ``super().__init__()``, assigns parameters and other modules to attributes and defines ``forward``.
    Parameters, buffers and modules are attributes, stored in ``_parameters``, ``_buffers`` and ``_modules``.

    Attributes
    ----------
    training : bool
        Set by `train` and `eval`. Independent of grad mode.

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
    _hooks: Any = None       # ModuleHooks if there are hooks of this module or global ones
    dump_patches = False            # flag of PyTorch's modules, ignored

    def forward(self, *args, **kwargs):
        """Compute the result; defined by every subclass."""
        name = type(self).__name__
        raise NotImplementedError(f"forward: Module [{name}] is missing the required \"forward\" function. " + (
            "Call its modules one by one, or use Sequential." if name in ("ModuleList", "ModuleDict")
            else "Add a method forward(self, ...)."))

    # ---- the tree of modules

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yield pairs (path, module) of this module and all descendants, depth first; skip those in `memo`."""
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
        """Yield this module and all descendants."""
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
        """Yield pairs (path, parameter) of this module and, if `recurse`, all descendants."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yield the parameters of this module and, if `recurse`, all descendants."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield pairs (path, buffer) of this module and, if `recurse`, all descendants."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield the buffers of this module and, if `recurse`, all descendants."""
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
            A path; all but its last part must exist.
        module : Module
        strict : bool, default False
            Whether the path must exist.

        Raises
        ------
        ValueError
            If the path is empty, or `module` is not a Module.
        AttributeError
            If a part of the path is missing or not a Module.
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
        """Call ``fn(module)`` for all descendants, then for this module, and return self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Set ``training`` of this module and all descendants, and return self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: the mode must be a bool (got {mode!r}).")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Switch to evaluation mode, ``train(False)``, and return self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of all parameters and return self."""
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
            A dtype (for floating point and complex tensors), a device, a tensor (for its dtype and device), or
            ``memory_format=`` (for 4D and 5D tensors).

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
        """Convert floating point parameters and buffers to float32 and return self."""
        return self._apply(lambda tensor: tensor.to(cygrad.float32) if tensor.is_floating_point() else tensor)

    def double(self):
        """Convert floating point parameters and buffers to float64 and return self."""
        return self._apply(lambda tensor: tensor.to(cygrad.float64) if tensor.is_floating_point() else tensor)

    def half(self):
        """Convert floating point parameters and buffers to float16 and return self."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self):
        """Convert floating point parameters and buffers to bfloat16 and return self."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def type(self, dst_type):
        """Convert all parameters and buffers to a dtype and return self."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def compile(self, *args, **options):
        """Accept the arguments of PyTorch's compiler without effect. `cygrad.compile` returns a compiled module."""

    def to_empty(self, *, device=None, recurse=True):
        """
        Move all parameters and buffers to uninitialized memory.

        Parameters
        ----------
        device : device or str, optional
            The current device by default.
        recurse : bool, default True
            Whether to include descendants.

        Returns
        -------
        Module
            self
        """
        return self._apply(lambda tensor: cygrad.empty_like(tensor, device=device), recurse)

    def share_memory(self):
        """Move parameters and buffers to shared memory and return self."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
            if tensor.is_leaf and tensor.grad is not None:
                tensor.grad = tensor.grad.share_memory_()
        return self

    def cpu(self):
        """Move parameters and buffers to the CPU and return self."""
        return self.to("cpu")

    def cuda(self, device=None):
        """Raise, because there is no CUDA device."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def _apply(self, fn, recurse=True):
        """Replace parameters, buffers and gradients by ``fn(tensor)``."""
        conversion.apply_to_all(self, fn, recurse)
        return self

    def _replicate_for_data_parallel(self):
        """Return a shallow copy without parameters, for one of several devices."""
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
            May return new arguments: a tuple or a single value. With `with_kwargs`, called as ``hook(module, args,
            kwargs)``; may return ``(args, kwargs)``.
        prepend : bool, default False
            Whether to run before the hooks registered so far.
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
            May return a new result. With `with_kwargs`, called as ``hook(module, args, kwargs, result)``.
        prepend : bool, default False
            Whether to run before the hooks registered so far.
        with_kwargs : bool, default False
        always_call : bool, default False
            Whether to run even if forward or an earlier hook raised.

        Returns
        -------
        RemovableHandle
        """
        return register(self._ensure_hooks().after, (hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """
        Call ``hook(module, grad_output)`` when the gradients of the outputs have been computed.

        Parameters
        ----------
        hook : callable
            `grad_output` is a tuple with the gradient of each output or None. May return a new tuple.
        prepend : bool, default False
            Whether to run before the hooks registered so far.

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
        Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs have been computed.

        Inputs and outputs pass through an autograd function, so they are views: forward must not modify its arguments
        in place, nor the caller the result. The result must be a Tensor or a tuple.

        Parameters
        ----------
        hook : callable
            `grad_input` and `grad_output` are tuples with the gradient of each positional argument and each output, or
            None. May return a new `grad_input`. If no argument requires grad, it is called when the gradients of the
            outputs have been computed, and cannot replace gradients.
        prepend : bool, default False
            Whether to run before the hooks registered so far.

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
        Call ``hook(module, grad_input, grad_output)`` after the node of the result has run. Deprecated.

        The gradients are those of the node; `register_full_backward_hook` passes those of the module.

        Parameters
        ----------
        hook : callable
            May return a new `grad_input`.

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
            raise RuntimeError(f"{type(self).__name__}: full and non-full backward hooks cannot be combined (got "
                               "both). Use register_full_backward_hook() only.")
        return register(self._ensure_hooks().backward_after, (hook, full), prepend)

    @property
    def _is_full_backward_hook(self):
        """Return whether the backward hooks are full; None without hooks."""
        hooks = self.__dict__.get("_hooks")
        return next((full for _, full in hooks.backward_after.values()), None) if hooks is not None else None

    def _ensure_hooks(self):
        if "_hooks" not in self.__dict__:
            self.__dict__["_hooks"] = ModuleHooks()
        return self._hooks

    # ---- repr

    def extra_repr(self):
        """Return the text between the parentheses of `repr`; subclasses override it."""
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
