"""Translate formulas of the operator table to LaTeX, for the documentation.

Conditions that an outer condition decides are resolved: of `where(x == 0, 0, 1 / where(x == 0, 1, x))` 1/x remains.
Functions without a sign keep their name. The text has no `|`, so that tables can contain it.
"""

import ast
import re

# Precedence, weakest first; weaker operands get parentheses.
CHOICE, LOGIC, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)

GREEK = {"alpha", "beta", "gamma", "delta", "lambda", "mu", "nu", "rho", "sigma", "tau", "theta", "pi"}
NAMES = {"self": "x", "result": "y", "grad": "g", "inf": r"\infty", "nan": r"\text{nan}", "eps": r"\varepsilon",
         "lambd": r"\lambda", "grads": "g"}
COMPARISONS = {ast.Eq: "=", ast.NotEq: r"\ne", ast.Lt: "<", ast.LtE: r"\le", ast.Gt: ">", ast.GtE: r"\ge",
               ast.Is: r"\text{ is }", ast.IsNot: r"\text{ is not }"}
# Template with `#` for the argument, precedence of the result, and of the argument.
ONE = {
    "exp": ("e^{#}", POWER, CHOICE), "exp2": ("2^{#}", POWER, CHOICE), "expm1": ("e^{#} - 1", SUM, CHOICE),
    "square": ("#^{2}", POWER, ATOM), "reciprocal": (r"\frac{1}{#}", ATOM, CHOICE), "neg": ("-#", SIGN, SIGN),
    "sqrt": (r"\sqrt{#}", ATOM, CHOICE), "rsqrt": (r"\frac{1}{\sqrt{#}}", ATOM, CHOICE),
    "abs": (r"\left\lvert # \right\rvert", ATOM, CHOICE), "conj": (r"\overline{#}", ATOM, CHOICE),
    "adjoint": (r"#^{\mathsf{H}}", POWER, ATOM), "matrix_transpose": (r"#^{\mathsf{T}}", POWER, ATOM),
    "t": (r"#^{\mathsf{T}}", POWER, ATOM), "floor": (r"\left\lfloor # \right\rfloor", ATOM, CHOICE),
    "ceil": (r"\left\lceil # \right\rceil", ATOM, CHOICE), "log1p": (r"\ln\left(1 + #\right)", ATOM, SUM),
    "logical_not": (r"\text{not } #", LOGIC, COMPARISON), "isnan": (r"#\text{ is nan}", COMPARISON, SUM),
    "isfinite": (r"#\text{ is finite}", COMPARISON, SUM),
    "identity_like": ("I", ATOM, CHOICE), "zeros_like": ("0", ATOM, CHOICE), "ones_like": ("1", ATOM, CHOICE),
    "zeros": ("0", ATOM, CHOICE), "all_false": (r"\text{false}", ATOM, CHOICE),
}
# Two arguments, `#` and `@`.
TWO = {
    "matmul": (r"#\;@", PRODUCT, PRODUCT), "mm": (r"#\;@", PRODUCT, PRODUCT), "bmm": (r"#\;@", PRODUCT, PRODUCT),
    "mv": (r"#\;@", PRODUCT, POWER), "logical_and": (r"#\text{ and }@", LOGIC, COMPARISON),
    "logical_or": (r"#\text{ or }@", LOGIC, COMPARISON),
    "floor_divide": (r"\left\lfloor \frac{#}{@} \right\rfloor", ATOM, CHOICE),
    "xlogy": (r"# \cdot \ln @", PRODUCT, PRODUCT),
    "polygamma": (r"\psi^{(#)}\left(@\right)", ATOM, CHOICE), "outer": (r"#\;@^{\mathsf{T}}", PRODUCT, ATOM),
    "or_zeros": ("#", CHOICE, CHOICE), "cast": ("#", CHOICE, CHOICE), "complex": (r"# + i\, @", SUM, PRODUCT),
}
FUNCTIONS = {
    "sin": r"\sin", "cos": r"\cos", "tan": r"\tan", "sinh": r"\sinh", "cosh": r"\cosh", "tanh": r"\tanh", "log": r"\ln",
    "minimum": r"\min", "maximum": r"\max", "sigmoid": r"\sigma", "lgamma": r"\ln\Gamma", "digamma": r"\psi",
    "real": r"\operatorname{Re}", "imag": r"\operatorname{Im}", "bessel_j0": "J_0", "bessel_j1": "J_1",
    "bessel_y0": "Y_0", "bessel_y1": "Y_1", "i0": "I_0", "i1": "I_1", "modified_bessel_k0": "K_0",
    "modified_bessel_k1": "K_1", "zeta": r"\zeta", "airy_ai": r"\mathrm{Ai}", "airy_ai_slope": r"\mathrm{Ai}'",
}
CONSTANTS = {2.302585092994046: r"\ln 10", 0.6931471805599453: r"\ln 2", 1.1283791670955126: r"\frac{2}{\sqrt{\pi}}",
             0.8862269254527579: r"\frac{\sqrt{\pi}}{2}", 0.7978845608028654: r"\sqrt{\frac{2}{\pi}}"}


