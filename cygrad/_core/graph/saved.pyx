"""
Saved-tensor hooks: pack and unpack.

A node saves the array of a tensor unless a pair of hooks is set: pack converts the tensor to another object
immediately, and unpack converts it back each time it is needed. The result only needs the same content: its place in
the graph is that of the saved tensor.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_meta, array_t, array_view, release, same_shape, shape_text
from cygrad._core.arrays.dtype cimport dtype_name
from cygrad._core.graph.node cimport Node, count_up
from cygrad._core.graph.modes cimport thread_state, thread_state_t
from cygrad._core.graph.tensor cimport Tensor, describe, is_meta, tensor_of
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

import threading


cdef Tensor alias(array_t *array):
    cdef array_t *view = array_view(array, array.dtype, array.ndim, array.shape, array.strides, 0)
    if view == NULL:
        check(MEMORY_ERROR)
    return tensor_of(view)


cdef int attach(Tensor tensor, Node node, int64_t output_nr) except -1:
    if node.c.gradient == NULL:
        tensor.node = node
        tensor.output_nr = <int32_t>output_nr
        return 0
    # The twin of a leaf: gradients for it go to the same .grad.
    tensor.leaf_requires_grad = True
    if tensor.gradient == NULL:
        tensor.gradient = node.c.gradient
        count_up(&tensor.gradient.count)
    return 0


cdef Tensor with_elements(Tensor tensor):
    return tensor.to_dense() if is_meta(tensor.array) and hasattr(tensor, "as_gradient") else tensor


# ------------------------------------------------------------------------------------------------------------- packing

cdef class PackedTensor:
    """Result of a pack hook."""

    def __dealloc__(self):
        release(self.meta)
        self.meta = NULL

    cdef Tensor unpack(self):
        return alias(with_elements(self.unpack_raw()).array)

    cdef Tensor unpack_raw(self):
        result = self.hook(self.value)
        if not isinstance(result, Tensor):
            raise TypeError(f"saved tensor hooks: Output of saved tensor unpack_hook expected to be a Tensor (got "
                            f"{type(result).__name__} for {self.place}).")
        cdef array_t *array = (<Tensor>result).array
        if array.dtype != self.meta.dtype or not same_shape(array, self.meta):
            raise RuntimeError("saved tensor hooks: unpack must return a tensor of the packed shape and dtype (got a "
                               f"{describe(result)} for {self.place}, expected a "
                               f"{dtype_name(self.meta.dtype).decode()} tensor of shape "
                               f"{shape_text(self.meta).decode()}).")
        return <Tensor>result


cdef PackedTensor pack_tensor(Node node, str name, Tensor tensor, object pack, object unpack):
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled
    cdef array_t *array = tensor.array
    cdef int64_t version = 0 if array.version == NULL else atomic_load(&array.version.value)
    cdef PackedTensor packed = PackedTensor()
    packed.place = f"{type(node).__name__}, '{name}'"
    packed.hook = unpack
    packed.meta = array_meta(array)
    if packed.meta == NULL:
        check(MEMORY_ERROR)
    state.grad_disabled = 1
    try:
        packed.value = pack(tensor)
    finally:
        state.grad_disabled = disabled
    if array.version != NULL and atomic_load(&array.version.value) != version:
        raise RuntimeError(f"saved tensor hooks: A saved tensor pack hook is modifying its input in place (got version "
                           f"{atomic_load(&array.version.value)} for {packed.place}, expected {version}). "
                           "Modify a clone() in the hook.")
    return packed


# ---- hooks of a thread

cdef class SavedHooks:
    """Pair of hooks for all tensors that a thread saves."""


cdef SavedHooks saved_hooks():
    return <SavedHooks>thread_state().saved_hooks


cdef object _set_hooks(SavedHooks hooks):
    cdef PyObject *former = <PyObject *>thread_state().saved_hooks
    if hooks is not None:
        Py_INCREF(hooks)
    thread_state().saved_hooks = NULL if hooks is None else <void *>hooks
    Py_XDECREF(former)


class _Refusals(threading.local):
    """Return why hooks are disabled in this thread, or None."""

    message = None


_refusals = _Refusals()


def push_hooks(pack, unpack):
    """Push a pair of hooks for all tensors that this thread saves until `pop_hooks`."""
    cdef SavedHooks hooks
    if _refusals.message is not None:
        raise RuntimeError(_refusals.message)
    check_hooks("saved_tensors_hooks", pack, unpack)
    hooks = SavedHooks()
    hooks.pack = pack
    hooks.unpack = unpack
    if thread_state().saved_hooks != NULL:
        hooks.outer = saved_hooks()
    _set_hooks(hooks)


def pop_hooks():
    """Restore the pair of hooks before the last `push_hooks`."""
    if thread_state().saved_hooks != NULL:
        _set_hooks(saved_hooks().outer)


@cython.binding(False)
@cython.auto_pickle(False)
cdef class HooksBlock:
    """
    Base of `saved_tensors_hooks`: a block with the pair `pack_hook` and `unpack_hook`.

    Leaving removes the innermost pair of the thread, whichever block pushed it; it allocates nothing.
    """

    def __enter__(self):
        push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, type=None, value=None, traceback=None):
        if thread_state().saved_hooks == NULL:
            raise RuntimeError(f"{self.__class__.__name__}: __exit__ requires a call of __enter__ (got none).")
        pop_hooks()


def refuse_hooks(message):
    """Make `push_hooks` raise this message in this thread (None: allow it); returns the former message."""
    former = _refusals.message
    if message is not None and thread_state().saved_hooks != NULL:
        raise RuntimeError(message)
    _refusals.message = message
    return former


class _Guard(threading.local):
    """Return the function that this thread calls before in-place operations, or None."""

    call = None


_guard = _Guard()


cdef int before_change(Tensor tensor) except -1:
    cdef thread_state_t *state = thread_state()
    cdef int disabled = state.grad_disabled
    state.guarded = 0
    state.grad_disabled = 1
    try:
        _guard.call(<size_t>tensor.array.storage)
    finally:
        state.guarded = 1
        state.grad_disabled = disabled
    return 0


def set_guard(call):
    """
    Set a function that this thread calls before each in-place operation, with the identity of the memory; None
    removes it.

    Returns
    -------
    callable or None
        The former function.
    """
    former = _guard.call
    _guard.call = call
    thread_state().guarded = call is not None
    return former


def memory_of(Tensor tensor not None):
    """
    Return the identity of a tensor's memory and its version.

    Returns
    -------
    tuple of int
    """
    cdef array_t *array = tensor.array
    return <size_t>array.storage, 0 if array.version == NULL else atomic_load(&array.version.value)


def check_hooks(str operation, pack, unpack):
    """Raise an error unless the hooks are callable."""
    for role, hook in (("pack", pack), ("unpack", unpack)):
        if not callable(hook):
            raise TypeError(f"{operation}: the {role} hook must be callable (got {type(hook).__name__}).")


class SavedTensor:
    """
    A value that a node saves for backward, as ``node._raw_saved_<name>``.

    A pair of hooks can define how it is stored. It cannot be created directly.
    """

    __slots__ = ("_node", "_position")

    def __init__(self, *arguments, **options):
        raise RuntimeError("SavedTensor: Trying to create a SavedTensor object from Python is forbidden. Read one "
                           "from a node as node._raw_saved_<name>.")

    def unpack(self):
        """
        The saved tensor.

        Returns
        -------
        Tensor or None
        """
        return self._node._unpack(self._position)

    @property
    def data(self):
        """The packed object if there are hooks, otherwise the saved tensor."""
        packed = self._node._packed(self._position)
        return (<PackedTensor>packed).value if isinstance(packed, PackedTensor) else self.unpack()

    @property
    def unpack_hook(self):
        """The unpack hook, or None."""
        packed = self._node._packed(self._position)
        return (<PackedTensor>packed).hook if isinstance(packed, PackedTensor) else None

    def register_hooks(self, pack_hook, unpack_hook):
        """
        Register a pair of hooks for this saved tensor.

        Parameters
        ----------
        pack_hook : callable
            Called immediately, exactly once, with the tensor; the result is saved instead.
        unpack_hook : callable
            Called with that result at each access; must return a tensor with the same values.

        Raises
        ------
        RuntimeError
            If there are already hooks, or the node has released its saved tensors.

        Examples
        --------
        >>> x = cygrad.ones(2, requires_grad=True)
        >>> y = x.pow(2)
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda x: x.numpy(), cygrad.from_numpy)
        >>> y.grad_fn._saved_self
        tensor([1., 1.], requires_grad=True)
        """
        check_hooks("register_hooks", pack_hook, unpack_hook)
        self._node._pack(self._position, pack_hook, unpack_hook)


def saved_tensor(node, position):
    """Return the `SavedTensor` of the value that the node saves at `position`."""
    saved = object.__new__(SavedTensor)
    saved._node, saved._position = node, position
    return saved
