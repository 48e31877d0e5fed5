"""
The representation of a compiled function: operations on numbered arrays over buffers.

`lowering` makes a `Program` of a trace and runs the passes, `assembly` turns it into an `Executable`. `print` shows
it; the tests read that back.
"""

cimport cython
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, realloc
from cygrad._core.arrays.array cimport array_t, same_shape
from cygrad._core.arrays.dtype cimport is_integral
from cygrad._core.compiler.tracer cimport Buffer, Step, TracedArray, array_of
from cygrad._core.program.builder cimport memory
from cygrad._core.table.operator cimport Operator

import re
from bisect import bisect_left
from itertools import count

from cygrad._core.compiler.executable import forward_expression, layout_of, number_everywhere
from cygrad._core.program.expression import MAX_INPUTS, MAX_REGISTERS, Expression

LARGE = 4096                      # elements from which reading memory matters

# Primitives that raise for integers with a zero divisor.
cdef frozenset DIVISIONS = frozenset(("trunc_divide", "floor_divide", "remainder", "fmod"))
PRODUCTS = ("mm", "matmul", "linear")          # operators that multiply by one matrix or its transpose
MAX_FORMS = 20000                 # kept at a time
cdef enum:
    MAX_PATTERN = 200             # inputs of an expression and of those of its inputs
    NUMBER = 15                   # in the pattern of an operator's arguments
cdef list NO_CONSTANTS = []       # of most expressions, never modified
cdef dict forwards = {}           # operator -> its `forward_expression`, and the Form for each pattern of arguments
# What was computed of forms, by tuples of them; and the forms, by their instructions.
cdef dict combined = {}, forms = {}


@cython.nonecheck(True)
@cython.binding(False)
@cython.no_gc                     # no cycle leads through it
cdef class Form:
    """The instructions of expressions that differ only in their arrays and numbers."""


@cython.nonecheck(True)
@cython.binding(False)
@cython.no_gc                     # no cycle leads through it
cdef class ArrayExpression:
    """
    Element-wise expression of arrays; see `Expression`.

    Parameters
    ----------
    inputs : list of int
        Array numbers.
    constants : list of number
    code : list of tuple
    result : operand
    """

    fits, registers, text = Expression.fits, Expression.registers, Expression.text

    def __init__(self, list inputs not None, list constants not None, list code not None, tuple result not None):
        self.inputs, self.constants, self.form = inputs, constants, shared_form(code, result, len(constants))

    @property
    def code(self):
        return self.form.code

    @property
    def result(self):
        return self.form.result

    cpdef ArrayExpression renamed(self, dict names):
        """Return the expression on renamed arrays, some of which may become one."""
        cdef list inputs = [names.get(number, number) for number in self.inputs], unique = []
        for number in inputs:
            _position(number, unique)
        if len(unique) == len(inputs):
            return _expression(inputs, self.constants, self.form)
        positions = {("in", i): ("in", unique.index(number)) for i, number in enumerate(inputs)}
        code = [(primitive, [positions.get(operand, operand) for operand in operands])
                for primitive, operands in self.form.code]
        return ArrayExpression(unique, self.constants, code, positions.get(self.form.result, self.form.result))


cdef ArrayExpression _expression(list inputs, list constants, Form form):
    cdef ArrayExpression made = ArrayExpression.__new__(ArrayExpression)
    made.inputs, made.constants, made.form = inputs, constants, form
    return made


cdef Form shared_form(list code, tuple result, int n_constants):
    cdef Form form
    if len(forms) + len(combined) > MAX_FORMS:
        forms.clear()
        combined.clear()
        forwards.clear()
    key = repr(code), result, n_constants
    form = forms.get(key)
    if form is None:
        form = forms[key] = Form()
        form.code, form.result, form.cost = code, result, -1
    return form


cdef int _position(object number, list inputs) except -1:
    """Return the position of a number in a list, to which it is appended if needed."""
    cdef int i, wanted = number
    for i in range(len(inputs)):
        if <int>inputs[i] == wanted:
            return i
    inputs.append(number)
    return len(inputs) - 1


