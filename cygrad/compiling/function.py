"""``cygrad.compile``: a function, or a module, that is recorded at its first call and replayed at the next ones."""

import functools
import threading
from operator import itemgetter

import cygrad
from cygrad import Tensor
from cygrad._core.compiler.guards import Guards
from cygrad._core.compiler.lowering import Lowering
from cygrad._core.compiler.recorder import Recorder, constant
from cygrad._core.compiler.replay import Replayer, Variant, recordable, tensor_state
from cygrad._core.threads.fork_locks import renewed_at_fork
from cygrad.compiling.draws import Draws
from cygrad.compiling.graphs import Graph, graph_reason
from cygrad.compiling.observer import Observer
from cygrad.compiling.structures import IMMUTABLE, flatten, rebuilder
from cygrad.compiling.surroundings import Surroundings
from cygrad.compiling.verification import compare

__all__ = ["CompileError", "Compiled", "CompiledModule", "compile"]

MOST_VARIANTS = 8             # recordings of one function
MOST_FAILURES = 3             # attempts in a row before it stays eager
NOTHING = object()


class CompileError(RuntimeError):
    """
    ``fullgraph=True``, and something cannot be replayed.

    Examples
    --------
    >>> import cygrad
    >>> @cygrad.compile(fullgraph=True)
    ... def f(x):
    ...     return x.item()
    >>> f(cygrad.ones(()))
    Traceback (most recent call last):
        ...
    cygrad.compiling.function.CompileError: ...
    """


class Lost(Exception):
    """This run cannot be replayed."""


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False,
            verify=False):
    """
    Record what a function does at its first call, and replay it at the next ones without Python.

    A replay gives what the function would give: results, ``.grad``, changes in place, versions; bit for bit, unless
    `mode` is "fast". What the function may call besides operations are ``backward()``, ``autograd.grad``,
    ``zero_grad()`` and ``step()`` of SGD, Adam and AdamW. A call with other shapes, dtypes or Python values is recorded
    anew. Where a replay could not know what to do, the function is called as ever; `explain` tells why.

    Parameters
    ----------
    model : callable, optional
        A function or a Module. Without it, a decorator is returned.
    fullgraph : bool, default False
        Raise CompileError instead of calling the function in Python.
    dynamic : bool, optional
        Has no effect: each combination of shapes has its own recording.
    backend, options : optional
        Have no effect; other libraries choose among compilers by them.
    mode : str, optional
        "fast": products and sums may be joined, and so be added up in another order; `explain` tells which were.
        "default", or another name that other libraries have for a goal of their compilers: bits are those of eager.
    disable : bool, default False
        Return the function itself.
    verify : bool, default False
        Run the function, too, where its program runs, on copies of what both change, and raise CompileError at the
        first difference in results, gradients, tensors from outside or generators. For tests: it takes longer.

    Returns
    -------
    Compiled or CompiledModule

    Examples
    --------
    >>> import cygrad
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
        raise ValueError(f"compile: unknown mode (got {mode!r}, expected 'default' for the bits of eager, or 'fast' "
                         "for sums in any order).")
    if disable:
        return model
    if isinstance(model, cygrad.nn.Module):
        return CompiledModule(model, fullgraph, mode == "fast", verify)
    return (Verified if verify else Compiled)(model, fullgraph, mode == "fast")


class Compiled(Replayer):
    """
    A function that is replayed where it can be; see `compile`.

    Examples
    --------
    >>> import cygrad
    >>> f = cygrad.compile(lambda x: x * 2 + 1)
    >>> isinstance(f, cygrad.compiling.Compiled), f(cygrad.ones(2))
    (True, tensor([3., 3.]))
    """

    def __init__(self, function, fullgraph=False, fast=False):
        functools.update_wrapper(self, function)
        self.function, self.fullgraph, self.fast = function, fullgraph, fast
        self.reasons = []             # why calls were not replayed, in order
        self.rewrites = []            # of each recording what is added up in another order, the latest first
        self.failures = 0
        self.calls = 0                # that were not replays
        self.lock = renewed_at_fork(threading.Lock())

    def __repr__(self):
        return f"<compiled {getattr(self, '__qualname__', repr(self.function))}, {len(self.variants)} variants>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    flatten = staticmethod(flatten)

    def call_in_python(self, args, kwargs):
        """Trace the function, or call it in Python."""
        self.calls += 1
        if not recordable():
            return self._eager("called in a mode that is not recorded: hooks for saved tensors, anomaly mode, forward "
                               "mode, backward, or another recording", args, kwargs)
        if self.failures >= MOST_FAILURES:
            return self._eager(self.reasons[-1], args, kwargs)
        if len(self.variants) >= MOST_VARIANTS:
            return self._eager(f"more than {MOST_VARIANTS} recordings were needed, for different shapes or values",
                               args, kwargs)
        if not self.lock.acquire(blocking=False):       # another thread records: no two at a time
            return self.function(*args, **kwargs)
        try:
            return self._record(args, kwargs)
        finally:
            self.lock.release()

    def _eager(self, reason, args, kwargs):
        if not self.reasons or self.reasons[-1] != reason:
            self.reasons.append(reason)
        if self.fullgraph:
            raise CompileError(f"compile: {reason}.")
        return self.function(*args, **kwargs)

    def _record(self, args, kwargs):
        try:
            recording = Recording(self.function, args, kwargs, self.fast)
        except Lost as lost:
            self.failures += 1
            return self._eager(str(lost), args, kwargs)
        result = recording.run(args, kwargs)
        try:
            variant = recording.variant(result)
        except Lost as lost:
            transient = recording.recorder.transient and self.failures < MOST_FAILURES
            self.failures += 1
            self.reasons.append(str(lost))
            if self.fullgraph and not transient:
                raise CompileError(f"compile: {lost}.") from None
            return result
        self.failures = 0
        self.nested = self.nested or recording.structure is not None
        self.variants.insert(0, variant)
        self.rewrites.insert(0, recording.rewrites)
        return result


class Verified(Compiled):
    """A compiled function that compares each run of a program with the function."""

    def __call__(self, *args, **kwargs):
        variant = self.holding(args, kwargs)
        if variant is None:
            return super().__call__(*args, **kwargs)
        result, different = compare(self.function, super().__call__, variant, args, kwargs, self.fast)
        if different is not None:
            raise CompileError(f"compile: the program differs from the function in {different}. Please report this, "
                               "and pass disable=True for this function.")
        return result


class CompiledModule(cygrad.nn.Module):
    """
    A module whose calls are replayed where they can be; parameters and all else are the module's own.

    Examples
    --------
    >>> import cygrad
    >>> from cygrad import nn
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
        return getattr(self.__dict__["_orig_mod"], name)


