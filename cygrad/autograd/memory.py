"""Report of the memory that a graph saves for backward."""


from cygrad._core.engine.plan import order
from cygrad._core.graph.node import AccumulateGrad
from cygrad._core.graph.tensor import kept, storage_of
from cygrad.autograd.order import nodes_of

__all__ = ["MemoryReport", "memory_report"]

HEADINGS = ("operation", "nodes", "bytes", "of leaves")


class NodeMemory:
    """
    Memory that one node saves.

    Attributes
    ----------
    node : Node
    nbytes : int
        Bytes of its storages. A storage that is saved by several nodes is counted at the one that backward runs last,
        which frees it.
    leaf_nbytes : int
        Bytes of storages of leaves among them, which exist without the graph.
    """

    __slots__ = ("leaf_nbytes", "nbytes", "node")

    def __init__(self, node, storages, of_leaves):
        self.node = node
        self.nbytes = sum(storages.values())
        self.leaf_nbytes = sum(size for storage, size in storages.items() if storage in of_leaves)

    def __repr__(self):
        return f"NodeMemory({self.node.name()}, nbytes={self.nbytes}, leaf_nbytes={self.leaf_nbytes})"


class MemoryReport:
    """
    Report of the memory that a graph saves, by node and by operation; printed as a table.

    Attributes
    ----------
    nodes : list of NodeMemory
        In the order of backward.
    nbytes : int
        Bytes of all storages, each counted once.
    leaf_nbytes : int
        Bytes of storages of leaves among them, which exist without the graph.
    by_name : dict
        Name of an operation -> (number of nodes, bytes, bytes of leaves), in descending order.
    """

    def __init__(self, nodes):
        self.nodes = nodes
        self.nbytes = sum(entry.nbytes for entry in nodes)
        self.leaf_nbytes = sum(entry.leaf_nbytes for entry in nodes)
        sums = {}
        for entry in nodes:
            count, nbytes, leaf_nbytes = sums.get(entry.node.name(), (0, 0, 0))
            sums[entry.node.name()] = (count + 1, nbytes + entry.nbytes, leaf_nbytes + entry.leaf_nbytes)
        self.by_name = dict(sorted(sums.items(), key=lambda item: (-item[1][1], item[0])))

    def _rows(self):
        """Return the table as text, with the total."""
        rows = [(name, *(f"{number:,}" for number in numbers)) for name, numbers in self.by_name.items() if numbers[1]]
        return [*rows, ("all", f"{len(self.nodes):,}", f"{self.nbytes:,}", f"{self.leaf_nbytes:,}")]

    def __repr__(self):
        rows = [HEADINGS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)

    def _repr_html_(self):
        """Return the table for notebooks."""
        from html import escape  # late import: slow, and rarely needed

        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
        body = "".join(line(row, "td") for row in self._rows())
        return f"<table><thead>{line(HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"


def memory_report(root):
    """
    Report how much memory the graph of a result saves for backward, by operation.

    Counts the whole storage of each saved tensor, once for all nodes and views. Values packed by saved-tensor hooks and
    attributes of custom functions are not counted.

    Parameters
    ----------
    root : Tensor, GradientEdge, Node, or a list or tuple of them

    Returns
    -------
    MemoryReport

    Raises
    ------
    RuntimeError
        If a tensor does not require grad.

    Examples
    --------
    >>> x = cygrad.ones(1000, requires_grad=True)
    >>> cygrad.autograd.graph.memory_report((x.exp() * x).sin())
    operation     nodes   bytes  of leaves
    ExpBackward0      1   4,000          0
    MulBackward0      1   4,000      4,000
    SinBackward0      1   4,000          0
    all               4  12,000      4,000
    """
    nodes = order(nodes_of("memory_report", root))
    of_leaves = {storage_of(node.variable) for node in nodes if isinstance(node, AccumulateGrad)}
    counted, entries = set(), []
    for node in reversed(nodes):
        storages = {storage: size for storage, size in kept(node).items() if storage not in counted}
        counted.update(storages)
        entries.append(NodeMemory(node, storages, of_leaves))
    return MemoryReport(entries[::-1])
