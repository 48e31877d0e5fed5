"""Rows of the operator table: their keys, the signature text `call`, and errors that name the row.

Used by `register_operator` and, loaded by its path, by the build: nothing is imported from cygrad.
"""

import ast
import itertools
import keyword
import re
from typing import NamedTuple

# In the order of argument_kind_t in operator.pxd.
KINDS = ("Tensor", "Tensor[]", "Tensor|number", "number", "int", "int[]", "bool", "float", "dtype", "str")
TENSOR, TENSORS, OPERAND, NUMBER, INT, INTS, BOOL, FLOAT, DTYPE, STRING = range(len(KINDS))
TENSOR_KINDS = (TENSOR, TENSORS, OPERAND)
MAX_ARGUMENTS, MAX_RESULTS = 12, 4

# Keys of a row; every other key is a derivative formula of the argument of that name.
KEYS = {
    "call": str, "forward": str, "kernel": str, "inplace": (bool, str), "out": bool, "alias": list, "doc": str,
    "returns": str, "view": bool, "gradient": bool, "results": list, "differentiable": list, "list": bool,
    "method": bool, "function": bool, "name": str, "jvp": str, "kink": str, "node": str, "variadic": bool,
    "dtypes": str, "into": str, "inplace_method": bool, "internal": bool, "moves": bool, "mixed": bool,
    "autocast": str, "zeros": bool, "fits": str, "overloads": dict, "vmap": str, "per_sample": (dict, str),
    "numpy": list, "array_api": str,
}
# Rules of forward mode (tangent_rules).
JVP = ("linear", "as_strided", "index_put", "elementwise", "transpose")
# Rules of vmap (func.batching), and of gradients of single samples (func.per_sample); others are functions in ops.
VMAP = ("elementwise", "leading", "dims", "scan", "new_dim", "folded", "planes")
PER_SAMPLE = ("outer", "sum")
RULE = re.compile(r"[a-z_]+\.[a-z_]+")
# Arguments that count dimensions.
DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "start_dim", "end_dim", "source", "destination"}
DTYPES = ("bool", "integer", "real", "complex")
FITS = ("integer", "half", "single")
CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
ARGUMENT = re.compile(r"(?P<type>[A-Za-z|]+)(?P<optional>\?)?(?P<list>\[\])?(?P<optional_list>\?)?"
                      r"\s+(?P<name>[A-Za-z_]\w*)\s*(?:=\s*(?P<default>.+))?", re.DOTALL)
# No gradient flows through an overwritten tensor: the in-place formula of operators without derivative.
ZERO = "cast(logical_and(grad, False), grad.dtype)"
CONSTANTS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


class RowError(ValueError):
    """An invalid row of the operator table."""


class Argument(NamedTuple):
    """One argument of `call`."""

    name: str
    kind: int             # index in KINDS
    optional: bool        # None is allowed; for a list of tensors: as an entry
    required: bool        # no default
    default: object
    keyword_only: bool


def parse_call(call: str) -> tuple[str, tuple[Argument, ...]]:
    """Parse the name and arguments of ``"sum(Tensor self, int[]? dim=None, *, dtype? dtype=None)"``."""
    match = CALL.fullmatch(call)
    if match is None:
        raise RowError(f"call is not a signature (got {call!r}, expected 'name(type argument, ...)')")
    arguments, keyword_only = [], False
    for text in split(match[2]):
        if text == "*":
            keyword_only = True
        else:
            arguments.append(parse_argument(text, keyword_only))
    names = [argument.name for argument in arguments]
    if len(set(names)) < len(names):
        raise RowError(f"call names an argument twice ({', '.join(names)})")
    if len(names) > MAX_ARGUMENTS:
        raise RowError(f"call has {len(names)} arguments (at most {MAX_ARGUMENTS})")
    positional = [argument for argument in arguments if not argument.keyword_only]
    for before, after in itertools.pairwise(positional):
        if after.required and not before.required:
            raise RowError(f"argument '{after.name}' without default follows '{before.name}' with one")
    return match[1], tuple(arguments)


