"""
Run programs on cygrad or on PyTorch and record all observable results.

A program is a list of lines, each a Python expression over

- ``t``, the library, and ``F``, its ``nn.functional``;
- ``v``, the list of values so far: what a line gives is appended to it, tensor by tensor;
- ``m``, this machine, for what has to be noted: modes, hooks, backward.

So a program is plain text that can be pasted and run; `Machine.run` does nothing else with it.
"""

import gc
import warnings
from math import inf, nan

import numpy as np

from tests.programs.functions import custom_functions
from tests.programs.refusal import Refusal

OUTPUTS = 3         # number of values whose gradients are computed at the end


def observed(look):
    """What look() gives, or the refusal."""
    try:
        return look()
    except Exception as error:
        return Refusal(error)


class Machine:
    """One library, the values that a program has made in it, and the notes.

    Parameters
    ----------
    library : module
        cygrad or torch.

    Attributes
    ----------
    values : list of Tensor
    notes : list
        One entry for each line, and one for each gradient at the end; equal for equal behavior, with arrays as
        leaves.
    """

    def __init__(self, library):
        self.library = library
        self.values = []
        self.first_versions = []
        self.made_at = {}
        self.notes = []
        self.events = []
        self.handles = []
        self.graphs = []
        self.modes = []
        self.recorded_again = False
        self.past = set()
        self.nowhere = library.zeros((), dtype=library.float64, requires_grad=True)
        self.functions = custom_functions(library)
        self.scope = {"t": library, "F": library.nn.functional, "v": self.values, "m": self, "inf": inf, "nan": nan}

    def run(self, line):
        """One line."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            before = self.contents()
            outcome = observed(lambda: self.keep(eval(line, self.scope)))
            self.remember(line, outcome, before)
            versions = [None if value.is_inference() else observed(lambda: value._version - first)
                        for value, first in zip(self.values, self.first_versions, strict=True)]
            for value in () if self.library.is_inference_mode_enabled() else self.values:
                observed(lambda: value.grad_fn)         # makes torch bring the history of views up to date
        self.note(line, outcome=outcome, versions=versions)

    def contents(self):
        """Return a checksum that detects changes without a new version; None for unshared memory."""
        if not self.past & {"exchanged", "resized"}:
            return None
        return [None if value.is_inference() else
                (observed(lambda: value._version), observed(lambda: self.elements(value).tobytes()))
                for value in self.values]

    def remember(self, line, outcome, before):
        """
        Keeps what decides later whether gradients can be compared at all.

        Words of `past`: "exchanged" and "resized" of memory that was put under a tensor with a history, "unnoticed" of
        elements that changed without their version, "failed" of a pass that stopped half way, "forced" of gradients
        that are enabled within inference mode.
        """
        refused = isinstance(outcome, Refusal)
        if line.startswith("m.over(") and not refused:
            self.past.add("exchanged")
        if "out=" in line and not refused:
            self.past.add("resized")
        if line.startswith(("m.backward", "m.grad")) and refused:
            self.past.add("failed")
        if self.library.is_inference_mode_enabled() and self.library.is_grad_enabled():
            self.past.add("forced")
        for old, new in zip(before or (), self.contents() or (), strict=False):
            if old is not None and new is not None and old[0] == new[0] and old[1] != new[1]:
                self.past.add("unnoticed")

    def note(self, title, **facts):
        """Append a record, with the hooks that ran since the last one."""
        self.notes.append((title, {**facts, "hooks": self.events[:]}))
        self.events.clear()

    def keep(self, result):
        """Append tensors to the values; return the record of a result."""
        if isinstance(result, (tuple, list)):
            return [self.keep(part) for part in result]
        if not isinstance(result, self.library.Tensor):
            return result
        for number, value in enumerate(self.values):
            if value is result:
                return f"v[{number}]"
        # In-place operations on new memory within an operator may differ.
        base = observed(lambda: self.base(result))
        fresh = 0 if result.is_inference() else result._version
        self.first_versions.append(self.first_versions[base] if isinstance(base, int) else fresh)
        self.values.append(result)
        self.made_at[id(result)] = observed(lambda: result._version)
        return self.look(result)

    def base(self, value):
        """
        The number of the value that a view is of; None if the program cannot see it.

        Results of some of PyTorch's operators are views of internal tensors: they count as the base of their views.
        """
        if not value._is_view():
            return None
        for number, other in enumerate(self.values):
            if other is value:
                return None
            if value._base is other or (other._is_view() and value._base is other._base and self.base(other) is None):
                return number
        return None

    def look(self, value):
        """All that can be seen of a tensor."""
        return {
            "dtype": str(value.dtype).rpartition(".")[2],
            "requires_grad": observed(lambda: value.requires_grad),
            "is_leaf": observed(lambda: value.is_leaf),
            "base": observed(lambda: self.base(value)),
            "is_inference": observed(lambda: value.is_inference()),
            "elements": self.elements(value),
        }

    def look_at_gradients(self, gradients):
        """Return the same for gradients, without the way they were computed."""
        return [{key: fact for key, fact in self.look(gradient).items() if key in ("dtype", "elements")}
                if isinstance(gradient, self.library.Tensor) else gradient for gradient in gradients]

    def elements(self, value):
        """A copy as an array; torch has tensors of zeros without memory, and such that conjugate when they are read."""
        if getattr(value, "_is_zerotensor", bool)():
            value = value.clone()
        return observed(lambda: value.detach().resolve_conj().resolve_neg().numpy().copy()
                        if hasattr(value, "resolve_conj") else value.detach().numpy().copy())

    def enter(self, mode):
        """Begins a mode, until `leave`. Where values are saved as copies, no later change matters."""
        made = {"no_grad": self.library.no_grad, "enable_grad": self.library.enable_grad,
                "inference": self.library.inference_mode,
                "saved": lambda: self.library.autograd.graph.saved_tensors_hooks(
                    lambda x: x.detach().clone(), lambda x: x)}[mode]()
        made.__enter__()
        self.modes.append(made)

    def leave(self):
        """Ends the innermost mode."""
        if self.modes:
            self.modes.pop().__exit__(None, None, None)

    def leave_all(self):
        """Ends all modes."""
        while self.modes:
            self.leave()

    def hook(self, value, kind="read"):
        """Registers a hook that is noted when it runs.

        `read` and `double` (which replaces) are tensor hooks, `raise` is one that fails, `free` drops another graph
        that was kept until then, and has it collected; `accumulated` is one after accumulation, `node` and `prenode`
        belong to `grad_fn`. Views that were changed since they were made get none: there torch 2.13 crashes.
        """
        if value._is_view() and value._version != self.made_at[id(value)]:
            return
        number = len(self.handles)

        def see(*gradients):
            """Record the arguments of a hook, except absent gradients, which may differ between libraries."""
            given = [gradient for gradient in gradients if gradient is not None]
            self.events.append((number, kind, self.look_at_gradients(given)))

        def tensor_hook(grad):
            see(grad)
            if kind == "raise":
                raise OSError("a hook of the program")
            if kind == "free":
                self.graphs.clear()
                self.collect()
            return grad * 2 if kind == "double" else None

        if kind == "free":
            part = (value * 1).sin()
            self.graphs.append([part, part])
            self.graphs[-1].append(self.graphs)
        if kind == "accumulated":
            handle = value.register_post_accumulate_grad_hook(lambda leaf: see(leaf.grad))
        elif kind == "node":
            handle = value.grad_fn.register_hook(lambda inputs, outputs: see(*outputs))
        elif kind == "prenode":
            handle = value.grad_fn.register_prehook(lambda outputs: see(*outputs))
        else:
            handle = value.register_hook(tensor_hook)
        self.handles.append(handle)

    def collect(self):
        """A collection of garbage."""
        gc.collect()

    def remove(self, number):
        """Removes a hook."""
        if self.handles:
            self.handles[number % len(self.handles)].remove()

    def conj(self, value):
        """Return the conjugate; in PyTorch a copy, because conj() is a lazy view there."""
        if not value.dtype.is_complex:
            return value
        return value.conj_physical() if hasattr(value, "conj_physical") else value.conj()

    def over(self, kind, value, memory):
        """
        A leaf, a result or a part of a value that is given the memory of another before anything reads it.

        That of an inference tensor makes one of it with torch; here it stays what it is.
        """
        if memory.is_inference() or (value is not None and value.is_inference()):
            return None
        made = {"leaf": lambda: self.library.zeros(3, dtype=memory.dtype), "result": lambda: value * 1,
                "part": lambda: value[..., :1]}[kind]()
        made.data = memory.detach()
        return made.requires_grad_() if kind == "leaf" else made

    def call(self, name, *arguments):
        """A custom function of `tests.programs.functions`. With torch one that changes its input takes its gradient."""
        if name == "Doubled" and not arguments[0].is_leaf:
            arguments[0].grad = None
        return self.functions[name].apply(*arguments)

    def weights(self, value, scale=1):
        """Return a gradient for backward with distinct elements."""
        numbers = np.arange(1, value.numel() + 1) % 5 + 1.0
        numbers *= scale * np.where(np.arange(value.numel()) % 3 == 1, -0.25, 0.5)
        numbers = numbers.reshape(tuple(value.shape))
        if value.dtype.is_complex:
            numbers = numbers * (1 - 0.5j)
        return self.library.tensor(numbers, dtype=value.dtype)

    def backward(self, value, **options):
        """Backward from a value of any shape, in the way of `grad`."""
        self.library.autograd.backward([value, self.nowhere], [self.weights(value), self.nowhere.detach()], **options)

    def grad(self, output, inputs, **options):
        """
        Gradients of a value of any shape, which become values.

        With a single output, torch calls hooks of what leads nowhere; so there are two.
        """
        # Whether the derivative of steps is recorded is open, so the result is made to depend on the output.
        nothing = (output * 0).abs().sum() if options.get("create_graph") else 0
        gradients = self.library.autograd.grad([output, self.nowhere], inputs,
                                               [self.weights(output), self.nowhere.detach()],
                                               allow_unused=True, **options)
        if options.get("create_graph"):
            self.remove_hooks_of_results()
            self.recorded_again = True
        return [gradient if gradient is None else gradient + nothing for gradient in gradients]

    def finish(self):
        """Gradients and second-order gradients of what requires grad, then backward."""
        self.leave_all()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.note("at the end", values=[self.look(value) for value in self.values])
            leaves = [value for value in self.values if observed(lambda: self.is_input(value)) is True]
            outputs = [(number, value) for number, value in enumerate(self.values)
                       if observed(lambda: value.requires_grad and not value.is_leaf) is True][-OUTPUTS:]
            firsts = [self.first(f"v[{number}]", output, leaves) for number, output in outputs] if leaves else []
            self.clear_gradients()
            for number, output in outputs:
                outcome = observed(lambda: self.backward(output, retain_graph=True))
                self.note(f"backward of v[{number}]", outcome=outcome,
                          grads=self.look_at_gradients([observed(lambda: value.grad) for value in self.shown()]))
                self.clear_gradients()
            self.remove_hooks_of_results()
            for (number, _), first in zip(outputs, firsts, strict=False):
                if first is not None:
                    self.second(f"v[{number}]", first, leaves)

    def clear_gradients(self):
        """Delete kept `.grad`, which differ after a backward that only one library refuses."""
        for value in self.values:
            observed(lambda: setattr(value, "grad", None))

    def shown(self):
        """The values whose collected gradients are noted: of results not if formulas, which may read them, are too."""
        return [value for value in self.values if not self.recorded_again or observed(lambda: value.is_leaf) is True]

    def is_input(self, value):
        """Return whether it is a leaf that requires grad, not through its base."""
        return value.is_leaf and value.requires_grad and not (value._is_view() and value._base.requires_grad)

    def first(self, name, output, leaves):
        """Gradients of one value, recorded; None if they are refused."""
        outputs, weights = [output, self.nowhere], [self.weights(output), self.nowhere.detach()]
        found = observed(lambda: self.library.autograd.grad(outputs, leaves, weights, create_graph=True,
                                                            allow_unused=True))
        refused = isinstance(found, Refusal)
        self.note(f"grad of {name}", outcome=found if refused else self.look_at_gradients(found))
        return None if refused else found

    def second(self, name, first, leaves):
        """Gradients of gradients. None is zero: a derivative of steps may or may not be recorded."""
        again = [gradient for gradient in first if gradient is not None and gradient.requires_grad]
        found = [None] * len(leaves)
        if again:
            weights = [self.weights(gradient, 0.5) for gradient in again]
            found = observed(lambda: self.library.autograd.grad(again, leaves, weights, allow_unused=True,
                                                                retain_graph=True))
        if not isinstance(found, Refusal):
            found = self.look_at_gradients([self.library.zeros_like(leaf) if gradient is None else gradient
                                            for leaf, gradient in zip(leaves, found, strict=True)])
        self.events.clear()
        self.note(f"second grad of {name}", outcome=found)

    def remove_hooks_of_results(self):
        """Hooks of second derivatives depend on whether a formula reads arguments or the result."""
        for handle in self.handles:
            handle.remove()


def run(program, library):
    """The notes of a whole program.

    Parameters
    ----------
    program : list of str
    library : module

    Returns
    -------
    list
    """
    machine = Machine(library)
    try:
        for line in program:
            machine.run(line)
        machine.finish()
    finally:
        machine.leave_all()
    return machine.notes
