"""
Automatic mixed precision: `autocast`, which runs some operators in 16 bits, and `GradScaler` with the scale 1.

The key `autocast` of rows in the table of operators says how their operands are cast; see
`cygrad._core.dispatch.operator_modes`.
"""

import enum
import functools
import sys
import warnings

import cygrad
from cygrad._core.dispatch import operator_modes as blocks
from cygrad._core.graph.modes import Restoring

__all__ = [
    "GradScaler", "autocast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled",
]

# Default dtype of blocks, and whether they cache the casts of parameters.
_state = {"dtype": cygrad.bfloat16, "cache": True}
_FAST = (cygrad.bfloat16, cygrad.float16)


class autocast(Restoring):
    """
    Context manager and decorator that runs products and convolutions in 16 bits, and losses in float32.

    Linear layers, matrix products, convolutions and attention cast their operands to the dtype of the block; losses,
    decompositions, distances and Fourier transforms to float32; `cat` and `stack` to the widest dtype. Other operators
    compute in the dtypes of their operands. Backward runs in the dtypes of forward.

    Parameters
    ----------
    device_type : str, default "cpu"
        Blocks for other devices do nothing.
    dtype : dtype, optional
        bfloat16 or float16; default: that of `set_autocast_dtype`, initially bfloat16.
    enabled : bool, default True
    cache_enabled : bool, optional
        Whether to cache casts of parameters within a block; default True.

    Examples
    --------
    >>> x, w = cygrad.ones(2, 2), cygrad.ones(2, 2)
    >>> with cygrad.autocast("cpu"):
    ...     print((x @ w).dtype, (x + w).dtype)
    cygrad.bfloat16 cygrad.float32
    """

    def __init__(self, device_type="cpu", dtype=None, enabled=True, cache_enabled=None):
        if isinstance(device_type, bool):           # cuda.amp.autocast(enabled)
            device_type, enabled = "cuda", device_type
        self.device = cygrad.device(device_type).type
        self.fast_dtype = dtype or get_autocast_dtype(self.device)
        # Any dtype is valid for an unavailable device.
        self.enabled = bool(enabled) and self.device == "cpu"
        if self.enabled and self.fast_dtype not in _FAST:
            warnings.warn(f"autocast: only bfloat16 and float16 are supported (got {self.fast_dtype}). Disabling "
                          "autocast.", stacklevel=2)
            self.enabled = False
        self.cache_enabled = _state["cache"] if cache_enabled is None else bool(cache_enabled)

    def _change(self):
        """Return how to enter the block."""
        wanted = self.fast_dtype if self.enabled else None if self.device == "cpu" else blocks.current()
        return blocks.leave, (blocks.state(),), blocks.exchange, (wanted, self.cache_enabled)

    def __call__(self, function):
        """Wrap a function in the context manager."""
        @functools.wraps(function)
        def decorated(*args, **options):
            with self:
                return function(*args, **options)
        return decorated


def is_autocast_available(device_type):
    """Return whether the device is available."""
    return cygrad.device(device_type).type == "cpu"


def is_autocast_enabled(device_type="cpu"):
    """Return whether this thread is in a block of `autocast`.

    Examples
    --------
    >>> with cygrad.autocast("cpu"):
    ...     cygrad.is_autocast_enabled()
    True
    """
    return blocks.current() is not None and device_type == "cpu"


def get_autocast_dtype(device_type="cpu"):
    """Return the dtype of this thread's block, or the default dtype of blocks."""
    return blocks.current() or _state["dtype"] if device_type == "cpu" else cygrad.float16


def set_autocast_enabled(device_type, enabled=None):
    """Enable or disable `autocast`."""
    if enabled is None or device_type == "cpu":
        blocks.exchange(_state["dtype"] if (device_type if enabled is None else enabled) else None, _state["cache"])


def set_autocast_dtype(device_type, dtype):
    """Return the default dtype of blocks."""
    if device_type == "cpu":
        _state["dtype"] = dtype


def is_autocast_cache_enabled():
    """Return whether blocks cache the casts of parameters by default."""
    return _state["cache"]


def set_autocast_cache_enabled(enabled):
    """Set whether blocks cache the casts of parameters."""
    _state["cache"] = bool(enabled)


