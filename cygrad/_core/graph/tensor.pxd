"""The tensor: an array, its node, its gradient."""

from cpython.object cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t
from cygrad._core.arrays.array cimport array_t, retain, value_t
from cygrad._core.graph.node cimport FREE_THREADED, Hooks, Node, Py_REFCNT, gradient_t, lock_lending, unlock_lending

# ----------------------------------------------------------------------------------------------------- tensor free list

# The free list of tensors.

# A Tensor without an array: the caller sets one before any Python code runs.
cdef Tensor bare_tensor()

# ------------------------------------------------------------------------------------------------------ tensor identity

# The mapping between Tensors and arrays.

# Return the Tensor of an existing array (a gradient, a saved value), created if necessary; takes over the caller's
# reference. Unlike `wrap` it does not create an inference tensor in inference mode.
cdef Tensor tensor_of(array_t *array)
# Return the living Tensor that wraps the array, or None. One that is being destroyed does not count: callbacks of weak
# references run while the array still points to it.
cdef inline Tensor known_tensor(const array_t *array):
    if FREE_THREADED:
        return living_tensor(array)
    if array.tensor != NULL and Py_REFCNT(<PyObject *>array.tensor) > 0:
        return <Tensor>array.tensor
    return None
# The same without a GIL, where the Tensor may be dying in another thread.
cdef Tensor living_tensor(const array_t *array)

# Return the array of a Tensor with a new reference, because another thread may replace it.
cdef inline array_t *held_array(Tensor tensor) noexcept:
    cdef array_t *array
    lock_lending(<void *>tensor)
    array = retain(tensor.array)
    unlock_lending(<void *>tensor)
    return array

# Replace the array of a Tensor; takes over the reference.
cdef void replace_array(Tensor tensor, array_t *array) noexcept
# Make a Tensor share the memory of another one, outside the graph. `keep_version`: it keeps sharing its version counter
# with its former memory.
cdef object adopt(Tensor self, Tensor source, bint keep_version)

# ------------------------------------------------------------------------------------------------------ array api marks

# Marks of Array API arrays: tensors returned by functions of that namespace.
#
# For such operands, types are promoted by the standard. Results computed from them are marked, too.

cdef inline bint is_array_api(const array_t *array) noexcept:
    return array.array_api

# Mark the array.
cdef void mark_array_api(array_t *array) noexcept
# Mark the array if the other one is marked, for a gradient and its tensor.
cdef void propagate_array_api(array_t *array, const array_t *example) noexcept

# Return what is unusual about the arguments of an operation, as bits.
cdef enum:
    WITHOUT_ELEMENTS = 1
    BY_STANDARD = 2
cdef int unusual_among(int n, const value_t *values) noexcept
# Mark the results of an operation on such arguments.
cdef int adapt(int unusual, int n, value_t *results) except -1

# ------------------------------------------------------------------------------------------------------------ gradients

# The gradient slot of a leaf: created once, read and replaced as a whole.

# Return the slot of a leaf, created if necessary. Raises MemoryError in the name of `operation`.
cdef gradient_t *slot_of(Tensor leaf, const char *operation) except NULL
# Return ``.grad``, a Tensor or None, and always the same object for the same array.
cdef Tensor gradient_of(Tensor leaf)
# Replace .grad; None removes it.
cdef object set_gradient(Tensor leaf, Tensor value)
# The same if .grad is still `former` at this version; else return False.
cdef bint replace_gradient(Tensor leaf, Tensor former, int64_t version, Tensor value) except -1
cdef int64_t version_of_gradient(const array_t *array) noexcept nogil

# --------------------------------------------------------------------------------------------------------------- tensor

# How a view was created: determines which in-place operations are allowed (cygrad._core.graph.inplace).
cdef enum:
    NOT_A_VIEW = 0
    DIFFERENTIABLE_VIEW       # in-place operations rewrite the history of the base
    NO_GRAD_VIEW              # created in no-grad mode
    MULTI_OUTPUT_VIEW         # one of several results of an operation
    CUSTOM_VIEW               # returned by a custom Function
    INFERENCE_VIEW            # created in inference mode from a normal tensor

cdef class Tensor:
    cdef array_t *array           # never NULL
    cdef Node node                # grad_fn; None for leaves. Read it through grad_fn_of()
    cdef int32_t output_nr        # which output of `node`
    cdef int32_t leaf_requires_grad
    cdef int16_t view_kind        # how the view was created: NOT_A_VIEW ...
    cdef int16_t untracked        # why backward cannot start from it, for error messages: 0, or as in untracked_reason
    cdef int32_t dual_level       # the level of forward mode that holds a tangent for it, or 0
    cdef int64_t view_version     # version of the base for which `node` is valid
    cdef Tensor base              # of a view, else None
    cdef gradient_t *gradient     # created with the accumulator or the first .grad, else NULL
    cdef Tensor grad_tensor       # the Tensor object of gradient.value, or None
    cdef Hooks leaf_hooks         # hooks registered on a leaf, or None
    cdef PyObject *attributes     # the dict of user attributes, created with the first one, else NULL
    cdef object __weakref__

# Return a new Tensor for an array, whose reference it takes over. Raises with this thread's message if array is NULL.
cdef Tensor wrap(array_t *array)
# The same, for a view of `base` (keeps it, stores the grad mode).
cdef Tensor wrap_view(array_t *array, Tensor base)

