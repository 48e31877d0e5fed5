"""Edges of the graph, and the gradients that backward starts with, from the arguments of backward."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_empty_like, array_meta, array_t, release, retain, same_shape, shape_text
from cygrad._core.arrays.dtype cimport BOOL, dtype_name, is_complex, is_differentiable
from cygrad._core.arrays.value cimport INTEGER, value_t
from cygrad._core.elementwise.elementwise cimport as_dtype, fill
from cygrad._core.graph.accumulate cimport accumulator_of, add_gradient
from cygrad._core.graph.gradients cimport slot_of
from cygrad._core.graph.modes cimport BACKWARD_MODES, RESULT_MODES, grad_enabled, thread_state
from cygrad._core.graph.node cimport ALL_ARGUMENTS, Node
from cygrad._core.graph.tensor cimport (
    INFERENCE_VIEW, NO_GRAD_VIEW, Tensor, describe, gradient_edge, is_bare, is_inference, requires_grad)
from cygrad._core.graph.untracked_reason cimport (
    CONSTANT_OUTPUT, DATA, DETACHED, DETACHED_IN_PLACE, GRADIENT, UNTRACKED)
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

from collections import namedtuple


cdef class Place:
    """An output of a node, with the metadata of its tensor; keeps the node alive."""

    def __dealloc__(self):
        release(self.meta)
        self.meta = NULL


cdef Place _place(Node node, int64_t output_nr):
    cdef Place place = Place.__new__(Place)
    place.node, place.output_nr = node, output_nr
    return place


class GradientEdge(namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"])):
    """
    Edge of the graph: an output of a node, to which a gradient flows.

    Attributes
    ----------
    node : Node
    output_nr : int
    ownership_token : object or None
        What `get_gradient_edge` knows of the tensor besides; it also keeps the node.
    """

    __slots__ = ()

    def __new__(cls, node, output_nr, ownership_token=None):
        if not isinstance(node, Node):
            raise TypeError(f"GradientEdge: expected a node (got {type(node).__name__}).")
        if not 0 <= output_nr < (<Node>node).c.n_outputs:
            raise ValueError(f"GradientEdge: {node.name()} has no such output (got {output_nr}, expected less than "
                             f"{(<Node>node).c.n_outputs}).")
        return super().__new__(cls, node, output_nr, ownership_token)

    def __eq__(self, other):
        return isinstance(other, GradientEdge) and self[:2] == other[:2]

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self[:2])

    def __repr__(self):
        return f"GradientEdge(node={self.node!r}, output_nr={self.output_nr})"


def get_gradient_edge(tensor):
    """
    Return the edge of the graph to which the gradient of `tensor` flows.

    Parameters
    ----------
    tensor : Tensor
        It must require grad.

    Returns
    -------
    GradientEdge

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> cygrad.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    cdef int64_t input_nr
    cdef Place place
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: expected a Tensor (got {type(tensor).__name__}).")
    node = gradient_edge(<Tensor>tensor, &input_nr)
    if node is None:
        raise RuntimeError(f"get_gradient_edge: the tensor does not require grad (got a {describe(tensor)}).")
    place = _place(node, input_nr)
    place.meta = array_meta((<Tensor>tensor).array)
    if place.meta == NULL:
        check(MEMORY_ERROR)
    return GradientEdge(node, input_nr, place)


cdef Place edge_of(object place, str operation, str role, int position, bint may_be_unused):
    cdef int64_t input_nr
    cdef Tensor tensor
    if not isinstance(place, Tensor):
        if isinstance(place, GradientEdge):
            return _place(place.node, place.output_nr)
        raise TypeError(f"{operation}: {role} {position} must be a Tensor or a GradientEdge "
                        f"(got {type(place).__name__}).")
    tensor = <Tensor>place
    node = gradient_edge(tensor, &input_nr)
    if node is None and may_be_unused and tensor.requires_grad:
        input_nr = 0  # a view without history of a tensor that requires grad: a leaf that is not reachable
        node = accumulator_of(tensor, slot_of(tensor, b"backward"), tensor.array, is_bare(tensor))
    if node is None:
        raise RuntimeError(f"{operation}: {role} {position} does not require grad and has no grad_fn (got a "
                           f"{describe(tensor)}). {_why_not(tensor)}")
    return _place(node, input_nr)


cdef dict _reasons = {
    UNTRACKED: "It was made while nothing is recorded: under no_grad(), or in a backward without create_graph=True. "
               "Compute it outside, or within enable_grad().",
    DETACHED: "It was made by detach(), which takes it out of the graph. Use the tensor that was detached.",
    DETACHED_IN_PLACE: "detach_() has taken it out of the graph. Use detach() for a second tensor, and this one here.",
    DATA: "It was made by .data, which is outside the graph. Use the tensor itself.",
    CONSTANT_OUTPUT: "A custom Function gave it and called ctx.mark_non_differentiable() on it.",
    GRADIENT: "It is a gradient, computed without create_graph=True. Call backward or grad with create_graph=True for "
              "a gradient that can be differentiated itself.",
}


