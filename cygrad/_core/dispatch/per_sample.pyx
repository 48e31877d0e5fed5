"""
Per-sample gradients if only matrix products use the parameters: one plan, and one outer product for each sample and
matrix, without Python objects for nodes.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport strcmp
from cygrad._core.arrays.array cimport (
    INTEGER, NOTHING, array_empty_like, array_t, array_view, find_kernel, kernel_t, release, retain, set_array, value_t,
)
from cygrad._core.arrays.dtype cimport computed_in, is_floating
from cygrad._core.elementwise.elementwise cimport fill
from cygrad._core.engine.node_run cimport CHECK_SIGNALS, FINISHED, NEEDS_PYTHON, add_contribution, advance
from cygrad._core.engine.plan cimport item_t, plan_build, plan_capturing, plan_find, plan_free, plan_restrict, plan_t
from cygrad._core.graph.modes cimport is_watched, thread_state
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.node cimport Node, node_t
from cygrad._core.graph.tensor cimport Tensor, gradient_edge, known_tensor, tensor_of, wrap
from cygrad._core.graph.untracked_reason cimport GRADIENT
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.table.operator cimport Operator, first_edge, operator_t

import cygrad._core.kernels.linalg.matmul  # noqa: F401  # no-cython-lint  # registers matmul

cdef kernel_t _matmul = find_kernel("matmul")

# The only edge that uses a parameter, and the parameter's item in the plan.
ctypedef struct use_t:
    item_t *item              # NULL: no use
    int edge
    node_t *leaf              # NULL: not in the plan


def product_gradients(Tensor losses not None, list parameters not None):
    """
    Return the gradients of the loss of each sample if each parameter is used by at most one product of rows.

    Such operators have the key ``per_sample = { weight = "outer", ... }``: they multiply rows by a transposed matrix
    `weight` and add a vector `bias`.

    Parameters
    ----------
    losses : Tensor of shape (n,)
    parameters : list of Tensor

    Returns
    -------
    list or None
        A Tensor of shape (n, ...) for each parameter, or None if it is unused. None instead of the list if other
        operators use parameters, or hooks can change gradients.
    """
    cdef int64_t output_nr, place = 0
    cdef Py_ssize_t i, n = len(parameters)
    cdef Node root = gradient_edge(losses, &output_nr)
    cdef plan_t plan
    cdef use_t *uses
    cdef node_t **targets
    cdef int status
    if type(losses) is not Tensor or thread_state().modes or is_watched():
        return None
    uses = <use_t *>calloc(n + 1, sizeof(use_t))
    targets = <node_t **>calloc(n + 1, sizeof(node_t *))
    plan.n_items = 0
    try:
        if uses == NULL or targets == NULL:
            raise MemoryError(f"per_sample_grad: no memory for {n} parameters")
        status = plan_build(&plan, &root.c, 1)
        try:
            check(status)
            if plan.any_python or not _find_uses(&plan, parameters, uses):
                return None
            for i in range(n):
                targets[i] = root.c if uses[i].item == NULL else uses[i].item.node
            plan_restrict(&plan, targets, n, True)
            check(plan_capturing(&plan))
            for i in range(n):
                if uses[i].item != NULL:
                    uses[i].item.captured = True
            check(add_contribution(&plan.sums[plan_find(&plan, root.c).buffers + output_nr], _ones(losses.array)))
            while True:
                with nogil:
                    status = advance(&plan, &place, True)
                if status == FINISHED:
                    break
                if status == NEEDS_PYTHON:          # a hook registered by another thread: nothing has been modified
                    return None
                if status == CHECK_SIGNALS:
                    PyErr_CheckSignals()
                else:
                    check(status)
            return _gradients(&plan, parameters, uses, losses.array.shape[0])
        finally:
            plan_free(&plan)
    finally:
        free(uses)
        free(targets)


cdef array_t *_ones(const array_t *like) except NULL:
    cdef array_t *array = array_empty_like(like, -1)
    cdef value_t one
    if array == NULL:
        check(MEMORY_ERROR)
    one.kind, one.of.integer = INTEGER, 1
    check(fill(array, &one))
    return array


cdef bint _find_uses(plan_t *plan, list parameters, use_t *uses) except -1:
    """Find the edges that lead to the parameters; False if several do, or one of another operator."""
    cdef Py_ssize_t number, n = len(parameters)
    cdef int64_t k
    cdef int edge
    cdef item_t *item
    cdef node_t *leaf
    cdef Tensor parameter
    for number in range(n):
        parameter = parameters[number]
        if parameter.node is not None or not is_floating(parameter.array.dtype) or (
                computed_in(parameter.array.dtype) != parameter.array.dtype):
            return False
        leaf = NULL if parameter.gradient == NULL else parameter.gradient.accumulator
        if leaf != NULL:
            item = plan_find(plan, leaf)
            uses[number].leaf = NULL if item == NULL else leaf
    for k in range(plan.n_items):
        item = &plan.items[k]
        if not item.before_leaf:
            continue
        for edge in range(item.node.n_edges):
            leaf = item.node.edges[edge].node
            if leaf == NULL or leaf.gradient == NULL:
                continue
            for number in range(n):
                if uses[number].leaf == leaf:
                    if uses[number].item != NULL or item.node.op == NULL or (
                            not _is_product(<Operator>item.node.op.object)):
                        return False
                    uses[number].item, uses[number].edge = item, edge
    return True


cdef bint _is_product(Operator operator) except -1:
    rules = operator.row["per_sample"]
    return isinstance(rules, dict) and rules.get("weight") == "outer"


cdef list _gradients(plan_t *plan, list parameters, use_t *uses, int64_t count):
    """Return the gradient of each parameter from the captured ones; None if one lacks the sample dimension."""
    cdef list found = []
    cdef Py_ssize_t number
    cdef array_t *gradient
    cdef Tensor parameter, result
    for number in range(len(parameters)):
        parameter = parameters[number]
        gradient = NULL if uses[number].item == NULL else plan.captured[uses[number].item.buffers]
        if gradient == NULL:
            found.append(None)
            continue
        if gradient.ndim != 2 or gradient.shape[0] != count or gradient.dtype != parameter.array.dtype or (
                parameter.array.shape[0] != gradient.shape[1]):
            return None
        result = _part(uses[number].item.node, uses[number].edge, gradient, parameter.array)
        if result is None:
            return None
        found.append(result)
    return found


cdef Tensor _part(node_t *node, int edge, array_t *gradient, const array_t *like):
    cdef const operator_t *op = node.op
    cdef int i, argument = 0
    cdef Tensor values = None, result
    for i in range(op.n_arguments):
        if op.arguments[i].differentiable and first_edge(op, i, node.n_edges) == edge:
            argument = i
    if strcmp(op.arguments[argument].name, b"bias") == 0:
        result = known_tensor(gradient)
        if result is None:
            result = tensor_of(retain(gradient))
            result.untracked = GRADIENT
        return result if like.ndim == 1 else None
    for i in range(op.n_saved):
        if strcmp(op.saved[i].name, b"self") == 0:
            values = (<NativeNode>node.object).unpack(i)
    if strcmp(op.arguments[argument].name, b"weight") != 0 or values is None or like.ndim != 2:
        return None
    if values.array.ndim != 2 or values.array.dtype != gradient.dtype or values.array.shape[0] != gradient.shape[0]:
        return None
    return _outer(gradient, values.array)


cdef Tensor _outer(array_t *gradient, array_t *values):
    """Return the outer products of rows."""
    cdef int64_t[3] column_shape
    cdef int64_t[3] column_steps
    cdef int64_t[3] row_shape
    cdef int64_t[3] row_steps
    cdef value_t[2] arguments
    cdef value_t result
    cdef int status
    column_shape[0], column_shape[1], column_shape[2] = gradient.shape[0], gradient.shape[1], 1
    column_steps[0], column_steps[1], column_steps[2] = gradient.strides[0], gradient.strides[1], 1
    row_shape[0], row_shape[1], row_shape[2] = values.shape[0], 1, values.shape[1]
    row_steps[0], row_steps[1], row_steps[2] = values.strides[0], 0, values.strides[1]
    result.kind = NOTHING
    set_array(&arguments[0], array_view(gradient, gradient.dtype, 3, column_shape, column_steps, 0))
    set_array(&arguments[1], array_view(values, values.dtype, 3, row_shape, row_steps, 0))
    status = MEMORY_ERROR
    with nogil:
        if arguments[0].of.array != NULL and arguments[1].of.array != NULL:
            status = _matmul(arguments, &result)
        release(arguments[0].of.array)
        release(arguments[1].of.array)
    check(status)
    return wrap(result.of.array)
