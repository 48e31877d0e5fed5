"""
Activation checkpointing: recompute saved tensors in backward to save memory.

The non-reentrant variant uses saved tensor hooks, so it supports everything that backward does; the reentrant variant
is a custom autograd function that runs a nested backward.
"""

import contextlib
import threading
import traceback
import weakref
from typing import Any

from cygrad._core import public_dir as _public_dir
from cygrad._core.arrays.dtype import library_name
from cygrad._core.dispatch.operator_modes import Again
from cygrad._core.dispatch.tangents import current_level
from cygrad._core.engine.plan import restricted, running
from cygrad._core.graph.modes import enable_grad, is_grad_enabled, is_inference_mode_enabled
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import PACKAGE, warn_user
from cygrad.autograd.function import Function
from cygrad.autograd.run import backward
from cygrad.autograd.saved import saved_tensors_hooks
from cygrad.func.batched import active_levels
from cygrad.random import get_rng_state, set_rng_state
from cygrad.utils.operator_modes import OperatorMode
from cygrad.utils.selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS", "CheckpointError", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]
__dir__ = _public_dir(__name__)


class CheckpointError(RuntimeError):
    """Raised if recomputation differs from the forward.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import CheckpointError
    >>> issubclass(CheckpointError, RuntimeError)
    True
    """


class _Choices(threading.local):
    """Options of blocks on this thread, and the current `GraphExecGroup`."""

    early_stop = debug = None
    group: Any = None


_choices = _Choices()


@contextlib.contextmanager
def _chosen(name, value):
    former = getattr(_choices, name)
    setattr(_choices, name, value)
    try:
        yield
    finally:
        setattr(_choices, name, former)


def set_checkpoint_early_stop(enable):
    """
    Set `early_stop` of all checkpoints in a block.

    Parameters
    ----------
    enable : bool

    Examples
    --------
    >>> from cygrad.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(cygrad.exp, x)
    """
    return _chosen("early_stop", enable)


def set_checkpoint_debug_enabled(enabled):
    """Set `debug` of all checkpoints in a block; None for their own.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     checkpoint(cygrad.exp, x, use_reentrant=False).sum().backward()
    """
    return _chosen("debug", enabled)


class GraphExecGroup:
    """
    Group backward passes, so that checkpoints recompute only once for all of them.

    Recomputed tensors are held until the end of the block.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = checkpoint(lambda x: (print("computing"), x.exp().sin())[1], x)
    computing
    >>> with GraphExecGroup():
    ...     y.sum().backward(retain_graph=True)
    ...     y.sum().backward()
    computing
    """

    def __init__(self):
        self.holders = []

    def __enter__(self):
        if _choices.group is not None:
            raise RuntimeError("GraphExecGroup: blocks cannot be nested (got one within another).")
        _choices.group = self
        return self

    def __exit__(self, *error):
        _choices.group = None
        for holder in self.holders:
            holder.tensor = None
        self.holders.clear()

    @classmethod
    def _get_current_group(cls):
        """Return the current block of this thread, or None."""
        return _choices.group