def latex(text: str, left: str = "") -> str:
    """
    Translate a formula of the table to LaTeX.

    Parameters
    ----------
    text : str
        An expression, or definitions and an expression, one per line.
    left : str
        Left-hand side of the expression, in LaTeX.

    Returns
    -------
    str
        Definitions and expression, aligned at the equality signs.
    """
    *before, last = ast.parse(text.strip()).body
    lines = [(name(line.targets[0].id), strong(line.value)) for line in before] + [(left, strong(last.value))]
    if len(lines) == 1:
        return f"{left} = {lines[0][1]}" if left else lines[0][1]
    return r"\begin{aligned} " + r" \\ ".join(f"{key} &= {value}" for key, value in lines) + r" \end{aligned}"


def gradient_of(argument: str) -> str:
    """Return the symbol of an argument's gradient."""
    return f"g_{{{name(argument)}}}"


def name(written: str) -> str:
    """Return the symbol of a name: a letter, with an index if it ends in digits, else the word."""
    if written in NAMES:
        return NAMES[written]
    if written.startswith("grad_"):
        return gradient_of(written.removeprefix("grad_"))
    stem, number = re.fullmatch(r"(.*?)_?(\d*)", written).groups()
    sign = f"\\{stem}" if stem in GREEK else stem if len(stem) == 1 else word(stem)
    return f"{sign}_{{{number}}}" if number else sign


def word(text: str, face: str = "mathit") -> str:
    return rf"\{face}{{" + text.replace("_", r"\_") + "}"


def strong(tree: ast.expr, least: int = CHOICE) -> str:
    """Translate an expression, with parentheses if its precedence is too weak."""
    text, strength = expression(tree)
    return text if strength >= least else rf"\left({text}\right)"


def expression(tree: ast.expr) -> tuple[str, int]:
    """Translate an expression; return text and precedence."""
    match tree:
        case ast.Name():
            return name(tree.id), ATOM
        case ast.Constant():
            return constant(tree.value)
        case ast.BinOp():
            return operation(tree)
        case ast.UnaryOp(op=ast.Not()):
            return rf"\text{{not }}{strong(tree.operand, COMPARISON)}", LOGIC
        case ast.UnaryOp():
            return f"-{strong(tree.operand, PRODUCT)}", SIGN
        case ast.Compare():
            signs = [COMPARISONS[type(sign)] + " " + strong(value, SUM)
                     for sign, value in zip(tree.ops, tree.comparators, strict=True)]
            return " ".join([strong(tree.left, SUM), *signs]), COMPARISON
        case ast.BoolOp():
            sign = r"\text{ and }" if isinstance(tree.op, ast.And) else r"\text{ or }"
            return sign.join(strong(value, COMPARISON) for value in tree.values), LOGIC
        case ast.IfExp():
            return choice(tree)
        case ast.Call():
            return call(tree)
        case ast.Attribute():
            return rf"{word(tree.attr, 'mathrm')}\left({strong(tree.value)}\right)", ATOM
        case ast.Subscript():
            return f"{strong(tree.value, ATOM)}_{{{strong(tree.slice)}}}", ATOM
        case ast.Slice():
            return ":".join(strong(end) if end else "" for end in (tree.lower, tree.upper)), CHOICE
        case ast.Tuple() | ast.List():
            comma = "," if len(tree.elts) == 1 else ""
            return rf"\left({', '.join(map(strong, tree.elts))}{comma}\right)", ATOM
    raise NotImplementedError(f"mathematics: {type(tree).__name__} has no sign (in {ast.unparse(tree)!r}). Add one.")


def constant(value) -> tuple[str, int]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return r"\text{" + re.sub(r"([#%&$])", r"\\\1", str(value)) + "}", ATOM
    if value in CONSTANTS:
        return CONSTANTS[value], ATOM
    digits, _, exponent = repr(value).partition("e")
    return (rf"{digits} \cdot 10^{{{int(exponent)}}}", PRODUCT) if exponent else (digits, ATOM)


