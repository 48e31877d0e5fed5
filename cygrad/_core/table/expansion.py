"""Expansion of formulas: named helpers, zeros, and absent gradients.

The build expands all formulas (`expand`), so that other code needs no support for this.

A *helper* is a formula with a name and parameters. Calls are replaced by its expression, preceded by its definitions;
so it is computed whenever the formula is.

A node with several results gets a gradient for each; those of unused results are *absent*. Formulas are linear in
gradients, so a term of a sum that names an absent one is omitted, and a sum without terms is absent itself, like values
that name it. Formulas test for this with `x is None`.
"""

import ast
import copy
from collections import Counter

from .signature import RowError


class Helper:
    """A formula with parameters: one row of the table with the key `helper`."""

    def __init__(self, row: dict, name: str):
        call = ast.parse(row["helper"], mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name
                and all(isinstance(argument, ast.Name) for argument in call.args) and not call.keywords):
            raise RowError(f"{name}: 'helper' is not '{name}(parameter, ...)' (got {row['helper']!r})")
        if row.keys() != {"helper", "formula", "doc"}:
            raise RowError(f"{name}: a helper has the keys 'helper', 'formula' and 'doc' (got {', '.join(row)})")
        self.parameters = [argument.id for argument in call.args]
        self.definitions, self.value = statements(row["formula"], name)
        # Number of uses of each value, besides shape and dtype; an argument used once is inlined.
        parts = [part for tree in (*dict(self.definitions).values(), self.value) for part in ast.walk(tree)]
        slight = {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
        self.uses = Counter(part.id for part in parts if isinstance(part, ast.Name) and id(part) not in slight)


BUILT_IN = {
    "zeros_like": {"helper": "zeros_like(like)", "formula": "zeroed(like)",
                   "doc": "Zeros, also where `like` is nan: of its shape and dtype."},
    # The sum of no elements, expanded: it depends on `like`, so that its derivatives exist and are zero.
    "zeros": {"helper": "zeros(shape, like)", "formula": "expand(sum(narrow(flatten(like), 0, 0, 0)), shape)",
              "doc": "Zeros of a shape, of the dtype of `like`."},
    "all_false": {"helper": "all_false(shape, like)", "formula": "expand(any(narrow(flatten(like), 0, 0, 0)), shape)",
                  "doc": "A mask of a shape that chooses nothing."},
    "or_zeros": {"helper": "or_zeros(value, like)", "formula": "zeros_like(like) if value is None else value",
                 "doc": "The value; zeros if it is absent."},
}


def statements(text: str, title: str) -> tuple[list[tuple[str, ast.expr]], ast.expr]:
    """Return the definitions of a formula, as (name, expression), and the final expression."""
    try:
        *before, last = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise RowError(f"{title}: {error}") from None
    if not isinstance(last, ast.Expr) or not all(
            isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) for line in before):
        raise RowError(f"{title}: expected 'name = expression' lines, then an expression")
    return [(line.targets[0].id, line.value) for line in before], last.value


class Expansion(ast.NodeTransformer):
    """Inlines the helpers of one formula, appending to `definitions`."""

    def __init__(self, helpers: dict[str, Helper], title: str):
        self.helpers, self.title = helpers, title
        self.definitions: list[tuple[str, ast.expr]] = []
        self.calls = 0

    def visit_Call(self, node):
        self.generic_visit(node)
        helper = self.helpers.get(getattr(node.func, "id", None))
        if helper is None:
            return node
        if node.keywords or len(node.args) != len(helper.parameters):
            raise RowError(f"{self.title}: '{node.func.id}' takes ({', '.join(helper.parameters)}) by position "
                           f"(got '{ast.unparse(node)}')")
        self.calls += 1
        suffix, meaning = f"_{self.calls}", {}
        for parameter, argument in zip(helper.parameters, node.args, strict=True):
            if not isinstance(argument, (ast.Name, ast.Constant)) and helper.uses[parameter] > 1:
                self.definitions.append((parameter + suffix, argument))
                argument = ast.Name(parameter + suffix)
            meaning[parameter] = argument
        for name, value in helper.definitions:
            value = self.visit(Substitution(meaning).visit(copy.deepcopy(value)))
            self.definitions.append((name + suffix, value))
            meaning[name] = ast.Name(name + suffix)
        return self.visit(Substitution(meaning).visit(copy.deepcopy(helper.value)))


class Substitution(ast.NodeTransformer):
    """Substitutes expressions for names."""

    def __init__(self, meaning: dict[str, ast.expr]):
        self.meaning = meaning

    def visit_Name(self, node):
        return copy.deepcopy(self.meaning.get(node.id, node))

    def visit_Call(self, node):
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if isinstance(node.func, ast.Attribute):
            node.func = self.visit(node.func)
        return node


