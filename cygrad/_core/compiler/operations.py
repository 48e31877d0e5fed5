"""One operation of a program while the list of them is worked on; arrays by their numbers in the recording."""

from cygrad._core.compiler.regions import forward_program, primitive_name

# What an element-wise program has room for.
MOST_INPUTS = 12
MOST_REGISTERS = 48

PRODUCTS = ("mm", "matmul", "linear")          # operators that multiply by one matrix, or its transpose

__all__ = ["PRODUCTS", "Operation", "Region"]


class Region:
    """An element-wise program under construction: arrays it reads, numbers, and instructions on (space, index)."""

    def __init__(self, inputs, constants, code, result):
        self.inputs, self.constants, self.code, self.result = inputs, constants, code, result

    @classmethod
    def of(cls, operator, arguments):
        """The forward of an element-wise operator; None if it has a form that is not element-wise."""
        n_inputs, numbers, code, result = forward_program(operator)
        inputs, constants, places = [], [], []
        for argument in arguments[:n_inputs]:
            if isinstance(argument, int):
                if argument not in inputs:
                    inputs.append(argument)
                places.append(("in", inputs.index(argument)))
            elif argument is None:
                return None
            else:
                constants.append(argument)
                places.append(("number", len(constants) - 1))
        for number in numbers:
            constants.append(number)
            places.append(("number", len(constants) - 1))
        made = []
        for primitive, out, operands in code:
            made.append((primitive, [places[operand] for operand in operands]))
            places.extend([None] * (out + 1 - len(places)))
            places[out] = ("made", len(made) - 1)
        return cls(inputs, constants, made, places[result])

    def with_input(self, number, other):
        """This program with another one in the place of an array that it reads; None if there is no room."""
        place = self.inputs.index(number)
        inputs = list(other.inputs)
        places = {}
        for i, own in enumerate(self.inputs):
            if i != place:
                if own not in inputs:
                    inputs.append(own)
                places["in", i] = ("in", inputs.index(own))
        places["in", place] = other.result
        offset = len(other.code)
        constants = other.constants + self.constants

        def moved(operand):
            space, index = operand
            if space == "in":
                return places[operand]
            return space, index + (offset if space == "made" else len(other.constants))

        code = other.code + [(primitive, [moved(operand) for operand in operands]) for primitive, operands in self.code]
        code, result = without_repetition(code, moved(self.result))
        if len(inputs) > MOST_INPUTS or len(inputs) + len(constants) + len(code) > MOST_REGISTERS:
            return None
        return Region(inputs, constants, code, result)

    def renamed(self, names):
        """The same on other arrays, of which some may be one."""
        inputs = [names.get(number, number) for number in self.inputs]
        unique = list(dict.fromkeys(inputs))
        places = {("in", i): ("in", unique.index(number)) for i, number in enumerate(inputs)}
        code = [(primitive, [places.get(operand, operand) for operand in operands])
                for primitive, operands in self.code]
        return Region(unique, self.constants, code, places.get(self.result, self.result))

    def assembled(self, make_constant):
        """As `Program` takes it: number of inputs, constants, instructions, number of registers, the result."""
        first = {"in": 0, "number": len(self.inputs), "made": len(self.inputs) + len(self.constants)}
        code = [(primitive, first["made"] + i, [first[space] + index for space, index in operands])
                for i, (primitive, operands) in enumerate(self.code)]
        return (len(self.inputs), [make_constant(number) for number in self.constants], code,
                first["made"] + len(code), first[self.result[0]] + self.result[1])

    def text(self, name):
        """The program as an expression; `name` gives what an input is called."""
        shown = []

        def operand(place):
            space, index = place
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
    """The same instructions, each of them once."""
    known, places, made = {}, {}, []
    for place, (primitive, operands) in enumerate(code):
        operands = [places.get(operand, operand) for operand in operands]
        first = known.setdefault((primitive, tuple(operands)), len(made))
        places["made", place] = ("made", first)
        if first == len(made):
            made.append((primitive, operands))
    return made, places.get(result, result)


def renamed(value, names):
    """An argument with other arrays in the place of some."""
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, int) else value


class Operation:
    """One operation while the list of them is worked on; arrays by their numbers in the recording."""

    def __init__(self, kind, arguments=(), results=(), target=None, region=None, operator=None, step=None, meta=None,
                 listed=False):
        self.kind, self.arguments, self.results, self.target = kind, arguments, results, target
        self.region, self.operator, self.step, self.meta, self.listed = region, operator, step, meta, listed

    def reads(self):
        """Numbers of the arrays that it reads, the target apart."""
        if self.region is not None:
            yield from self.region.inputs
            return
        for argument in self.arguments:
            if isinstance(argument, list):
                yield from (entry for entry in argument if entry is not None)
            elif isinstance(argument, int):
                yield argument

    def rename(self, names):
        """Read other arrays in the place of these."""
        if not any(number in names for number in self.reads()):
            return
        if self.region is not None:
            self.region = self.region.renamed(names)
        else:
            self.arguments = tuple(renamed(argument, names) for argument in self.arguments)

    def writes(self):
        """Numbers of the arrays that it changes in place."""
        if self.kind == "optimize":
            for own in self.arguments:
                yield from (own[0], *own[2:])
        elif self.target is not None:
            yield self.target
