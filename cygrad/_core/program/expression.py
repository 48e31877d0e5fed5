"""
Element-wise expressions: primitives applied to arrays and numbers, in one pass over memory.

Derivative formulas and compiled programs have the same ones.
"""

# As in elementwise/expression.pxd.
MAX_INPUTS, MAX_REGISTERS = 12, 48


class Expression:
    """
    Element-wise expression.

    Operands are pairs: ("in", position) of an input, ("number", position) of a constant, or ("made", position) of the
    result of an instruction.

    Parameters
    ----------
    inputs : list of int
        Operands of a formula, or numbers of arrays of a compiled program.
    constants : list of number
    code : list of tuple
        (name of a primitive, list of operands), in order.
    result : operand
    """

    __slots__ = ("code", "constants", "inputs", "result")

    def __init__(self, inputs, constants, code, result):
        self.inputs, self.constants, self.code, self.result = inputs, constants, code, result

    def fits(self):
        """Return whether it is within the limits of one pass over memory?"""
        return (len(self.inputs) <= MAX_INPUTS
                and len(self.inputs) + len(self.constants) + len(self.code) <= MAX_REGISTERS)

    def registers(self):
        """
        Return instructions (primitive, register, registers of operands), and the register of the result.

        Inputs come first, then constants, then the results of the instructions.
        """
        first = {"in": 0, "number": len(self.inputs), "made": len(self.inputs) + len(self.constants)}
        code = [(primitive, first["made"] + i, [first[space] + index for space, index in operands])
                for i, (primitive, operands) in enumerate(self.code)]
        return code, first[self.result[0]] + self.result[1]

    def text(self, name):
        """Return the expression as text; `name` maps an array number to its name."""
        shown = []

        def operand(position):
            space, index = position
            if space == "in":
                return name(self.inputs[index])
            if space == "made":
                return shown[index]
            return repr(getattr(self.constants[index], "plain", self.constants[index]))

        for primitive, operands in self.code:
            shown.append(f"{primitive}({', '.join(map(operand, operands))})")
        return operand(self.result)
