"""Drawings of graphs: for Graphviz, or as SVG with a built-in layout."""

import importlib
import math

from cygrad._core.graph.node import Node
from cygrad._core.graph.tensor import Tensor

__all__ = ["to_dot", "to_svg"]

CHARACTER, LINE, PADDING, GAP, RISE, MARGIN = 6.7, 15, 9, 16, 74, 20     # pixels
COLORS = {"leaf": "#cfe5f7", "result": "#d5efcf", "function": "#eeeeee"}
SWEEPS = 8


class Drawing:
    """
    The boxes and arrows of a drawing.

    Leaves are at the top, results at the bottom.
    """

    def __init__(self, root, names=None):
        self.labels, self.kinds, self.edges = [], [], []       # edges: (from, to), in the direction of values
        self._boxes = {}                                       # node -> its index
        names = {id(tensor): name for name, tensor in dict(names or {}).items()}
        for tensor_or_node in root if isinstance(root, (list, tuple)) else [root]:
            self._add_root(tensor_or_node, names)
        self.layers = self._layers()

    def _add_root(self, root, names):
        if isinstance(root, Tensor):
            box = self._box("result" if root.grad_fn is not None or not root.requires_grad else "leaf",
                            f"{names.get(id(root), 'result')}\n{_size(root)}")
            node = root.grad_fn
            if node is None:
                return
        elif isinstance(root, Node):
            box, node = None, root
        else:
            raise TypeError(f"drawing: expected a Tensor or a Node (got {type(root).__name__}).")
        self._add_graph(node, names)
        if box is not None:
            self.edges.append((self._boxes[node], box))

    def _add_graph(self, root, names):
        """Collect all nodes below the root, iteratively, because graphs are deep."""
        stack = [root]
        while stack:
            node = stack.pop()
            if node in self._boxes:
                continue
            self._boxes[node] = self._box(*_describe(node, names))
            stack.extend(child for child, _ in reversed(node.next_functions) if child is not None)
        # Add arrows when all boxes of this root exist.
        drawn = set(self.edges)
        for node, box in list(self._boxes.items()):
            for child, _ in node.next_functions:
                if child is not None and (edge := (self._boxes[child], box)) not in drawn:
                    drawn.add(edge)
                    self.edges.append(edge)

    def _box(self, kind, label):
        self.labels.append(label)
        self.kinds.append(kind)
        return len(self.labels) - 1

    def _layers(self):
        """Assign boxes to rows by the longest path: each above all boxes that are computed from it."""
        count = len(self.labels)
        makers = [[] for _ in range(count)]
        uses = [0] * count
        for source, target in self.edges:
            makers[target].append(source)
            uses[source] += 1
        depth = [0] * count
        ready = [box for box in range(count) if uses[box] == 0]
        for box in ready:                 # grows during the loop
            for maker in makers[box]:
                depth[maker] = max(depth[maker], depth[box] + 1)
                uses[maker] -= 1
                if uses[maker] == 0:
                    ready.append(maker)
        layers = [[] for _ in range(max(depth, default=0) + 1)]
        for box in range(count):
            layers[-1 - depth[box]].append(box)
        return layers


def _describe(node, names):
    variable = getattr(node, "variable", None)
    if variable is None:
        return "function", node.name()
    name = names.get(id(variable))
    return "leaf", (f"{name}\n" if name else "") + _size(variable)


def _size(tensor):
    dtype = str(tensor.dtype).rpartition(".")[2]
    return f"{dtype} ({', '.join(map(str, tensor.shape))})" if tensor.ndim else dtype


def to_dot(root, names=None):
    """
    Return the graph of a result in the DOT language of Graphviz.

    Parameters
    ----------
    root : Tensor, Node, or a sequence of them
    names : dict, optional
        Tensors by name, for labels; for example ``dict(model.named_parameters())``.

    Returns
    -------
    str

    See Also
    --------
    to_svg

    Examples
    --------
    >>> from cygrad.autograd.drawing import to_dot
    >>> x = cygrad.ones(3, requires_grad=True)
    >>> print(to_dot(x.exp(), {"x": x}))
    digraph {
      node [shape=box, style="rounded,filled", fontname=sans, fontsize=11]
      0 [label="result\\nfloat32 (3)", fillcolor="#d5efcf"]
      1 [label="ExpBackward0", fillcolor="#eeeeee"]
      2 [label="x\\nfloat32 (3)", fillcolor="#cfe5f7"]
      2 -> 1
      1 -> 0
    }
    """
    drawing = Drawing(root, names)
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname=sans, fontsize=11]']
    for box, (label, kind) in enumerate(zip(drawing.labels, drawing.kinds, strict=True)):
        text = label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  {box} [label="{text}", fillcolor="{COLORS[kind]}"]')
    lines += [f"  {source} -> {target}" for source, target in drawing.edges]
    return "\n".join([*lines, "}"])