cdef str _why_not(Tensor tensor):
    """Describe where the tensor was detached from the graph, as far as that is known."""
    cdef Tensor source = tensor if tensor.base is None else tensor.base
    if tensor.array.dtype == BOOL:
        return "No gradient flows through bool tensors, as comparisons and logical functions give them."
    if not is_differentiable(tensor.array.dtype):
        return (f"No gradient flows through {dtype_name(tensor.array.dtype).decode()} tensors, as conversions to "
                "integers, argmax, sorting orders and counts give them. Compute with floating point ones.")
    if is_inference(tensor) or tensor.view_kind == INFERENCE_VIEW:
        return "It was made in inference mode, where nothing is recorded. Compute it outside inference_mode()."
    if tensor.view_kind == NO_GRAD_VIEW and requires_grad(source):
        return "It is a view that was made under no_grad(), where nothing is recorded. Make it outside."
    return _reasons.get(source.untracked) or (
        "It is a leaf without requires_grad=True, or was computed from tensors none of which requires grad. Call "
        "requires_grad_() on what it is to be differentiated for, before it is used.")


cdef array_t *root_gradient(object output, object grad, str operation, int position) except NULL:
    cdef const array_t *root = NULL
    cdef array_t *given
    cdef array_t *array
    if isinstance(output, Tensor):
        root = (<Tensor>output).array
    elif isinstance(output.ownership_token, Place):
        root = (<Place>output.ownership_token).meta
    if grad is None:
        return _implicit_gradient(root, operation, position)
    if not isinstance(grad, Tensor):
        raise TypeError(f"{operation}: the gradient of output {position} must be a Tensor or None "
                        f"(got {type(grad).__name__}).")
    given = (<Tensor>grad).array
    if root != NULL:
        if not same_shape(given, root):
            raise RuntimeError(f"{operation}: the gradient of output {position} has the wrong shape (got "
                               f"{shape_text(given).decode()}, expected {shape_text(root).decode()}).")
        if is_complex(given.dtype) != is_complex(root.dtype):
            raise RuntimeError(f"{operation}: the gradient of output {position} has the wrong dtype (got "
                               f"{dtype_name(given.dtype).decode()}, expected {dtype_name(root.dtype).decode()}).")
        if given.dtype != root.dtype:
            array = as_dtype(given, root.dtype)
            if array == NULL:
                check(MEMORY_ERROR)
            return array
    return retain(given)


cdef array_t *_implicit_gradient(const array_t *root, str operation, int position) except NULL:
    cdef array_t *array
    cdef value_t one
    if root == NULL:
        raise RuntimeError(f"{operation}: output {position} is a GradientEdge that was made of a node, so its shape is "
                           "not known (got None as its gradient). Pass a gradient, or use "
                           "get_gradient_edge(tensor).")
    if root.size != 1:
        raise RuntimeError(f"{operation}: a gradient can be made implicitly only for scalars (got output {position} of "
                           f"shape {shape_text(root).decode()}). Reduce it, for example with sum(), or pass a gradient "
                           "of its shape.")
    if is_complex(root.dtype):
        raise RuntimeError(f"{operation}: a gradient can be made implicitly only for real scalars (got output "
                           f"{position} of dtype {dtype_name(root.dtype).decode()}). Pass a gradient, or take the real "
                           "part or abs() first.")
    array = array_empty_like(root, -1)
    if array == NULL:
        check(MEMORY_ERROR)
    one.kind = INTEGER
    one.of.integer = 1
    check(fill(array, &one))
    return array


def call_node(Node node not None, tuple gradients not None):
    """``node(*gradients)``: its formulas, once, as an operation of the thread; no hooks."""
    cdef bint recorded = grad_enabled() or thread_state().modes & (BACKWARD_MODES | RESULT_MODES)
    cdef list grads = list(gradients)
    if len(grads) != node.c.n_outputs:
        raise TypeError(f"{node.name()}: takes a gradient for each of its outputs (got {len(grads)}, expected "
                        f"{node.c.n_outputs}).")
    for gradient in grads:
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"{node.name()}: gradients must be Tensors or None (got {type(gradient).__name__}).")
    if node.c.gradient != NULL:
        if grads[0] is not None:
            check(add_gradient(node.c, retain((<Tensor>grads[0]).array)))
        return ()
    results = node.apply(grads, True, recorded, ALL_ARGUMENTS)
    return results[0] if len(results) == 1 else tuple(results)