cdef ArrayExpression with_inputs(ArrayExpression expression, list numbers, list others):
    cdef ArrayExpression other
    cdef list inputs = [], constants = NO_CONSTANTS, key = [expression.form]
    cdef unsigned char[MAX_PATTERN] pattern         # whose inputs are one
    cdef int n = 0, k, array
    # The first input comes last, where a chain in registers takes it over.
    for k in reversed(range(len(others))):
        other = <ArrayExpression?>others[k]
        if n + len(other.inputs) + len(expression.inputs) > MAX_PATTERN:
            return None
        key.append(other.form)
        for number in other.inputs:
            pattern[n] = _position(number, inputs)
            n += 1
        if other.constants:
            constants = constants + other.constants
    for number in expression.inputs:
        array = number
        for k in range(len(numbers)):
            if <int>numbers[k] == array:
                pattern[n] = 255 - k
                break
        else:
            pattern[n] = _position(number, inputs)
        n += 1
    if len(inputs) > MAX_INPUTS:
        return None
    if expression.constants:
        constants = constants + expression.constants
    key.append(pattern[:n])
    found = tuple(key)
    form = combined.get(found, others)
    if form is others:
        form = combined[found] = _inlined(expression, dict(reversed([*zip(numbers, others, strict=True)])))
    return None if form is None else _expression(inputs, constants, form)


def _inlined(ArrayExpression expression, dict others):
    """Return the Form of an expression with those of inputs, in this order; None if they exceed the limits."""
    inputs, code, known, constants = {}, [], {}, []

    def add(own, given):
        """Append the code of an expression, of which some inputs are `given`, and return its result."""
        positions = {("in", i): given[number] if number in given else ("in", inputs.setdefault(number, len(inputs)))
                     for i, number in enumerate(own.inputs)}
        for i, number in enumerate(own.constants):
            positions["number", i] = "number", len(constants)
            constants.append(number)
        for i, (primitive, operands) in enumerate(own.code):
            operands = [positions[operand] for operand in operands]
            position = known.setdefault((primitive, *operands), len(code))       # merges equal instructions
            positions["made", i] = "made", position
            if position == len(code):
                code.append((primitive, operands))
        return positions[own.result]

    result = add(expression, {number: add(other, {}) for number, other in others.items()})
    if len(inputs) > MAX_INPUTS or len(inputs) + len(constants) + len(code) > MAX_REGISTERS:
        return None
    return shared_form(code, result, len(constants))


cdef ArrayExpression expression_of(object operator, tuple arguments):
    cdef list inputs = [], constants = NO_CONSTANTS
    cdef uint64_t pattern = 0         # four bits per argument: the position of its array, or those of a number
    cdef tuple forward
    cdef int i, n_inputs
    found = forwards.get(operator, forwards)
    if found is forwards:
        found = forward_expression(operator)
        found = forwards[operator] = None if found is None else (*found, {})
    forward = found
    if forward is None:
        return None
    n_inputs = forward[0]
    for i in range(n_inputs):
        argument = arguments[i]
        if argument is None:
            return None
        if isinstance(argument, int):
            pattern = pattern << 4 | _position(argument, inputs)
        else:
            constants = [*constants, argument]
            pattern = pattern << 4 | NUMBER
    form = (<dict>forward[4]).get(pattern)
    if form is None:
        form = (<dict>forward[4])[pattern] = _forward_form(forward, pattern)
    return _expression(inputs, [*constants, *forward[1]] if forward[1] else constants, form)


def _forward_form(tuple forward, pattern):
    """Return the Form of the forward of an operator whose arguments have this pattern."""
    n_inputs, numbers, code, result, _ = forward
    places, given, made = [pattern >> 4 * i & 15 for i in reversed(range(n_inputs))], count(), []
    positions = [("number", next(given)) if place == NUMBER else ("in", place) for place in places]
    positions += [("number", next(given)) for _ in numbers]
    for primitive, out, operands in code:
        made.append((primitive, [positions[operand] for operand in operands]))
        positions.extend([None] * (out + 1 - len(positions)))
        positions[out] = ("made", len(made) - 1)
    return shared_form(made, positions[result], next(given))


def plain(argument):
    """Return the Python value of an argument that is not an array."""
    return getattr(argument, "plain", argument)


cdef object _renamed(object value, dict names):
    """Rename the arrays of an argument."""
    if isinstance(value, list):
        return [_renamed(item, names) for item in <list>value]
    return names.get(value, value) if isinstance(value, int) else value


