"""
Element-wise expressions: primitives applied to arrays and numbers, in one pass over memory.

Derivative formulas and compiled programs have the same ones.
"""

# As in elementwise/expression.pxd.
MAX_INPUTS, MAX_REGISTERS = 12, 48
MAX_FORMS = 20000                # kept at a time, with the codes


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

    def with_inputs(self, order, others):
        """
        Inline the expressions `others` of the inputs `order`, which come first.

        Returns
        -------
        tuple or None
            Code and result; None if they exceed the limits.
        """
        inputs, code, known, n_constants = {}, [], {}, 0

        def add(expression, given):
            """Append the code of an expression, of which some inputs are `given`, and return its result."""
            nonlocal n_constants
            positions = {("in", i): given[number] if number in given else ("in", inputs.setdefault(number, len(inputs)))
                         for i, number in enumerate(expression.inputs)}
            for i in range(len(expression.constants)):
                positions["number", i] = "number", n_constants + i
            n_constants += len(expression.constants)
            for i, (primitive, operands) in enumerate(expression.code):
                operands = [positions[operand] for operand in operands]
                position = known.setdefault((primitive, *operands), len(code))       # merges equal instructions
                positions["made", i] = "made", position
                if position == len(code):
                    code.append((primitive, operands))
            return positions[expression.result]

        result = add(self, {number: add(other, {}) for number, other in zip(order, others, strict=True)})
        if len(inputs) > MAX_INPUTS or len(inputs) + n_constants + len(code) > MAX_REGISTERS:
            return None
        return shared(code), result

    def renamed(self, names):
        """Return the expression on renamed arrays, some of which may become one."""
        inputs = [names.get(number, number) for number in self.inputs]
        unique = list(dict.fromkeys(inputs))
        if len(unique) == len(inputs):
            return Expression(inputs, self.constants, self.code, self.result)
        positions = {("in", i): ("in", unique.index(number)) for i, number in enumerate(inputs)}
        code = [(primitive, [positions.get(operand, operand) for operand in operands])
                for primitive, operands in self.code]
        return Expression(unique, self.constants, shared(code), positions.get(self.result, self.result))

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


# Expressions that differ only in their arrays and numbers share their code, which is never modified. `forms` has what
# was computed of codes, by their addresses, and keeps those alive.
forms, codes = {}, {}


def shared(code):
    """Return the one list of these instructions."""
    if len(codes) + len(forms) > MAX_FORMS:
        forms.clear()
        codes.clear()
    return codes.setdefault(repr(code), code)
