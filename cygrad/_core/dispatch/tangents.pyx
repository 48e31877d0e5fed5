"""
Forward mode: tangents of tensors, and their propagation by operators.

A tangent belongs to a level, not to its tensor: the level holds one for each dual tensor, by the tensor's address, so
that tensors need no field for it, and leaving the level frees them all. A thread is in at most one level. While a rule
computes tangents the thread is in none, so tangents have no tangents.

`tangent_rules` computes the tangents of results, from the operator's row.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcmp, strcmp
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, MAX_DIMS, array_t, array_view, same_shape, shape_text, share_memory, value_t,
)
from cygrad._core.arrays.dtype cimport INT64, category, dtype_name, is_complex, is_differentiable, itemsize
from cygrad._core.elementwise.copying cimport array_like, is_non_overlapping_and_dense, same_place
from cygrad._core.elementwise.elementwise cimport copy_into
from cygrad._core.graph.boxing cimport frame_t, is_entry, plain_object
from cygrad._core.graph.inplace cimport bump_version, check_inplace, rebase_history
from cygrad._core.graph.mode_stack cimport InplaceStep, Mode, abort_trace, exchange_mode
from cygrad._core.graph.modes cimport (
    FORWARD_MODE, TRACING_MODE, grad_enabled, set_dual_level, thread_state, thread_state_t,
)
from cygrad._core.graph.native cimport NativeNode, fit_recorded
from cygrad._core.graph.node cimport gc_track
from cygrad._core.graph.tensor cimport Tensor, protocol, replace_array, requires_grad
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.memory.atomic cimport atomic_add
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.table.operator cimport LIST_RESULT, MOVES, NO_GRADIENT, TENSOR, TENSORS, Operator, operator_t

import threading
from weakref import WeakSet
from cygrad._core.creation.factories import zeros, zeros_like
from cygrad._core.dispatch.named_results import named_result
from cygrad._core.graph.operation_names import called_operation, operation_error
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------------- tangents

cdef dict _levels = {}              # level number -> {address of a dual tensor: its tangent}
cdef dict _nodes = {}               # level number -> nodes that hold tangents of saved tensors
cdef int64_t _last = 0


# -------------------------------------------------------------------------------------------------------------- levels

def enter_level():
    """
    Enter a level of forward mode in this thread.

    Returns
    -------
    int
        Nesting depth, which is always 0.

    Raises
    ------
    RuntimeError
        If the thread is already in a level.
    """
    cdef int32_t level
    cdef thread_state_t *state = thread_state()
    abort_trace("forward mode has no native form here")
    if state.dual_level:
        raise RuntimeError("enter_dual_level: Nested forward mode AD is not supported at the moment (got a second "
                           "level in this thread). Leave the outer level first, or take second derivatives by backward "
                           "through forward mode.")
    level = <int32_t>(atomic_add(&_last, 1) + 1)         # in one step: no two threads share a level
    _levels[level] = {}
    exchange_mode(FORWARD_MODE, _forward_mode)
    set_dual_level(level)
    return 0                             # nesting depth: levels are not nested


def exit_level(level=None):
    """
    Leave the level of this thread and free all its tangents.

    Parameters
    ----------
    level : int, optional
        Number of the level, to check.

    Raises
    ------
    RuntimeError
        If the thread is not in this level.
    """
    cdef thread_state_t *state = thread_state()
    if not state.dual_level:
        raise RuntimeError("exit_dual_level: this thread is not in a level (got a call outside of one). Enter one "
                           "with dual_level().")
    if level is not None and level != 0:
        raise RuntimeError(f"exit_dual_level: wrong level (got level {level}, expected 0). Leave the levels in the "
                           "opposite order of entering.")
    ended = state.dual_level
    set_dual_level(0)                    # first: freeing the tangents may run user code
    _levels.pop(ended)
    for node in _nodes.pop(ended, ()):
        (<NativeNode>node).payload = None


@cython.binding(False)      # methods check the type of self
cdef class Level:
    """Context manager for a level; compiled, so that no signal handler runs between its steps."""

    cdef object level

    def __enter__(self):
        self.level = enter_level()
        return self.level

    def __exit__(self, type=None, value=None, traceback=None):
        exit_level(self.level)
        return False


def current_level():
    """Return the number of this thread's level, or None."""
    return 0 if thread_state().dual_level else None


