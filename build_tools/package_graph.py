"""Draw the imports between the packages of `_core`, for the documentation."""

from collections import Counter

from matplotlib.figure import Figure

from .structure import CORE_PACKAGES, core_package, files, imports


def package_imports():
    """Return (importer, imported) -> number of imports."""
    count = Counter()
    for path in files(".py", ".pyx", ".pxd"):
        if "_core" in path.parts and core_package(path) in CORE_PACKAGES:
            for name in imports(path):
                if name.startswith("cygrad._core."):
                    other = "/".join(name.split(".")[2:-1])
                    if other in CORE_PACKAGES and other != core_package(path):
                        count[core_package(path), other] += 1
    return count


def draw_packages(path):
    """Write the picture: a row per importer, a column per imported package, disks by number of imports."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.add_subplot()
    places = {name: number for number, name in enumerate(CORE_PACKAGES)}
    for (importer, imported), times in package_imports().items():
        axes.scatter(places[imported], places[importer], s=12 + 3 * times, color="#3d5a98", alpha=0.8, zorder=3)
    axes.plot([-0.5, len(CORE_PACKAGES) - 0.5], [-0.5, len(CORE_PACKAGES) - 0.5], color="#d1495b", zorder=1)
    axes.set_xticks(range(len(CORE_PACKAGES)), CORE_PACKAGES, rotation=60, ha="right")
    axes.set_yticks(range(len(CORE_PACKAGES)), CORE_PACKAGES)
    axes.set_xlim(-0.5, len(CORE_PACKAGES) - 0.5)
    axes.set_ylim(-0.5, len(CORE_PACKAGES) - 0.5)
    axes.grid(color="#e4e4e4", zorder=0)
    axes.set_xlabel("imported")
    axes.set_ylabel("imports")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
