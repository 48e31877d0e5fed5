"""
Pytrees: nested containers, flattened and unflattened, as in ``torch.utils._pytree``.

Containers are list, tuple, named tuples, dict, OrderedDict, defaultdict, deque and registered classes; other values are
leaves. Dicts keep their order.
"""

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

__all__ = [
    "LeafSpec", "PyTree", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_iter",
    "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_structure", "tree_unflatten",
]

PyTree = object


def _named(kind):
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


# type -> (node -> children and context, children and context -> node)
_CONTAINERS = {
    list: (lambda node: (list(node), None), lambda children, context: list(children)),
    tuple: (lambda node: (list(node), None), lambda children, context: tuple(children)),
    dict: (lambda node: (list(node.values()), list(node)),
           lambda children, keys: dict(zip(keys, children, strict=True))),
    OrderedDict: (lambda node: (list(node.values()), list(node)),
                  lambda children, keys: OrderedDict(zip(keys, children, strict=True))),
    defaultdict: (lambda node: (list(node.values()), [node.default_factory, list(node)]),
                  lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True))),
    deque: (lambda node: (list(node), node.maxlen), lambda children, maxlen: deque(children, maxlen=maxlen)),
}
NodeDef = namedtuple("NodeDef", ["flatten_fn", "unflatten_fn"])
SUPPORTED_NODES: dict[Any, NodeDef] = {kind: NodeDef(*functions) for kind, functions in _CONTAINERS.items()}
_NAMED_TUPLE = NodeDef(lambda node: (list(node), type(node)), lambda children, kind: kind(*children))
SUPPORTED_NODES[namedtuple] = _NAMED_TUPLE


def register_pytree_node(cls, flatten_fn, unflatten_fn, **options):
    """Register a class as a container with ``flatten_fn(node) -> children, context`` and ``unflatten_fn(children,
    context)``.

    Examples
    --------
    >>> from cygrad.utils.pytree import register_pytree_node, tree_leaves
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> register_pytree_node(Pair, lambda pair: ([pair.first, pair.second], None), lambda parts, _: Pair(*parts))
    >>> tree_leaves({"a": Pair(1, 2)})
    [1, 2]
    """
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


class TreeSpec:
    """The structure of a tree without its leaves.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_structure
    >>> spec = tree_structure([1, {"a": 2}])
    >>> spec.num_leaves, spec.unflatten([5, 6])
    (2, [5, {'a': 6}])
    """

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(child.num_leaves for child in children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)
        self.num_children = len(children_specs)

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type, other.context, other.children_specs)

    def __hash__(self):
        return hash((self.type, self.num_leaves))

    def __repr__(self):
        return "*" if self.is_leaf() else (
            f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})")

    def is_leaf(self):
        """Return whether it is a single leaf."""
        return self.type is None

    def unflatten(self, leaves):
        """Return the tree with given leaves."""
        return tree_unflatten(leaves, self)


def LeafSpec():
    """Return the spec of a single leaf.

    Examples
    --------
    >>> from cygrad.utils.pytree import LeafSpec
    >>> LeafSpec()
    *
    """
    return TreeSpec(None, None, [])


def _get_node_type(tree):
    """Return the registered type of a node."""
    return namedtuple if _named(type(tree)) and type(tree) not in SUPPORTED_NODES else type(tree)


def _kind(node, is_leaf):
    """Return the functions of the type of a node; None for a leaf."""
    if is_leaf is not None and is_leaf(node):
        return None
    kind = SUPPORTED_NODES.get(type(node))
    return _NAMED_TUPLE if kind is None and _named(type(node)) else kind


