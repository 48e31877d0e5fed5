"""
The plot of the documentation: what other libraries take relative to cygrad, scenario by scenario, on a log axis.

It is drawn from the committed figures whenever the documentation is built, so nothing is measured then.
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .figures import NAMES, number, read
from .scenarios import SCENARIOS
from .workloads import PEERS

COLORS = {"torch": "#d1495b", "jax": "#1d7874", "jax.jit": "#3d5a98", "autograd": "#b8860b"}
ROW = 0.24                                              # inches


def label(peer, threads, ratio):
    """What a point says of itself."""
    return f"{NAMES[peer]}, {threads} thread{'s' * (threads != '1')}: {number(ratio)}"


def drawing(lines):
    """The whole picture, as a figure of matplotlib: a row for each scenario, a point for each ratio."""
    lines = {key: by for key, by in lines.items() if any(line["ratios"] for line in by.values())}
    figure = Figure(figsize=(11, 1.2 + ROW * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    for row, by_threads in enumerate(lines.values()):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", zorder=0)
        for threads, line in sorted(by_threads.items(), reverse=True):
            for peer, ratio in line["ratios"].items():
                axes.plot(ratio, row, marker="o", linestyle="", color=COLORS[peer], zorder=3,
                          markerfacecolor=None if threads == "1" else "white", label=label(peer, threads, ratio))
    axes.set_xscale("log")
    axes.axvline(1, color="#333333", zorder=1)
    axes.grid(axis="x", color="#cccccc")
    axes.set_yticks(range(len(lines)), [SCENARIOS[key].title.replace("`", "") for key in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("time or memory relative to cygrad (more than 1: cygrad is better)")
    gray = {"linestyle": "", "color": "#555555"}
    figure.legend(loc="outside upper center", ncols=4, frameon=False, handles=[
        *(Line2D([], [], marker="o", linestyle="", color=COLORS[peer], label=NAMES[peer]) for peer in PEERS),
        Line2D([], [], marker="o", label="one thread", **gray),
        Line2D([], [], marker="o", markerfacecolor="white", label="two threads", **gray)])
    return figure


def draw(path):
    """Write the picture of the committed figures."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing(read()["lines"]).savefig(path)