def modes():
    """What functions may switch for their thread or the process."""
    return (cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled(), cygrad.get_default_dtype(),
            cygrad.get_num_threads())


class Recording:
    """One run of a function, noted, and what is made of it."""

    def __init__(self, function, args, kwargs, fast=False):
        self.function, self.fast = function, fast
        self.args, self.kwargs = args, kwargs
        self.leaves, self.structure, self.containers = flatten(args, kwargs)
        others = [leaf for leaf in self.leaves if not isinstance(leaf, Tensor) and type(leaf) not in IMMUTABLE]
        self.surroundings = Surroundings([function, *others])
        if self.surroundings.reason is None and not self.surroundings.seen.keys().isdisjoint(self.containers):
            self.surroundings.reason = "it is given a list or dict that it also reads from a variable"
        if self.surroundings.reason is None and len(set(self.containers)) < len(self.containers):
            self.surroundings.reason = "it is given the same list or dict twice"
        if self.surroundings.reason is not None:
            raise Lost(self.surroundings.reason)
        self.own = [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]
        self.constants = self.surroundings.tensors
        self.tensors = self.own + self.constants
        self.options = [(optimizer, group, [(name, value) for name, value in group.items() if name != "params"])
                        for optimizer in self.surroundings.optimizers for group in optimizer.param_groups]
        self.recorder = Recorder(self.tensors)
        if any(tensor.__dict__ for tensor in self.own):
            self.recorder.lose("it is given a tensor with attributes of the user")
        self.modes = modes()
        self.draws = Draws(self.recorder)
        self.graph, self.plain = None, cygrad.empty(0)
        self.states = [tensor_state(tensor) for tensor in self.tensors]

    def run(self, args, kwargs):
        """Call the function and note what it does."""
        if self.recorder.reason is not None:
            return self.function(*args, **kwargs)
        self.recorder.begin()
        try:
            with self.draws:
                with Observer(self.surroundings.codes, self.recorder.lose):
                    result = self.function(*args, **kwargs)
                self.note_graph(result)
            return result
        finally:
            self.recorder.end()

    def note_graph(self, result):
        """Go on with a backward if one may come from outside."""
        try:
            self.outputs, self.rebuild = rebuilder(result)
        except TypeError as error:
            self.recorder.lose(str(error))
        if self.recorder.reason is not None:
            return
        mine = set(map(id, self.tensors))
        made = [tensor for tensor in self.outputs if id(tensor) not in mine]
        leaves = self.recorder.alive(made)
        if leaves is None or any(leaf is other for leaf in leaves for other in self.own):
            if not cygrad.is_grad_enabled():
                self.recorder.lose("its result requires grad, and it is called in no-grad mode")
                return
            try:
                self.graph = Graph(self, self.outputs)
            except RuntimeError as error:
                self.recorder.lose(f"its result has a graph whose backward cannot be traced: {error}")
        elif cygrad.is_grad_enabled() and any(tensor.grad_fn is not None for tensor in self.tensors):
            self.recorder.lose("it reads a tensor with a history of its own: a backward went on outside of it")

    def check(self):
        if self.recorder.reason is not None:
            raise Lost(self.recorder.reason)

    def lose(self, reason, transient=False):
        self.recorder.lose(reason, transient)
        self.check()

    def variant(self, result):
        """What is run next time in the place of the function."""
        recorder = self.recorder
        self.check()
        self.surroundings.guard_marks()
        guards = Guards(self.surroundings.guards)
        changed = guards.failed()
        if changed is not None:
            self.lose(f"it changes {changed} while it runs. Return what is new instead", True)
        if modes() != self.modes:
            self.lose("it changes a mode (grad mode, default dtype, threads) and leaves it so")
        for _, group, options in self.options:
            if any(group.get(name, self) is not value for name, value in options):
                self.lose("it changes an option of an optimizer while it runs", True)
        if [tensor_state(tensor) for tensor in self.tensors] != self.states:
            self.lose("it changes what a tensor from outside is: its memory (.data, set_, resize_), its history, "
                      "requires_grad, hooks or attributes", True)
        leaves, structure, containers = flatten(self.args, self.kwargs)
        if structure != self.structure or containers != self.containers or any(
                a is not b for a, b in zip(leaves, self.leaves, strict=True)):
            self.lose("it changes a list or dict that it is given. Return what is new instead", True)
        given = [self.output(tensor) for tensor in self.outputs]
        commits, needs = self.gradients()
        self.check()
        if self.graph is not None and graph_reason(self) is not None:
            self.lose(graph_reason(self))
        made = [tensor for tensor, entry in zip(self.outputs, given, strict=True) if entry[0] == 1]
        graph, rebuild = self.graph, self.rebuild
        if recorder.kept_elsewhere(made, graph is not None):
            self.lose("something else than its result keeps a tensor that it computed", True)
        if graph is not None:
            from_forward = graph.lower(self, constant)
            graph.n_from_forward = len(from_forward)
            given += [(1, number, None, self.plain, None, -1) for number in from_forward]
            if rebuild is None:
                rebuild = itemgetter(0)
        numbers = {entry[1] for entry in given if entry[0] == 1} | {number for _, number in commits if number >= 0}
        places = {}
        for place, tensor in enumerate(self.tensors):
            places.setdefault(recorder.number_of(tensor), place)
        for leaf in recorder.leaves:
            number = recorder.gradients.get(id(leaf))
            if number is not None and recorder.buffers[recorder.arrays[number].buffer].kind == "gradient":
                place = self.place_of(recorder.buffers[recorder.arrays[number].buffer].tensor)
                places[recorder.buffers[recorder.arrays[number].buffer].first] = place
        lowering = Lowering(recorder, numbers, 0, None if graph is None else graph.start, self.fast)
        self.rewrites = lowering.rewrites + ([] if graph is None else graph.rewrites)
        program, slots = lowering.program(places, constant)
        given = [(1, slots[entry[1]], *entry[2:]) if entry[0] == 1 else entry for entry in given]
        commits = [(place, slots[number] if number >= 0 else -1) for place, number in commits]
        options = []
        for number, optimizer, group in program.groups:
            options.append((number, optimizer, group, next(
                values for _, own, values in self.options if own is group)))
        leaves, count = [], 0
        for leaf in self.leaves:
            leaves.append(count if isinstance(leaf, Tensor) else (leaf,))
            count += isinstance(leaf, Tensor)
        return Variant(program, self.structure, tuple(leaves), tuple(self.constants), self.tensors,
                       self.layouts(needs), guards, options, given, commits, rebuild, graph,
                       self.draws if self.draws.calls else None, frozenset(self.surroundings.seen))

    def place_of(self, tensor):
        return next(place for place, other in enumerate(self.tensors) if other is tensor)

    def output(self, tensor):
        """How a result is made: (0, number of a tensor from outside) or (1, array, base, model, node, version)."""
        recorder = self.recorder
        for place, other in enumerate(self.tensors):
            if other is tensor:
                return 0, place
        if type(tensor) is not Tensor:
            self.lose(f"it returns a {type(tensor).__name__}")
        base = None
        if tensor._base is not None and self.graph is not None:
            self.lose("it returns a view, and its result has a graph")
        if tensor._base is not None:
            base = next((place for place, other in enumerate(self.tensors) if other is tensor._base), None)
            if base is None:
                self.lose("it returns a view of a tensor that it computed")
        number = recorder.read(tensor)
        self.check()
        kind = recorder.buffers[recorder.arrays[number].buffer].kind
        version = tensor._version if kind in ("result", "constant") and not tensor.is_inference() else -1
        if self.graph is not None:
            return 1, number, base, self.plain, None, version
        return 1, number, base, tensor, tensor.grad_fn, version

    def gradients(self):
        """Gradients that leaves get or lose, and whether .grad has to be there at first: 1, 0, or -1."""
        recorder, commits, needs = self.recorder, [], {}
        for leaf in recorder.leaves:
            before, after = recorder.gradients.get(id(leaf)), recorder.gradient_number(leaf)
            place = self.place_of(leaf)
            if after == -1:
                self.lose("it sets .grad to a tensor that is not recorded")
            if after is None and (before is not None or id(leaf) in recorder.forgotten):
                commits.append((place, -1))
            elif after is not None and after != before:
                commits.append((place, after))
            if after is not None and after != before and recorder.buffers[
                    recorder.arrays[after].buffer].kind != "result":
                self.lose("it sets .grad to a tensor that it has not computed")
            read = before is not None and any(
                number != before and held.buffer == recorder.arrays[before].buffer
                for number, held in enumerate(recorder.arrays))
            read = read or (before is not None and self.reads(before))
            forgotten = not self.surroundings.reads_gradients and (
                id(leaf) in recorder.forgotten or (after == before and not self.surroundings.optimizers))
            needs[place] = 1 if read else -1 if forgotten else int(before is not None)
        return commits, needs

    def reads(self, number):
        """Does any step read or change the array?"""
        for step in self.recorder.steps:
            for argument in step.arguments:
                if (isinstance(argument, int) and argument == number) or (
                        isinstance(argument, list) and number in argument):
                    return True
        return False

    def layouts(self, needs):
        """What is compared of each tensor from outside."""
        recorder, n, n_own = self.recorder, len(self.tensors), len(self.own)
        held = [recorder.arrays[recorder.number_of(tensor)] for tensor in self.tensors]
        read = {place: recorder.arrays[recorder.gradients[id(tensor)]] for place, tensor in enumerate(self.tensors)
                if needs.get(place, -1) == 1}
        roles = dict(enumerate(held)) | {n + place: gradient for place, gradient in read.items()}
        arguments, constants, gradients, same = {}, {}, {}, {}
        for place in range(n_own, n):
            constants.setdefault(held[place].buffer, place)
        for role, array in roles.items():
            known = (arguments, constants) if role < n else (arguments, constants, gradients)
            first = next((found[array.buffer] for found in known if array.buffer in found), -1)
            same[role] = (first, 0 if first < 0 else array.offset - roles[first].offset)
            if role < n_own or role >= n:
                (arguments if role < n_own else gradients).setdefault(array.buffer, role)
        identities = {}
        return [(read.get(place), needs.get(place, -1), bool(recorder.buffers[held[place].buffer].writes),
                 identities.setdefault(id(tensor), place), *same[place], *same.get(n + place, (-1, 0)))
                for place, tensor in enumerate(self.tensors)]
