"""Instructions of programs as Python objects, from which `builder` makes C structs."""

SAVED, GRADS, TEMPORARIES, CONSTANTS, LISTS = range(5)
# In the order of instruction_kind_t in executor.pxd.
KINDS = ("evaluate", "call", "scalar", "attribute", "tuple", "slice", "item", "listed", "arrays", "copy", "view",
         "fused_loop", "routine", "move", "jump", "jump_unless", "jump_if_there")
KIND = {name: number for number, name in enumerate(KINDS)}
ATTRIBUTE = {name: number for number, name in enumerate(
    ("shape", "ndim", "dtype", "numel", "strides", "storage_offset", "is_complex", "len", "sizes"))}
# As in executor.pxd.
FINAL, CONJUGATE, IN_PLACE, INTO, UNPACK = 1, 2, 4, 8, 16
SPACE_SHIFT, NO_OPERAND = 24, -1
MAX_OPERANDS, MAX_TEMPORARIES, MAX_GRADS = 12, 96, 20


def operand(space, slot):
    """Return the operand of a slot in a space."""
    return space << SPACE_SHIFT | slot


def place(operand):
    """Return the space and the slot of an operand."""
    return operand >> SPACE_SHIFT, operand & (1 << SPACE_SHIFT) - 1


class Instruction:
    """
    One instruction of the executor.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    operands, results : list of int
    which : int
        Detail of the kind: flags, the number of an attribute, the instruction to jump to.
    name : str, optional
        Of the operator, scalar operation or attribute.
    kernel : str, optional
        Name of the kernel of a call.
    expression : Expression, optional
    target : int
        Operand to write to instead of a result.
    detail : object, optional
        Offset of a view, or number of operands and stages of a fused loop.

    Attributes
    ----------
    last : int
        Bit i: operand i is not read afterwards.
    dead : list of int
        Operands to release after it.
    """

    __slots__ = ("dead", "detail", "expression", "kernel", "kind", "last", "name", "operands", "results", "target",
                 "which")

    def __init__(self, kind, operands=(), results=(), which=0, name=None, kernel=None, expression=None,
                 target=NO_OPERAND, detail=None):
        self.kind, self.operands, self.results, self.which = KIND[kind], list(operands), list(results), which
        self.name, self.kernel, self.expression, self.target, self.detail = name, kernel, expression, target, detail
        self.last, self.dead = 0, []

    def text(self, name):
        """Return the instruction as text; `name` maps an operand to its name."""
        kind, operands = KINDS[self.kind], ", ".join(map(name, self.operands))
        if kind.startswith("jump"):
            return f"{kind} {self.which}{f' ({operands})' if operands else ''}"
        value = f"{self.name or kind}({operands})" if self.expression is None else self.expression.text(name)
        return f"{', '.join(map(name, self.results))} = {value}"
