"""Tensors in notebooks: metadata, values, a picture of these, and the graph."""

from html import escape

from cygrad.autograd.drawing import to_svg
from cygrad.notebook.pictures import line, pixels

__all__ = ["tensor_html"]

MAX_NODES = 100           # of a graph that is drawn
SMALLEST, LARGEST = 8, 1024  # sizes of matrices that are shown as pixels
TABLE = '<table style="border-collapse:collapse;text-align:left">{}</table>'


def tensor_html(tensor):
    """
    Return the HTML of a tensor.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    str
        HTML: shape, dtype, whether it requires grad, its node; the values; a picture of a vector, matrix or image; and
        the graph, if it is small.

    Examples
    --------
    >>> "float32" in cygrad.ones(3)._repr_html_()
    True
    """
    facts = {"shape": tuple(tensor.shape), "dtype": str(tensor.dtype).rpartition(".")[2]}
    if tensor.grad_fn is not None:
        facts["grad_fn"] = tensor.grad_fn.name()
    elif tensor.requires_grad:
        facts["requires_grad"] = True
        facts["grad"] = "none" if tensor.grad is None else f"of norm {tensor.grad.norm().item():.4g}"
    rows = "".join(f"<tr><th>{name}</th><td>{escape(str(value))}</td></tr>" for name, value in facts.items())
    parts = [TABLE.format(rows), picture(tensor), f"<pre>{escape(repr(tensor))}</pre>"]
    if tensor.grad_fn is not None and few_nodes(tensor.grad_fn):
        parts.append(f"<details><summary>graph</summary>{to_svg(tensor)}</details>")
    return f"<div>{''.join(parts)}</div>"


def picture(tensor):
    """Return a picture of the values, or nothing where none would tell anything."""
    if tensor.is_meta or tensor.is_complex() or not tensor.numel():
        return ""
    shape = tuple(tensor.shape)
    image = shape[1:] if len(shape) == 3 and shape[0] in (1, 3) else shape
    is_line = len(shape) == 1 and shape[0] > 2
    if not is_line and (len(image) != 2 or min(image) < SMALLEST or max(image) > LARGEST):
        return ""
    values = tensor.detach()
    values = (values.float() if values.dtype.itemsize < 4 else values).numpy()
    return line(values) if is_line else pixels(values)


def few_nodes(root):
    """Return whether a graph is small enough to be drawn."""
    seen, stack = set(), [root]
    while stack and len(seen) <= MAX_NODES:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(child for child, _ in node.next_functions if child is not None)
    return len(seen) <= MAX_NODES