def clear_autocast_cache():
    """Drop the cached casts of parameters of this thread."""
    blocks.forget()


is_autocast_cpu_enabled = functools.partial(is_autocast_enabled, "cpu")
set_autocast_cpu_enabled = functools.partial(set_autocast_enabled, "cpu")
get_autocast_cpu_dtype = functools.partial(get_autocast_dtype, "cpu")
set_autocast_cpu_dtype = functools.partial(set_autocast_dtype, "cpu")
get_autocast_gpu_dtype = functools.partial(get_autocast_dtype, "cuda")
set_autocast_gpu_dtype = functools.partial(set_autocast_dtype, "cuda")
for _device in ("ipu", "xla"):
    globals().update({
        f"get_autocast_{_device}_dtype": functools.partial(get_autocast_dtype, _device),
        f"set_autocast_{_device}_dtype": functools.partial(set_autocast_dtype, _device),
        f"is_autocast_{_device}_enabled": functools.partial(is_autocast_enabled, _device),
        f"set_autocast_{_device}_enabled": functools.partial(set_autocast_enabled, _device)})


class GradScaler:
    """
    Loss scaler for float16 gradients, with the scale 1, because bfloat16 has the range of float32.

    `step` calls that of the optimizer unless a gradient is not finite.

    Parameters
    ----------
    device : str, default "cuda"
    init_scale, growth_factor, backoff_factor, growth_interval : float, optional
        Accepted and ignored.
    enabled : bool, default True

    Examples
    --------
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
        """Return the tensors themselves."""
        return outputs

    def unscale_(self, optimizer):
        """Do nothing: gradients are not scaled."""

    def step(self, optimizer, *args, **options):
        """Call ``optimizer.step``, unless the scaler is enabled and a gradient is not finite."""
        if self._enabled:
            gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            if not all((g._values() if g.is_sparse else g).isfinite().all() for g in gradients):
                return None
        return optimizer.step(*args, **options)

    def update(self, new_scale=None):
        """Do nothing."""

    def get_scale(self):
        """Return 1."""
        return 1.0

    def is_enabled(self):
        """Return whether `step` checks gradients: on the CPU, unless disabled."""
        return self._enabled

    def state_dict(self):
        """Return the state."""
        return {"scale": 1.0, "_growth_tracker": 0, **self._growth} if self._enabled else {}

    def load_state_dict(self, state_dict):
        """Load a state; the scale stays 1."""
        self._growth.update({name: state_dict[name] for name in self._growth if name in state_dict})

    def get_growth_factor(self):
        """Return the constructor argument."""
        return self._growth["growth_factor"]

    def get_backoff_factor(self):
        """Return the constructor argument."""
        return self._growth["backoff_factor"]

    def get_growth_interval(self):
        """Return the constructor argument."""
        return self._growth["growth_interval"]


def _setter(name):
    def setter(self, value):
        self._growth[name] = value
    setter.__name__, setter.__doc__ = f"set_{name}", "Keep another number, which has no effect."
    return setter


for _name in ("growth_factor", "backoff_factor", "growth_interval"):
    setattr(GradScaler, f"set_{_name}", _setter(_name))


def custom_fwd(fwd=None, *, device_type="cpu", cast_inputs=None):
    """
    Decorate the ``forward`` of a `Function`: with `cast_inputs` it runs outside of blocks, with floating arguments cast
    to that dtype.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **options):
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*args, **options)
        with autocast(device_type, enabled=False):
            return fwd(*blocks.cast(args, cast_inputs), **{name: blocks.cast(value, cast_inputs)
                                                           for name, value in options.items()})
    return forward


def custom_bwd(bwd=None, *, device_type="cpu"):
    """Return the ``backward`` of a `custom_fwd` unchanged, because backward casts nothing."""
    return (lambda function: function) if bwd is None else bwd


def _cast(value, device_type, dtype):
    """Cast floating tensors."""
    return blocks.cast(value, dtype)


class OptState(enum.Enum):
    """State of an optimizer in a step of a `GradScaler`."""

    READY, UNSCALED, STEPPED = 0, 1, 2


grad_scaler = autocast_mode = sys.modules[__name__]