@cython.nonecheck(True)
@cython.binding(False)
cdef class Operation:
    """Operation on array numbers."""

    def __init__(self, str kind not None, tuple arguments=(), tuple results=(), target=None, expression=None,
                 operator=None, step=None, meta=None, is_list=False):
        self.kind, self.arguments, self.results, self.target = kind, arguments, results, target
        self.expression, self.operator, self.step, self.meta, self.is_list = expression, operator, step, meta, is_list

    @staticmethod
    cdef Operation of_step(str kind, tuple arguments, Step step, ArrayExpression expression=None):
        """Return the operation of a step."""
        cdef Operation made = Operation.__new__(Operation)
        made.kind, made.arguments, made.results, made.target = kind, arguments, step.results, None
        made.expression, made.operator, made.is_list = expression, step.operator, step.is_list is True
        if step.target >= 0:
            made.results, made.target = (), step.target
        return made

    cpdef list reads(self):
        cdef list found = []
        if self.expression is not None:
            return self.expression.inputs
        for argument in self.arguments:
            if isinstance(argument, int):
                found.append(argument)
            elif isinstance(argument, list):
                found += [entry for entry in <list>argument if entry is not None]
        return found

    cpdef list uses(self):
        if self.expression is not None:
            return self.expression.inputs
        return [number for own in self.arguments for number in own] if self.kind == "optimize" else self.reads()

    cpdef int rename(self, dict names) except -1:
        if names:
            for number in self.reads():
                if number in names:
                    if self.expression is not None:
                        self.expression = self.expression.renamed(names)
                    else:
                        self.arguments = tuple([_renamed(argument, names) for argument in self.arguments])
                    break
        return 0

    cpdef list expressions(self):
        return [] if self.expression is None else [self.expression]

    cpdef object writes(self):
        if self.kind == "optimize":
            return [number for own in self.arguments for number in (own[0], *own[2:])]
        return () if self.target is None else (self.target,)

    def text(self, name):
        """Return what it computes as text; `name` maps an array number to its name."""
        if self.expression is not None:
            text = self.expression.text(name)
            return text if self.kind != "sum" else f"sum_to({text}, {self.meta.shape})"
        if self.kind == "draw":
            return f"draw({self.step.draw})"

        def shown(value):
            if isinstance(value, list):
                return f"[{', '.join(map(shown, value))}]"
            return f"initial({name(value[1])})" if isinstance(value, tuple) else (
                name(value) if isinstance(value, int) else repr(plain(value)))

        if self.kind == "optimize":
            groups = [f"[{', '.join(map(name, own))}]" for own in self.arguments]
            return f"{type(self.step.optimizer).__name__}.step({', '.join(groups)})"
        operator = self.kind.removesuffix("_into") if self.operator is None else self.operator.name
        return f"{operator}({', '.join(map(shown, self.arguments))})"

    def line(self, name, layout=None):
        """Return the operation with its results as text; `layout` maps an array number to that of its layout."""
        def made(number):
            return "_" if number < 0 else name(number) + (f": {layout(number)}" if layout else "")

        results, text = ", ".join([made(number) for number in self.results]), self.text(name)
        if self.kind == "fused_loop":
            return f"{results} = loop({text})" if layout else text
        if self.target is not None:
            return f"{name(self.target)} {':=' if self.kind in CHANGES else '<-'} {text}"
        return f"{f'[{results}]' if self.is_list and layout else results} = {text}" if results else text


@cython.nonecheck(True)
@cython.binding(False)
cdef class FusedLoop(Operation):
    """
    Element-wise operations in one pass over memory.

    stages : list of (Expression, operands of its inputs, operand of its result); operands are arguments, results, then
    values that exist one tile at a time.
    """

    cdef readonly list stages
    cdef readonly int n_operands

    def __init__(self, tuple arguments, tuple results, list stages not None, int n_operands):
        super().__init__("fused_loop", arguments, results)
        self.stages, self.n_operands = stages, n_operands

    cpdef list expressions(self):
        return [expression for expression, _, _ in self.stages]

    def text(self, name):
        """Return all stages as text."""
        arrays, lines = self.arguments + self.results, []

        def shown(position):
            return name(arrays[position]) if position < len(arrays) else f"t{position - len(arrays)}"

        for expression, inputs, out in self.stages:
            positions = dict(zip(expression.inputs, inputs, strict=True))
            lines.append(f"{shown(out)} = {expression.text(lambda number, own=positions: shown(own[number]))}")
        return "; ".join(lines)


