"""What became of a compiled function: recordings, replays, reasons, and its programs as text and as a drawing."""

from dataclasses import dataclass, field

from cygrad.autograd.drawing import Drawing, to_svg
from cygrad.compiling.function import Compiled, CompiledModule

__all__ = ["Explanation", "draw", "explain"]


@dataclass
class Explanation:
    """
    What became of a compiled function.

    Attributes
    ----------
    replays, calls : int
        How often it was replayed, and how often it was called in Python, recordings included.
    reasons : list of str
        Why it was not replayed, in the order in which that happened.
    programs : list of list of str
        The operations of each recording, the latest first.
    rewrites : list of list of str
        What each recording adds up in another order than the function does: nothing unless ``mode="fast"``.
    shared : list of list of range
        Operations of each program that threads share where they do not need each other.

    Examples
    --------
    >>> import cygrad
    >>> f = cygrad.compile(lambda x: x * 2 + 1)
    >>> for _ in range(3):
    ...     y = f(cygrad.ones(2))
    >>> cygrad.compiling.explain(f).replays
    2
    """

    replays: int
    calls: int
    reasons: list = field(default_factory=list)
    programs: list = field(default_factory=list)
    rewrites: list = field(default_factory=list)
    shared: list = field(default_factory=list)

    def __str__(self):
        lines = [f"{self.replays} replays, {self.calls} calls in Python, {len(self.programs)} recordings"]
        lines += [f"not replayed: {reason}" for reason in self.reasons]
        for number, program in enumerate(self.programs):
            beside = {place for stretch in self.shared[number] for place in stretch}
            lines += [f"recording {number}: {len(program)} operations",
                      *(f"  {'|' if place in beside else ' '} {line}" for place, line in enumerate(program))]
            lines += [f"  in another order: {line}" for line in self.rewrites[number]]
        return "\n".join(lines)


class ProgramDrawing(Drawing):
    """What there is to draw of a program: what comes from outside, and operations."""

    def __init__(self, operations):
        self.labels, self.kinds, self.edges = [], [], []
        made = {}                     # slot -> the box of what has made or changed it last
        for operation in operations:
            reads = [slot for argument in operation["arguments"] for slot in (
                argument if isinstance(argument, list) else [argument]) if isinstance(slot, int)]
            changes = [operation["target"]] if "target" in operation else []
            for _, roles in operation.get("updates", ()):
                reads += [slot for slot in roles if slot >= 0]
                changes.append(roles[0])
            sources = {made[slot] if slot in made else self._input(made, slot) for slot in reads}
            box = self._new("function", shown(operation).partition(" = ")[2] or shown(operation))
            self.edges += [(source, box) for source in sorted(sources)]
            for slot in (*operation["results"], *changes):
                made[slot] = box
            for slot, base, _ in operation["views"]:
                made[slot] = made[base]
        self.layers = self._layers()

    def _new(self, kind, label):
        self.labels.append(label if len(label) < 60 else label[:57] + "...")
        self.kinds.append(kind)
        return len(self.labels) - 1

    def _input(self, made, slot):
        made[slot] = self._new("leaf", f"%{slot}")
        return made[slot]


def draw(compiled, number=0):
    """
    A picture of the program of a compiled function: what comes from outside above, the last operations below.

    Parameters
    ----------
    compiled : Compiled or CompiledModule
    number : int, default 0
        Of the recording; the latest is the first.

    Returns
    -------
    str
        An SVG document.

    Examples
    --------
    >>> import cygrad
    >>> double = cygrad.compile(lambda x: x * 2 + 1)
    >>> y = double(cygrad.ones(2))
    >>> cygrad.compiling.draw(double)[:4]
    '<svg'
    """
    return to_svg(ProgramDrawing(compiled_function(compiled).variants[number].program.description))


def compiled_function(compiled):
    """The Compiled of what compile() returned."""
    if isinstance(compiled, CompiledModule):
        compiled = compiled.__dict__["compiled"]
    if not isinstance(compiled, Compiled):
        raise TypeError(f"explain: expected what compile() returned (got {type(compiled).__name__}).")
    return compiled


def explain(compiled):
    """
    What became of a compiled function.

    Parameters
    ----------
    compiled : Compiled or CompiledModule

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import cygrad
    >>> double = cygrad.compile(lambda x: x * 2 + 1)
    >>> for _ in range(3):
    ...     y = double(cygrad.ones(2))
    >>> print(cygrad.compiling.explain(double))
    2 replays, 1 calls in Python, 1 recordings
    recording 0: 1 operations
        %1 = add(mul(%0, 2), 1)
    """
    compiled = compiled_function(compiled)
    variants = compiled.variants
    return Explanation(sum(variant.runs for variant in variants), compiled.calls, list(compiled.reasons),
                       [[shown(operation) for operation in variant.program.description] for variant in variants],
                       [[*lines] for lines in compiled.rewrites],
                       [[range(stretch.start, stretch.stop) for stretch in variant.program.stretches]
                        for variant in variants])


def shown(operation):
    """One operation as a line of text."""
    results = ", ".join("_" if slot < 0 else f"%{slot}" for slot in operation["results"])
    if operation["kind"] == "optimize":
        step = operation["step"]
        return f"{type(step.optimizer).__name__}.step({', '.join(f'%{roles[0]}' for _, roles in operation['updates'])})"
    if operation["kind"] == "sweep":
        names = [f"%{slot}" for slot in (*operation["arguments"], *operation["results"])]
        return "; ".join(operation["text"](names))
    if operation["kind"] == "draw":
        return f"{results} = draw {operation['step'].draw}"
    if operation["region"] is not None:
        slots = dict(zip(operation["text"].__self__.inputs, operation["arguments"], strict=True))
        text = operation["text"](lambda number: f"%{slots[number]}")
        if operation["kind"] == "sum":
            text = f"sum_to({text}, {operation['meta'].shape})"
    else:
        name = operation["kind"] if operation["operator"] is None else operation["operator"].name
        text = f"{name}({', '.join(map(value_text, operation['arguments']))})"
    return f"{results} = {text}" if results else f"%{operation['target']} := {text}"


def value_text(value):
    """An argument as text."""
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return f"%{value}" if isinstance(value, int) else repr(value.plain) if value is not None else "None"
