"""Pages generated from the sources: operators, derivatives, kinks, and guarantees."""

import re
import tomllib
from pathlib import Path

from build_tools.files import write_if_changed
from build_tools.table_documents import derivatives, documentation, kinks, line

OPERATORS_HEAD = """# Operators

Made from the operator table, `cygrad/_core/table/ops`. `Differentiable in` lists the arguments that have a derivative
formula, by their names in the table; `self` is the first one, which Python functions call `input`. Everything is
computed for all dtypes unless a cell says otherwise. Names lead to the pages of the functions; {doc}`derivatives` has
the formulas as mathematics.

<div class="table-filter-place"></div>

"""
DERIVATIVES_HEAD = """# Derivatives

Made from the operator table, `cygrad/_core/table/ops`: the very texts that backward runs, translated into mathematics.

- $x$ is the first argument (`self` in the table, `input` in Python), $y$ the result, $g$ the gradient of $y$. Where
  there are several results, $g_Q$ is the gradient of the result $Q$; on the left of a sign of equality, $g_x$ is that
  of an argument.
- $a \\cdot b$ multiplies element by element, $A\\;B$ is the product of matrices. $\\overline{z}$ is the complex
  conjugate, which is nothing for real numbers, and $A^{\\mathsf H}$ the conjugate transpose.
- What was broadcast is summed to the shape of the argument, and its dtype restored; formulas do not say so.
- Operators without a link are internal: functions are composed of them. Helpers are at the end.

<div class="table-filter-place"></div>

"""
KINKS_HEAD = """# Gradients at points without a derivative

Backward follows these rules, the first that applies:

1. The derivative, if there is one.
2. For a function that is convex near the point, the subgradient of least norm: 0 for `relu` and `abs` at 0, equal
   shares for `amax` of equal elements.
3. For a concave one, the supergradient of least norm.
4. The limit of the derivative, if there is one; it may be inf, as for `sqrt` at 0.
5. Outside of the domain, and where none of the above applies, any value, usually nan.

Some values differ from the rules because programs rely on them: bounds of `clamp` pass the
gradient, those of `relu6` and `hardtanh` do not. So the table has them all. It is made from the operator table,
`cygrad/_core/table/ops`; a name that is not public is a part of a function, which the next column
names. Functions that are made of several operators follow by the chain rule: `where(x > 0, sqrt(x), 0 * x)` gives nan
at 0, since the gradient 0 of `where` meets the derivative inf of `sqrt`. Each line has a test in
`tests/behavior/test_kinks.py`.

"""
# Figures of the first page: row of the README's table -> text.
FIGURES = {
    "4 elements, per operation: forward and backward": "as fast as PyTorch where an operation has four elements",
    "engine, chain of 10⁴ nodes: backward, per node": "as fast through a chain of ten thousand nodes",
    "MLP 784-256-128-10, batch 64: SGD step": "as fast in a step of a small network, products included",
}
FIGURE = """:::{{grid-item-card}}
<span class="figure-number">{number} ×</span>

{words}
:::
"""
GUARANTEES_HEAD = """# Guarantees

Each row is a guarantee. Its tests have its number as a pytest marker; the last column links to them. The line under
each title links to the page that explains the section.

"""
MARKER = re.compile(r'^(?P<module>pytestmark = )?@?pytest\.mark\.guarantee\("(?P<row>\w+)"|^def test_', re.MULTILINE)


def guarantee_tests(folder: Path) -> dict[str, dict[str, int]]:
    """Return the test files of each row, and the number of its tests in each."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        of_module = of_test = None
        for match in MARKER.finditer(path.read_text()):
            if match["module"]:
                of_module = match["row"]
            elif match["row"]:
                of_test = match["row"]
            else:
                if row := of_test or of_module:
                    files = found.setdefault(row, {})
                    files[path.name] = files.get(path.name, 0) + 1
                of_test = None
    return found


def guarantees(words: Path, folder: Path) -> str:
    """Return the page of guarantees: rows that have tests, section by section."""
    tests = guarantee_tests(folder)
    lines = []
    for rows in tomllib.loads(words.read_text()).values():
        done = {row: text for row, text in rows.items() if row in tests}
        if done:
            lines += [f"## {rows['title']}", ""]
            if "page" in rows:
                lines += [f"Explained in {{doc}}`/{rows['page']}`.", ""]
            lines += [line(("Row", "What holds", "Tests")), line(("---",) * 3)]
            for row, text in done.items():
                links = [f"{{download}}`{count} in {name} <../../tests/behavior/{name}>`"
                         for name, count in tests[row].items()]
                lines.append(line((row, text, ", ".join(links))))
            lines.append("")
    return GUARANTEES_HEAD + "\n".join(lines)


def figures(readme: str) -> str:
    """Return the cards of the first page, with the README's ratios."""
    cards = []
    for row, words in FIGURES.items():
        ratio = re.search(rf"^\| {re.escape(row)} .*\| ([\d.]+) \|[^|]*\|$", readme, re.MULTILINE)[1]
        cards.append(FIGURE.format(number=ratio, words=words))
    return ("::::{grid} 1 3 3 3\n:gutter: 3\n\n" + "\n".join(cards) + "::::\n\n"
            "One thread each, medians of paired runs; {doc}`/performance` has all scenarios and how to repeat them.\n")


def write_pages(root: Path) -> None:
    """Write the generated pages below docs/generated."""
    docs, table = root / "docs", root / "cygrad/_core/table/ops"
    write_if_changed(docs / "generated" / "operators.md", OPERATORS_HEAD + documentation(table))
    write_if_changed(docs / "generated" / "figures.md", figures((root / "README.md").read_text()))
    write_if_changed(docs / "generated" / "derivatives.md", DERIVATIVES_HEAD + derivatives(table))
    write_if_changed(docs / "generated" / "kinks.md", KINKS_HEAD + kinks(table))
    write_if_changed(docs / "generated" / "guarantees.md",
                     guarantees(docs / "guarantees.toml", root / "tests" / "behavior"))
