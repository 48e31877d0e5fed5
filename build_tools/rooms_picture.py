"""The picture of the rooms of `_core` in the documentation, made from what their files import."""

from collections import Counter

from matplotlib.figure import Figure

from .structure import ROOMS, files, imports, room


def room_imports():
    """(room that imports, room that is imported) -> how many imports that are."""
    count = Counter()
    for path in files(".py", ".pyx", ".pxd"):
        if "_core" in path.parts and room(path) in ROOMS:
            for name in imports(path):
                if name.startswith("cygrad._core."):
                    other = "/".join(name.split(".")[2:-1])
                    if other in ROOMS and other != room(path):
                        count[room(path), other] += 1
    return count


def draw_rooms(path):
    """Write the picture: a row for each room, a column for each that it imports from; disks show how often."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    axes = figure.add_subplot()
    places = {name: number for number, name in enumerate(ROOMS)}
    for (importer, imported), times in room_imports().items():
        axes.scatter(places[imported], places[importer], s=12 + 3 * times, color="#3d5a98", alpha=0.8, zorder=3)
    axes.plot([-0.5, len(ROOMS) - 0.5], [-0.5, len(ROOMS) - 0.5], color="#d1495b", zorder=1)
    axes.set_xticks(range(len(ROOMS)), ROOMS, rotation=60, ha="right")
    axes.set_yticks(range(len(ROOMS)), ROOMS)
    axes.set_xlim(-0.5, len(ROOMS) - 0.5)
    axes.set_ylim(-0.5, len(ROOMS) - 0.5)
    axes.grid(color="#e4e4e4", zorder=0)
    axes.set_xlabel("imported")
    axes.set_ylabel("imports")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
