"""
Automatic mixed precision: `autocast`, which runs some operators in 16 bits, and `GradScaler`, which scales losses.

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
    Loss scaler: keeps small gradients of float16 from underflowing.

    `scale` multiplies the loss by the scale, `step` divides the gradients by it and calls the optimizer unless one of
    them is not finite, `update` adapts the scale: smaller after an infinite gradient, larger after `growth_interval`
    steps without one. bfloat16 has the range of float32 and needs no scaler.

    Parameters
    ----------
    device : str, default "cuda"
        For devices other than "cpu" the scaler is disabled.
    init_scale : float, default 65536
    growth_factor, backoff_factor : float, default 2 and 0.5
        Factors of the scale: above 1, and below 1.
    growth_interval : int, default 2000
    enabled : bool, default True
        If False, `scale` returns its argument and `step` calls the optimizer.

    Examples
    --------
    >>> weight = cygrad.ones(2, requires_grad=True)
    >>> optimizer, scaler = cygrad.optim.SGD([weight], lr=0.5), cygrad.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(weight.sum()).backward()
    >>> weight.grad
    tensor([8., 8.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.detach(), scaler.get_scale()
    (tensor([0.5000, 0.5000]), 8.0)
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        if not isinstance(device, str):
            device, init_scale = "cuda", device         # cuda.amp.GradScaler(init_scale)
        self._enabled = bool(enabled) and cygrad.device(device).type == "cpu"
        self._init_scale, self._scale, self._growth_tracker = init_scale, None, 0
        # By the id of the optimizer: its state, and whether a gradient is not finite (None without gradients).
        self._optimizers = {}
        if self._enabled and not growth_factor > 1.0 > backoff_factor:
            raise ValueError("GradScaler: growth_factor must be above 1 and backoff_factor below 1 (got "
                             f"{growth_factor} and {backoff_factor}).")
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval

    def scale(self, outputs):
        """Return a tensor, or a list or tuple of tensors, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, cygrad.Tensor):
            if self._scale is None:
                self._scale = cygrad.full((), self._init_scale, dtype=cygrad.float32)
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(output) for output in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        raise ValueError(f"GradScaler.scale: outputs must be tensors or lists of tensors (got {outputs!r}).")

    def _state(self, optimizer, operation, allowed):
        """Return the state of an optimizer and whether a gradient is not finite, if the state allows the operation."""
        state, found = self._optimizers.get(id(optimizer), (OptState.READY, None))
        if state.value > allowed.value:
            name = "step" if state is OptState.STEPPED else "unscale_"
            raise RuntimeError(f"GradScaler.{operation}: {name}() has already been called on this optimizer since the "
                               "last update(). Call update() at the end of each iteration.")
        return state, found

    def unscale_(self, optimizer):
        """Divide the gradients of an optimizer by the scale in place, before they are clipped; `step` skips that."""
        if not self._enabled:
            return
        self._state(optimizer, "unscale_", OptState.READY)
        if self._scale is None:
            raise RuntimeError("GradScaler.unscale_: there is no scale yet. Compute the gradients from scale(loss).")
        found, factor = None, cygrad.tensor(1.0 / self._scale.item())
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(parameter.grad.dtype is cygrad.float16 for parameter in parameters):
            raise ValueError("GradScaler.unscale_: attempting to unscale FP16 gradients. Keep parameters in float32.")
        with cygrad.no_grad():
            for parameter in parameters:
                gradient = parameter.grad
                values = gradient._values() if gradient.is_sparse else gradient
                found = bool(found) or not values.isfinite().all().item()
                if gradient.is_sparse:              # values may be expanded
                    parameter.grad = gradient * factor
                else:
                    gradient.mul_(factor)
        self._optimizers[id(optimizer)] = OptState.UNSCALED, found

    def step(self, optimizer, *args, **options):
        """Divide the gradients by the scale unless `unscale_` did; call ``optimizer.step`` if all are finite."""
        if not self._enabled:
            return optimizer.step(*args, **options)
        if "closure" in options:
            raise RuntimeError("GradScaler.step: closures are not supported. Compute the gradients before.")
        if self._state(optimizer, "step", OptState.UNSCALED)[0] is OptState.READY:
            self.unscale_(optimizer)
        found = self._optimizers[id(optimizer)][1]
        if found is None:
            raise RuntimeError("GradScaler.step: no gradients were found for this optimizer. Call backward() before.")
        result = None if found else optimizer.step(*args, **options)
        self._optimizers[id(optimizer)] = OptState.STEPPED, found
        return result

    def update(self, new_scale=None):
        """Adapt the scale to the steps since the last call, or set it to a number or tensor."""
        if not self._enabled:
            return
        if self._scale is None:
            raise RuntimeError("GradScaler.update: there is no scale yet. Compute the gradients from scale(loss).")
        checks = [found for _, found in self._optimizers.values() if found is not None]
        if new_scale is None and not checks:
            raise RuntimeError("GradScaler.update: no step() since the last update(). Call step() before.")
        if new_scale is not None:
            scale = float(new_scale)
        elif any(checks):
            scale, self._growth_tracker = self._scale.item() * self._backoff_factor, 0
        else:
            scale, self._growth_tracker = self._scale.item(), self._growth_tracker + 1
            if self._growth_tracker == self._growth_interval:
                larger, self._growth_tracker = scale * self._growth_factor, 0
                scale = larger if larger <= cygrad.finfo(cygrad.float32).max else scale
        self._scale = cygrad.full((), scale, dtype=cygrad.float32)
        self._optimizers = {}

    def get_scale(self):
        """Return the scale: 1 if disabled."""
        return 1.0 if not self._enabled else self._init_scale if self._scale is None else self._scale.item()

    def is_enabled(self):
        """Return whether gradients are scaled: on the CPU, unless disabled."""
        return self._enabled

    def state_dict(self):
        """Return the state."""
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
                } if self._enabled else {}

    def load_state_dict(self, state_dict):
        """Load a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict: the state is empty, that of a disabled scaler. Pass "
                               "enabled=False, or leave it out.")
        self._init_scale, self._growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._scale = None if self._scale is None else cygrad.full((), self._init_scale, dtype=cygrad.float32)
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, f"_{name}", state_dict[name])

    def __getstate__(self):
        if self._optimizers:
            raise RuntimeError("GradScaler: cannot be copied or pickled between step() and update(). Do it after "
                               "update().")
        return self.__dict__.copy()


def _accessors(name):
    """Return the methods that get and set a number of `GradScaler`."""
    def get(self):
        return getattr(self, f"_{name}")

    def set(self, value):
        setattr(self, f"_{name}", value)
    get.__name__, get.__doc__ = f"get_{name}", f"Return {name}."
    set.__name__, set.__doc__ = f"set_{name}", f"Set {name}."
    return get, set


for _name in ("growth_factor", "backoff_factor", "growth_interval"):
    for _accessor in _accessors(_name):
        setattr(GradScaler, _accessor.__name__, _accessor)


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
