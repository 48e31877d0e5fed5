"""Report on a compiled function: traces, executions, reasons, and its programs as text and as a drawing."""

from dataclasses import dataclass, field

from cygrad.autograd.drawing import Drawing, to_svg
from cygrad.compiling.function import Compiled, CompiledModule

__all__ = ["Explanation", "draw", "explain"]


@dataclass
class Explanation:
    """
    Report on a compiled function.

    Attributes
    ----------
    executions, calls : int
        Number of executions, and of calls in Python, traced ones included.
    reasons : list of str
        Why calls were not executed, in order.
    programs : list of list of str
        Operations of each trace, latest first.
    rewrites : list of list of str
        Changed orders of summation of each trace; empty unless ``mode="fast"``.
    parallel : list of list of range
        Parallel sections of each program.
    retraces : list of str
        What differed from the latest trace when the function was traced again, in order.
    replays, shared
        Former names of `executions` and `parallel`.

    Examples
    --------
    >>> f = cygrad.compile(lambda x: x * 2 + 1)
    >>> for _ in range(3):
    ...     y = f(cygrad.ones(2))
    >>> cygrad.compiling.explain(f).executions
    2
    """

    executions: int
    calls: int
    reasons: list = field(default_factory=list)
    programs: list = field(default_factory=list)
    rewrites: list = field(default_factory=list)
    parallel: list = field(default_factory=list)
    retraces: list = field(default_factory=list)

    @property
    def replays(self):
        """Former name of `executions`."""
        return self.executions

    @property
    def shared(self):
        """Former name of `parallel`."""
        return self.parallel

    def __str__(self):
        lines = [f"{self.executions} executions, {self.calls} calls in Python, {len(self.programs)} traces"]
        lines += [f"not executed: {reason}" for reason in self.reasons]
        lines += [f"traced again for a change of {change}" for change in dict.fromkeys(self.retraces)]
        for number, program in enumerate(self.programs):
            parallel = {position for section in self.parallel[number] for position in section}
            lines += [f"trace {number}: {len(program)} operations",
                      *(f"  {'|' if position in parallel else ' '} {line}" for position, line in enumerate(program))]
            lines += [f"  in another order: {line}" for line in self.rewrites[number]]
        return "\n".join(lines)


class ProgramDrawing(Drawing):
    """Graph of a program for drawing: inputs and operations."""

    def __init__(self, operations):
        self.labels, self.kinds, self.edges = [], [], []
        made = {}                     # slot -> box of the operation that wrote it last
        for operation in operations:
            reads = [*operation.reads, *[slot for _, roles in operation.updates for slot in roles if slot >= 0]]
            changes = [operation.target] if operation.target >= 0 else [roles[0] for _, roles in operation.updates]
            sources = {made[slot] if slot in made else self._input(made, slot) for slot in reads}
            box = self._new("function", operation.text().partition(" = ")[2] or operation.text())
            self.edges += [(source, box) for source in sorted(sources)]
            for slot in (*operation.results, *changes):
                made[slot] = box
            for slot, base in operation.views:
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
    Draw the program of a compiled function, inputs first.

    Parameters
    ----------
    compiled : Compiled or CompiledModule
    number : int, default 0
        Index of the trace, latest first.

    Returns
    -------
    str
        An SVG document.

    Examples
    --------
    >>> double = cygrad.compile(lambda x: x * 2 + 1)
    >>> y = double(cygrad.ones(2))
    >>> cygrad.compiling.draw(double)[:4]
    '<svg'
    """
    return to_svg(ProgramDrawing(compiled_function(compiled).variants[number].executable.description))


def compiled_function(compiled):
    """Return the Compiled of a return value of compile()."""
    if isinstance(compiled, CompiledModule):
        compiled = compiled.__dict__["compiled"]
    if not isinstance(compiled, Compiled):
        raise TypeError(f"explain: expected what compile() returned (got {type(compiled).__name__}).")
    return compiled


def explain(compiled):
    """
    Report on a compiled function.

    Parameters
    ----------
    compiled : Compiled or CompiledModule

    Returns
    -------
    Explanation

    Examples
    --------
    >>> double = cygrad.compile(lambda x: x * 2 + 1)
    >>> for _ in range(3):
    ...     y = double(cygrad.ones(2))
    >>> print(cygrad.compiling.explain(double))
    2 executions, 1 calls in Python, 1 traces
    trace 0: 1 operations
        %1 = add(mul(%0, 2), 1)
    """
    compiled = compiled_function(compiled)
    variants = compiled.variants
    return Explanation(sum(variant.runs for variant in variants), compiled.calls, list(compiled.reasons),
                       [[operation.text() for operation in variant.executable.description] for variant in variants],
                       [[*lines] for lines in compiled.rewrites],
                       [[range(section.start, section.stop) for section in variant.executable.sections]
                        for variant in variants], list(compiled.retraces))