# Make a Tensor that other threads may use an output of another node.
cdef void set_node(Tensor tensor, Node node, int32_t output_nr) noexcept

cdef inline bint requires_grad(Tensor tensor) noexcept:
    return tensor.leaf_requires_grad or tensor.node is not None

cdef inline bint is_inference(Tensor tensor) noexcept:
    return tensor.array.version == NULL

# Return the node that receives this tensor's gradient, with its input number in *input_nr: its grad_fn (updated for
# views of a base that was modified in place) or the AccumulateGrad of a leaf; None if it requires no gradient.
cdef Node gradient_edge(Tensor tensor, int64_t *input_nr)
cdef Node grad_fn_of(Tensor tensor)

# Return a Tensor for anything tensor-like: Tensor itself, number, sequence, ndarray (copied like tensor()).
cdef Tensor as_tensor(object value, str operation)

# Functions of higher layers: the core calls C functions through `protocol` and Python functions through `provided`.
# Higher modules fill both when they are imported.
ctypedef enum slot_t:
    SLOT_ADD = 0
    SLOT_SUB
    SLOT_MUL
    SLOT_DIV
    SLOT_FLOOR_DIV
    SLOT_REMAINDER
    SLOT_POW
    SLOT_MATMUL
    SLOT_AND
    SLOT_OR
    SLOT_XOR
    SLOT_LSHIFT
    SLOT_RSHIFT
    SLOT_EQ
    SLOT_NE
    SLOT_LT
    SLOT_LE
    SLOT_GT
    SLOT_GE
    SLOT_NEG
    SLOT_ABS
    SLOT_INVERT
    SLOTS

ctypedef object (*binary_t)(int slot, object a, object b)
ctypedef object (*unary_t)(int slot, object a)
cdef struct protocol_t:
    binary_t binary
    binary_t inplace
    unary_t unary
    object (*getitem)(Tensor tensor, object key)
    int (*setitem)(Tensor tensor, object key, object value) except -1
    Tensor (*convert)(object value, str operation)      # cygrad._core.creation.creation
    int (*refresh_view)(Tensor view) except -1          # cygrad._core.graph.inplace
    void (*forget_tangent)(Tensor dual) noexcept        # cygrad._core.dispatch.tangents
    int (*attach_tangents)(object value, object tangents) except -1
    int (*data_escapes)() except -1                     # cygrad._core.graph.mode_stack
    PyObject *plain_subclass                            # cygrad._core.graph.boxing
cdef protocol_t protocol
# "backward": autograd.backward; "function_backward", "setup_context": what Function itself has; "ufuncs": operators by
# NumPy's ufunc; "general_ufunc": for all other calls of ufuncs; "plain_subclass": Parameter.
cdef dict provided

# Abort the trace if elements are read or written by Python or NumPy code.
cdef inline int data_escapes() except -1:
    return protocol.data_escapes()

cdef extern from *:
    """
    #define borrowed_type(value) ((PyObject *)Py_TYPE(value))
    #define type_of(value) ((PyObject *)Py_TYPE(value))
    """
    PyObject *borrowed_type(object value)
    PyObject *type_of(PyObject *value)                  # the same, borrowed

cdef inline bint is_plain(object value) noexcept:
    """Return whether it is a Tensor whose class needs no lookup."""
    return type(value) is Tensor or borrowed_type(value) == protocol.plain_subclass

cdef inline bint is_plain_object(PyObject *value) noexcept:
    """`is_plain` for a borrowed object."""
    return type_of(value) == <PyObject *>Tensor or type_of(value) == protocol.plain_subclass

cdef inline bint _is_bare(Tensor tensor) noexcept:
    return (tensor.attributes == NULL and tensor.leaf_hooks is None and tensor.base is None and is_plain(tensor))

# Return whether the leaf and its gradient refer to no Python objects that could form a cycle.
cdef inline bint is_bare(Tensor leaf) noexcept:
    return _is_bare(leaf) and (leaf.grad_tensor is None or (
        _is_bare(leaf.grad_tensor) and leaf.grad_tensor.node is None and leaf.grad_tensor.grad_tensor is None))


cdef Hooks hooks_of(Tensor tensor)
# "float32 tensor of shape (2, 3)", for messages.
cdef str describe(Tensor tensor)

# ----------------------------------------------------------------------------------------------------------------- meta

# Tensors of the meta device: shape and dtype without memory.

cdef bint any_meta                # a meta tensor exists: until then no further check is needed
cdef bint any_unusual             # a meta tensor or Array API array exists (cygrad._core.graph.tensor)
cdef void *meta_owner             # owner of the storages of meta tensors

cdef inline bint is_meta(const array_t *array) noexcept:
    return any_meta and array.storage != NULL and array.storage.owner == meta_owner

# Set these flags.
cdef void note_unusual() noexcept
# Create one; NULL with a message if memory is exhausted.
cdef array_t *meta_array(int dtype, int ndim, const int64_t *shape)
# Create one of the shape and dtype of a tensor, which may be on meta itself.
cdef Tensor without_elements(Tensor tensor)
# Return whether an argument of an operation is such an array.
cdef bint any_is_meta(int n, const value_t *values) noexcept
# Return the result of an operation without its elements.
cdef int forget_elements(int n, value_t *results) except -1
# Raise the error for reading elements.
cdef int check_elements(const array_t *array, str operation) except -1
