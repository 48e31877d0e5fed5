"""Base class of optimizers: parameter groups, state, saving and loading."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy

import cygrad
from cygrad import Tensor
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import as_instance
from cygrad._core.optimizers.optimize import forget_gradients, zero_gradients
from cygrad.optim.hooks import (
    OptimizerHooks,
    hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from cygrad.optim.parameter_checks import check_execution, names_and_parameters, refuse_capture, sparse_tensors

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]
__dir__ = _public_dir(__name__)


class Optimizer:
    """
    Base class of optimizers.

    A subclass defines ``step`` and passes its default options to ``__init__``.

    Steps are always fused: one pass over all parameters of a group without the GIL. So ``foreach`` and ``fused`` are
    accepted and ignored; ``capturable`` raises, as in PyTorch on a CPU. ``differentiable`` records the step in the
    graph; parameters may then be non-leaf tensors with a ``.grad``.

    Several threads may step the same parameters at the same time, with separate or shared optimizers (Hogwild
    training). Updates may then overwrite each other, so results depend on timing, but memory stays valid.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Parameters, or a dict for each group with the key "params" and options that override defaults. Names from
        ``named_parameters()`` are stored as "param_names".
    defaults : dict
        Default options of groups.

    Attributes
    ----------
    param_groups : list of dict
        Parameters and options of each group; options may be modified at any time.
    state : dict
        Parameter -> dict of its state.

    Examples
    --------
    >>> class SignDescent(cygrad.optim.Optimizer):
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 with cygrad.no_grad():
    ...                     p -= group["lr"] * p.grad.sign()
    >>> w = cygrad.tensor([1.0, -1.0], requires_grad=True)
    >>> optimizer = SignDescent([w], {"lr": 0.5})
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, -0.5]
    """

    _hooks = None                # OptimizerHooks, created with the first hook

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = cls.profile_hook_step(cls.step)  # type: ignore[method-assign]

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._patch_step_function()
        self._check_defaults()
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: params argument given to the optimizer should be an iterable of "
                            "Tensors or dicts (got a Tensor). Pass a list.")
        if not isinstance(params, Iterable):
            hint = "Call it." if callable(params) and not hasattr(params, "parameters") else "Pass its parameters()."
            raise TypeError(f"{type(self).__name__}: params argument given to the optimizer should be an iterable of "
                            f"Tensors or dicts (got a {type(params).__name__}). {hint}")
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: optimizer got an empty parameter list." + isinstance(
                params, Iterator) * " An iterator such as parameters() is empty after one iteration.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """
        Add a parameter group.

        Parameters
        ----------
        param_group : dict
            Parameters "params" and options.

        Raises
        ------
        TypeError
            If it is not a dict, or a parameter is not a Tensor.
        ValueError
            If a parameter is not a leaf or is in another group, or a required option is missing.
        """
        operation = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(f"{operation}: expected a dict (got {type(param_group).__name__}).")
        if "params" not in param_group:
            raise ValueError(f"{operation}: a parameter group must have the key 'params' (got "
                             f"{sorted(map(str, param_group))}).")
        group = dict(param_group)
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is REQUIRED:
                raise ValueError(f"{operation}: a parameter group must specify the required option {name!r}.")
        names, group["params"] = names_and_parameters(group["params"], operation, group.get("differentiable"))
        if names:
            group["param_names"] = names
        check_execution(self, group)
        self.check_options(group)
        if group.get("capturable"):
            self.register_step_pre_hook(refuse_capture)
        for other in self.param_groups:
            if ("param_names" in other) != ("param_names" in group):
                raise ValueError(f"{operation}: all optimizer param groups should be with/without names. cannot "
                                 "add param group with names to the optimizer.")
        taken = {param for other in self.param_groups for param in other["params"]}
        if not taken.isdisjoint(group["params"]):
            raise ValueError(f"{operation}: some parameters appear in more than one parameter group.")
        self.param_groups.append(group)

    def _check_defaults(self):
        """Check the default options before the parameters."""
        as_instance(type(self).__name__, "defaults", self.defaults, dict)
        if REQUIRED not in self.defaults.values():
            check_execution(self, self.defaults)
            self.check_options(self.defaults)

    def check_options(self, group):
        """Check the options of a group."""

    profile_hook_step = staticmethod(hooked)     # PyTorch's name

    @hooked
    def step(self, closure=None):
        """
        Update all parameters with a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients; called before the update with grad mode enabled.

        Returns
        -------
        The result of the closure, or None.
        """
        loss = None
        if closure is not None:
            with cygrad.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("differentiable"):
                from cygrad.optim.recorded_steps import recorded_update
                with cygrad.enable_grad():
                    recorded_update(self, group)
            elif sparse_tensors:
                from cygrad.optim.sparse_steps import update_all
                update_all(self, group)
            else:
                self.update(group)
        return loss

    def update(self, group):
        """Update the parameters of one group."""
        raise NotImplementedError(f"update: {type(self).__name__} does not define it.")

    def zero_grad(self, set_to_none=True):
        """Set ``.grad`` of all parameters to None, or fill existing ones with zeros."""
        for group in self.param_groups:
            (forget_gradients if set_to_none else zero_gradients)(group["params"])

    # ---- hooks

    def _patch_step_function(self):
        """Do nothing, because `__init_subclass__` has wrapped `step`; subclasses may override it."""

    def _ensure_hooks(self):
        if self._hooks is None:
            self._hooks = OptimizerHooks()
        return self._hooks

    def register_step_pre_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` before each step; it can return new ``(args, kwargs)``."""
        return OptimizerHooks.register(self._ensure_hooks().before_step, hook)

    def register_step_post_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` after each step and return the handle."""
        return OptimizerHooks.register(self._ensure_hooks().after_step, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` before `state_dict` and return the handle."""
        return OptimizerHooks.register(self._ensure_hooks().before_save, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` after `state_dict` and return the handle; it may return a new dict."""
        return OptimizerHooks.register(self._ensure_hooks().saved, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` before loading and return the handle; it may return a new dict."""
        return OptimizerHooks.register(self._ensure_hooks().before_load, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` after loading and return the handle."""
        return OptimizerHooks.register(self._ensure_hooks().after_load, hook, prepend)

    # ---- saving and loading

    def state_dict(self):
        """
        Return options and state; parameters are numbered across all groups.

        Returns
        -------
        dict
            "state": index of the parameter -> its state; "param_groups": options, and indices "params".
        """
        hooks = self._hooks
        for hook in list(hooks.before_save.values()) if hooks else ():
            hook(self)
        numbers = {}
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(param, len(numbers))
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [numbers[param] for param in group["params"]]} for group in self.param_groups]
        state = {numbers.get(param, param): value for param, value in self.state.items()}
        found = {"state": state, "param_groups": groups}
        for hook in list(hooks.saved.values()) if hooks else ():
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict):
        """
        Load the result of `state_dict`.

        Parameters
        ----------
        state_dict : dict
            Copied. Parameters are matched by order; tensors are converted to the dtype of their parameter.

        Raises
        ------
        ValueError
            If numbers of groups or parameters differ.
        """
        hooks = self._hooks
        state_dict = dict(state_dict)
        for hook in list(hooks.before_load.values()) if hooks else ():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        if "param_groups" not in state_dict or "state" not in state_dict:
            raise ValueError("load_state_dict: expected a dict with 'state' and 'param_groups' (got "
                             f"{sorted(map(str, state_dict))}).")
        saved_groups = state_dict["param_groups"]
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("load_state_dict: the state has a different number of parameter groups (got "
                             f"{len(saved_groups)}, expected {len(self.param_groups)}).")
        params = {}
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError("load_state_dict: a parameter group doesn't match the size of the optimizer's group "
                                 f"(got {len(saved['params'])} parameters, expected {len(group['params'])}).")
            params.update(zip(saved["params"], group["params"], strict=True))
        state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            if key in params:
                state[params[key]] = {name: _fitted(name, value, params[key]) for name, value in values.items()}
            else:
                state[key] = deepcopy(values)
        groups = [{**self.defaults, **({"param_names": group["param_names"]} if "param_names" in group else {}),
                   **deepcopy({name: value for name, value in saved.items() if name != "params"}),
                   "params": group["params"]} for group, saved in zip(self.param_groups, saved_groups, strict=True)]
        for group in groups:
            check_execution(self, group)
            self.check_options(group)
        self.state = state
        self.param_groups = groups
        for hook in list(hooks.after_load.values()) if hooks else ():
            hook(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._patch_step_function()

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append("\n" * (number > 0) + f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _hooks_of(kind):
    return property(lambda self: getattr(self._ensure_hooks(), kind),
                    lambda self, hooks: setattr(self._ensure_hooks(), kind, hooks))


# PyTorch's attributes of the dicts of hooks.
for _name, _kind in (("step_pre", "before_step"), ("step_post", "after_step"), ("state_dict_pre", "before_save"),
                     ("state_dict_post", "saved"), ("load_state_dict_pre", "before_load"),
                     ("load_state_dict_post", "after_load")):
    setattr(Optimizer, f"_optimizer_{_name}_hooks", _hooks_of(_kind))


class _Required:
    """Marker of a required option."""

    def __repr__(self):
        return "<required parameter>"


REQUIRED = _Required()


def _fitted(name, value, param):
    """Copy a loaded value; convert a real (complex) tensor to the dtype of a real (complex) parameter."""
    if isinstance(value, (list, tuple)):
        return type(value)([_fitted(name, item, param) for item in value])
    if not isinstance(value, Tensor):
        return deepcopy(value)
    fits = (value.is_floating_point() and param.is_floating_point()) or (value.is_complex() and param.is_complex())
    return value.detach().to(param.dtype, copy=True) if fits and name != "step" else value.detach().clone()
