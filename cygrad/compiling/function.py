"""``cygrad.compile``: trace a function or a module at its first call, and execute the trace at later calls."""

import functools
import gc
import sys
import threading
import types
from importlib import import_module
from operator import attrgetter, itemgetter

import cygrad
from cygrad import Tensor
from cygrad._core.compiler.assembly import assemble
from cygrad._core.compiler.guards import Guards
from cygrad._core.compiler.lowering import lower
from cygrad._core.compiler.tracer import Tracer, constant
from cygrad._core.compiler.variant import CompiledCallable, Variant, can_trace, is_traced, tensor_state
from cygrad._core.threads.parallel import renewed_at_fork
from cygrad.compiling.draws import Draws
from cygrad.compiling.graphs import Graph, graph_reason
from cygrad.compiling.guards import GuardCollector
from cygrad.compiling.observer import Observer
from cygrad.compiling.structures import IMMUTABLE, classes_of, flatten, rebuilder
from cygrad.compiling.verification import compare

__all__ = ["CompileError", "Compiled", "CompiledModule", "compile"]

MAX_VARIANTS = 8              # traces of one function
MAX_FAILURES = 3              # aborted traces in a row before it stays eager
NOTHING = object()
# Settings that are kept in Python.
SETTINGS = [("printing", "_options"), ("compatibility.switches", "_settings"), ("compatibility.amp", "_state"),
            ("distributions.distribution", "Distribution._validate_args")]


class CompileError(RuntimeError):
    """
    The function cannot be traced and ``fullgraph=True``.

    Examples
    --------
    >>> @cygrad.compile(fullgraph=True)
    ... def f(x):
    ...     return x.item()
    >>> f(cygrad.ones(()))
    Traceback (most recent call last):
        ...
    cygrad.compiling.function.CompileError: ...
    """


