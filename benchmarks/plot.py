"""
Plot of the times of other libraries relative to cygrad, by scenario, from the committed figures.
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .figures import NAMES, number, read
from .scenarios import SCENARIOS
from .workloads import OTHERS

COLORS = {"torch": "#d1495b", "jax": "#1d7874", "jax.jit": "#3d5a98", "autograd": "#b8860b"}
ROW = 0.24                                              # inches


def label(other, threads, ratio):
    """Return the tooltip of a point."""
    return f"{NAMES[other]}, {threads} thread{'s' * (threads != '1')}: {number(ratio)}"


def drawing(lines):
    """Return the matplotlib figure: a row per scenario, a point per ratio."""
    lines = {key: by for key, by in lines.items() if any(line["ratios"] for line in by.values())}
    figure = Figure(figsize=(11, 1.2 + ROW * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    for row, by_threads in enumerate(lines.values()):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", zorder=0)
        for threads, line in sorted(by_threads.items(), reverse=True):
            for other, ratio in line["ratios"].items():
                axes.plot(ratio, row, marker="o", linestyle="", color=COLORS[other], zorder=3,
                          markerfacecolor=None if threads == "1" else "white", label=label(other, threads, ratio))
    axes.set_xscale("log")
    axes.axvline(1, color="#333333", zorder=1)
    axes.grid(axis="x", color="#cccccc")
    axes.set_yticks(range(len(lines)), [SCENARIOS[key].title.replace("`", "") for key in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("time or memory relative to cygrad (more than 1: cygrad is better)")
    gray = {"linestyle": "", "color": "#555555"}
    figure.legend(loc="outside upper center", ncols=4, frameon=False, handles=[
        *(Line2D([], [], marker="o", linestyle="", color=COLORS[other], label=NAMES[other]) for other in OTHERS),
        Line2D([], [], marker="o", label="one thread", **gray),
        Line2D([], [], marker="o", markerfacecolor="white", label="two threads", **gray)])
    return figure


def draw(path):
    """Write the plot of the committed figures."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing(read()["lines"]).savefig(path)
