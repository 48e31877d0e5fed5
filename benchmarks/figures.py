"""
The committed figures of the last comparison, and what is made of them: tables in the documents, and a plot.

`figures.json` has the numbers alone; titles and units are in `scenarios`. In the documents a table
stands between two comments, ``<!-- figures: NAME -->`` and ``<!-- end -->``, and is replaced as a whole.
``python -m benchmarks.figures`` does that without measuring.
"""

import json
import re
from math import nan
from pathlib import Path
from statistics import geometric_mean

from .scenarios import SCENARIOS
from .workloads import PEERS

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
    """Rewrite some of the figures, and the documents."""
    FIGURES.write_text(json.dumps({**read(), **changed}, indent=1, ensure_ascii=False) + "\n")
    write_documents()


def write_lines(about, lines):
    """Keep the figures of a comparison, over those of the same scenarios and threads."""
    kept = read()["lines"]
    for key, by_threads in lines.items():
        kept[key] = {**kept.get(key, {}), **by_threads}
    keep(about=about, lines={key: kept[key] for key in SCENARIOS if key in kept})


def write_documents():
    """Make the tables of the documents anew."""
    for path, text in documents().items():
        path.write_text(text)


# ---- tables

def number(value):
    """Three digits, and commas."""
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.3g}"


def relative(line, peer):
    """What a library takes relative to cygrad, bold where that is less."""
    ratio = line["ratios"].get(peer) if line else None
    return "" if ratio is None else number(ratio) if ratio >= 1 else f"**{number(ratio)}**"


def table(lines):
    """All scenarios: values of cygrad, and what the others take relative to it. Bold is less than 1."""
    threads = sorted({number for by_threads in lines.values() for number in by_threads})
    peers = [peer for peer in PEERS if any(peer in line["ratios"] for by_threads in lines.values()
                                           for line in by_threads.values())]
    columns = [(peer, number) for peer in peers for number in threads]
    heads = ["", "", *(f"cygrad, {n}" for n in threads), *(f"{NAMES[peer]}, {n}" for peer, n in columns)]
    rows = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for key in lines:
        scenario, by_threads = SCENARIOS[key], lines[key]
        ours = [number(by_threads[n]["values"]["cygrad"]) if n in by_threads else "" for n in threads]
        ratios = [relative(by_threads.get(n), peer) for peer, n in columns]
        rows.append("| " + " | ".join([scenario.title, scenario.unit, *ours, *ratios]) + " |")
    return "\n".join(rows)


def short_table(lines):
    """Values of one thread, and what PyTorch and compiled jax take relative to them."""
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
    """Library -> title -> instructions, as a table."""
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
    """Title -> shares of what the machine can do, as a table."""
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
    """Name -> ratios of PyTorch's time to cygrad's, one for each of OPERATOR_COLUMNS; nan where there is none."""
    return {name: [float(ratio) for ratio in ratios.split()] for name, ratios in operators.get("speed", {}).items()}


def slowest(ratios, count=20):
    """Names of the operators that have the least ratios."""
    return sorted(ratios, key=lambda name: min(ratio for ratio in ratios[name] if ratio == ratio))[:count]


def operators_table(ratios):
    """The means over all operators and the slowest of them, as a table; bold where PyTorch is faster."""
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
    """Largest errors of special functions, as a table."""
    rows = ["| units in the last place | cygrad | PyTorch |", "|---|---:|---:|"]
    for name, errors in accuracy.items():
        rows.append(f"| `{name}` | " + " | ".join("" if error != error else number(error) for error in errors) + " |")
    return "\n".join(rows)


def about_lines(about):
    """The circumstances as a list."""
    return "\n".join(f"- {line}" for line in about)


def replaced(text, figures):
    """A document with its tables made anew."""
    made = {"all": lambda: table(figures["lines"]), "short": lambda: short_table(figures["lines"]),
            "about": lambda: about_lines(figures["about"]),
            "instructions": lambda: instructions_table(figures["instructions"]),
            "limits": lambda: limits_table(figures["limits"]),
            "operators": lambda: operators_table(ratios_of(figures["operators"])),
            "accuracy": lambda: accuracy_table(figures["operators"].get("accuracy", {}))}
    return re.sub(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)",
                  lambda match: f"{match[1]}\n{made[match[2]]()}\n\n{match[3]}", text, flags=re.DOTALL)


def documents():
    """Path -> text, for the documents that have tables."""
    figures = read()
    paths = (ROOT / "README.md", ROOT / "docs" / "performance.md")
    return {path: replaced(path.read_text(), figures) for path in paths}


if __name__ == "__main__":
    write_documents()