class _Disabled(threading.local):
    """
    Return the level that this thread left by `set_enabled`, or None while tangents are computed; and how many products
    it computes by backward, because they are nested in another level.
    """

    level = None
    by_backward = 0


_disabled = _Disabled()


def enabled():
    """Return whether this thread computes tangents inside a level."""
    return _disabled.level is None


def set_enabled(mode):
    """Set whether this thread computes tangents; tensors keep theirs."""
    if mode and _disabled.level is not None:
        set_dual_level(_disabled.level)
        _disabled.level = None
    elif not mode and _disabled.level is None:
        if _disabled.by_backward:
            raise NotImplementedError("_set_fwd_grad_enabled: tangents cannot be disabled in a jvp inside of another "
                                      "level of forward mode, which is computed by backward. Use detach().")
        _disabled.level = thread_state().dual_level
        set_dual_level(0)


@cython.binding(False)      # methods check the type of self
cdef class ByBackward:
    """Context manager for a product that is computed by backward inside of a level."""

    def __enter__(self):
        _disabled.by_backward += 1

    def __exit__(self, type=None, value=None, traceback=None):
        _disabled.by_backward = max(_disabled.by_backward - 1, 0)
        return False


@cython.binding(False)      # methods check the type of self
cdef class paused:
    """Context manager that leaves the level."""

    cdef int32_t level

    def __enter__(self):
        self.level = thread_state().dual_level
        set_dual_level(0)
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # a tuple might fail to allocate
        set_dual_level(self.level)
        return False


@cython.binding(False)
cdef class suspend_tracing(paused):
    """Context manager without tangents and tracing: all numbers are constants."""

    cdef uint32_t traced

    def __enter__(self):
        self.traced = thread_state().modes & 1 << TRACING_MODE
        thread_state().modes ^= self.traced
        return paused.__enter__(self)

    def __exit__(self, type=None, value=None, traceback=None):
        if thread_state().mode_objects[TRACING_MODE] != NULL:        # otherwise the trace has ended
            thread_state().modes |= self.traced
        return paused.__exit__(self)


operators.suspend_tracing = suspend_tracing


# ------------------------------------------------------------------------------------------------------------ tangents

cdef void _forget(Tensor dual) noexcept:
    level = _levels.get(dual.dual_level)
    if level is not None:
        (<dict>level).pop(<size_t><void *>dual, None)


cdef int _attach(object value, object tangents) except -1:
    """Set the tangent of a tensor, or of each in a list; existing tangents are kept."""
    if isinstance(value, list):
        for item, tangent in zip(value, tangents, strict=True):
            if item is not None and tangent is not None:
                _attach(item, tangent)
    elif isinstance(value, Tensor) and tangent_of(<Tensor>value) is None:
        set_tangent(<Tensor>value, <Tensor>tangents)
    return 0


protocol.forget_tangent = _forget
protocol.attach_tangents = _attach


cdef Tensor tangent_of(Tensor tensor):
    cdef int32_t level = thread_state().dual_level
    if not level:
        return None
    if tensor.dual_level == level:
        return <Tensor>(<dict>_levels[level]).get(<size_t><void *>tensor)
    if tensor.base is not None and tensor.base.dual_level == level and is_differentiable(tensor.array.dtype):
        # A view made before its base became dual, by an in-place operation.
        tangent = _same_view(tensor, <Tensor>(<dict>_levels[level])[<size_t><void *>tensor.base])
        set_tangent(tensor, tangent)
        return tangent
    return None


cdef int set_tangent(Tensor tensor, Tensor tangent) except -1:
    cdef int32_t level = thread_state().dual_level
    if tangent is None:
        if tensor.dual_level == level:
            _forget(tensor)
            tensor.dual_level = 0
        return 0
    if tensor.dual_level != level:
        if tensor.dual_level:
            _forget(tensor)              # of another level
        tensor.dual_level = level
    (<dict>_levels[level])[<size_t><void *>tensor] = tangent
    return 0