@cython.nonecheck(True)
@cython.binding(False)
cdef class Program:
    """
    Operations on numbered arrays, each over a buffer; values are computed once, apart from writes in place.

    Parameters
    ----------
    arrays : list of TracedArray
        Layouts, each with its buffer and the offset there.
    buffers : list of Buffer
    operations : list of Operation
    outgoing : set of int
        Arrays that leave the program.
    start : int
        Step of the trace at which it begins; results of earlier steps are inputs.
    fast : bool
        Allow other orders of summation.
    snapshot : callable, optional
        From the position of a constant buffer to a TracedArray of its initial elements.
    """

    def __init__(self, arrays, buffers, operations, outgoing, start=0, fast=False, snapshot=None):
        cdef TracedArray traced
        cdef int number = 0
        self.arrays, self.buffers, self.operations = [*arrays], [*buffers], operations
        self.outgoing, self.start, self.fast, self.snapshot = set(outgoing), start, fast, snapshot
        self.several, self.n_facts = {}, 0
        for traced in self.arrays:
            self.add_facts(traced)
            if self.facts[number].base != number:
                self.several.setdefault(traced.buffer, [self.facts[number].base]).append(number)
            number += 1
        self.output_buffers = {buffer_at(self, number) for number in self.outgoing}
        self.folded, self.sources, self.names, self.aliases = set(), {}, {}, {}
        self.rewrites = []            # descriptions of changed summation orders

    def __dealloc__(self):
        free(self.facts)

    # ------------------------------------------------------------------------------------------ what is known of arrays

    cdef int add_facts(self, TracedArray traced) except -1:
        """Add the facts of the next array."""
        cdef Buffer buffer = <Buffer?>self.buffers[traced.buffer]
        cdef array_t *array = array_of(traced)
        cdef int capacity = 2 * self.capacity + len(self.arrays)
        cdef array_facts_t *facts
        if self.n_facts == self.capacity:
            facts = <array_facts_t *>realloc(self.facts, capacity * sizeof(array_facts_t))
            if facts == NULL:
                raise MemoryError("compile: no memory for a program")
            self.facts, self.capacity = facts, capacity
        self.facts[self.n_facts] = array_facts_t(
            array.size, traced.buffer, buffer.first, self.is_local(buffer),
            not buffer.writes and buffer.kind == "constant", bool(buffer.writes), is_integral(array.dtype))
        self.n_facts += 1
        return 0

    def is_changed_before(self, Buffer buffer not None):
        """Return whether a constant was modified before `start`; then its elements belong to the call."""
        return any([step < self.start for step in buffer.writes])

    def is_input(self, number):
        """Return whether the array is an input of the caller or a result of a step before `start`."""
        cdef Buffer buffer = buffer_of(self, number)
        return not self.is_local(buffer) and (buffer.kind != "constant" or self.is_changed_before(buffer))

    cpdef bint is_constant(self, int number) except -1:
        """Return whether the elements are the same in each execution."""
        return facts_of(self, number).is_constant or (
            bool(self.folded) and buffer_at(self, number) in self.folded)

    cpdef bint is_local(self, Buffer buffer) except -1:
        """Return whether the program allocates this buffer."""
        return buffer.kind == "result" and buffer.maker >= self.start

    cpdef bint is_private(self, int number) except -1:
        """Return whether it is the first array of a result that is neither written in place nor returned."""
        cdef const array_facts_t *facts = facts_of(self, number)
        return (facts.base == number and not facts.is_written and facts.is_local
                and facts.buffer not in self.output_buffers)

    cpdef bint is_sole_array(self, int number) except -1:
        """Return whether it is the only array of a result that is neither written in place nor returned."""
        return self.is_private(number) and buffer_at(self, number) not in self.several

    cpdef bint is_never_written(self, int number) except -1:
        return not facts_of(self, number).is_written

    def new_array(self, model, shape):
        """Return the number of a new contiguous result."""
        number, buffer = len(self.arrays), len(self.buffers)
        self.buffers.append(Buffer("result", number, self.start))
        self.arrays.append(layout_of(model, shape, None, buffer))
        self.add_facts(self.arrays[number])
        return number

    def view(self, buffer, offset, shape, strides, model):
        """Return the number of an array over a buffer, which is added if needed."""
        for number in self.arrays_of(buffer):
            traced = self.arrays[number]
            if (traced.offset, traced.shape, traced.strides, traced.dtype) == (offset, shape, strides, model.dtype):
                return number
        self.arrays.append(layout_of(model, shape, strides, buffer, offset))
        number = len(self.arrays) - 1
        self.add_facts(self.arrays[number])
        self.several.setdefault(buffer, [self.facts[number].base]).append(number)
        return number

    cpdef bint calls(self, object names) except -1:
        cdef Operation operation
        for operation in self.operations:
            if operation.kind == "kernel" and (<Operator?>operation.operator).name in names:
                return True
        return False

    cpdef list arrays_of(self, int buffer):
        found = self.several.get(buffer)
        return [(<Buffer?>self.buffers[buffer]).first] if found is None else found

    cdef int32_t *read_counts(self, list keep) except NULL:
        cdef Operation operation
        cdef int32_t *counts = <int32_t *>memory(len(self.buffers) * sizeof(int32_t), keep)
        for operation in self.operations:
            for number in operation.uses():
                counts[buffer_at(self, number)] += 1
        return counts

    cpdef dict uses(self):
        """Return buffer -> positions of its readers, once per read."""
        cdef Operation operation
        cdef dict uses = {}
        cdef int position = 0
        for operation in self.operations:
            for number in operation.uses():
                buffer = buffer_at(self, number)
                found = uses.get(buffer)
                if found is None:
                    uses[buffer] = [position]
                else:
                    (<list>found).append(position)
            position += 1
        return uses

    cpdef bint can_fail(self, Operation operation) except -1:
        """Return whether it can fail: on integers, for an index out of bounds or a zero divisor."""
        for number in operation.reads():
            if facts_of(self, number).is_integral:
                return operation.kind.startswith("kernel") or any([
                    primitive in DIVISIONS for expression in operation.expressions()
                    for primitive, _ in expression.code])
        return False

    cpdef bint unchanged_between(self, int number, int first, int last) except -1:
        """Return whether the memory of the array is unmodified between two operations."""
        cdef Operation operation
        if self.is_never_written(number):
            return True
        if self.written is not self.operations:
            self.written, self.writers = self.operations, {}
            for position, operation in enumerate(self.operations):
                for other in operation.writes():
                    self.writers.setdefault(buffer_at(self, other), []).append(position)
        positions = self.writers.get(buffer_at(self, number), ())
        return bisect_left(positions, first) == bisect_left(positions, last)

    cpdef tuple memory_of(self, int number):
        """Return the base array of the memory and the offset in bytes."""
        cdef TracedArray traced = <TracedArray?>self.arrays[number]
        if not self.aliases or traced.buffer not in self.aliases:
            return facts_of(self, number).base, traced.offset
        number, offset = self.aliases[traced.buffer]
        first, before = self.memory_of(number)
        return first, before + offset + traced.offset

    def outer(self):
        """Return the base arrays of all inputs."""
        found = {}
        for operation in self.operations:
            for number in (*operation.reads(), *operation.writes()):
                if self.is_input(number):
                    found[self.buffers[self.arrays[number].buffer].first] = None
        return list(found)

    def adds_two(self, Operation operation not None):
        """Return whether it is the sum of two arrays, possibly broadcast."""
        expression = operation.expression
        return (operation.kind == "evaluate" and len(expression.code) == 1 and len(expression.inputs) == 2
                and not expression.constants and expression.code[0][0] == "add")

    def is_sum_of_two(self, Operation operation not None):
        """Return whether it is the sum of two arrays of the layout of the result."""
        cdef const array_t *array
        cdef const array_t *result
        if not self.adds_two(operation):
            return False
        result = array_at(self, operation.results[0])
        for number in operation.expression.inputs:
            array = array_at(self, number)
            if not (array.dtype == result.dtype and array.contiguous == result.contiguous
                    and same_shape(array, result)):
                return False
        return True

    # -------------------------------------------------------------------------------------------------------- text form

    def __str__(self):
        """Show inputs, views and operations, numbered as they appear."""
        declared, lines = set(), []

        def declare(number):
            """Show where an array comes from that no operation makes."""
            if number in declared:
                return
            declared.add(number)
            first, offset = self.memory_of(number)
            buffer, folded = self.buffers[self.arrays[number].buffer], self.arrays[number].buffer in self.folded
            if first != number:
                declare(first)
                source = f"view(%{first}, {offset})"
            elif folded or buffer.kind == "constant":
                value = number_everywhere(self.arrays[number])
                source = f"constant({'' if value is None else repr(value)})"
            else:
                source = f"{'tensor' if buffer.kind == 'result' else buffer.kind}()"
            lines.append(f"%{number}: {layout_text(self.arrays[number])} = {source}")

        for operation in self.operations:
            made = {number for number in operation.results if number >= 0}
            line = operation.line("%{}".format, lambda number: layout_text(self.arrays[number]))
            declared |= made
            for number in re.findall(r"%(\d+)", line):
                declare(int(number))
            lines.append(line)
        for number in sorted(self.outgoing):
            declare(number)
        lines.append(f"return {', '.join([f'%{number}' for number in sorted(self.outgoing)])}")
        names = {}
        return re.sub(r"%(\d+)", lambda match: f"%{names.setdefault(match[1], len(names))}", "\n".join(lines)).rstrip()

    # --------------------------------------------------------------------------------------------------------- verifier

    def verify(self, after):
        """Raise a RuntimeError if this program is invalid after the pass `after`."""
        defined, failures = set(), []

        def check(holds, message):
            if not holds:
                failures.append(message)

        def read(number, line):
            first = self.memory_of(number)[0]
            buffer = self.buffers[self.arrays[first].buffer]
            check(first in defined or self.arrays[first].buffer in self.folded or not self.is_local(buffer),
                  f"%{number} is read before it is computed: {line}")

        for operation in self.operations:
            line = operation.line("%{}".format)
            for number in operation.uses():
                read(number, line)
            if operation.target is not None:
                read(operation.target, line)
            for number in operation.results:
                first = -1 if number < 0 else self.memory_of(number)[0]
                check(number < 0 or first not in defined or first != number, f"%{number} is computed twice: {line}")
                defined.add(first)
            for expression in operation.expressions():
                check(expression.fits(), f"an expression is too large: {line}")
                check(all(space != "made" or index < position for position, (_, operands) in enumerate(expression.code)
                          for space, index in operands), f"an expression reads a later value: {line}")
            if operation.kind == "evaluate":
                out = self.arrays[operation.results[0] if operation.target is None else operation.target]
                check(all(broadcasts(self.arrays[number].shape, out.shape) for number in operation.expression.inputs),
                      f"an operand does not broadcast to the result: {line}")
            if operation.kind == "fused_loop":
                sizes = {self.arrays[number].numel for number in operation.results}
                check(len(sizes) == 1 and all(
                    self.arrays[number].numel in sizes or number_of_places(self.arrays[number]) == 1
                    for number in operation.arguments), f"operands of a loop have several sizes: {line}")
        for number in self.outgoing:
            read(number, "return")
        if failures:
            raise RuntimeError(f"compile: the program is invalid after {after}: {'; '.join(failures)}\n{self}")