def split(text: str) -> list[str]:
    """Split a list at its commas, except those inside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def parse_argument(text: str, keyword_only: bool) -> Argument:
    """Parse one argument: type, name and default."""
    match = ARGUMENT.fullmatch(text)
    if match is None:
        raise RowError(f"argument is not 'type name' or 'type name=default' (got {text!r})")
    kind = match["type"] + (match["list"] or "")
    if kind not in KINDS:
        raise RowError(f"argument '{match['name']}' has an unknown type (got {kind!r}, expected one of "
                       f"{', '.join(KINDS)})")
    if keyword.iskeyword(match["name"]):
        raise RowError(f"argument name '{match['name']}' is a keyword of Python")
    # Tensor?[] is a list whose entries may be None.
    optional = bool(match["optional"] or match["optional_list"])
    default = match["default"]
    return Argument(match["name"], KINDS.index(kind), optional, default is None,
                    parse_default(default, match["name"]), keyword_only)


def parse_default(text: str | None, name: str):
    """Return the Python object of a default."""
    if text is None:
        return None
    text = text.strip()
    if text in CONSTANTS:
        return CONSTANTS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise RowError(f"default of '{name}' is not a Python literal (got {text!r})") from None


def parse_row(row: dict, name: str | None = None, helpers: dict | None = None) -> dict:
    """
    Check and parse a row, for `register_operator` and the build.

    helpers : the helpers that its formulas may call, as `expansion.read_helpers` returns them.
    """
    title = name or str(row.get("call", "")).partition("(")[0].strip() or "a row without call"
    try:
        return _parse_row(row, name, helpers)
    except RowError as error:
        raise RowError(f"{title}: {error}.") from None


def _parse_row(row: dict, name: str | None, helpers: dict | None) -> dict:
    if "call" not in row:
        raise RowError("the key 'call' is missing")
    for key, value in row.items():
        if not isinstance(value, KEYS.get(key, str)):
            raise RowError(f"the key '{key}' has a value of the wrong type (got {value!r})")
    called, arguments = parse_call(row["call"])
    if name is not None and called != name:
        raise RowError(f"call is of another name (got {called!r}, expected {name!r})")
    formulas = _formulas(row, arguments)
    results = row.get("results", ["result"])
    differentiable = row.get("differentiable", results)
    _check_results(row, results, differentiable)
    formulas = _written_out(formulas, differentiable, helpers)
    if "forward" in row and "kernel" in row:
        raise RowError("'forward' and 'kernel' are mutually exclusive")
    if row.get("gradient") is False and formulas:
        raise RowError("'gradient = false' with derivative formulas")
    if row.get("inplace", False) not in (True, False, "function"):
        raise RowError(f"'inplace' is true, false or \"function\" (got {row['inplace']!r})")
    if row.get("inplace") and (not arguments or (arguments[0].kind != TENSOR and arguments[0].kind != OPERAND)):
        raise RowError("'inplace = true' needs a Tensor as first argument")
    if "into" in row and ("forward" in row or not arguments or arguments[0].kind != TENSOR):
        raise RowError("'into' needs an array kernel and a Tensor as first argument")
    if row.get("gradient") is False and row.get("inplace"):
        formulas = {argument.name: ZERO for argument in arguments if argument.kind in TENSOR_KINDS}
    if row.get("inplace_method") and not row.get("inplace"):
        raise RowError("'inplace_method = true' needs 'inplace = true'")
    if row.get("variadic") and (len(arguments) < 2 or arguments[1].kind != INTS):
        raise RowError("'variadic = true' needs int[] as second argument")
    public = row.get("name", called)
    for spelling in [public, *row.get("alias", [])]:
        if not isinstance(spelling, str) or not spelling.isidentifier() or keyword.iskeyword(spelling):
            raise RowError(f"not a valid Python name (got {spelling!r}). Set another 'name'")
    return {
        "name": called, "call": row["call"], "arguments": arguments, "formulas": formulas,
        "forward": row.get("forward"), "kernel": row.get("kernel", called), "into": row.get("into"),
        "results": tuple(results), "differentiable": tuple(differentiable), "list": row.get("list", False),
        "view": row.get("view", False), "inplace": bool(row.get("inplace")), "out": row.get("out", False),
        "gradient": row.get("gradient", True), "node": row.get("node") or node_name(called),
        "dtypes": _words("dtypes", DTYPES, row.get("dtypes", "all")), "jvp": _jvp(row),
        "moves": row.get("moves", row.get("view", False)), "mixed": row.get("mixed", False),
        "autocast": row.get("autocast"), "zeros": row.get("zeros", False),
        "fits": _words("fits", FITS, row["fits"]) if "fits" in row else (),
        "public": public, "alias": tuple(row.get("alias", ())), "variadic": row.get("variadic", False),
        "overloads": row.get("overloads"), "vmap": _vmap(row, arguments), "per_sample": _per_sample(row, formulas),
        **_foreign_names(row, arguments), **_places(row, arguments),
    }


def _places(row: dict, arguments: tuple[Argument, ...]) -> dict:
    """Return where the operator is public: in the namespace, as methods of Tensor; and its deprecated form."""
    function = row.get("function", not row.get("internal", False))
    method = (bool(arguments) and arguments[0].kind in (TENSOR, OPERAND) and row.get("method", function))
    positional = [argument for argument in arguments if not argument.keyword_only]
    factors = ()
    if function and len(positional) == 3 and all(argument.kind in (TENSOR, OPERAND) for argument in positional):
        factors = tuple(argument.name for argument in arguments
                        if argument.keyword_only and argument.name in ("alpha", "beta", "value"))
    inplace_method = bool(row.get("inplace")) and (method or row.get("inplace_method", False))
    return {"function": function, "method": method, "inplace_method": inplace_method, "factors": factors,
            "inplace_function": row.get("inplace") == "function"}


# NumPy's names of parameters, and the table's name of the first argument.
SPELLINGS = {"dim": "axis", "keepdim": "keepdims"}


def python_signature(row: dict, inplace: bool = False):
    """Return the `inspect.Signature` of an operator, or of its in-place form."""
    from inspect import Parameter, Signature
    parameters, numpy_names = [], []
    for number, entry in enumerate(row["arguments"]):
        name, _, _, required, default, keyword_only = entry
        kind = Parameter.KEYWORD_ONLY if keyword_only else Parameter.POSITIONAL_OR_KEYWORD
        if row["variadic"] and number == 1:
            parameters.append(Parameter("sizes", Parameter.VAR_POSITIONAL))
            kind, required = Parameter.KEYWORD_ONLY, False
        if name in SPELLINGS and not row["variadic"]:
            numpy_names.append(SPELLINGS[name])
        required = required and not (numpy_names and kind == Parameter.POSITIONAL_OR_KEYWORD)      # `axis` may be given
        parameters.append(Parameter("input" if name == "self" else name, kind,
                                    default=Parameter.empty if required else default))
    own = {parameter.name for parameter in parameters}
    extra = [name for name in row["overloads"] or () if name not in own and name != "*"]
    extra += ["out"] if row["out"] and not inplace else []
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in extra + numpy_names]
    return Signature(parameters)


def _jvp(row: dict) -> str:
    """Return the rule of forward mode; views are linear, and most element-wise rows follow that rule."""
    usual = "linear" if row.get("view") else "elementwise" if "forward" in row else "transpose"
    rule = row.get("jvp", usual)
    if rule not in JVP:
        raise RowError(f"'jvp' is an unknown rule (got {rule!r}, expected one of {', '.join(JVP)})")
    return rule


def _vmap(row: dict, arguments: tuple[Argument, ...]) -> str | None:
    """Return the rule of vmap; None if the row names none and none follows from the rest of it."""
    usual = "elementwise" if "forward" in row else (
        "dims" if any(argument.name in DIMS for argument in arguments) else None)
    rule = row.get("vmap", usual)
    if rule is not None and rule not in VMAP and not RULE.fullmatch(rule) and not rule.startswith("loop: "):
        raise RowError(f"'vmap' is an unknown rule (got {rule!r}, expected one of {', '.join(VMAP)}, 'family.function' "
                       "or 'loop: why')")
    return rule


def _per_sample(row: dict, formulas: dict) -> dict | str | None:
    """Return the rules of per-sample gradients by argument, or why there are none; None: by the formula alone."""
    rules = row.get("per_sample")
    for name, rule in rules.items() if isinstance(rules, dict) else ():
        if name not in formulas or (rule not in PER_SAMPLE and not RULE.fullmatch(rule)):
            raise RowError(f"'per_sample' has an unknown argument or rule (got {name} = {rule!r}, expected an argument "
                           f"with a formula, and one of {', '.join(PER_SAMPLE)} or 'family.function')")
    return rules


def _foreign_names(row: dict, arguments: tuple[Argument, ...]) -> dict:
    """Return the NumPy ufuncs that the operator computes, and its name in the array API standard."""
    names = tuple(row.get("numpy", ()))
    operands = [argument for argument in arguments if argument.required]
    if names and not all(argument.kind in (TENSOR, OPERAND) for argument in operands):
        raise RowError("'numpy' names ufuncs: the row takes tensors only")
    if "array_api" in row and not names:
        raise RowError("'array_api' needs 'numpy', whose promotion the function has")
    return {"numpy": names, "array_api": row.get("array_api")}


def _words(key: str, known: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return the words of a key, such as the kinds of dtypes that an operator supports."""
    words = known if text == "all" else tuple(text.split(", "))
    if unknown := [word for word in words if word not in known]:
        raise RowError(f"{key!r} has an unknown word (got {unknown[0]!r}, expected 'all' or some of "
                       f"'{', '.join(known)}')")
    return words