cdef Tensor _same_view(Tensor view, Tensor tangent):
    """Return the view of the base's tangent that matches `view`."""
    cdef Tensor base = view.base
    cdef bint in_numbers = is_complex(base.array.dtype) != is_complex(view.array.dtype)
    offset, shape, strides = view.storage_offset(), tuple(view.shape), tuple(view.stride())
    with paused():
        origin = base.storage_offset()
        if not in_numbers:
            return operators.as_strided(tangent, shape, strides, offset - origin + tangent.storage_offset())
        if is_complex(base.array.dtype):                  # of a complex base, real numbers
            numbers = operators.view_as_real(tangent)
            return operators.as_strided(numbers, shape, strides, offset - 2 * origin + numbers.storage_offset())
        pairs = operators.as_strided(tangent, shape + (2,), tuple([2 * step for step in strides]) + (1,),
                                         2 * offset - origin + tangent.storage_offset())
        return operators.view_as_complex(pairs)


cdef Tensor _zeros_over(Tensor tensor, object dtype=None, bint whole=False, object batch=None):
    """
    Return zeros with the strides of a tensor, so that every view of it has a matching view.

    With `whole`, every view of its whole storage has one, which as_strided can create. With an entry of vmap as `batch`
    they are zeros of a batch.
    """
    cdef array_t *array = tensor.array
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    extent = 1 + sum([(size - 1) * step for size, step in zip(shape, strides)]) if tensor.numel() else 0
    offset = 0
    if whole and array.storage != NULL:
        extent, offset = array.storage.nbytes // itemsize(array.dtype), tensor.storage_offset()
    dtype = tensor.dtype if dtype is None else dtype
    with paused():
        memory = batch.new_zeros(extent, dtype=dtype) if batch is not None else zeros(extent, dtype=dtype)
        return operators.as_strided(memory, shape, strides, offset)


def fitted(Tensor gradient not None, Tensor argument not None):
    """Convert a gradient as the engine does for the argument: its shape and dtype, real if the argument is."""
    return fit_recorded(argument.array, gradient)


def laid_out(Tensor tangent not None, Tensor tensor not None, bint whole=False):
    """Copy a tangent with the strides of its tensor; `whole`: into memory of the extent of its storage."""
    if is_entry(tangent):                    # of `vmap`: it has no strides, so copy it in this order
        order = sorted(range(tensor.ndim), key=lambda dim: -tensor.stride()[dim])
        found = operators.permute(operators.permute(tangent, order).contiguous(),
                                     [order.index(dim) for dim in range(tensor.ndim)])
        return found if found.stride() == tensor.stride() else tangent
    if not tensor.numel():
        return zeros_like(tensor, dtype=tangent.dtype)
    for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride())):
        if step == 0 and size > 1:           # expanded: all elements are one, and so are their tangents
            narrow = operators.narrow
            found = laid_out(narrow(tangent, dim, 0, 1), narrow(tensor, dim, 0, 1))
            return operators.expand(found, tuple(tensor.shape))
    return _zeros_over(tensor, tangent.dtype, whole).copy_(tangent)


