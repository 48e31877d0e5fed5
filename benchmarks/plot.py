"""
The plot of the documentation: how many times as long peers need, scenario by scenario, on a logarithmic axis.

It is drawn as SVG from the committed figures whenever the documentation is built, so it needs nothing that is measured
then, and no library.
"""

from html import escape
from math import ceil, floor, log10
from pathlib import Path

from .figures import NAMES, number, read
from .scenarios import SCENARIOS
from .workloads import PEERS

COLOURS = {"torch": "#d1495b", "jax": "#1d7874", "jax.jit": "#3d5a98", "autograd": "#b8860b"}
WIDTH, LABELS, ROW, TOP, RADIUS = 1060, 400, 22, 64, 4.5


class Axis:
    """Positions on a logarithmic axis that spans whole powers of ten."""

    def __init__(self, values):
        self.low = min(floor(log10(min(values))), -1)
        self.high = max(ceil(log10(max(values))), 1)

    def at(self, value):
        return LABELS + (WIDTH - LABELS - 20) * (log10(value) - self.low) / (self.high - self.low)

    def powers(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="start", weight="normal"):
    """Words at a place."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>')


def dot(x, y, colour, threads, title):
    """A ratio: filled for one thread, hollow for more. Browsers show the title under the pointer."""
    fill = colour if threads == "1" else "white"
    return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{fill}" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(title)}</title></circle>")


def bar(x, y, colour):
    """What is wanted."""
    return (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - ROW / 2 + 2}" y2="{y + ROW / 2 - 2}" stroke="{colour}" '
            f'stroke-width="2.5"/>')


def legend():
    """What colours and shapes mean."""
    x = LABELS
    for peer in PEERS:
        yield dot(x, 18, COLOURS[peer], "1", NAMES[peer])
        yield text(x + 10, 22, NAMES[peer])
        x += 130
    yield dot(LABELS, 40, "#555555", "1", "one thread") + text(LABELS + 10, 44, "one thread")
    yield dot(LABELS + 130, 40, "#555555", "2", "two threads") + text(LABELS + 140, 44, "two threads")
    yield bar(LABELS + 260, 40, "#555555") + text(LABELS + 270, 44, "wanted, from the peer of that colour")
    yield text(10, 22, "time or memory of a peer / ours", weight="bold")
    yield text(10, 44, "further to the right is better for us")


def rows(lines, axis):
    """One row for each scenario."""
    for row, (key, by_threads) in enumerate(lines.items()):
        scenario, y = SCENARIOS[key], TOP + ROW * (row + 0.5)
        if row % 2 == 0:
            yield f'<rect x="0" y="{y - ROW / 2}" width="{WIDTH}" height="{ROW}" fill="#f4f4f4"/>'
        yield text(LABELS - 12, y + 4, scenario.title.replace("`", ""), "end")
        for peer, target in scenario.targets.items():
            yield bar(axis.at(target), y, COLOURS[peer])
        for threads, line in sorted(by_threads.items(), reverse=True):
            for peer, ratio in line["ratios"].items():
                title = f"{NAMES[peer]}, {threads} thread{'s' * (threads != '1')}: {number(ratio)}"
                yield dot(axis.at(ratio), y, COLOURS[peer], threads, title)


def grid(axis, bottom):
    """Powers of ten; the one of 1, where both are equal, is darker."""
    for power in axis.powers():
        x, colour = axis.at(power), "#333333" if power == 1 else "#cccccc"
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="{colour}"/>'
        yield text(x, bottom + 18, f"{power:g}", "middle")


def drawing(lines):
    """The whole picture, as text."""
    lines = {key: by for key, by in lines.items() if any(line["ratios"] for line in by.values())}
    axis = Axis([ratio for by in lines.values() for line in by.values() for ratio in line["ratios"].values()] or [1])
    bottom = TOP + ROW * len(lines)
    parts = list(rows(lines, axis))
    shades = [part for part in parts if part.startswith("<rect")]
    marks = [part for part in parts if not part.startswith("<rect")]
    size = f'width="{WIDTH}" height="{bottom + 30}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" {size}',
                      '     font-family="sans-serif" font-size="12">',
                      f'<rect {size} fill="white"/>', *shades, *grid(axis, bottom), *marks, *legend(), "</svg>", ""])


def draw(path):
    """Write the picture of the committed figures."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawing(read()["lines"]), encoding="utf-8")
