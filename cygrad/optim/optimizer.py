"""What all optimisers share: parameter groups, state, saving and loading."""

import warnings
from collections import defaultdict
from copy import deepcopy

import cygrad
from cygrad import Tensor
from cygrad._core.optimise import forget_gradients, zero_gradients

__all__ = ["Optimizer"]


class Optimizer:
    """
    The base of all optimisers.

    A subclass defines ``step`` and passes its options, with their defaults, to ``__init__``.

    Several threads may step the same parameters at the same time, with optimisers of their own or one in common
    (Hogwild training). Updates may then overwrite each other: results depend on timing, memory stays sound.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        What to optimise: all in one group, or a dict for each group, whose key "params" holds the tensors and whose
        other keys override options.
    defaults : dict
        Options for groups that do not say otherwise.

    Attributes
    ----------
    param_groups : list of dict
        Parameters and options of each group; options may be changed at any time.
    state : dict
        Parameter -> dict of what the optimiser keeps for it.
    """

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        if isinstance(params, Tensor):
            raise TypeError("params: expected an iterable of tensors or dicts (got a Tensor). Put it into a list.")
        groups = list(params)
        if not groups:
            raise ValueError("params: optimizer got an empty parameter list.")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """
        Add parameters with options of their own.

        Parameters
        ----------
        param_group : dict
            "params" and options.

        Raises
        ------
        TypeError
            If it is not a dict, or holds anything but tensors.
        ValueError
            If a parameter is not a leaf, or is in another group, or an option without default is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"add_param_group: expected a dict (got {type(param_group).__name__}).")
        group = dict(param_group)
        group["params"] = self._checked(group["params"])
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is REQUIRED:
                raise ValueError(f"add_param_group: option {name!r} has no default. Add it to the group.")
        self.check_options(group)
        taken = {param for other in self.param_groups for param in other["params"]}
        if not taken.isdisjoint(group["params"]):
            raise ValueError("add_param_group: some parameters appear in more than one parameter group.")
        self.param_groups.append(group)

    @staticmethod
    def _checked(params):
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("add_param_group: parameters need an order, which would differ from run to run "
                            "(got a set). Use a list.")
        params = list(params)
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"add_param_group: optimizer can only optimize Tensors (got {type(param).__name__}).")
            if not param.is_leaf and not param.retains_grad:
                raise ValueError("add_param_group: can't optimize a non-leaf Tensor (got one made by "
                                 f"{param.grad_fn.name()}).")
        if len(set(params)) != len(params):
            warnings.warn("add_param_group: a parameter group with duplicate parameters; each would be changed "
                          "once for each time it is there.", stacklevel=5)
        return params

    def check_options(self, group):
        """Raise ValueError for options that make no sense; for subclasses."""

    def step(self, closure=None):
        """
        Change all parameters that have a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew; called before the step, with grad mode on.

        Returns
        -------
        What the closure returned, or None.
        """
        loss = None
        if closure is not None:
            with cygrad.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self.update(group)
        return loss

    def update(self, group):
        """Change the parameters of one group; every subclass defines it."""
        raise NotImplementedError(f"update: {type(self).__name__} does not define it.")

    def zero_grad(self, set_to_none=True):
        """Empty ``.grad`` of all parameters, or fill those that there are with zeros."""
        for group in self.param_groups:
            (forget_gradients if set_to_none else zero_gradients)(group["params"])

    # ---- saving and loading

    def state_dict(self):
        """
        Everything but the parameters themselves, which are numbered through all groups.

        Returns
        -------
        dict
            "state": number of the parameter -> its state; "param_groups": options, and numbers under "params".
        """
        numbers = {}
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(param, len(numbers))
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [numbers[param] for param in group["params"]]} for group in self.param_groups]
        state = {numbers.get(param, param): value for param, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """
        Take over what `state_dict` returned, here or in another process.

        Parameters
        ----------
        state_dict : dict
            It is copied. Parameters are matched by their order; tensors get the dtype of their parameter.

        Raises
        ------
        ValueError
            If the groups do not have as many parameters as those here.
        """
        saved_groups = state_dict["param_groups"]
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("load_state_dict: loaded state dict has a different number of parameter groups "
                             f"(got {len(saved_groups)}, expected {len(self.param_groups)}).")
        params = {}
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError("load_state_dict: loaded state dict contains a parameter group that doesn't match "
                                 f"the size of optimizer's group (got {len(saved['params'])} parameters, expected "
                                 f"{len(group['params'])}).")
            params.update(zip(saved["params"], group["params"], strict=True))
        state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            if key in params:
                state[params[key]] = {name: _fitted(name, value, params[key]) for name, value in values.items()}
            else:
                state[key] = deepcopy(values)
        groups = [{**deepcopy({name: value for name, value in saved.items() if name != "params"}),
                   "params": group["params"]} for group, saved in zip(self.param_groups, saved_groups, strict=True)]
        for group in groups:
            self.check_options(group)
        self.state = state
        self.param_groups = groups

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


class _Required:
    """Marks an option without default."""

    def __repr__(self):
        return "<required parameter>"


REQUIRED = _Required()


def _fitted(name, value, param):
    """A copy of a loaded value; tensors but the step count get the dtype of the parameter."""
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if name == "step" or not (param.is_floating_point() or param.is_complex()):
        return value.detach().clone()
    return value.detach().to(param.dtype, copy=True)


def check_not_negative(optimizer, group, *names):
    """ValueError if one of these options is below zero (or not a number)."""
    for name in names:
        if not group[name] >= 0:
            raise ValueError(f"{type(optimizer).__name__}: invalid {name} (got {group[name]}, expected at least 0).")