def has_same_layout(Tensor tangent not None, Tensor tensor not None):
    """Return whether both have the same strides, in memory of the same extent."""
    cdef array_t *a = tangent.array
    cdef array_t *b = tensor.array
    if memcmp(a.strides, b.strides, a.ndim * sizeof(int64_t)) != 0 or a.storage == NULL or b.storage == NULL:
        return is_entry(tangent) and tangent.stride() == tensor.stride()
    return (a.storage.nbytes // itemsize(a.dtype) == b.storage.nbytes // itemsize(b.dtype)
            and (a.data - a.storage.data) // itemsize(a.dtype) == (b.data - b.storage.data) // itemsize(b.dtype))


def same_view(Tensor view not None, Tensor base not None):
    """Return the view of `base` that `view` is of its own base; both bases have the same shape and strides."""
    if view.base is None:
        raise ValueError("same_view: expected a view of another tensor (got a tensor that is not a view).")
    return _same_view(view, base)


def tangent(Tensor tensor not None):
    """Return the tangent of a tensor in the level of this thread, or None."""
    return tangent_of(tensor)


def attach(Tensor tensor not None, Tensor tangent):
    """Set the tangent of a tensor in the level of this thread, or remove it with None."""
    set_tangent(tensor, tangent)


# ------------------------------------------------------------------------------------------------- results of operators

cdef list _arguments(Operator operator, frame_t *frame, list tangents):
    """Return the arguments of a call as Python objects; `tangents` gets that of each (of a list, a list), or None."""
    cdef list arguments = []
    cdef int i
    for i in range(operator.descriptor.n_arguments):
        if frame.objects[i] == NULL:
            arguments.append(plain_object(&frame.values[i]))
            tangents.append(None)
            continue
        argument = <object>frame.objects[i]
        arguments.append(argument)
        if operator.descriptor.arguments[i].kind == TENSORS:
            found = [None if item is None else tangent_of(<Tensor>item) for item in <list>argument]
            tangents.append(found if any([item is not None for item in found]) else None)
        else:
            tangents.append(tangent_of(<Tensor>argument))
    return arguments


cdef bint any_tangent(list tangents):
    for item in tangents:
        if item is not None:
            return True
    return False


cdef int _push_forward(Operator operator, frame_t *frame, object results, NativeNode node) except -1:
    """Set the tangents of an operator's results, and tell its node those of saved tensors."""
    cdef list tangents = []
    cdef list arguments
    cdef tuple outcomes, pushed
    cdef int i
    if operator.descriptor.flags & NO_GRADIENT:
        return 0
    arguments = _arguments(operator, frame, tangents)
    if not any_tangent(tangents):
        return 0
    outcomes = tuple(results) if isinstance(results, tuple) else (results,)     # plain tuple of results
    with paused():
        pushed = _push(operator, arguments, tangents, outcomes)
    for i in range(len(outcomes)):
        # A result that is an argument itself has its tangent already; integers have none.
        if (pushed[i] is not None and is_differentiable((<Tensor>outcomes[i]).array.dtype)
                and not _holds(arguments, outcomes[i])):
            set_tangent(<Tensor>outcomes[i], <Tensor>pushed[i])
    if node is not None:
        _notify(node, tangents, pushed)
    return 0


cdef bint _holds(list arguments, object wanted):
    for argument in arguments:
        if argument is wanted or isinstance(argument, list) and _holds(<list>argument, wanted):
            return True
    return False


cdef bint has_tangents(Operator operator, frame_t *frame) except -1:
    cdef list tangents = []
    _arguments(operator, frame, tangents)
    return any_tangent(tangents)


cdef int _notify(NativeNode node, list tangents, tuple pushed) except -1:
    """Give a node the tangents of its saved tensors: a backward in this level uses them."""
    cdef const operator_t *op = node.c.op
    cdef int i
    cdef list known = []
    for i in range(op.n_saved):
        known.append(pushed[op.saved[i].index] if op.saved[i].from_result else tangents[op.saved[i].index])
    if any_tangent(known):
        level = thread_state().dual_level
        node.payload = level, known
        gc_track(node.c)
        # A tangent's history may lead back to the node: leaving the level breaks that cycle.
        _nodes.setdefault(level, WeakSet()).add(node)
    return 0


# ------------------------------------------------------------------------------------------------------------- in place

cdef class TangentStep(InplaceStep):
    """Compute the tangents of an in-place operation before it modifies anything."""
    cdef list tangents
    cdef Tensor tangent

    cdef int finish(self, Tensor tensor, NativeNode node) except -1:
        cdef Tensor own = tangent_of(tensor)
        if own is None and tensor.base is not None:
            set_tangent(tensor.base, _zeros_over(tensor.base, None, False,
                                                 self.tangent if is_entry(self.tangent) else None))
            own = tangent_of(tensor)
        if own is None:
            set_tangent(tensor, self.tangent)
        else:
            # In memory that views of the tensor share with views of its tangent.
            if grad_enabled() and (takes_part(own) or takes_part(self.tangent)):
                _move_to_copy(own)
                own = tangent_of(tensor)
            with paused():
                own.copy_(self.tangent)
        if node is not None:
            _notify(node, self.tangents, (self.tangent,))
        return 0


cdef int _move_to_copy(Tensor own) except -1:
    """Copy a tangent with its base, and make all tangents that are its views views of the copy."""
    cdef Tensor root = own if own.base is None else own.base       # nodes may have saved its elements
    cdef Tensor member
    cdef dict level = <dict>_levels[thread_state().dual_level]
    with paused():
        copy = laid_out(root, root)
        for address, member in list(level.items()):
            if member is root:
                level[address] = copy
            elif member.base is root:
                level[address] = _same_view(member, copy)
    return 0


cdef TangentStep _begin_inplace(Operator operator, frame_t *frame):
    cdef TangentStep step
    cdef list tangents = []
    cdef list arguments = _arguments(operator, frame, tangents)
    cdef Tensor tensor = <Tensor>arguments[0]
    if not any_tangent(tangents) or not is_differentiable(tensor.array.dtype):
        return None
    step = TangentStep()
    step.tangents = tangents
    with paused():
        step.tangent = _push_copy(operator, arguments, tangents)
        step.tangent = (_zeros_over(tensor) if step.tangent is None else _fit(step.tangent, tensor))
    return step


cdef class ForwardMode(Mode):
    """Compute the tangents of results."""

    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1:
        return _push_forward(operator, frame, results, node)

    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame):
        return _begin_inplace(operator, frame)


