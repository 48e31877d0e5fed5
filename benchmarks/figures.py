"""
Tables and a plot of the documents, from the committed figures of the last comparison.

`figures.json` has the numbers, `scenarios` titles and units. ``python -m benchmarks.figures`` replaces the tables
between the comments ``<!-- figures: NAME -->`` and ``<!-- end -->``.
"""

import json
import re
from math import nan
from pathlib import Path
from statistics import geometric_mean

from .scenarios import SCENARIOS
from .workloads import OTHERS

ROOT = Path(__file__).resolve().parents[1]
FIGURES = Path(__file__).with_name("figures.json")
NAMES = {"torch": "PyTorch", "jax": "jax", "jax.jit": "jax, jit", "autograd": "HIPS autograd"}
IN_README = ("op-backward", "graph-chain", "lstm", "chain-1e7", "mlp-tiny", "mlp-small", "mlp-large", "block-512",
             "hvp", "hessian", "step-adam", "import-time", "import-memory")


def read():
    """{"about": lines of text, "lines": key -> threads -> figures, "instructions": library -> title -> count,
    "limits": title -> shares, "operators": speed and accuracy of each}."""
    empty = {"about": [], "lines": {}, "instructions": {}, "limits": {}, "operators": {}}
    return {**empty, **json.loads(FIGURES.read_text())} if FIGURES.exists() else empty


def keep(**changed):
    """Update some of the figures, and the documents."""
    FIGURES.write_text(json.dumps({**read(), **changed}, indent=1, ensure_ascii=False) + "\n")
    write_documents()


def write_lines(about, lines):
    """Update the figures of the compared scenarios and threads."""
    kept = read()["lines"]
    for key, by_threads in lines.items():
        kept[key] = {**kept.get(key, {}), **by_threads}
    keep(about=about, lines={key: kept[key] for key in SCENARIOS if key in kept})


def write_documents():
    """Rewrite the tables of the documents."""
    for path, text in documents().items():
        path.write_text(text)


# ---- tables

def number(value):
    """Three digits, and commas."""
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.3g}"


def relative(line, other):
    """Return the time of a library relative to cygrad, bold if less than 1."""
    ratio = line["ratios"].get(other) if line else None
    return "" if ratio is None else number(ratio) if ratio >= 1 else f"**{number(ratio)}**"


def table(lines):
    """Return the table of all scenarios: values of cygrad, and relative times of others, bold if less than 1."""
    threads = sorted({number for by_threads in lines.values() for number in by_threads})
    others = [other for other in OTHERS if any(other in line["ratios"] for by_threads in lines.values()
                                           for line in by_threads.values())]
    columns = [(other, number) for other in others for number in threads]
    heads = ["", "", *(f"cygrad, {n}" for n in threads), *(f"{NAMES[other]}, {n}" for other, n in columns)]
    rows = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for key in lines:
        scenario, by_threads = SCENARIOS[key], lines[key]
        ours = [number(by_threads[n]["values"]["cygrad"]) if n in by_threads else "" for n in threads]
        ratios = [relative(by_threads.get(n), other) for other, n in columns]
        rows.append("| " + " | ".join([scenario.title, scenario.unit, *ours, *ratios]) + " |")
    return "\n".join(rows)


def short_table(lines):
    """Return the table of values of one thread, and relative times of PyTorch and compiled jax."""
    rows = ["| one thread | | cygrad | PyTorch | PyTorch, relative | jax.jit, relative |",
            "|---|---|---:|---:|---:|---:|"]
    for key in IN_README:
        line = lines.get(key, {}).get("1")
        if line and "torch" in line["values"]:
            ours, theirs = (number(line["values"][name]) for name in ("cygrad", "torch"))
            rows.append(f"| {SCENARIOS[key].title} | {SCENARIOS[key].unit} | {ours} | {theirs} | "
                        f"{relative(line, 'torch')} | {relative(line, 'jax.jit')} |")
    return "\n".join(rows)


