"""state_dict, load_state_dict and their hooks."""

from cygrad._core.graph.node import RemovableHandle
from cygrad._core.graph.user_warnings import warn_user
from cygrad.nn import state

__all__ = ["StateHooks", "Stateful"]


class StateHooks:
    """state_dict and load_state_dict hooks of one module, in execution order."""

    __slots__ = ("before_load", "before_save", "loaded", "saved")

    def __init__(self):
        self.before_save = {}      # hook(module, prefix, keep_vars)
        self.saved = {}            # (hook(module, state_dict, prefix, local_metadata), whether it may replace the dict)
        self.before_load = {}      # hook(module, state_dict, prefix, local_metadata, strict, missing, ...)
        self.loaded = {}           # hook(module, incompatible_keys)

    def __deepcopy__(self, memo):
        twin = memo[id(self)] = StateHooks()
        for kind in self.__slots__:
            setattr(twin, kind, dict(getattr(self, kind)))
        return twin


def _registered(hooks, hook, entry):
    if not callable(hook):
        raise TypeError(f"register hook: the hook must be callable (got {type(hook).__name__}).")
    return RemovableHandle(hooks, entry)


class Stateful:
    """Mixin of `Module` with state_dict and load_state_dict."""

    _state_hooks = None            # StateHooks if there are hooks
    _version = 1                   # version of the contents of `state_dict`; subclasses may increase it

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """
        Return all parameters and persistent buffers by path.

        Parameters
        ----------
        destination : dict, optional
            Dict to fill.
        prefix : str
            Prefix of all paths.
        keep_vars : bool, default False
            Whether to return the tensors instead of detached ones, which share their memory.

        Returns
        -------
        OrderedDict
            Its attribute ``_metadata`` contains the version of each module.
        """
        if args:
            warn_user("state_dict: Positional args are being deprecated, use kwargs instead.", FutureWarning)
        for value, name in zip(args, ("destination", "prefix", "keep_vars"), strict=False):    # deprecated
            destination, prefix, keep_vars = {
                "destination": (value, prefix, keep_vars), "prefix": (destination, value, keep_vars),
                "keep_vars": (destination, prefix, value)}[name]
        return state.collect(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """
        Copy the values of a state dict to parameters and persistent buffers.

        Parameters
        ----------
        state_dict : mapping
            Path to tensor, as returned by `state_dict`.
        strict : bool, default True
            Whether missing and unexpected paths are errors.
        assign : bool, default False
            Whether to assign the given tensors instead of copying their values.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            If paths are missing or unexpected, or shapes differ.
        """
        return state.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Save the parameters and buffers of this module itself in `destination`; subclasses extend it."""
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Load the parameters and buffers of this module itself; subclasses extend it."""
        state.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self):
        """Return extra state for `state_dict`; requires `set_extra_state`."""
        raise RuntimeError(f"get_extra_state: {type(self).__name__} does not implement it. Override it to save extra "
                           "state.")

    def set_extra_state(self, state):
        """Restore the result of `get_extra_state`."""
        raise RuntimeError(f"set_extra_state: {type(self).__name__} does not implement it. Override it to save extra "
                           "state.")

    # ---- hooks

    def _ensure_state_hooks(self):
        if self._state_hooks is None:
            self.__dict__["_state_hooks"] = StateHooks()
        return self._state_hooks

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before this module is saved; return the handle."""
        return _registered(self._ensure_state_hooks().before_save, hook, hook)

    def register_state_dict_post_hook(self, hook):
        """
        Call ``hook(module, state_dict, prefix, local_metadata)`` after this module and all descendants are saved.

        Parameters
        ----------
        hook : callable
            May modify the dict in place.

        Returns
        -------
        RemovableHandle
        """
        return _registered(self._ensure_state_hooks().saved, hook, (hook, False))

    def _register_state_dict_hook(self, hook):
        """Register a hook that may return a new dict."""
        return _registered(self._ensure_state_hooks().saved, hook, (hook, True))

    def register_load_state_dict_pre_hook(self, hook):
        """
        Call a hook before this module is loaded.

        Parameters
        ----------
        hook : callable
            ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``; may
            modify the dict, which is a copy, and the three lists.

        Returns
        -------
        RemovableHandle
        """
        return _registered(self._ensure_state_hooks().before_load, hook, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """Register a hook, called with the module if `with_module`."""
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return _registered(self._ensure_state_hooks().before_load, hook, _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook):
        """
        Call ``hook(module, incompatible_keys)`` after this module and all descendants are loaded.

        Parameters
        ----------
        hook : callable
            May modify the two lists of `incompatible_keys` in place.

        Returns
        -------
        RemovableHandle
        """
        return _registered(self._ensure_state_hooks().loaded, hook, hook)


class _WithoutModule:
    """Wrapper of a hook that is called without the module."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, module, *args):
        return self.hook(*args)