cdef Mode _forward_mode = ForwardMode()

# Last, because it imports from this module.
from cygrad._core.dispatch.tangent_rules import fit as _fit, push as _push, push_copy as _push_copy


# --------------------------------------------------------------------------------------------------------- out argument

# The argument out=, and the named tuples of several results.

cdef bint _chooses(const operator_t *op) noexcept:
    """Return whether the operator moves elements of some arguments to positions given by others, as `gather` and "
      "`cat` do."""
    return op.flags & MOVES and op.n_arguments > 1 and (
        op.arguments[0].kind == TENSORS or op.arguments[1].kind == TENSOR or op.arguments[2].kind == TENSOR)


cdef bint _returns_positions(const operator_t *op, int i) noexcept:
    """Return whether result `i` holds positions of elements, as those of `nonzero`, `sort` and `max` do."""
    return (op.n_results > 1 or op.flags & MOVES) and not op.differentiable_results >> i & 1


cdef bint _overlaps(const operator_t *op, const frame_t *frame, const array_t *out) noexcept:
    """Return whether `out` overlaps part of an argument, or all of one whose elements are moved."""
    cdef const value_t *value
    cdef const array_t *array
    cdef int i, k
    cdef bint moves = _chooses(op) or strcmp(op.name, b"kthvalue") == 0
    for i in range(frame.n):
        value = &frame.values[i]
        for k in range(1 if value.kind == ARRAY else value.count if value.kind == ARRAYS else 0):
            array = value.of.array if value.kind == ARRAY else value.of.arrays[k]
            if array == out and moves:                    # also if it is empty, because it would be resized
                return True
            if (array != NULL and array.storage == out.storage and share_memory(array, out)
                    and (moves or not same_place(array, out)) and is_non_overlapping_and_dense(array)
                    and is_non_overlapping_and_dense(out)):
                return True
    return False


cdef int check_out(Operator operator, frame_t *frame, object out, uint32_t needed) except -1:
    cdef str name = operator.name
    for tensor in out if isinstance(out, (tuple, list)) else (out,):
        if not isinstance(tensor, Tensor):
            raise operation_error(TypeError, name, f"out must be a Tensor (got {type(tensor).__name__}).")
        if grad_enabled() and (needed or requires_grad(<Tensor>tensor)):
            raise operation_error(RuntimeError, name, "out=... arguments don't support automatic differentiation, "
                                                      "but one of the arguments requires grad. Use the form without "
                                                      "out=, or no_grad().")
        check_inplace(<Tensor>tensor, name, False)
        if _overlaps(operator.descriptor, frame, (<Tensor>tensor).array):
            raise operation_error(RuntimeError, name, "elements of out overlap those of an argument. Pass another out, "
                                                      "or clone() the argument.")
        if thread_state().dual_level and tangent_of(<Tensor>tensor) is not None:
            raise operation_error(NotImplementedError, name, "the out= function does not keep tangents, but out has "
                                                             "one. Use the form without out=.")
    abort_trace("out= has no native form here")
    if thread_state().dual_level and has_tangents(operator, frame):
        raise operation_error(RuntimeError, name, "the out= function does not keep tangents, but an argument has one. "
                                                  "Use the form without out=.")
    return 0


