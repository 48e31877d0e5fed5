"""Intermediate representation: operations on array numbers of the trace."""

from cygrad._core.compiler.program import forward_program, primitive_name

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

    def with_inputs(self, others):
        """Inline expressions of inputs, by array number; return None if the result exceeds the limits."""
        inputs, constants, code, known = {}, [], [], {}

        def add(expression, given):
            """Append the code of an expression, of which some inputs are `given`, and return its result."""
            positions = {("in", i): given[number] if number in given else ("in", inputs.setdefault(number, len(inputs)))
                         for i, number in enumerate(expression.inputs)}
            for i in range(len(expression.constants)):
                positions["number", i] = "number", len(constants) + i
            constants.extend(expression.constants)
            for i, (primitive, operands) in enumerate(expression.code):
                operands = [positions[operand] for operand in operands]
                position = known.setdefault((primitive, *operands), len(code))       # merges equal instructions
                positions["made", i] = "made", position
                if position == len(code):
                    code.append((primitive, operands))
            return positions[expression.result]

        # The first input comes last, where a chain in registers takes it over.
        result = add(self, {number: add(others[number], {}) for number in reversed(others)})
        if len(inputs) > MAX_INPUTS or len(inputs) + len(constants) + len(code) > MAX_REGISTERS:
            return None
        return Expression([*inputs], constants, code, result)

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
        """Return the arrays that it reads, without the target."""
        if self.expression is not None:
            return self.expression.inputs
        found = []
        for argument in self.arguments:
            if isinstance(argument, int):
                found.append(argument)
            elif isinstance(argument, list):
                found += [entry for entry in argument if entry is not None]
        return found

    def rename(self, names):
        """Rename the arrays that it reads."""
        if not names or names.keys().isdisjoint(self.reads()):
            return
        if self.expression is not None:
            self.expression = self.expression.renamed(names)
        else:
            self.arguments = tuple(renamed(argument, names) for argument in self.arguments)

    def writes(self):
        """Return the arrays that it writes in place."""
        if self.kind == "optimize":
            return [number for own in self.arguments for number in (own[0], *own[2:])]
        return () if self.target is None else (self.target,)
