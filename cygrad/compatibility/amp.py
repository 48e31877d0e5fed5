"""
Automatic mixed precision: `autocast`, which computes in the dtypes that there are, and `GradScaler`, which scales
nothing.

There are no tensors of 16 bits yet, so operations in a block of `autocast` have the dtypes of their operands, and are
as accurate as outside; a warning says so once.
"""

import functools
import sys
import warnings

import cygrad

__all__ = [
    "GradScaler", "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled",
]

_state = {"enabled": False, "dtype": cygrad.bfloat16, "cache": True}
_told = []


class autocast:
    """
    A block, or decorated function, in which PyTorch would compute some operations in 16 bits.

    Parameters
    ----------
    device_type : str, default "cpu"
    dtype : dtype, optional
        What `get_autocast_dtype` tells in the block; default bfloat16.
    enabled : bool, default True
    cache_enabled : bool, optional

    Examples
    --------
    >>> import cygrad
    >>> with cygrad.autocast("cpu", enabled=False):
    ...     cygrad.is_autocast_enabled()
    False
    """

    def __init__(self, device_type="cpu", dtype=None, enabled=True, cache_enabled=None):
        if isinstance(device_type, bool):           # cuda.amp.autocast(enabled)
            device_type, enabled = "cuda", device_type
        self.device = cygrad.device(device_type).type
        # Of a device that is not there nothing is computed, in whatever dtype.
        self.enabled = bool(enabled) and self.device == "cpu"
        self.fast_dtype = dtype or cygrad.bfloat16
        self.cache_enabled = cache_enabled

    def __enter__(self):
        self._before = dict(_state)
        _state.update(enabled=self.enabled, dtype=self.fast_dtype)
        if self.enabled and not _told:
            _told.append(True)
            warnings.warn(f"autocast: there are no tensors of {self.fast_dtype.name} yet; operations keep the dtypes "
                          "of their operands.", stacklevel=2)
        return self

    def __exit__(self, *error):
        _state.update(self._before)
        return False

    def __call__(self, function):
        """The function, run in such a block."""
        @functools.wraps(function)
        def decorated(*args, **options):
            with self:
                return function(*args, **options)
        return decorated


def is_autocast_available(device_type):
    """Whether there is such a device."""
    return cygrad.device(device_type).type == "cpu"


def is_autocast_enabled(device_type="cpu"):
    """Whether this is a block of `autocast`."""
    return _state["enabled"] and device_type == "cpu"


def get_autocast_dtype(device_type="cpu"):
    """The dtype that `autocast` was told."""
    return _state["dtype"] if device_type == "cpu" else cygrad.float16


def set_autocast_enabled(device_type, enabled=None):
    """Begin or end what a block of `autocast` does."""
    _state["enabled"] = bool(device_type if enabled is None else enabled and device_type == "cpu")


def set_autocast_dtype(device_type, dtype):
    """What `get_autocast_dtype` shall tell."""
    if device_type == "cpu":
        _state["dtype"] = dtype


def is_autocast_cache_enabled():
    """What `set_autocast_cache_enabled` was told; nothing is cached."""
    return _state["cache"]


def set_autocast_cache_enabled(enabled):
    """Note a wish; nothing is cached."""
    _state["cache"] = bool(enabled)


def clear_autocast_cache():
    """Nothing is cached."""


is_autocast_cpu_enabled = functools.partial(is_autocast_enabled, "cpu")
set_autocast_cpu_enabled = functools.partial(set_autocast_enabled, "cpu")
get_autocast_cpu_dtype = functools.partial(get_autocast_dtype, "cpu")
set_autocast_cpu_dtype = functools.partial(set_autocast_dtype, "cpu")
get_autocast_gpu_dtype = functools.partial(get_autocast_dtype, "cuda")


class GradScaler:
    """
    What scales losses so that gradients in float16 do not vanish; those here are of 32 or 64 bits, so the scale is 1.

    Its methods may be called as ever: `step` calls that of the optimizer unless a gradient is not finite.

    Parameters
    ----------
    device : str, default "cuda"
    init_scale, growth_factor, backoff_factor, growth_interval : float, optional
        Kept, and without effect.
    enabled : bool, default True

    Examples
    --------
    >>> import cygrad
    >>> cygrad.GradScaler("cpu").scale(cygrad.tensor(2.0))
    tensor(2.)
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        if not isinstance(device, str):
            device = "cuda"                         # cuda.amp.GradScaler(init_scale)
        self._growth = {"growth_factor": growth_factor, "backoff_factor": backoff_factor,
                        "growth_interval": growth_interval}
        self._enabled = bool(enabled) and cygrad.device(device).type == "cpu"

    def scale(self, outputs):
        """The tensors themselves."""
        return outputs

    def unscale_(self, optimizer):
        """Nothing to do: gradients are not scaled."""

    def step(self, optimizer, *args, **options):
        """Call ``optimizer.step``, unless the scaler is enabled and a gradient is not finite."""
        if self._enabled:
            gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if not all(gradient.isfinite().all() for gradient in gradients):
                return None
        return optimizer.step(*args, **options)

    def update(self, new_scale=None):
        """Nothing to do."""

    def get_scale(self):
        """1."""
        return 1.0

    def is_enabled(self):
        """Whether `step` looks at gradients: for the CPU, if it was not switched off."""
        return self._enabled

    def state_dict(self):
        """What there is to keep."""
        return {"scale": 1.0, "_growth_tracker": 0, **self._growth} if self._enabled else {}

    def load_state_dict(self, state_dict):
        """Take the factors back; the scale stays 1."""
        self._growth.update({name: state_dict[name] for name in self._growth if name in state_dict})

    def get_growth_factor(self):
        """What it was made with."""
        return self._growth["growth_factor"]

    def get_backoff_factor(self):
        """What it was made with."""
        return self._growth["backoff_factor"]

    def get_growth_interval(self):
        """What it was made with."""
        return self._growth["growth_interval"]


def custom_fwd(fwd=None, *, device_type="cpu", cast_inputs=None):
    """The function itself: nothing is cast in a forward."""
    return (lambda function: function) if fwd is None else fwd


custom_bwd = custom_fwd

grad_scaler = autocast_mode = sys.modules[__name__]