cdef object write_out(Operator operator, value_t *results, object out):
    cdef int i, n = operator.descriptor.n_results
    cdef list targets = list(out) if isinstance(out, (tuple, list)) else [out]
    cdef Tensor target
    cdef array_t *array
    if len(targets) != n or operator.descriptor.flags & LIST_RESULT:
        raise operation_error(TypeError, operator.name,
                              f"out must hold one Tensor for each result (got {len(targets)}, expected {n}).")
    for i in range(n):
        target = <Tensor>targets[i]
        array = results[i].of.array
        if category(array.dtype) > category(target.array.dtype) or (
                array.dtype != target.array.dtype and (
                    _chooses(operator.descriptor) and operator.descriptor.arguments[0].kind != TENSORS
                    or array.dtype == INT64 and _returns_positions(operator.descriptor, i))):
            raise operation_error(RuntimeError, operator.name,
                                  f"the result cannot be cast to out (got a result of "
                                  f"{dtype_name(array.dtype).decode()}, expected "
                                  f"{dtype_name(target.array.dtype).decode()}). Use an out of the result's dtype.")
        if not same_shape(array, target.array):
            if target.array.size:
                name = "" if operator.name == "written" else f" by {called_operation(operator.name)}"
                warn_user(f"An output with one or more elements was resized{name} (got "
                          f"{shape_text(target.array).decode()}, expected {shape_text(array).decode()}). Pass an "
                          "empty tensor, or one of that shape.")
            _replace_array(target, array)
        elif array != target.array:
            check(copy_into(target.array, array))
        bump_version(target)
    return out if n > 1 else targets[0]


cdef int _replace_array(Tensor target, array_t *array) except -1:
    """Resize `out` to the result's shape in its own dtype: in its memory, which views see, if the elements fit."""
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = 1
    cdef array_t *fresh
    cdef int i
    if target.array.contiguous and target.array.storage != NULL and 0 < array.size <= target.array.size:
        for i in reversed(range(array.ndim)):
            strides[i] = step
            step *= array.shape[i]
        fresh = array_view(target.array, target.array.dtype, array.ndim, array.shape, strides, 0)
    else:
        fresh = array_like(array, target.array.dtype)
    if fresh == NULL:
        check(MEMORY_ERROR)
    check(copy_into(fresh, array))
    replace_array(target, fresh)
    return 0


cdef dict _result_types = {}


cdef object result_type(Operator operator):
    found = _result_types.get(operator.name)
    if found is None:
        names = [operator.descriptor.result_names[i].decode() for i in range(operator.descriptor.n_results)]
        found = _result_types.setdefault(operator.name, named_result(operator.name.removesuffix("_dim"), *names))
    return found


# ------------------------------------------------------------------------------------------------------- resize inplace

# In-place view operations: the same memory with another shape.

cdef object _take_value(object entry, object other):
    """Give an entry of vmap the tensor of another entry."""
    entry._value = other._value
    return entry


@cython.critical_section             # memory and history change one after the other
def change_geometry(Tensor tensor not None, str operation, *arguments):
    """
    Turn a tensor into its view by a view operation.

    Its history includes that operation; other views of its memory keep theirs.

    Parameters
    ----------
    tensor : Tensor
        Changed.
    operation : str
        Name of the view operator.
    *arguments
        Further arguments.

    Returns
    -------
    Tensor
        The tensor itself.
    """
    cdef bint recorded = grad_enabled() and requires_grad(tensor)
    cdef Tensor seen
    cdef array_t *fresh
    cdef bint batched = is_entry(tensor) and hasattr(tensor, "_value")
    if not batched:
        check_inplace(tensor, operation + "_", recorded)
    seen = <Tensor?>getattr(operators, operation)(tensor, *arguments)
    fresh = array_view(seen.array, seen.array.dtype, seen.array.ndim, seen.array.shape, seen.array.strides, 0)
    if fresh == NULL:
        check(MEMORY_ERROR)
    replace_array(tensor, fresh)
    if thread_state().dual_level:
        set_tangent(tensor, tangent_of(seen))
    if batched:                              # an entry of vmap: the tensor with all entries has the history
        return _take_value(tensor, seen)
    bump_version(tensor)
    # A view of another tensor compares versions and takes its history from there.
    if recorded and tensor.base is None:
        rebase_history(tensor, seen.node)
    return tensor
