"""Formulas: saved values, native and recorded execution, errors, leaks."""

import sys
import threading

import numpy as np
import pytest

import cygrad._core.kernels.reduction.reductions
import cygrad._core.kernels.shape.shape
import cygrad._core.kernels.shape.slicing  # noqa: F401
from cygrad._core.memory.storage import empty_cache
from cygrad._core.program.instruction import KINDS
from cygrad._core.table import signature
from cygrad._core.table.formula import FormulaError, Reader, Value
from cygrad._core.table.lowering import Lowering
from cygrad._core.table.operator import operators
from cygrad._core.testing import interop as machine

# Unique names, because the rows of the real table may be registered too.
ROWS = [
    {"call": "f_conj(Tensor self)", "forward": "conj(self)", "self": "f_conj(grad)"},
    {"call": "f_exp(Tensor self)", "forward": "exp(self)", "self": "grad * f_conj(result)"},
    {"call": "f_mul(Tensor|number self, Tensor|number other)", "forward": "self * other",
     "self": "grad * f_conj(other)", "other": "grad * f_conj(self)"},
    {"call": "f_add(Tensor self, Tensor other)", "forward": "self + other", "self": "grad", "other": "grad"},
    {"call": "f_t(Tensor self, int dim0, int dim1)", "kernel": "transpose", "view": True,
     "self": "f_t(grad, dim1, dim0)"},
    {"call": "f_sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", "kernel": "sum"},
    {"call": "f_stack(Tensor[] tensors, int dim=0)", "kernel": "stack", "tensors": "f_unbind(grad, dim)"},
    {"call": "f_unbind(Tensor self, int dim=0)", "kernel": "unbind", "list": True, "self": "f_stack(grads, dim)"},
    {"call": "f_max(Tensor self, int dim, bool keepdim=False)", "kernel": "max_dim",
     "results": ["values", "indices"], "differentiable": ["values"], "self": "grad * f_max(self, dim, True)[0]"},
    {"call": "f_silu(Tensor self, number beta=1)", "forward": "self / (1 + exp(-beta * self))"},
]
PRIMITIVES = ("exp", "conj", "where", "sqrt")


@pytest.fixture(scope="module", autouse=True)
def rows():
    for row in ROWS:
        machine.register(row)
    missing = [name for name in PRIMITIVES if not machine.is_registered(name)]
    for name in missing:
        arguments = "Tensor condition, Tensor|number self, Tensor|number other" if name == "where" else "Tensor self"
        machine.register({"call": f"{name}({arguments})", "forward": "primitive"})
    yield
    for row in ROWS:
        machine.forget(row["call"].partition("(")[0])
    for name in missing:
        machine.forget(name)


@pytest.fixture
def register():
    """Registers rows for one test."""
    names = []

    def add(call, **row):
        name = machine.register({"call": call, **row}).name
        names.append(name)
        return name

    yield add
    for name in names:
        machine.forget(name)


def gradient(name, saved, grads, needed="self", **options):
    return machine.differentiate_arrays(name, saved, grads, [needed], **options)[needed]


x = np.linspace(-2, 2, 12).reshape(3, 4)
y = np.cos(x)
g = np.sin(x) + 2


# ---- saved values

def test_only_named_values_are_saved():
    assert machine.describe("f_mul")["saved"] == [("self", False, 0, False, 2), ("other", False, 1, False, 1)]
    assert machine.describe("f_exp")["saved"] == [("result", True, 0, False, 1)]
    assert machine.describe("f_add")["saved"] == []


def test_shape_alone_saves_no_memory(register):
    name = register("f_meta(Tensor self, Tensor other, int p)", kernel="transpose",
                    self="grad * self.numel() * p if other is None else grad * other.ndim",
                    other="grad * self.shape[0] * self.is_complex * other * other.shape[0]")
    assert machine.describe(name)["saved"] == [
        ("self", False, 0, True, 3), ("other", False, 1, False, 3), ("p", False, 2, False, 1)]