class Absence:
    """Rewrites one formula for absent gradients."""

    class Sums(ast.NodeTransformer):
        """Names the sums within a term: they exist if one of their own terms does."""

        def __init__(self, absence):
            self.absence = absence

        def visit_BinOp(self, node):
            if isinstance(node.op, (ast.Add, ast.Sub)) and self.absence.needs(node):
                total, absent = self.absence.lift(node)
                name = self.absence.define(total)
                if absent:
                    self.absence.absent.add(name.id)
                return name
            return self.generic_visit(node)

    def __init__(self, gradients):
        self.absent = set(gradients)          # names that may be None
        self.definitions: list[tuple[str, ast.expr]] = []
        self.terms = 0

    def define(self, value: ast.expr) -> ast.Name:
        """Return a name for a value."""
        if isinstance(value, ast.Name):
            return value
        self.terms += 1
        self.definitions.append((f"term_{self.terms}", value))
        return ast.Name(f"term_{self.terms}")

    def lift(self, node: ast.expr) -> tuple[ast.expr, bool]:
        """Return the expression without absent terms, and whether it may be None."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return self.sum(node, *self.lift(node.left), *self.lift(node.right))
        if isinstance(node, ast.IfExp):
            asked = self.asked(node.test)
            if asked & self.absent:                          # the caller handles both cases
                return node, any((isinstance(part, ast.Constant) and part.value is None)
                                 or (self.named(part) and part.id not in asked) for part in (node.body, node.orelse))
            (then, first), (other, second) = self.guard(node.body), self.guard(node.orelse)
            return ast.IfExp(node.test, then, other), first or second
        return self.guard(node)

    def guard(self, node: ast.expr) -> tuple[ast.expr, bool]:
        """Return the expression, or None if it names something absent; and whether it may be absent."""
        if self.asked(node) & self.absent:
            return node, False
        if self.needs(node):
            node = self.Sums(self).generic_visit(node)
        needs = sorted(self.needs(node))
        if not needs or isinstance(node, ast.Name):
            return node, bool(needs)
        tests = [is_none(ast.Name(name)) for name in needs]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        return ast.IfExp(test, ast.Constant(None), node), True

    def sum(self, node, left, left_absent, right, right_absent):
        if not left_absent and not right_absent:
            return ast.BinOp(left, node.op, right), False
        left, right = self.define(left), self.define(right)
        alone = right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), right)
        total = ast.BinOp(left, node.op, right)
        if right_absent:
            total = ast.IfExp(is_none(right), left, total)
        if left_absent:
            alone = ast.IfExp(is_none(right), ast.Constant(None), alone) if (
                right_absent and alone is not right) else alone
            total = ast.IfExp(is_none(left), alone, total)
        both = left_absent and right_absent
        return (self.define(total) if both else total), both

    def named(self, node) -> bool:
        return isinstance(node, ast.Name) and node.id in self.absent

    def needs(self, node) -> set[str]:
        """Return the names in an expression without which it is absent: those it does not compare with None."""
        return {part.id for part in ast.walk(node) if self.named(part)} - self.asked(node)

    @staticmethod
    def asked(node) -> set[str]:
        """Return the names that an expression compares with None."""
        return {part.left.id for part in ast.walk(node)
                if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.Is, ast.IsNot))
                and isinstance(part.left, ast.Name)}


def is_none(node: ast.expr) -> ast.expr:
    return ast.Compare(node, [ast.Is()], [ast.Constant(None)])


def expand(text: str, gradients, helpers: dict[str, Helper], title: str) -> str:
    """Expand a formula: `gradients` are the names of those that may be absent."""
    definitions, value = statements(text, title)
    expansion = Expansion(helpers, title)
    for name, defined in definitions:
        defined = expansion.visit(defined)
        expansion.definitions.append((name, defined))
    value = expansion.visit(value)
    absence = Absence(gradients)
    for name, defined in expansion.definitions:
        defined, absent = absence.lift(defined)
        absence.definitions.append((name, defined))
        if absent:
            absence.absent.add(name)
    value, _ = absence.lift(value)
    lines = [f"{name} = {ast.unparse(ast.fix_missing_locations(defined))}" for name, defined in absence.definitions]
    written = "\n".join([*lines, ast.unparse(ast.fix_missing_locations(value))])
    return text if same(text, written) else written


def same(text: str, written: str) -> bool:
    """Return whether the formula needs no expansion; then it keeps its formatting."""
    return ast.dump(ast.parse(text.strip())) == ast.dump(ast.parse(written))


def read_helpers(rows: dict[str, dict]) -> dict[str, Helper]:
    """Return the helpers among the rows of all families, and the built-in ones; helpers may call each other."""
    return {name: Helper(row, name) for name, row in {**BUILT_IN, **rows}.items()}
