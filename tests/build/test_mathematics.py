"""Translation of formulas to LaTeX."""

import ast
import re
from pathlib import Path

import pytest

mathematics = pytest.importorskip("build_tools.mathematics", reason="build_tools is only in the source tree")
from build_tools.operator_table import raw_rows, read_table  # noqa: E402
from build_tools.table_documents import gradients  # noqa: E402

TABLE = Path(__file__).resolve().parents[2] / "cygrad" / "_core" / "table" / "ops"
FORMULAS = {
    "grad * conj(cos(self))": r"g \cdot \overline{\cos x}",
    "-grad * conj(sin(self))": r"-g \cdot \overline{\sin x}",
    "grad * (1 - result * result)": r"g \cdot \left(1 - y^{2}\right)",
    "a - (b - c)": r"a - \left(b - c\right)",
    "a - b - c": "a - b - c",
    "a * (b * c)": r"a \cdot \left(b \cdot c\right)",
    "(a + b) ** 2": r"\left(a + b\right)^{2}",
    "(-a) ** n": r"\left(-a\right)^{n}",
    "a ** (n - 1)": "a^{n - 1}",
    "-(a + b)": r"-\left(a + b\right)",
    "exp(-square(self))": "e^{-x^{2}}",
    "matmul(A, adjoint(B + C))": r"A\;\left(B + C\right)^{\mathsf{H}}",
    "where(self == 0, 0, grad / where(self == 0, 1, self))":
        r"\begin{cases} 0 & \text{if } x = 0 \\ \dfrac{g}{x} & \text{otherwise} \end{cases}",
    "1 if p == 1 else 2 if p > 1 else 3":
        r"\begin{cases} 1 & \text{if } p = 1 \\ 2 & \text{if } p > 1 \\ 3 & \text{otherwise} \end{cases}",
    "2 * where(c, a, b)":
        r"2 \cdot \left(\begin{cases} a & \text{if } c \\ b & \text{otherwise} \end{cases}\right)",
    "cast(grad_Q, Q.dtype)": "g_{Q}",
    "self.shape[-1]": r"\mathrm{shape}\left(x\right)_{-1}",
    "softmax_backward(grad, k_1)": r"\mathrm{softmax\_backward}\left(g, k_{1}\right)",
    "abs(self) / 2.302585092994046": r"\dfrac{\left\lvert x \right\rvert}{\ln 10}",
    "1e-05 * pos_weight": r"1 \cdot 10^{-5} \cdot \mathit{pos\_weight}",
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_translations(formula):
    assert mathematics.latex(formula) == FORMULAS[formula]


def test_definitions_stand_above():
    text = mathematics.latex("half = grad / 2\nhalf * half", mathematics.gradient_of("other"))
    assert text == (r"\begin{aligned} \mathit{half} &= \dfrac{g}{2} \\ g_{\mathit{other}} &= "
                    r"\mathit{half}^{2} \end{aligned}")


def test_what_has_no_sign_is_refused():
    with pytest.raises(NotImplementedError, match=r"mathematics: Lambda has no sign.*Add one"):
        mathematics.strong(ast.parse("lambda: 0", mode="eval").body)


def texts():
    for rows in read_table(TABLE).values():
        for name, row in rows.items():
            yield from ((name, text) for text in gradients(row))
            if row["forward"] not in (None, "primitive"):
                yield name, mathematics.latex(row["forward"])
    for path in TABLE.glob("*.toml"):
        helpers = {name: row for name, row in raw_rows(path).items() if "helper" in row}
        yield from ((name, mathematics.latex(row["formula"])) for name, row in helpers.items())


def test_every_formula_of_the_table_has_a_translation():
    found = list(texts())
    assert len(found) > 500
    for name, text in found:
        assert text.count("{") == text.count("}"), name
        assert text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right"), name
        assert len(re.findall(r"\\begin\{(\w+)\}", text)) == len(re.findall(r"\\end\{(\w+)\}", text)), name
        assert "|" not in text and "\n" not in text, name
        bare = re.sub(r"\\(?:text|mathit|mathrm|operatorname)\{[^{}]*\}|\\_", "", text)
        assert not re.search(r"[A-Za-z]{2,}_|[\"#$%&~](?!=| )", re.sub(r"\\[A-Za-z]+", "", bare)), (name, text)