def test_descriptor():
    facts = machine.describe("f_sum")
    assert (facts["node_name"], facts["n_required"], facts["n_positional"]) == ("FSumBackward0", 1, 3)
    assert machine.describe("f_max")["differentiable_results"] == 1
    assert machine.describe("f_unbind")["flags"] == 4
    assert machine.describe("f_exp")["flags"] == 1 | 1 << 14       # element-wise, with plain formulas


def test_an_argument_called_grad_does_not_hide_the_gradient(register):
    name = register("f_back(Tensor grad, int dim0)", kernel="transpose", **{"grad": "f_t(grad, dim0, 1)"})
    assert [entry[0] for entry in machine.describe(name)["saved"]] == ["dim0"]
    assert np.array_equal(gradient(name, [0], [g], "grad"), g.T)


# ---- native values

def test_elementwise():
    assert np.allclose(gradient("f_mul", [x, y], [g]), g * y)
    assert np.allclose(gradient("f_mul", [x, 3.0], [g]), g * 3)
    both = machine.differentiate_arrays("f_mul", [x, y], [g], ["self", "other"], give_up_grads=True)
    assert np.allclose(both["self"], g * y)
    assert np.allclose(both["other"], g * x)


def test_pass_through():
    both = machine.differentiate_arrays("f_add", [], [g], ["self", "other"])
    assert np.array_equal(both["self"], g)
    assert np.array_equal(both["other"], g)


def test_only_needed_derivatives_are_computed():
    assert list(machine.differentiate_arrays("f_mul", [None, y], [g], ["self"])) == ["self"]


def test_kernels_lists_and_several_results():
    assert np.array_equal(gradient("f_t", [0, 1], [g.T]), g)
    parts = gradient("f_stack", [1], [np.stack([x, y], 1)], "tensors")
    assert np.array_equal(parts[0], x)
    assert np.array_equal(parts[1], y)
    assert np.array_equal(gradient("f_unbind", [1], [x, y]), np.stack([x, y], 1))
    assert np.allclose(gradient("f_max", [x, 1], [g[:, :1], None]), g[:, :1] * x.max(1, keepdims=True))


def test_forward_formula_of_a_composite():
    assert np.allclose(machine.evaluate_arrays("f_silu", x, 2.0), x / (1 + np.exp(-2 * x)))