class TraceAborted(Exception):
    """The trace of this call was aborted."""


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False,
            verify=False):
    """
    Trace a function at its first call, and execute the trace at later calls without Python.

    An execution has all effects of the function: results, ``.grad``, in-place operations, versions. They are
    bit-identical, unless `mode` is "fast". Besides operations, the function may call ``backward()``, ``autograd.grad``,
    ``zero_grad()`` and ``step()`` of SGD, Adam and AdamW. A call with other shapes, dtypes or Python values is traced
    again. A function that cannot be traced runs eagerly; `explain` gives the reason.

    Parameters
    ----------
    model : callable, optional
        A function or a Module. Without it, a decorator is returned.
    fullgraph : bool, default False
        Whether to raise CompileError instead of calling the function in Python.
    dynamic : bool, optional
        Accepted and ignored: each combination of shapes has its own trace.
    backend, options : optional
        Accepted and ignored: names of backends of other libraries.
    mode : str, optional
        "fast" merges products and sums, which changes the order of summation; `explain` lists the changes.
        With "default" and the other modes of ``torch.compile``, results are bit-identical.
    disable : bool, default False
        Whether to return the function itself.
    verify : bool, default False
        Whether to also run the function on copies at each execution, and raise CompileError at the first difference in
        results, gradients, input tensors or generators. Slow; for tests.

    Returns
    -------
    Compiled or CompiledModule

    Examples
    --------
    >>> w = cygrad.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
    >>> @cygrad.compile
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = (w * x).square().sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> for _ in range(3):
    ...     print(f"{step(cygrad.ones(2)).item():.3f}")
    5.000
    3.200
    2.048
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
                                 options=options, disable=disable, verify=verify)
    if not callable(model):
        raise TypeError(f"compile: expected a function or a Module (got {type(model).__name__}).")
    if mode not in (None, "default", "fast", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        raise ValueError(f"compile: unknown mode (got {mode!r}, expected 'default' or 'fast').")
    if disable:
        return model
    if isinstance(model, cygrad.nn.Module):
        return CompiledModule(model, fullgraph, mode == "fast", verify)
    return (Verified if verify else Compiled)(model, fullgraph, mode == "fast")


class Compiled(CompiledCallable):
    """
    A compiled function; see `compile`.

    Examples
    --------
    >>> f = cygrad.compile(lambda x: x * 2 + 1)
    >>> isinstance(f, cygrad.compiling.Compiled), f(cygrad.ones(2))
    (True, tensor([3., 3.]))
    """

    nested: bool

    def __init__(self, function, fullgraph=False, fast=False):
        functools.update_wrapper(self, function)
        self.function, self.fullgraph, self.fast = function, fullgraph, fast
        self.reasons = []             # reasons why calls were not executed, in order
        self.retraces = []            # what differed from the latest trace when another one was needed
        self.rewrites = []            # per trace, the changed orders of summation, latest first
        self.failures = 0
        self.state = []               # (dict, key) of attributes that the function sets
        self.calls = 0                # calls in Python
        self.lock = renewed_at_fork(threading.Lock())

    def __reduce__(self):
        """Copy the function without traces; pickle a decorated function by its name, as Python does."""
        found = sys.modules.get(getattr(self, "__module__", ""))
        for part in getattr(self, "__qualname__", "").split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (type(self), (self.function, self.fullgraph, self.fast))

    def __repr__(self):
        return f"<compiled {getattr(self, '__qualname__', repr(self.function))}, {len(self.variants)} variants>"

    def _repr_html_(self):
        return import_module("cygrad.notebook.objects").object_html(self)

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    flatten = staticmethod(flatten)

    # Attributes that a compiled function sets itself.
    OWN = frozenset(("reasons", "retraces", "rewrites", "failures", "state", "calls", "lock"))

    def call_in_python(self, args, kwargs):
        """Trace the function, or call it in Python."""
        self.calls += 1
        if is_traced():                                 # a part of another compiled function
            return self.function(*args, **kwargs)
        if not can_trace():
            return self._eager("called in a mode that cannot be traced: hooks for saved tensors, anomaly mode, forward "
                               "mode, backward, or another trace", args, kwargs)
        if self.failures >= MAX_FAILURES:
            return self._eager(self.reasons[-1], args, kwargs)
        if len(self.variants) >= MAX_VARIANTS:
            return self._eager(f"more than {MAX_VARIANTS} traces were needed, for different shapes or values",
                               args, kwargs)
        if not self.lock.acquire(blocking=False):       # another thread traces this function
            return self.function(*args, **kwargs)
        collects = gc.isenabled()
        gc.disable()              # finalizers of unrelated objects are not part of the trace; lowering makes no cycles
        try:
            return self._trace(args, kwargs)
        finally:
            self.lock.release()
            if collects:
                gc.enable()

    def _eager(self, reason, args, kwargs):
        if not self.reasons or self.reasons[-1] != reason:
            self.reasons.append(reason)
        if self.fullgraph:
            raise CompileError(f"compile: {reason}.")
        return self.function(*args, **kwargs)

    def _trace(self, args, kwargs):
        try:
            if self.variants:
                leaves, structure, _ = flatten(args, kwargs)
                variant = self.variants[0]
                self.retraces.append(variant.difference(variant.with_state(leaves), structure))
            trace = Trace(self.function, args, kwargs, self.fast, self.state)
        except TraceAborted as aborted:
            self.failures += 1
            return self._eager(str(aborted), args, kwargs)
        result = trace.run(args, kwargs)
        try:
            variant = trace.variant(result)
        except TraceAborted as aborted:
            retryable = trace.tracer.retryable and self.failures < MAX_FAILURES
            self.failures += not trace.changed
            self.state += trace.changed
            self.reasons.append(str(aborted))
            if self.fullgraph and not retryable:
                raise CompileError(f"compile: {aborted}.") from None
            return result
        self.failures = 0
        self.nested = self.nested or trace.structure is not None
        self.variants.insert(0, variant)
        self.rewrites.insert(0, trace.rewrites)
        return result


class Verified(Compiled):
    """Compiled function that compares each execution with the function."""

    def __call__(self, *args, **kwargs):
        variant = self.find_variant(args, kwargs)
        if variant is None:
            return super().__call__(*args, **kwargs)
        result, different = compare(self.function, super().__call__, variant, args, kwargs, self.fast)
        if different is not None:
            raise CompileError(f"compile: the program differs from the function in {different}. Please report this, "
                               "and pass disable=True for this function.")
        return result


class CompiledModule(cygrad.nn.Module):
    """
    A compiled module; parameters and other attributes are those of the original module.

    Examples
    --------
    >>> model = cygrad.compile(nn.Linear(3, 2))
    >>> isinstance(model, cygrad.compiling.CompiledModule), model(cygrad.ones(1, 3)).shape
    (True, (1, 2))
    """

    def __init__(self, module, fullgraph=False, fast=False, verify=False):
        super().__init__()
        self._orig_mod = module
        self.__dict__["compiled"] = (Verified if verify else Compiled)(module.__call__, fullgraph, fast)

    def __call__(self, *args, **kwargs):
        return self.__dict__["compiled"](*args, **kwargs)

    forward = __call__

    def __getattr__(self, name):
        original = self.__dict__["_modules"]["_orig_mod"]
        return original if name == "_orig_mod" else getattr(original, name)

    def __setattr__(self, name, value):
        original = self.__dict__.get("_modules", {}).get("_orig_mod")
        if original is None or name == "training":             # the latter is set on both
            super().__setattr__(name, value)
        if original is not None:
            setattr(original, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)


def modes():
    """Return the modes and settings that a function may change."""
    found = [cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled(), cygrad.get_default_dtype(),
             cygrad.get_num_threads(), cygrad.get_default_device(), can_trace()]
    return found + [repr(attrgetter(name)(sys.modules[f"cygrad.{module}"])) for module, name in SETTINGS
                    if f"cygrad.{module}" in sys.modules]


def inputs_to_restore(executable):
    """
    Return the slots of the inputs that a program may have modified when an operation fails.

    Operations on integers fail for an index out of bounds or a division by zero.
    """
    operations, traced = executable.description, executable.traced
    failing = [position for position, operation in enumerate(operations) if operation.can_fail]
    if not failing:
        return None
    stop = max([failing[-1] + 1, *[section.stop for section in executable.sections if section.start <= failing[-1]]])
    written = {traced[slot].buffer for operation in operations[:stop]
               for slot in [operation.target, *[slot for counter, roles in operation.updates
                                                for slot in (counter, *roles)]] if slot >= 0}
    return tuple([slot for slot in executable.input_slots() if traced[slot].buffer in written])


class Trace:
    """Trace of one call, and the program made from it."""

    def __init__(self, function, args, kwargs, fast=False, state=()):
        self.function, self.fast, self.state, self.changed = function, fast, state, []
        self.args, self.kwargs = args, kwargs
        self.leaves, self.structure, self.containers = flatten(args, kwargs)
        others = [leaf for leaf in self.leaves if not isinstance(leaf, Tensor) and type(leaf) not in IMMUTABLE]
        self.collected = GuardCollector([function, *others, *classes_of(self.structure)], state)
        if self.collected.reason is None and not self.collected.seen.keys().isdisjoint(self.containers):
            self.collected.reason = "an argument is a list or dict that it also reads from a variable"
        if self.collected.reason is None and len(set(self.containers)) < len(self.containers):
            self.collected.reason = "the same list or dict is passed twice"
        if self.collected.reason is not None:
            raise TraceAborted(self.collected.reason)
        self.leaves += tuple([items.get(key) for items, key in state])             # as if they were arguments
        self.own = [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]
        self.constants = self.collected.tensors
        self.tensors = self.own + self.constants
        self.places = {id(tensor): position for position, tensor in reversed(list(enumerate(self.tensors)))}
        self.options = [(optimizer, group, [(name, value) for name, value in group.items() if name != "params"])
                        for optimizer in self.collected.optimizers for group in optimizer.param_groups]
        self.tracer = Tracer(self.tensors)
        self.tracer.constants = self.constants
        if any(tensor.__dict__ for tensor in self.own):
            self.tracer.abort("a tensor argument has user-defined attributes")
        self.modes = modes()
        self.draws = Draws(self.tracer)
        self.graph, self.plain = None, cygrad.empty(0)
        self.states = [tensor_state(tensor) for tensor in self.tensors]

    def run(self, args, kwargs):
        """Call the function and trace it."""
        if self.tracer.reason is not None:
            return self.function(*args, **kwargs)
        self.tracer.start()
        try:
            with self.draws:
                with Observer(self.collected.codes, self.tracer.abort) as observer:
                    result = self.function(*args, **kwargs)
                self.collected.guard_library(observer.ran)
                self.trace_backward(result)
            return result
        finally:
            self.tracer.stop()

    def trace_backward(self, result):
        """Trace a backward if one may be called on the results."""
        try:
            self.outputs, self.rebuild = rebuilder(
                (result, [items.get(key) for items, key in self.state]) if self.state else result,
                {*self.containers, *self.collected.seen})
        except TypeError as error:
            self.tracer.abort(str(error))
        if self.tracer.reason is not None:
            return
        mine = set(map(id, self.tensors))
        self.add_bases(mine)
        made = [tensor for tensor in self.outputs if id(tensor) not in mine]
        self.ended = self.tracer.ended_leaves(made)
        if self.ended is None or any(leaf is other for leaf in self.ended for other in self.own):
            if not cygrad.is_grad_enabled():
                self.tracer.abort("its result requires grad, and it is called in no-grad mode")
                return
            try:
                self.graph = Graph(self, self.outputs)
            except RuntimeError as error:
                self.tracer.abort(f"its result has a graph whose backward cannot be traced: {error}")
        elif cygrad.is_grad_enabled() and any(tensor.grad_fn is not None for tensor in self.tensors):
            self.tracer.abort("it reads a tensor with a graph outside of the function")

    def add_bases(self, known):
        """Add the bases of results that are views to the outputs, without those in `known`."""
        n, rebuild = len(self.outputs), self.rebuild
        for tensor in self.outputs[:n]:
            if tensor._base is not None and not {id(tensor), id(tensor._base)} & known:
                known = known | {id(tensor._base)}
                if not any(tensor._base is other for other in self.outputs):
                    self.outputs.append(tensor._base)
        if rebuild is None and len(self.outputs) > n:
            self.rebuild = itemgetter(0)
        elif rebuild in (list, tuple) and len(self.outputs) > n:
            self.rebuild = lambda made: rebuild(made[:n])

    def check(self):
        if self.tracer.reason is not None:
            raise TraceAborted(self.tracer.reason)

    def abort(self, reason, retryable=False):
        self.tracer.abort(reason, retryable)
        self.check()

    def variant(self, result):
        """Return the Variant of this trace."""
        tracer = self.tracer
        self.check()
        self.collected.guard_marks()
        guards = Guards(self.collected.guards)
        changed = guards.failed()
        if changed is not None:
            self.changed = self.collected.changed_state() or []
            self.abort(f"it changes {changed} while it runs. Return new values instead", True)
        if modes() != self.modes:
            self.abort("it changes a mode or setting (grad mode, default dtype, threads, print options) and leaves it "
                       "so. Do it outside")
        for _, group, options in self.options:
            if any(group.get(name, self) is not value for name, value in options):
                self.abort("it changes an option of an optimizer while it runs", True)
        if [tensor_state(tensor) for tensor in self.tensors] != self.states:
            self.abort("it changes the memory (.data, set_, resize_), history, requires_grad, hooks or attributes of "
                       "an outer tensor", True)
        leaves, structure, containers = flatten(self.args, self.kwargs)
        if structure != self.structure or containers != self.containers or any(
                a is not b for a, b in zip(leaves, self.leaves, strict=not self.state)):
            self.abort("it changes a list or dict that is an argument. Return new values instead", True)
        given = [self.output(tensor) for tensor in self.outputs]
        commits, needs = self.gradients()
        self.check()
        if self.graph is not None and graph_reason(self) is not None:
            self.abort(graph_reason(self))
        made = [tensor for tensor, entry in zip(self.outputs, given, strict=True) if entry[0] == 1]
        graph, rebuild = self.graph, self.rebuild
        if tracer.has_other_references(made, graph is not None, self.ended or ()):
            self.abort("a tensor that it computed is referenced by other objects than its result", True)
        if graph is not None:
            from_forward = graph.lower(self, constant)
            graph.n_from_forward = len(from_forward)
            given += [(1, number, None, self.plain, None, -1) for number in from_forward]
            if rebuild is None:
                rebuild = itemgetter(0)
        numbers = {entry[1] for entry in given if entry[0] == 1} | {number for _, number in commits if number >= 0}
        numbers.discard(None)
        positions = {}
        for position, tensor in enumerate(self.tensors):
            positions.setdefault(tracer.number_of(tensor), position)
        for leaf in tracer.leaves:
            number = tracer.gradients.get(id(leaf))
            if number is not None and tracer.buffers[tracer.arrays[number].buffer].kind == "gradient":
                position = self.place_of(tracer.buffers[tracer.arrays[number].buffer].tensor)
                positions[tracer.buffers[tracer.arrays[number].buffer].first] = position
        program = lower(tracer, numbers, 0, None if graph is None else graph.start, self.fast)
        self.rewrites = program.rewrites + ([] if graph is None else graph.rewrites)
        executable, slots = assemble(program, positions)
        given = [(1, slots.get(entry[1]), *entry[2:]) if entry[0] == 1 else entry for entry in given]
        commits = [(position, slots[number] if number >= 0 else -1) for position, number in commits]
        updates = []
        for number, optimizer, group in executable.groups:
            updates.append((number, optimizer, group, next(
                values for _, own, values in self.options if own is group)))
        leaves, count = [], 0
        for leaf in self.leaves:
            leaves.append(count if isinstance(leaf, Tensor) else (leaf,))
            count += isinstance(leaf, Tensor)
        return Variant(executable, self.structure, tuple(leaves), tuple(self.constants), self.tensors,
                       self.layouts(needs), guards, updates, given, commits, rebuild, graph,
                       self.draws if self.draws.calls else None, frozenset(self.collected.seen), list(self.state),
                       inputs_to_restore(executable), tracer.ran_backward or bool(commits) or bool(updates))

    def place_of(self, tensor):
        return self.places[id(tensor)]

    def output(self, tensor):
        """
        Describe an output: (0, number of an input) or (1, array or None, base, model, node, version).

        The number of a .grad is that of all inputs plus the number of its leaf.
        """
        tracer = self.tracer
        if id(tensor) in self.places:
            return 0, self.places[id(tensor)]
        for position, leaf in enumerate(self.tensors):
            if leaf.is_leaf and leaf.grad is tensor:
                return 0, len(self.tensors) + position
        if type(tensor) is not Tensor:
            self.abort(f"it returns a {type(tensor).__name__}")
        base = None
        if tensor._base is not None:
            base = next(position for position, other in enumerate((*self.tensors, *self.outputs))
                        if other is tensor._base)
            if self.graph is not None:
                if tensor.dtype is not tensor._base.dtype:
                    self.abort("it returns a view of another dtype than that of its base, and its result has a graph")
                return 1, None, base, tensor, None, -1
        if tensor.is_inference() != cygrad.is_inference_mode_enabled():
            self.abort("it returns a tensor made in another inference mode than that of the call")
        number = tracer.read(tensor)
        self.check()
        kind = tracer.buffers[tracer.arrays[number].buffer].kind
        version = tensor._version if kind in ("result", "constant") and not tensor.is_inference() else -1
        if self.graph is not None:
            return 1, number, base, self.plain, None, version
        return 1, number, base, tensor, tensor.grad_fn, version

    def gradients(self):
        """Return new gradients of leaves, and whether .grad is required before: 1, 0, or -1 for any."""
        tracer, commits, needs = self.tracer, [], {}
        used = tracer.used_arrays() if tracer.gradients else ()
        for leaf in tracer.leaves:
            before, after = tracer.gradients.get(id(leaf)), tracer.gradient_number(leaf)
            position = self.place_of(leaf)
            if after == -1:
                self.abort("it sets .grad to a tensor that is not traced")
            if after is None and (before is not None or id(leaf) in tracer.forgotten):
                commits.append((position, -1))
            elif after is not None and after != before:
                commits.append((position, after))
            if after is not None and after != before and tracer.buffers[
                    tracer.arrays[after].buffer].kind != "result":
                self.abort("it sets .grad to a tensor that it has not computed")
            read = before is not None and before in used
            forgotten = not self.collected.reads_gradients and (
                id(leaf) in tracer.forgotten or (after == before and not self.collected.optimizers))
            needs[position] = 1 if read else -1 if forgotten else int(before is not None)
            if needs[position] == 1 and id(leaf) in tracer.unusual_gradients:
                self.abort("it reads a .grad that has a graph, hooks, attributes, or the class of a user", True)
        return commits, needs

    def layouts(self, needs):
        """Return the fields of the guard on each input tensor."""
        tracer, n, n_own = self.tracer, len(self.tensors), len(self.own)
        traced = [tracer.arrays[tracer.number_of(tensor)] for tensor in self.tensors]
        read = {position: tracer.arrays[tracer.gradients[id(tensor)]] for position, tensor in enumerate(self.tensors)
                if needs.get(position, -1) == 1}
        roles = dict(enumerate(traced)) | {n + position: gradient for position, gradient in read.items()}
        arguments, constants, gradients, same = {}, {}, {}, {}
        for position in range(n_own, n):
            constants.setdefault(traced[position].buffer, position)
        for role, array in roles.items():
            known = (arguments, constants) if role < n else (arguments, constants, gradients)
            first = next((found[array.buffer] for found in known if array.buffer in found), -1)
            same[role] = (first, 0 if first < 0 else array.offset - roles[first].offset)
            if role < n_own or role >= n:
                (arguments if role < n_own else gradients).setdefault(array.buffer, role)
        identities = {}
        return [(read.get(position), needs.get(position, -1), bool(tracer.buffers[traced[position].buffer].writes),
                 identities.setdefault(id(tensor), position), *same[position], *same.get(n + position, (-1, 0)))
                for position, tensor in enumerate(self.tensors)]