class Picture(str):
    """An SVG document as text, rendered by notebooks."""

    def _repr_svg_(self):
        return str(self)

    _repr_html_ = _repr_svg_    # HTML contains SVG directly

    def _repr_mimebundle_(self, include=None, exclude=None):
        # Late import: notebooks import this module.
        return importlib.import_module("cygrad.notebook").mimebundle(self, include, exclude)


def to_svg(root, names=None):
    """
    Draw the graph of a result as SVG, with leaves at the top and the result at the bottom.

    Parameters
    ----------
    root : Tensor, Node, or a sequence of them; or a Drawing
    names : dict, optional
        Tensors by name, for labels; for example ``dict(model.named_parameters())``.

    Returns
    -------
    str
        An SVG document as text; notebooks render it.

    See Also
    --------
    to_dot

    Examples
    --------
    >>> from cygrad.autograd import graph
    >>> picture = graph.to_svg(cygrad.ones(2, requires_grad=True).exp().sum())
    >>> picture.startswith("<svg"), "ExpBackward0" in picture
    (True, True)
    """
    drawing = root if isinstance(root, Drawing) else Drawing(root, names)
    widths = [max(map(len, label.split("\n"))) * CHARACTER + 2 * PADDING for label in drawing.labels]
    heights = [len(label.split("\n")) * LINE + PADDING for label in drawing.labels]
    x = _place(drawing, widths)
    left = min((x[box] - widths[box] / 2 for box in range(len(x))), default=0) - MARGIN
    right = max((x[box] + widths[box] / 2 for box in range(len(x))), default=0) + MARGIN
    row = {box: number for number, layer in enumerate(drawing.layers) for box in layer}
    y = [MARGIN + RISE * (row[box] + 0.5) for box in range(len(x))]
    width, height = right - left, 2 * MARGIN + RISE * len(drawing.layers)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.1f} 0 {width:.1f} {height:.1f}" font-family="sans-serif" font-size="11">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="6" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L8,3 L0,6 z" fill="#777"/></marker></defs>',
        f'<rect x="{left:.1f}" width="{width:.1f}" height="{height:.1f}" fill="white"/>',
        '<g fill="none" stroke="#777" marker-end="url(#tip)">',
    ]
    for source, target in drawing.edges:
        begin, end = y[source] + heights[source] / 2, y[target] - heights[target] / 2
        # Vertical at both ends; longer arrows have smoother curves.
        bend = min(RISE, 0.5 * (end - begin)) if end - begin > RISE else 0.4 * (end - begin)
        opacity = 1 / (1 + 0.3 * (row[target] - row[source] - 1))
        faint = f' opacity="{max(opacity, 0.25):.2f}"' if opacity < 1 else ""
        lines.append(f'<path d="M{x[source]:.1f},{begin:.1f} C{x[source]:.1f},{begin + bend:.1f} '
                     f'{x[target]:.1f},{end - bend:.1f} {x[target]:.1f},{end:.1f}"{faint}/>')
    lines.append('</g><g stroke="#999" text-anchor="middle">')
    for box, (label, kind) in enumerate(zip(drawing.labels, drawing.kinds, strict=True)):
        lines.append(f'<rect x="{x[box] - widths[box] / 2:.1f}" y="{y[box] - heights[box] / 2:.1f}" '
                     f'width="{widths[box]:.1f}" height="{heights[box]}" rx="5" fill="{COLORS[kind]}"/>')
        texts = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split("\n")
        for number, text in enumerate(texts):
            base = y[box] + (number - (len(texts) - 1) / 2) * LINE + 4
            lines.append(f'<text x="{x[box]:.1f}" y="{base:.1f}" stroke="none">{text}</text>')
    return Picture("\n".join([*lines, "</g>", "</svg>"]))


def _place(drawing, widths):
    """Place the boxes near the boxes that they are connected to, by sweeps down and up."""
    count = len(drawing.labels)
    above, below = [[] for _ in range(count)], [[] for _ in range(count)]
    for source, target in drawing.edges:
        above[target].append(source)
        below[source].append(target)
    x = [0.0] * count
    for layer in drawing.layers:
        _spread(layer, [float(number) for number in range(len(layer))], x, widths)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in drawing.layers if down else reversed(drawing.layers):
            wanted = []
            for box in layer:
                near = (above if down else below)[box] or (below if down else above)[box]
                wanted.append(sum(x[other] for other in near) / len(near) if near else x[box])
            order = sorted(range(len(layer)), key=lambda number: wanted[number])     # stable, so that it converges
            layer[:] = [layer[number] for number in order]
            _spread(layer, [wanted[number] for number in order], x, widths)
    return x


def _spread(layer, wanted, x, widths):
    """Place boxes of a row near their preferred positions without overlap, keeping the mean position."""
    right, error = -math.inf, 0.0
    for box, place in zip(layer, wanted, strict=True):
        x[box] = max(place, right + widths[box] / 2)
        right = x[box] + widths[box] / 2 + GAP
        error += x[box] - place
    for box in layer:
        x[box] -= error / len(layer)