@pytest.mark.parametrize(("formula", "expected"), [
    ("grad * 2 if p > 1 else grad", lambda p: g * 2 if p > 1 else g),
    ("grad * p * self ** (p - 1) if p != 0 else grad * 0", lambda p: g * p * x ** (p - 1) if p else g * 0),
    ("grad * self.shape[-1] + self.ndim * self.numel()", lambda p: g * 4 + 24),
    ("f_sum(grad * self, (0,), keepdim=True) * grad", lambda p: (g * x).sum(0, keepdims=True) * g),
    ("f_sum(grad, 1) * len(self.shape)", lambda p: g.sum(1) * 2),
    ("f_sum(grad, self.ndim - 1)", lambda p: g.sum(1)),
    ("f_sum(grad, (self.shape + (0,))[1:][1:])", lambda p: g.sum(0)),
    ("f_t(f_stack([grad, self], 0), 0, 2)", lambda p: np.stack([g, x]).swapaxes(0, 2)),
    ("f_unbind(grad, 0)[1]", lambda p: g[1]),
    ("f_unbind(grad, 0)[-1] + f_unbind(self)[0]", lambda p: g[-1] + x[0]),
    ("f_max(grad, 1, keepdim=True)[0] - grad", lambda p: g.max(1, keepdims=True) - g),
    ("where(self > 0, grad, 0)", lambda p: np.where(x > 0, g, 0)),
    ("f_silu(self, p) * grad", lambda p: x / (1 + np.exp(-p * x)) * g),
    ("grad * (1 / 2 + sqrt(4)) ** 2 % 4 // 1", lambda p: g * 6.25 % 4 // 1),
    ("grad * (p * 7 // 2 + p ** 2 - p % 2 + (-p))", lambda p: g * (p * 7 // 2 + p**2 - p % 2 - p)),
    ("grad * 3 if p == 2 and self.ndim == 2 or p > 9 else grad", lambda p: g * 3 if p == 2 else g),
    ("grad if not self.is_complex and self.dtype == grad.dtype else grad * 5", lambda p: g),
    ("grad * sizes(f_unbind(self, 0), -1)[1] * len(f_unbind(self, 1))", lambda p: g * 16),
    ("grad * pi", lambda p: g * np.pi),
    ("-grad if mode == 'minus' else grad", lambda p: -g),
    ("None", lambda p: None),
    ("self", lambda p: x),
])
@pytest.mark.parametrize("p", [0, 1, 2, 3.5])
def test_formulas_native_and_recorded(register, monkeypatch, formula, expected, p):
    with np.errstate(all="ignore"):
        wanted = expected(p)
        name = register("f_any(Tensor self, number p, str mode)", kernel="transpose", self=formula)
        values = {"self": x.copy(), "p": p, "mode": "minus"}
        saved = [values[entry[0]] for entry in machine.describe(name)["saved"]]
        for give_up in (False, True):
            native = gradient(name, saved, [g.copy()], give_up_grads=give_up)
            assert (native is None and wanted is None) or np.allclose(native, wanted, equal_nan=True)
        for function, meaning in NUMPY.items():
            monkeypatch.setitem(vars(operators), function, meaning)
        again = machine.recorded(name, "self")((g,), tuple(saved))
        assert (again is None and wanted is None) or np.allclose(again, wanted, equal_nan=True)


@pytest.mark.parametrize("expression", [
    "p + q", "p - q", "p * q", "p / q", "p // q", "p % q", "p ** q", "-p", "p == q", "p != q", "p < q", "p <= q",
    "p > q", "p >= q", "not p", "abs(p)", "sqrt(p)", "exp(q)", "log(p)", "conj(p)", "maximum(p, q)",
    "minimum(p, q)", "p and q", "p or q"])
def test_numbers_follow_python(register, expression):
    name = register("f_numbers(Tensor self, number p, number q)", kernel="alias", self=f"grad * ({expression})")
    wanted = machine.recorded(name, "self")
    numbers = [0, 1, -1, 3, -7, True, 2.0, -0.5, 0.0, 1e-3, -6.5, 2 + 1j, -1j]
    one = np.ones(2, np.complex128)
    used = [entry[0] for entry in machine.describe(name)["saved"]]
    for p in numbers:
        for q in numbers:
            saved = [{"p": p, "q": q}[variable] for variable in used]
            try:
                expected = wanted((one,), tuple(saved))
            except (ArithmeticError, TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    gradient(name, saved, [one])
            else:
                assert np.allclose(gradient(name, saved, [one]), expected, equal_nan=True), (p, q)


class Shaped(np.ndarray):
    """An ndarray with the attributes that formulas use."""

    is_complex = False

    def numel(self):
        return self.size


NUMPY = {
    "f_sum": lambda a, dim=None, keepdim=False: a.sum(dim if np.isscalar(dim) or dim is None else tuple(dim),
                                                      keepdims=keepdim),
    "f_t": np.swapaxes, "f_stack": np.stack, "where": np.where, "sqrt": np.sqrt,
    "f_unbind": lambda a, dim=0: list(np.moveaxis(a, dim, 0)),
    "f_max": lambda a, dim, keepdim: (a.max(dim, keepdims=keepdim),),
    "f_silu": lambda a, beta: a / (1 + np.exp(-beta * a)),
    "f_conj": np.conj,
}
x, y, g = (array.view(Shaped) for array in (x, y, g))


PRODUCT = "f_product(Tensor self, Tensor|number other)"


def test_recorded_numbers_go_through_tensors(register, monkeypatch):
    class Fake:
        def __init__(self, value):
            self.value = value

        def item(self):
            return self.value.conjugate().item()

    for name, meaning in {"f_conj": lambda a: a, "tensor": Fake}.items():
        monkeypatch.setitem(vars(operators), name, meaning)
    name = register(PRODUCT, kernel="transpose", self="grad * f_conj(other)")
    assert machine.recorded(name, "self")((2,), (1j,)) == -2j


def test_traceback_shows_the_formula(register, monkeypatch):
    def fail(a):
        raise ZeroDivisionError

    monkeypatch.setitem(vars(operators), "f_conj", fail)
    name = register(PRODUCT, kernel="transpose", self="grad * f_conj(other)")
    with pytest.raises(ZeroDivisionError) as info:
        machine.recorded(name, "self")((g,), (x,))
    assert any("grad * f_conj(other)" in str(entry) for entry in info.traceback)


# ---- what becomes of a formula

def lower(text):
    """The instructions of a formula over self, other, p and grad."""
    names = {name: Value("saved", kind, (), slot)
             for slot, (name, kind) in enumerate([("self", "tensor"), ("other", "tensor"), ("p", "number")])}
    names["grad"] = Value("grad", "tensor", (), 0)
    rows = {row["name"]: row for row in map(signature.parse_row, ROWS)}
    return Lowering(Reader("f: derivative of 'self'", text, names, rows.get).read()).lower()


def test_elementwise_parts_are_fused_and_computed_once():
    code = lower("grad * (self * other) * (1 - self * other) + self * other")
    assert [KINDS[made.kind] for made in code.instructions] == ["evaluate"]
    assert [name for name, _ in code.instructions[0].expression.code].count("mul") == 3
    assert len(code.instructions[0].expression.inputs) == 3


def test_parts_shared_by_kernels_are_computed_once():
    code = lower("f_t(grad * self, 0, 1) + grad * self")
    assert [KINDS[made.kind] for made in code.instructions] == ["evaluate", "call", "evaluate"]
    assert code.instructions[2].last == 0b11


def test_constants_are_folded():
    code = lower("grad * (2 * pi / 4) if 1 < 2 else grad * 3")
    assert code.instructions[0].expression.constants == [np.pi / 2]


def test_long_formulas_are_split():
    code = lower(" + ".join(f"grad * {k}.5" for k in range(60)))
    assert len(code.instructions) > 1
    assert all(made.expression.fits() for made in code.instructions)


def test_lowered_formulas_are_shown_as_text():
    assert str(lower("f_t(grad * self, 0, 1) + (grad * self if p > 1 else other)")) == """\
0: %t0 = mul(%grad0, %saved0)
1: %t1 = f_t(%t0, 0, 1)
2: %t2 = gt(%saved2, 1)
3: jump_unless 6 (%t2)
4: %t3 = move(%t0)
5: jump 7
6: %t3 = move(%saved1)
7: %t4 = add(%t1, %t3)
return %t4"""


@pytest.mark.parametrize(("text", "message"), [
    ("grad * othr", "unknown name 'othr'"),
    ("f_cnj(grad)", "unknown operator 'f_cnj'"),
    ("f_t(grad, 0)", "misses its argument 'dim1'"),
    ("f_t(grad, 0, 1, 2)", "at most 3 arguments"),
    ("f_t(grad, 0, dim=1)", "'dim' of 'f_t' is unknown"),
    ("f_t(grad, 0, 1, dim0=0)", "'dim0' of 'f_t' is twice"),
    ("f_t(grad, self, 1)", "'dim0' of 'f_t' is int"),
    ("f_t(None, 0, 1)", "must not be None"),
    ("grad if self else other", "a condition must be a number"),
    ("grad[0]", "cannot be indexed"),
    ("f_max(grad, 0)[2]", "no such result"),
    ("self.shap * grad", "unknown attribute 'shap'"),
    ("p.shape", "which is not a tensor"),
    ("grad * self.shape", "needs tensors or numbers"),
    ("grad *", "invalid syntax"),
    ("[a for a in self]", "ListComp"),
    ("lambda: 1", "Lambda"),
    ("grad * b'a'", "not supported"),
    ("1 < p < 2", "chain of comparisons"),
    ("grad is p", "None only"),
    ("self.reshape(3)", "takes no arguments"),
    ("grad * 10**30", "64 bits"),
    ("grad * (1 / 0)", "division by zero"),
    ("grad @ self", "unsupported operator"),
    ("grad if p else self.shape", "different types"),
    ("grad * len(p)", "a tuple or a list of tensors"),
    ("sizes(self, 0)", "a list of tensors and a dimension"),
])
def test_errors_show_row_formula_and_place(text, message):
    with pytest.raises(FormulaError, match=message) as info:
        lower(text)
    first, formula, caret = str(info.value).splitlines()
    assert first.startswith("f: derivative of 'self': ")
    assert formula == f"    {text}"
    assert caret.strip() == "^"


def test_errors_in_formulas_of_several_lines():
    with pytest.raises(FormulaError) as info:
        lower("(grad *\n nothing +\n self)")
    assert str(info.value).splitlines()[2:4] == ["     nothing +", "     ^"]


def test_formula_of_the_wrong_type(register):
    name = register("f_wrong(Tensor self)", kernel="alias", self="self.shape")
    with pytest.raises(ValueError, match="gives ints, not the gradient of 'self'"):
        machine.describe(name)


def test_registration_errors(register):
    with pytest.raises(RuntimeError, match="no kernel 'nowhere' is registered"):
        register("f_none(Tensor self)", kernel="nowhere")
    with pytest.raises(RuntimeError, match="registered twice"):
        register("f_mul(Tensor self, Tensor other)", forward="self * other")
    with pytest.raises(ValueError, match="f_mistake"):
        register("f_mistake(Tensor self)", forward="primitive")
    with pytest.raises(FormulaError, match="element-wise throughout"):
        machine.evaluate_arrays(register("f_bad(Tensor self)", forward="f_t(self, 0, 1)"), x)


# ---- errors at run time, memory, threads

def test_errors_propagate_and_nothing_leaks():
    before = [sys.getrefcount(array) for array in (x, g)]
    for _ in range(3):
        with pytest.raises(IndexError):
            gradient("f_t", [7, 1], [g], give_up_grads=True)
        with pytest.raises(RuntimeError, match="is None"):
            gradient("f_mul", [x, None], [g])
        with pytest.raises(RuntimeError):
            gradient("f_mul", [x, np.ones(7)], [g], give_up_grads=True)
    empty_cache()
    assert [sys.getrefcount(array) for array in (x, g)] == before


@pytest.mark.parametrize("give_up", [False, True])
def test_values_do_not_leak(register, give_up):
    name = register("f_leak(Tensor self, number p)", kernel="transpose",
                    self="f_unbind(f_stack([grad * p, self], 0), 0)[0] if p > 1 else f_t(grad, 0, 1) * p")
    for p in (1, 2):
        before = [sys.getrefcount(array) for array in (x, g)]
        for _ in range(5):
            gradient(name, [x, p], [g], give_up_grads=give_up)
        empty_cache()
        assert [sys.getrefcount(array) for array in (x, g)] == before


def test_memory_of_a_given_up_gradient_is_reused():
    assert not np.shares_memory(gradient("f_mul", [x, y], [g]), g)
    assert np.shares_memory(gradient("f_add", [], [g]), g)


def test_many_threads():
    wanted = g * y
    wrong = []

    def work():
        for _ in range(200):
            if not np.array_equal(gradient("f_mul", [x, y], [g], give_up_grads=True), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
