"""What else notebooks show as a table: loaders, data sets, compiled functions, nodes of a graph, state dicts."""

from html import escape

from cygrad import Tensor
from cygrad.autograd.drawing import to_svg
from cygrad.autograd.graph import Node
from cygrad.compiling import Compiled
from cygrad.notebook.tensors import TABLE, few_nodes
from cygrad.utils.data import DataLoader, Dataset

__all__ = ["object_html"]


def object_html(value):
    """
    Return the HTML of an object that holds tensors, functions or samples.

    Parameters
    ----------
    value : DataLoader, Dataset, Compiled, Node or dict of Tensor

    Returns
    -------
    str
        HTML: the name of the class and a table; with the graph of a node, if it is small.

    Examples
    --------
    >>> from cygrad.utils.data import TensorDataset
    >>> "3 samples" in TensorDataset(cygrad.ones(3, 2))._repr_html_()
    True
    """
    facts = next(describe for kind, describe in KINDS.items() if isinstance(value, kind))(value)
    rows = "".join(f"<tr><th>{escape(str(name))}</th><td>{escape(str(fact))}</td></tr>" for name, fact in facts.items())
    graph = f"<details><summary>graph</summary>{to_svg(value)}</details>" if (
        isinstance(value, Node) and few_nodes(value)) else ""
    return f"<div><b>{escape(type(value).__name__)}</b>{TABLE.format(rows)}{graph}</div>"


def _shown(value):
    """Describe a tensor by shape and dtype, other objects by their truncated `repr`."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)}, {str(value.dtype).rpartition('.')[2]}"
    return f"{value!r:.200}"


def _loader(loader):
    names = ("dataset", "sampler", "batch_size", "num_workers", "drop_last")
    return {name: _shown(getattr(loader, name)) for name in names}


def _dataset(dataset):
    tensors = getattr(dataset, "tensors", ())
    return {"": repr(dataset), **{f"tensors[{i}]": _shown(tensor) for i, tensor in enumerate(tensors)}}


def _compiled(compiled):
    return {"function": getattr(compiled, "__qualname__", repr(compiled.function)),
            "variants": len(compiled.variants), "executions": sum(variant.runs for variant in compiled.variants),
            "calls in Python": compiled.calls, **({"last reason": compiled.reasons[-1]} if compiled.reasons else {})}


def _node(node):
    saved = {name: _shown(getattr(node, name)) for name in dir(node) if name.startswith("_saved_")}
    children = ", ".join(child.name() for child, _ in node.next_functions if child is not None)
    return {"name": node.name(), "next_functions": children, **saved}


KINDS = {
    DataLoader: _loader, Dataset: _dataset, Compiled: _compiled, Node: _node,
    dict: lambda entries: {name: _shown(value) for name, value in entries.items()},
}