def noop_context_fn():
    """Return two contexts that do nothing; default of `context_fn`.

    Examples
    --------
    >>> len(cygrad.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """Default device type of checkpoints: "cpu".

    Examples
    --------
    >>> cygrad.utils.checkpoint.DefaultDeviceType.get_device_type()
    'cpu'
    """

    @staticmethod
    def set_device_type(device="cpu"):
        """Do nothing."""

    @staticmethod
    def get_device_type():
        """Return "cpu"."""
        return "cpu"


def get_device_states(*args):
    """Return devices and states of their generators: none.

    Examples
    --------
    >>> cygrad.utils.checkpoint.get_device_states(cygrad.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Do nothing, because there are no other devices.

    Examples
    --------
    >>> cygrad.utils.checkpoint.set_device_states([], [])
    """


def detach_variable(inputs):
    """Detach the tensors of a tuple; other values stay.

    Examples
    --------
    >>> cygrad.utils.checkpoint.detach_variable((cygrad.ones(2, requires_grad=True).exp(), 3))
    (tensor([2.7183, 2.7183], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: only a tuple of tensors is supported (got {type(inputs).__name__}).")
    return tuple(value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value
                 for value in inputs)


def check_backward_validity(inputs):
    """Warn if no value is a Tensor that requires grad.

    Examples
    --------
    >>> cygrad.utils.checkpoint.check_backward_validity([cygrad.ones(2, requires_grad=True)])
    """
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        warn_user("checkpoint: None of the inputs have requires_grad=True. Gradients will be None.")


def checkpoint(function, *args, use_reentrant=None, context_fn=None, determinism_check="default", debug=False,
               early_stop=True, preserve_rng_state=True, **kwargs):
    """
    Call a function without holding its saved tensors, which backward recomputes.

    Parameters
    ----------
    function : callable
        Must be deterministic, except for random numbers.
    *args, **kwargs
        Arguments of the function. Keyword arguments require ``use_reentrant=False``.
    use_reentrant : bool, optional
        Whether to use the reentrant variant, which requires a Tensor argument that requires grad. False by default.
    context_fn : callable, optional
        Returns two context managers, for forward and recomputation.
    determinism_check : {"default", "none"}
        Whether to compare shapes and dtypes of recomputed tensors with the original ones. If not, dtypes are converted.
    debug : bool, default False
        Whether to record operators and the lines that saved tensors, for error messages.
    early_stop : bool, default True
        Whether to stop recomputation when all needed tensors are available.
    preserve_rng_state : bool, default True
        Whether recomputation draws the same random numbers.

    Returns
    -------
    The result of the function.

    Raises
    ------
    CheckpointError
        In backward, if recomputation saves other tensors than forward.

    See Also
    --------
    checkpoint_sequential, create_selective_checkpoint_contexts

    Examples
    --------
    >>> from cygrad.utils.checkpoint import checkpoint
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().square(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([14.7781, 14.7781])
    """
    if not callable(function):
        raise TypeError(f"checkpoint: expected a function (got {type(function).__name__}).")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: unknown determinism_check (got {determinism_check!r}, expected 'default' or "
                         "'none').")
    if use_reentrant is None:
        _warn_of_default()
    if use_reentrant:
        unfit = [*kwargs, *["context_fn"] * (context_fn not in (None, noop_context_fn)), *["debug"] * bool(debug)]
        if unfit:
            raise ValueError(f"checkpoint: Unexpected keyword arguments: {', '.join(unfit)}. They, `context_fn` and "
                             "`debug` are only supported when use_reentrant=False.")
        check_backward_validity(args)
        return Reentrant.apply(function, preserve_rng_state, *args)
    debug = debug if _choices.debug is None else _choices.debug
    if debug and context_fn not in (None, noop_context_fn):
        raise ValueError("checkpoint: debug=True is incompatible with context_fn (got both). Omit one of them.")
    first, second = (OperatorLog(), OperatorLog()) if debug else (context_fn or noop_context_fn)()
    if not is_grad_enabled() or is_inference_mode_enabled() or active_levels() or current_level() is not None:
        with first:                                       # with vmap and forward mode, save everything
            return function(*args, **kwargs)
    early_stop = early_stop if _choices.early_stop is None else _choices.early_stop
    frame = Frame(function, args, kwargs, second, early_stop, preserve_rng_state, determinism_check != "none",
                  first if debug else None)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True):
    """
    Checkpoint a sequence of functions in segments, except the last one.

    Parameters
    ----------
    functions : Sequential or sequence of callable
        Each gets the result of the previous one.
    segments : int
        Number of segments.
    input : Tensor
        Argument of the first function.
    use_reentrant, preserve_rng_state
        As in `checkpoint`.

    Returns
    -------
    The result of the last function.

    Examples
    --------
    >>> from cygrad.utils.checkpoint import checkpoint_sequential
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> checkpoint_sequential([cygrad.exp, cygrad.sin, cygrad.cos], 2, x).tolist()
    [0.916..., 0.916...]
    """
    if use_reentrant is None:
        _warn_of_default()
        use_reentrant = False
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= max(len(functions), 1):
        raise ValueError(f"checkpoint_sequential: segments must be between 1 and the number of functions (got "
                         f"{segments}, expected 1 to {max(len(functions), 1)}).")

    def run(start, end):
        def segment(value):
            for function in functions[start:end]:
                value = function(value)
            return value
        return segment
    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve_rng_state)
    return run(size * (segments - 1), len(functions))(input)


# ---- non-reentrant

class Holder:
    """Placeholder of a saved tensor, which holds the recomputed tensor until it is unpacked."""

    __slots__ = ("__weakref__", "asked_in", "dtype", "tensor")

    def __init__(self):
        self.tensor = self.asked_in = None            # asked_in: id of the backward that unpacked it
        self.dtype = None                             # dtype to convert to, without determinism_check


def _warn_of_default():
    """Warn programs that import cygrad as torch, because PyTorch has another default."""
    if library_name() == "torch":
        warn_user("checkpoint: the use_reentrant parameter should be passed explicitly (got None, which "
                  "means False here and True in PyTorch). use_reentrant=False is recommended.")


class Enough(BaseException):
    """Raised when all needed tensors are recomputed."""


class KeepArguments(Function):
    """Function that saves the arguments, so that an enclosing checkpoint can drop them too."""

    @staticmethod
    def forward(ctx, marker, *tensors):
        """Save the tensors in the node of the result."""
        ctx.save_for_backward(*tensors)
        return marker.clone()

    @staticmethod
    def backward(ctx, grad):
        """Raise; never called."""
        raise AssertionError("the node only keeps tensors")


def _line():
    """Return the current line of user code as text."""
    lines = [line for line in traceback.extract_stack() if not line.filename.startswith(PACKAGE)]
    return f"{lines[-1].filename}:{lines[-1].lineno}: {lines[-1].line}" if lines else ""


def _looks(tensor, debug):
    """Return shape, dtype and device of a tensor as text, and the line that saved it if `debug`."""
    return f"{tuple(tensor.shape)} {tensor.dtype} {tensor.device}", f", saved by {_line()}" if debug else ""


class OperatorLog(OperatorMode):
    """Record calls of operators, with arguments and line."""

    def __init__(self):
        self.lines = []

    def __enter__(self):
        self.lines.clear()                                # recomputation may run several times
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Record and execute the call."""
        shown = ", ".join(f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else repr(value)
                          for value in [*args, *kwargs.values()])
        self.lines.append(f"\n    {func}({shown}) at {_line()}")
        return func(*args, **kwargs)


class Frame:
    """One call of a checkpointed function, with the state to repeat it."""

    def __init__(self, function, args, kwargs, context, early_stop, preserve_rng_state, compare, log):
        from cygrad import empty
        self.function, self.context, self.early_stop = function, context, early_stop
        self.compare, self.log, self.debug = compare, log, log is not None
        self.random_state = get_rng_state() if preserve_rng_state else None
        self.autocast = Again()
        values = [*args, *kwargs.values()]
        self.names, self.count = list(kwargs), len(args)
        self.places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
        kept = KeepArguments.apply(empty(0, requires_grad=True), *[values[place] for place in self.places])
        self.node = kept.grad_fn
        self.values = [None if isinstance(value, Tensor) else value for value in values]
        self.holders, self.saved = [], []
        self.complete = False                             # a backward inside of the function needs the tensors so far

    def pack(self, tensor):
        """Return the placeholder of a tensor (pack hook)."""
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        if not self.compare:
            holder.dtype = tensor.dtype
        else:
            self.saved.append(_looks(tensor, self.debug))
        return holder

    def unpack(self, holder):
        """Return the tensor of a placeholder, recomputed if necessary (unpack hook)."""
        calls = running()
        if holder.tensor is None:
            if calls and calls[0] == holder.asked_in:
                raise CheckpointError("checkpoint: Unpack is being triggered for a tensor that was already unpacked "
                                      "once in this backward (got a second ctx.saved_tensors). Store the result of the "
                                      "first in a variable.")
            self.compute_again()
            if holder.tensor is None:
                raise CheckpointError("checkpoint: fewer tensors were saved during recomputation than in forward. The "
                                      "function must be deterministic.")
        tensor, group = holder.tensor, GraphExecGroup._get_current_group()
        if group is None:
            holder.tensor, holder.asked_in = None, calls[0] if calls else None
        else:
            group.holders.append(holder)
        return tensor

    def compute_again(self):
        """Run the function and store its saved tensors in the placeholders, in order."""
        values = list(self.values)
        for place, tensor in zip(self.places, self.node.saved_tensors, strict=True):
            values[place] = tensor
        args, kwargs = values[:self.count], dict(zip(self.names, values[self.count:], strict=True))
        position, found = 0, []

        def give(tensor):
            nonlocal position
            if position < len(self.holders):
                holder = self.holders[position]()
                if holder is not None:
                    kept = tensor.detach() if tensor.requires_grad else tensor
                    holder.tensor = kept if holder.dtype is None else kept.to(holder.dtype)
            position += 1
            if self.compare:
                found.append(_looks(tensor, self.debug))
            if self.early_stop and position == len(self.holders):
                raise Enough
            return tensor.detach() if tensor.requires_grad else tensor

        present = get_rng_state()
        if self.random_state is not None:
            set_rng_state(self.random_state)
        try:
            with saved_tensors_hooks(give, lambda tensor: tensor), enable_grad(), self.autocast, self.context:
                self.function(*args, **kwargs)
        except Enough:
            pass
        finally:
            if self.random_state is not None:
                set_rng_state(present)
        if position < len(self.holders) or (self.complete and position > len(self.holders)):
            raise CheckpointError("checkpoint: A different number of tensors was saved in recomputation (got "
                                  f"{position}, expected {len(self.holders)}). The function must be "
                                  "deterministic." + self.listed(found))
        if any(first != second for (first, _), (second, _) in zip(self.saved, found, strict=False)):
            raise CheckpointError("checkpoint: Recomputed values for the following tensors have different metadata "
                                  "than in forward. The function must be deterministic." + self.listed(found))

    def listed(self, found):
        """Return saved and recomputed tensors as text: those that differ, or all if `debug`."""
        lines = []
        for place in range(max(len(self.saved), len(found))):
            first, second = (part[place] if place < len(part) else ("nothing", "") for part in (self.saved, found))
            if first[0] != second[0] or self.debug:
                lines.append(f"\ntensor at position {place}:\n    saved: {first[0]}{first[1]}\n    recomputed: "
                             f"{second[0]}{second[1]}")
        if not self.debug:
            return "".join(lines) + "\nPass debug=True to see which operators ran, and which lines saved them."
        return "".join([*lines, "\noperators, the first time:", *self.log.lines,
                        "\noperators, when it was computed again:", *self.context.lines])


# ---- reentrant

class Reentrant(Function):
    """Reentrant variant: backward recomputes and runs a nested backward."""

    @staticmethod
    def forward(ctx, function, preserve_rng_state, *args):
        """Return the result of the function, not recorded in the graph."""
        ctx.function = function
        ctx.random_state = get_rng_state() if preserve_rng_state else None
        ctx.autocast = Again()
        ctx.places = [place for place, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.values = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*[args[place] for place in ctx.places])
        return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Recompute in grad mode and run backward through the result."""
        if restricted():
            raise RuntimeError(f"checkpoint: with use_reentrant=True, {library_name()}.utils.checkpoint is "
                               "incompatible with grad() and the parameter inputs of backward(). Pass False.")
        values, leaves = list(ctx.values), []
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            values[place] = tensor.detach().requires_grad_(tensor.requires_grad)
            leaves.append(values[place])
        present = get_rng_state()
        try:
            if ctx.random_state is not None:
                set_rng_state(ctx.random_state)
            with enable_grad(), ctx.autocast:
                results = ctx.function(*values)
        finally:
            set_rng_state(present)
        results = results if isinstance(results, tuple) else (results,)
        pairs = [(result, grad) for result, grad in zip(results, grads, strict=True)
                 if isinstance(result, Tensor) and result.requires_grad]
        if not pairs:
            raise RuntimeError("checkpoint: none of output has requires_grad=True after recomputation, so the "
                               "checkpoint is not necessary. Remove it, or use use_reentrant=False.")
        backward([result for result, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[value.grad if isinstance(value, Tensor) else None for value in values])
