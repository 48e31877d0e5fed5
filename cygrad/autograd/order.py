"""Execution order of backward."""

from cygrad._core.engine.engine import GradientEdge, get_gradient_edge
from cygrad._core.engine.plan import order
from cygrad._core.graph.node import Node
from cygrad._core.graph.tensor import Tensor

__all__ = ["backward_order"]


def nodes_of(operation, places):
    """Return the root nodes of a Tensor, GradientEdge, Node, or a list or tuple of them."""
    if isinstance(places, GradientEdge) or not isinstance(places, (list, tuple)):
        places = (places,)
    return [_node_of(operation, place) for place in places]


def _node_of(operation, place):
    if isinstance(place, Node):
        return place
    if isinstance(place, GradientEdge):
        return place.node
    if isinstance(place, Tensor):
        return get_gradient_edge(place).node
    raise TypeError(f"{operation}: expected a Tensor, a GradientEdge or a Node (got {type(place).__name__}).")


def backward_order(root, inputs=None):
    """
    Return the nodes that backward runs, in execution order.

    Nodes are in the order of decreasing sequence numbers, with the AccumulateGrad of each leaf after the last node that
    sends it a gradient. Python code in backward (hooks, custom functions, unpacking) runs in exactly this order; native
    nodes can run in parallel.

    Parameters
    ----------
    root : Tensor, GradientEdge, Node, or a list or tuple of them
        Roots of backward.
    inputs : the same, optional
        As in ``backward(inputs=...)``: only nodes on paths to these.

    Returns
    -------
    list of Node

    Raises
    ------
    RuntimeError
        If a tensor does not require grad.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = x.exp()
    >>> [node.name() for node in cygrad.autograd.graph.backward_order((y * x).sum())]
    ['SumBackward0', 'MulBackward0', 'ExpBackward0', 'AccumulateGrad']
    >>> [node.name() for node in cygrad.autograd.graph.backward_order((y * x).sum(), inputs=y)]
    ['SumBackward0', 'MulBackward0', 'ExpBackward0']
    """
    targets = None if inputs is None else nodes_of("backward_order", inputs)
    return order(nodes_of("backward_order", root), targets)