def instructions_table(counts):
    """Return the table of instructions by title and library."""
    if not counts:
        return ""
    ratios = ["ratio"] * (len(counts) - 1)
    rows = ["| | " + " | ".join([*(NAMES.get(name, name) for name in counts), *ratios]) + " |",
            "|---|" + "---:|" * (len(counts) + len(ratios))]
    for title, ours in counts["cygrad"].items():
        numbers = [of[title] for of in counts.values()]
        cells = [*(f"{count:,}" for count in numbers), *(number(count / max(ours, 1)) for count in numbers[1:])]
        rows.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def limits_table(found):
    """Return the table of shares of the machine's limits."""
    names = list(next(iter(found.values()))["shares"]) if found else []
    rows = ["| | | " + " | ".join(NAMES.get(name, name) for name in names) + " | of |",
            "|---|---:|" + "---:|" * len(names) + "---:|"]
    for title, line in found.items():
        unit = "GB/s" if "MiB" in line["of"] else "GFLOP/s"
        of = [number(share) for share in line["shares"].values()]
        rows.append(f"| {title} | {line['of']} | " + " | ".join(of) + f" | {number(line['limit'] / 1e9)} {unit} |")
    return "\n".join(rows) if found else ""


OPERATOR_COLUMNS = tuple(f"{n:,} {mode}" for mode in ("forward", "backward") for n in (100, 16_384, 1_000_000))


def ratios_of(operators):
    """Return name -> ratios of PyTorch's time to cygrad's for OPERATOR_COLUMNS, nan if missing."""
    return {name: [float(ratio) for ratio in ratios.split()] for name, ratios in operators.get("speed", {}).items()}


def slowest(ratios, count=20):
    """Return the operators with the smallest ratios."""
    return sorted(ratios, key=lambda name: min(ratio for ratio in ratios[name] if ratio == ratio))[:count]


def operators_table(ratios):
    """Return the table of means and of the slowest operators; bold if PyTorch is faster."""
    columns = [[ratio for ratio in column if ratio == ratio] for column in zip(*ratios.values(), strict=True)]
    lines = {f"geometric mean of {len(ratios)} operators": [geometric_mean(column or [nan]) for column in columns],
             "below 0.95": [f"{sum(ratio < 0.95 for ratio in column)}" for column in columns],
             **{f"`{name}`": ratios[name] for name in slowest(ratios)}}
    rows = ["| | " + " | ".join(OPERATOR_COLUMNS) + " |", "|---|" + "---:|" * len(OPERATOR_COLUMNS)]
    for title, cells in lines.items():
        texts = [cell if isinstance(cell, str) else "" if cell != cell else number(cell) if cell >= 1
                 else f"**{number(cell)}**" for cell in cells]
        rows.append(f"| {title} | " + " | ".join(texts) + " |")
    return "\n".join(rows) if ratios else ""


def accuracy_table(accuracy):
    """Return the table of the largest errors of special functions."""
    rows = ["| units in the last place | cygrad | PyTorch |", "|---|---:|---:|"]
    for name, errors in accuracy.items():
        rows.append(f"| `{name}` | " + " | ".join("" if error != error else number(error) for error in errors) + " |")
    return "\n".join(rows)


def about_lines(about):
    """Return the machine and versions as a list."""
    return "\n".join(f"- {line}" for line in about)


def replaced(text, figures):
    """Return a document with updated tables."""
    made = {"all": lambda: table(figures["lines"]), "short": lambda: short_table(figures["lines"]),
            "about": lambda: about_lines(figures["about"]),
            "instructions": lambda: instructions_table(figures["instructions"]),
            "limits": lambda: limits_table(figures["limits"]),
            "operators": lambda: operators_table(ratios_of(figures["operators"])),
            "accuracy": lambda: accuracy_table(figures["operators"].get("accuracy", {}))}
    return re.sub(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)",
                  lambda match: f"{match[1]}\n{made[match[2]]()}\n\n{match[3]}", text, flags=re.DOTALL)


def documents():
    """Return path -> text of the documents with tables."""
    figures = read()
    paths = (ROOT / "README.md", ROOT / "docs" / "performance.md")
    return {path: replaced(path.read_text(), figures) for path in paths}


if __name__ == "__main__":
    write_documents()