def operation(tree: ast.BinOp) -> tuple[str, int]:
    left, right = tree.left, tree.right
    match tree.op:
        case ast.Add():
            return f"{strong(left, SUM)} + {strong(right, SUM)}", SUM
        case ast.Sub():
            return f"{strong(left, SUM)} - {strong(right, PRODUCT)}", SUM
        case ast.Mult() if isinstance(left, ast.Name) and ast.dump(left) == ast.dump(right):
            return f"{strong(left)}^{{2}}", POWER
        case ast.Mult():
            return rf"{strong(left, PRODUCT)} \cdot {strong(right, POWER)}", PRODUCT
        case ast.Div():
            return rf"\dfrac{{{strong(left)}}}{{{strong(right)}}}", ATOM
        case ast.FloorDiv():
            return rf"\left\lfloor \frac{{{strong(left)}}}{{{strong(right)}}} \right\rfloor", ATOM
        case ast.Mod():
            return rf"{strong(left, PRODUCT)} \bmod {strong(right, SIGN)}", PRODUCT
        case ast.Pow():
            return f"{strong(left, ATOM)}^{{{strong(right)}}}", POWER
    raise NotImplementedError(f"mathematics: {type(tree.op).__name__} has no sign (in {ast.unparse(tree)!r}). Add one.")


def choice(tree: ast.expr) -> tuple[str, int]:
    """Translate `where` or a conditional; one in the last place continues the cases."""
    rows = []
    while (parts := choice_parts(tree)) is not None:
        condition, value, tree = parts
        value, tree = Known(condition, True).visit(value), Known(condition, False).visit(tree)
        rows.append(rf"{strong(value)} & \text{{if }} {strong(condition)}")
    rows.append(rf"{strong(tree)} & \text{{otherwise}}")
    return r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}", CHOICE


class Known(ast.NodeTransformer):
    """Resolve choices by a condition that is known to hold or not."""

    def __init__(self, condition: ast.expr, holds: bool):
        self.condition, self.holds = ast.dump(condition), holds

    def generic_visit(self, node):
        parts = choice_parts(node)
        if parts is not None and ast.dump(parts[0]) == self.condition:
            return self.visit(parts[1] if self.holds else parts[2])
        return super().generic_visit(node)


def choice_parts(tree: ast.expr):
    match tree:
        case ast.IfExp():
            return tree.test, tree.body, tree.orelse
        case ast.Call(func=ast.Name(id="where"), args=[condition, value, other]):
            return condition, value, other
    return None


def call(tree: ast.Call) -> tuple[str, int]:
    if choice_parts(tree) is not None:
        return choice(tree)
    if isinstance(tree.func, ast.Attribute):            # x.numel()
        return expression(tree.func)
    function, arguments = tree.func.id, tree.args
    if function in ("zeros_like", "ones_like", "identity_like", "zeros", "all_false"):
        return ONE[function][0], ATOM
    if len(arguments) == 1 and not tree.keywords and function in ONE:
        pattern, strength, needed = ONE[function]
        return pattern.replace("#", strong(arguments[0], needed)), strength
    if len(arguments) == 2 and function in ("cast", "or_zeros"):      # types are no part of the mathematics
        return expression(arguments[0])
    if len(arguments) == 2 and not tree.keywords and function in TWO:
        pattern, strength, needed = TWO[function]
        texts = [strong(argument, needed) for argument in arguments]
        return re.sub("[#@]", lambda sign: texts["#@".index(sign[0])], pattern), strength
    if function == "pow_tensor":
        return operation(ast.BinOp(arguments[0], ast.Pow(), arguments[1]))
    if function in ("unknown_gradient", "refuse_gradient"):
        return r"\text{not known}" if function.startswith("unknown") else r"\text{refused}", ATOM
    texts = [strong(argument) for argument in arguments]
    texts += [f"{word(keyword.arg)}{{=}}{strong(keyword.value)}" for keyword in tree.keywords]
    sign = FUNCTIONS.get(function) or word(function, "mathrm")
    if function in FUNCTIONS and len(arguments) == 1 and isinstance(arguments[0], (ast.Name, ast.Constant)):
        return f"{sign} {texts[0]}", PRODUCT
    return rf"{sign}\left({', '.join(texts)}\right)", ATOM
