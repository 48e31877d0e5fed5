"""Saving and loading a module: what users call, and the hooks around it."""

from cygrad._core.graph.node import RemovableHandle
from cygrad.nn import state

__all__ = ["StateHooks", "Stateful"]


class StateHooks:
    """The hooks of one module around saving and loading, each kind in the order in which they run."""

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
    """The part of `Module` that saves and loads."""

    _state_hooks = None            # StateHooks once there are any
    _version = 1                   # of what `state_dict` contains; for subclasses whose contents have changed

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """
        All parameters and persistent buffers by their paths.

        Parameters
        ----------
        destination : dict, optional
            Where to put them.
        prefix : str
            Put before each path.
        keep_vars : bool, default False
            Give the tensors themselves, not detached ones (which share their memory).

        Returns
        -------
        OrderedDict
            Its attribute ``_metadata`` has the version of each module.
        """
        for value, name in zip(args, ("destination", "prefix", "keep_vars"), strict=False):      # the older form
            destination, prefix, keep_vars = {
                "destination": (value, prefix, keep_vars), "prefix": (destination, value, keep_vars),
                "keep_vars": (destination, prefix, value)}[name]
        return state.collect(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """
        Copy values into parameters and persistent buffers.

        Parameters
        ----------
        state_dict : mapping
            From path to tensor, as `state_dict` returns.
        strict : bool, default True
            Whether missing and unexpected paths are errors.
        assign : bool, default False
            Put the given tensors in place of the old ones, instead of copying their values.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            For paths that are missing or unexpected and shapes that differ.
        """
        return state.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own parameters and buffers into `destination`; for subclasses to extend."""
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Load this module's own parameters and buffers; for subclasses to extend."""
        state.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self):
        """Return further state for `state_dict`; requires `set_extra_state`."""
        raise RuntimeError("get_extra_state: the state has more than parameters and buffers, but "
                           f"{type(self).__name__} does not define this method.")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` returned."""
        raise RuntimeError("set_extra_state: the state has more than parameters and buffers, but "
                           f"{type(self).__name__} does not define this method.")

    # ---- hooks

    def _ensure_state_hooks(self):
        if self._state_hooks is None:
            self.__dict__["_state_hooks"] = StateHooks()
        return self._state_hooks

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before this module's part is saved; -> handle."""
        return _registered(self._ensure_state_hooks().before_save, hook, hook)

    def register_state_dict_post_hook(self, hook):
        """
        Call ``hook(module, state_dict, prefix, local_metadata)`` when this module and all below it are saved.

        Parameters
        ----------
        hook : callable
            May change the dict in place.

        Returns
        -------
        RemovableHandle
        """
        return _registered(self._ensure_state_hooks().saved, hook, (hook, False))

    def _register_state_dict_hook(self, hook):
        """Register a hook whose result replaces the dict."""
        return _registered(self._ensure_state_hooks().saved, hook, (hook, True))

    def register_load_state_dict_pre_hook(self, hook):
        """
        Call a hook before this module's part is loaded.

        Parameters
        ----------
        hook : callable
            ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``; may
            change the dict, which is a copy, and the three lists.

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
        Call ``hook(module, incompatible_keys)`` when this module and all below it are loaded.

        Parameters
        ----------
        hook : callable
            May change the two lists of `incompatible_keys` in place.

        Returns
        -------
        RemovableHandle
        """
        return _registered(self._ensure_state_hooks().loaded, hook, hook)


class _WithoutModule:
    """A hook that does not want the module."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, module, *args):
        return self.hook(*args)