CHANGES = ("change", "kernel_into", "kernel_copy")       # kinds of operations that change a tensor


def broadcasts(shape, to):
    """Return whether a shape broadcasts to another one."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def number_of_places(traced):
    """Return how many elements of memory an array has."""
    places = 1
    for size, stride in zip(traced.shape, traced.strides, strict=True):
        places *= size if stride else 1
    return places


def layout_text(traced):
    """Return dtype, shape and strides as text; without strides the array is contiguous."""
    text = f"{str(traced.dtype).rpartition('.')[2]}{list(traced.shape)}"
    return text if traced.contiguous else f"{text} strides {list(traced.strides)}"


def operation_of(Step step not None):
    """Return the unoptimized Operation of a step."""
    if step.operator is not None:
        expression = expression_of(step.operator, step.arguments)
        if expression is not None:
            return Operation.of_step("evaluate" if step.kind == "call" else "change", (), step, expression)
        kind = "kernel" if step.kind == "call" else (
            "kernel_into" if step.operator.row["into"] is not None else "kernel_copy")
        return Operation.of_step(kind, step.arguments, step)
    if step.kind == "optimize":
        return Operation("optimize", step.arguments, step=step)
    if step.kind == "keep":        # save what an in-place operation overwrites
        return Operation("copy", step.arguments, step.results)
    return Operation("draw", (), step.results, step=step)
