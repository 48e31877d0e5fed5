"""Intermediate representation: operations on array numbers of the trace."""

from cygrad._core.compiler.fused_loops import forward_program, primitive_name

# Limits of an element-wise program.
MAX_INPUTS = 12
MAX_REGISTERS = 48

PRODUCTS = ("mm", "matmul", "linear")          # operators that multiply by one matrix or its transpose

__all__ = ["PRODUCTS", "Expression", "Operation"]


class Expression:
    """Element-wise expression: input arrays, constants, and instructions on (space, index)."""

    def __init__(self, inputs, constants, code, result):
        self.inputs, self.constants, self.code, self.result = inputs, constants, code, result

    @classmethod
    def of(cls, operator, arguments):
        """Return the forward of an element-wise operator; None if these arguments are not element-wise."""
        n_inputs, numbers, code, result = forward_program(operator)
        inputs, constants, positions = [], [], []
        for argument in arguments[:n_inputs]:
            if isinstance(argument, int):
                if argument not in inputs:
                    inputs.append(argument)
                positions.append(("in", inputs.index(argument)))
            elif argument is None:
                return None
            else:
                constants.append(argument)
                positions.append(("number", len(constants) - 1))
        for number in numbers:
            constants.append(number)
            positions.append(("number", len(constants) - 1))
        made = []
        for primitive, out, operands in code:
            made.append((primitive, [positions[operand] for operand in operands]))
            positions.extend([None] * (out + 1 - len(positions)))
            positions[out] = ("made", len(made) - 1)
        return cls(inputs, constants, made, positions[result])

    def with_input(self, number, other):
        """Inline the expression of an input; return None if the result exceeds the limits."""
        position = self.inputs.index(number)
        inputs = list(other.inputs)
        positions = {}
        for i, own in enumerate(self.inputs):
            if i != position:
                if own not in inputs:
                    inputs.append(own)
                positions["in", i] = ("in", inputs.index(own))
        positions["in", position] = other.result
        offset = len(other.code)
        constants = other.constants + self.constants

        def moved(operand):
            space, index = operand
            if space == "in":
                return positions[operand]
            return space, index + (offset if space == "made" else len(other.constants))

        code = other.code + [(primitive, [moved(operand) for operand in operands]) for primitive, operands in self.code]
        code, result = without_repetition(code, moved(self.result))
        if len(inputs) > MAX_INPUTS or len(inputs) + len(constants) + len(code) > MAX_REGISTERS:
            return None
        return Expression(inputs, constants, code, result)

    def renamed(self, names):
        """Return the expression on renamed arrays, some of which may become one."""
        inputs = [names.get(number, number) for number in self.inputs]
        unique = list(dict.fromkeys(inputs))
        positions = {("in", i): ("in", unique.index(number)) for i, number in enumerate(inputs)}
        code = [(primitive, [positions.get(operand, operand) for operand in operands])
                for primitive, operands in self.code]
        return Expression(unique, self.constants, code, positions.get(self.result, self.result))

    def assembled(self, make_constant):
        """Return the arguments of the compiled expression: n_inputs, constants, instructions, n_registers, result."""
        first = {"in": 0, "number": len(self.inputs), "made": len(self.inputs) + len(self.constants)}
        code = [(primitive, first["made"] + i, [first[space] + index for space, index in operands])
                for i, (primitive, operands) in enumerate(self.code)]
        return (len(self.inputs), [make_constant(number) for number in self.constants], code,
                first["made"] + len(code), first[self.result[0]] + self.result[1])

    def text(self, name):
        """Return the expression as text; `name` maps an array number to its name."""
        shown = []

        def operand(position):
            space, index = position
            if space == "in":
                return name(self.inputs[index])
            if space == "number":
                number = self.constants[index]
                return repr(number.plain if hasattr(number, "plain") else number)
            return shown[index]

        for primitive, operands in self.code:
            shown.append(f"{primitive_name(primitive)}({', '.join(map(operand, operands))})")
        return operand(self.result)


def without_repetition(code, result):
    """Merge equal instructions."""
    known, positions, made = {}, {}, []
    for position, (primitive, operands) in enumerate(code):
        operands = [positions.get(operand, operand) for operand in operands]
        first = known.setdefault((primitive, tuple(operands)), len(made))
        positions["made", position] = ("made", first)
        if first == len(made):
            made.append((primitive, operands))
    return made, positions.get(result, result)


def renamed(value, names):
    """Rename the arrays of an argument."""
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, int) else value


class Operation:
    """Operation on array numbers."""

    def __init__(self, kind, arguments=(), results=(), target=None, expression=None, operator=None, step=None,
                 meta=None, is_list=False):
        self.kind, self.arguments, self.results, self.target = kind, arguments, results, target
        self.expression, self.operator, self.step, self.meta, self.is_list = expression, operator, step, meta, is_list

    def reads(self):
        """Yield the arrays that it reads, without the target."""
        if self.expression is not None:
            yield from self.expression.inputs
            return
        for argument in self.arguments:
            if isinstance(argument, list):
                yield from (entry for entry in argument if entry is not None)
            elif isinstance(argument, int):
                yield argument

    def rename(self, names):
        """Rename the arrays that it reads."""
        if not any(number in names for number in self.reads()):
            return
        if self.expression is not None:
            self.expression = self.expression.renamed(names)
        else:
            self.arguments = tuple(renamed(argument, names) for argument in self.arguments)

    def writes(self):
        """Yield the arrays that it writes in place."""
        if self.kind == "optimize":
            for own in self.arguments:
                yield from (own[0], *own[2:])
        elif self.target is not None:
            yield self.target