def _formulas(row: dict, arguments: tuple[Argument, ...]) -> dict[str, str]:
    """Return derivative formulas by argument, in the order of the arguments."""
    kinds = {argument.name: argument.kind for argument in arguments}
    written = {key: text for key, text in row.items() if key not in KEYS}
    for key in written:
        if key not in kinds:
            raise RowError(f"'{key}' is neither a key nor an argument (arguments: {', '.join(kinds)}; "
                           f"keys: {', '.join(KEYS)})")
        if kinds[key] not in TENSOR_KINDS:
            raise RowError(f"derivative formula of '{key}', which is {KINDS[kinds[key]]}, not a Tensor")
    return {argument: written[argument] for argument in kinds if argument in written}


def _check_results(row: dict, results: list, differentiable: list) -> None:
    if not 1 <= len(results) <= MAX_RESULTS or not all(isinstance(result, str) for result in results):
        raise RowError(f"'results' must be 1 to {MAX_RESULTS} names (got {results!r})")
    if unknown := [result for result in differentiable if result not in results]:
        raise RowError(f"'differentiable' names no result (got {unknown[0]!r}, expected one of {', '.join(results)})")
    if row.get("list") and "results" in row:
        raise RowError("'list = true' and 'results' are mutually exclusive")


def _written_out(formulas: dict, differentiable: list, helpers: dict | None) -> dict[str, str]:
    """Return derivative formulas without helpers, expanded for absent gradients."""
    if helpers is None:
        return formulas
    from .expansion import expand
    absent = ["grad", *(f"grad_{result}" for result in differentiable)] if len(differentiable) > 1 else []
    return {argument: expand(text, absent, helpers, f"derivative of '{argument}'")
            for argument, text in formulas.items()}


def node_name(name: str) -> str:
    """`log_softmax` -> `LogSoftmaxBackward0`."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_")) + "Backward0"