def tree_flatten(tree, is_leaf=None):
    """Return the leaves of a tree from left to right, and its structure.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_flatten, tree_unflatten
    >>> leaves, structure = tree_flatten({"a": 1, "b": [2, 3]})
    >>> leaves
    [1, 2, 3]
    >>> tree_unflatten(leaves, structure)
    {'a': 1, 'b': [2, 3]}
    """
    leaves = []

    def visit(node):
        kind = _kind(node, is_leaf)
        if kind is None:
            leaves.append(node)
            return LeafSpec()
        children, context = kind[0](node)
        return TreeSpec(type(node), context, [visit(child) for child in children])

    try:
        spec = visit(tree)
    except RecursionError:
        raise ValueError("tree_flatten: containers are nested too deeply, or one contains itself.") from None
    finally:
        visit = None  # type: ignore[assignment]  # breaks a reference cycle that would hold the leaves
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """Return the tree of a spec with given leaves.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_flatten, tree_unflatten
    >>> leaves, structure = tree_flatten((1, [2]))
    >>> tree_unflatten(leaves, structure)
    (1, [2])
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: the number of leaves is wrong (got {len(leaves)}, expected "
                         f"{treespec.num_leaves}).")
    remaining = iter(leaves)

    def build(spec):
        if spec.is_leaf():
            return next(remaining)
        kind = SUPPORTED_NODES.get(spec.type, _NAMED_TUPLE)
        return kind[1]([build(child) for child in spec.children_specs], spec.context)

    try:
        return build(treespec)
    finally:
        build = None  # type: ignore[assignment]  # breaks a reference cycle that would hold the leaves


def tree_leaves(tree, is_leaf=None):
    """Return the leaves of a tree from left to right.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_leaves
    >>> tree_leaves({"a": 1, "b": [2, 3]})
    [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """Return an iterator over the leaves.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_iter
    >>> list(tree_iter((1, [2])))
    [1, 2]
    """
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """Return the structure of a tree.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_structure
    >>> tree_structure((1, [2])) == tree_structure((3, [4]))
    True
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """Map a function over the leaves of one or more trees of the same structure.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_map
    >>> tree_map(lambda x: 10 * x, {"a": 1, "b": [2, 3]})
    {'a': 10, 'b': [20, 30]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_leaves_at(rest, spec) for rest in rests]
    return tree_unflatten([func(*values) for values in zip(leaves, *others, strict=True)], spec)


def _leaves_at(tree, spec):
    """Return the subtrees at the positions of the leaves of a spec."""
    if spec.is_leaf():
        return [tree]
    kind = SUPPORTED_NODES.get(type(tree), _NAMED_TUPLE)
    if type(tree) is not spec.type:
        raise ValueError(f"tree_map: the trees differ (got {type(tree).__name__}, expected {spec.type.__name__}).")
    children = kind[0](tree)[0]
    if len(children) != spec.num_children:
        raise ValueError(f"tree_map: the trees differ (got {len(children)} children, expected {spec.num_children}).")
    return [leaf for child, part in zip(children, spec.children_specs, strict=True) for leaf in _leaves_at(child, part)]


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call a function for each leaf and return the tree.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_map_
    >>> x = [cygrad.ones(2)]
    >>> tree_map_(lambda x: x.mul_(2), x)
    [tensor([2., 2.])]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(type_or_types, func=None, tree=None, is_leaf=None):
    """Map a function over the leaves of a type, or that satisfy a condition.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_map_only
    >>> tree_map_only(int, lambda x: 10 * x, [1, "b"])
    [10, 'b']
    """
    condition = type_or_types if not isinstance(type_or_types, (type, tuple)) else (
        lambda leaf: isinstance(leaf, type_or_types))
    return tree_map(lambda leaf: func(leaf) if condition(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Return whether a condition holds for all leaves.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_all
    >>> tree_all(lambda x: x > 0, [1, (2,)])
    True
    """
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Return whether a condition holds for a leaf.

    Examples
    --------
    >>> from cygrad.utils.pytree import tree_any
    >>> tree_any(lambda x: x > 1, [1, (2,)])
    True
    """
    return any(map(pred, tree_leaves(tree, is_leaf)))
