"""
What a compiled function is called through: compare, run, hand out.

A `Variant` is one recording. It holds if all that the function could see looks as it did then: the layouts of tensors,
Python values, modes, and the variables, modules and containers that the function names. Otherwise the function is
called in Python.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp
from cygrad._core.arrays.array cimport array_t, release, retain, same_shape
from cygrad._core.arrays.dtype cimport default_float
from cygrad._core.compiler.program cimport Program, frame_t
from cygrad._core.compiler.recorder cimport Held, read_rule
from cygrad._core.graph.gradients cimport slot_of
from cygrad._core.graph.meta cimport is_meta
from cygrad._core.graph.modes cimport thread_state, thread_state_t
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor, wrap, wrap_view
from cygrad._core.memory.atomic cimport lock_patiently, unlock
from cygrad._core.memory.errors cimport check

cdef extern from "Python.h":
    PyObject *PyDict_GetItem(PyObject *, PyObject *)
    Py_ssize_t PyList_GET_SIZE(PyObject *)
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t)
    Py_ssize_t PyObject_Size(object) except -1
    PyObject *PyCell_GET(PyObject *)
    PyObject *Py_TYPE(object)
    bint PyFloat_CheckExact(object)
    double PyFloat_AS_DOUBLE(object)

cdef enum:
    LARGE = 1 << 14           # elements from which a run gives the GIL up: to get it back takes a while


cdef bint same(object a, object b) except -1:
    """Is it the same object, or a number or text of the same type and value?"""
    cdef double x, y
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if PyFloat_CheckExact(a):
        x, y = PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b)
        return memcmp(&x, &y, sizeof(double)) == 0          # zeros have signs
    if isinstance(a, complex):
        return repr(a) == repr(b)
    return isinstance(a, (int, str, bytes)) and a == b


@cython.binding(False)
cdef class Variant:
    """
    One recording of a function: when it holds, and what is run then.

    Parameters
    ----------
    program : Program
    structure : object
        Of the arguments, as ``flatten`` gives it; None if all of them are plain and given by position.
    leaves : tuple
        For each argument the number of its tensor, or the value in a tuple.
    constants : tuple of Tensor
        Tensors that are no arguments.
    layouts : list of tuple
        (Held, of a gradient: Held or None, gradient, written, same_as, offset) for each tensor, arguments first.
    guards : list of tuple
        (kind, container, key, value) of what the function names; this list as the value: there must be none.
    options : list of tuple
        (number of an operation, optimizer, group, [(key, value)]).
    outputs : list of tuple
        ("same", tensor), or ("new", slot, base, slot of the base, the recorded Tensor, its node).
    commits : list of (int, int)
        Number of a leaf, slot of its new gradient or -1.
    rebuild : callable or None
        Makes the result from the outputs; None for a single tensor.
    """

    def __cinit__(self, Program program, structure, tuple leaves, tuple constants, list tensors, list layouts,
                  list guards, list options, list outputs, list commits, rebuild):
        cdef Tensor tensor
        cdef layout_t *layout
        cdef thread_state_t *state = thread_state()
        cdef int i
        self.program, self.structure, self.leaves, self.constants = program, structure, leaves, constants
        self.outputs, self.commits, self.rebuild, self.options = outputs, commits, rebuild, options
        self.n_arguments, self.n_tensors = len(leaves), len(layouts)
        self.layouts = <layout_t *>calloc(len(layouts) + 1, sizeof(layout_t))
        self.guards = <guard_t *>calloc(len(guards) + 1, sizeof(guard_t))
        if self.layouts == NULL or self.guards == NULL:
            raise MemoryError("compile: no memory for what has to be compared")
        self.keep = [layouts, guards]
        n_own = len(layouts) - len(constants)
        for i, (gradient_array, gradient, written, same_as, offset) in enumerate(layouts):
            layout = &self.layouts[i]
            tensor = tensors[i]
            layout.array, layout.exact = retain(tensor.array), i >= n_own
            layout.requires_grad = tensor.leaf_requires_grad
            self.keep.append(type(tensor))
            layout.type = Py_TYPE(tensor)
            layout.is_view, layout.normal = tensor.base is not None, tensor.array.version != NULL
            layout.gradient, layout.written, layout.same_as, layout.offset = gradient, written, same_as, offset
            layout.gradient_array = NULL
            if gradient == 1:
                layout.gradient_array = retain((<Held>gradient_array).array)
            self.any_written = self.any_written or written
        for kind, container, key, value in guards:
            guard = &self.guards[self.n_guards]
            guard.kind, guard.container, guard.key = kind, <void *>container, <void *>key
            guard.value = NULL if value is guards else <void *>value
            guard.place = key if kind == ENTRY or kind == LENGTH else 0
            self.n_guards += 1
        self.places = [0] * len(layouts)
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, tuple):
                self.places[<int>leaf] = i
        self.grad_disabled, self.inference, self.dtype = state.grad_disabled, state.inference, default_float()

    def __dealloc__(self):
        cdef int i
        if self.layouts != NULL:
            for i in range(self.n_tensors):
                release(self.layouts[i].array)
                release(self.layouts[i].gradient_array)
        free(self.layouts)
        free(self.guards)

    # ------------------------------------------------------------------------------------------------------- comparing

    cdef Tensor tensor(self, int number, object leaves):
        """A tensor from outside by its number."""
        cdef int n_own = self.n_tensors - len(self.constants)
        if number >= n_own:
            return <Tensor>self.constants[number - n_own]
        return <Tensor>leaves[self.places[number]]

    cdef bint fits(self, const layout_t *layout, Tensor tensor) except -1:
        cdef array_t *array = tensor.array
        cdef const array_t *like = layout.array
        cdef array_t *gradient
        cdef int i
        if tensor.leaf_requires_grad != layout.requires_grad or tensor.node is not None:
            return False
        if array != like:
            if (layout.exact or array.dtype != like.dtype or array.ndim != like.ndim or array.storage == NULL
                    or is_meta(array) or Py_TYPE(tensor) != layout.type):
                return False
            for i in range(array.ndim):
                if array.shape[i] != like.shape[i] or array.strides[i] != like.strides[i]:
                    return False
        if (tensor.base is not None) != layout.is_view or (array.version != NULL) != layout.normal:
            return False
        if tensor.leaf_hooks is not None:
            return False
        if layout.gradient >= 0:
            gradient = NULL if tensor.gradient == NULL else tensor.gradient.value
            if (gradient != NULL) != layout.gradient:
                return False
            if gradient != NULL and gradient != layout.gradient_array:
                like = layout.gradient_array
                if gradient.dtype != like.dtype or not same_shape(gradient, like):
                    return False
                for i in range(gradient.ndim):
                    if gradient.strides[i] != like.strides[i]:
                        return False
        return True

    cdef bint lies_apart(self, object leaves) except -1:
        """Does memory that is changed belong to nothing else, unless it did when this was recorded?"""
        cdef const layout_t *layout
        cdef array_t *array
        cdef array_t *other
        cdef int i, k, n_own = self.n_tensors - len(self.constants)
        for i in range(n_own):
            layout = &self.layouts[i]
            array = self.tensor(i, leaves).array
            if layout.same_as >= 0:
                other = self.tensor(layout.same_as, leaves).array
                if other.storage != array.storage or array.data - other.data != layout.offset:
                    return False
            if not self.any_written:
                continue
            for k in range(self.n_tensors):
                if k == i or k < i and layout.same_as == k or self.layouts[k].same_as == i:
                    continue
                if (layout.written or self.layouts[k].written) and (
                        self.tensor(k, leaves).array.storage == array.storage
                        and (layout.same_as < 0 or layout.same_as != self.layouts[k].same_as)):
                    return False
        return True

    cdef bint holds(self, object leaves) except -1:
        cdef thread_state_t *state = thread_state()
        cdef const guard_t *guard
        cdef PyObject *found
        cdef int i
        if (state.grad_disabled != self.grad_disabled or state.inference != self.inference or state.saved_hooks != NULL
                or state.anomaly or state.dual_level or state.guarded or state.depth or self.dtype != default_float()):
            return False
        for i in range(self.n_arguments):
            expected = self.leaves[i]
            argument = leaves[i]
            if type(expected) is tuple:
                if not same(argument, (<tuple>expected)[0]):
                    return False
            elif not isinstance(argument, Tensor) or not self.fits(&self.layouts[<int>expected], <Tensor>argument):
                return False
        for i in range(self.n_tensors - <int>len(self.constants), self.n_tensors):
            if not self.fits(&self.layouts[i], self.tensor(i, leaves)):
                return False
        for i in range(self.n_guards):
            guard = &self.guards[i]
            if guard.kind == ITEM:
                found = PyDict_GetItem(<PyObject *>guard.container, <PyObject *>guard.key)
            elif guard.kind == CELL:
                found = PyCell_GET(<PyObject *>guard.container)
            elif guard.kind == LENGTH:
                if PyObject_Size(<object>guard.container) != guard.place:
                    return False
                continue
            else:
                found = (PyList_GET_ITEM(<PyObject *>guard.container, guard.place)
                         if guard.place < PyList_GET_SIZE(<PyObject *>guard.container) else NULL)
            if <void *>found != guard.value and (
                    found == NULL or guard.value == NULL or not same(<object>found, <object>guard.value)):
                return False
        return self.lies_apart(leaves)

    # --------------------------------------------------------------------------------------------------------- running

    cdef int read_options(self) except -1:
        """Options of optimizers may have changed."""
        cdef PyObject *found
        cdef int i
        for i in range(len(self.options)):
            number, optimizer, group, options = self.options[i]
            for key, value in <list>options:
                found = PyDict_GetItem(<PyObject *>group, <PyObject *>key)
                if found != <PyObject *>value:
                    read_rule(optimizer, group, &self.program.operations[<int>number].rule)
                    self.options[i] = (number, optimizer, group, [(name, group[name]) for name, _ in options])
                    break
        return 0

    cdef object run(self, object leaves):
        cdef Program program = self.program
        cdef frame_t *frame
        cdef Tensor tensor
        cdef int status, number, slot
        if self.options:
            self.read_options()
        frame = program.take_frame()
        for slot, kind, number in program.inputs:
            if kind == 2:
                frame.table[slot] = retain((<Held>program.held[slot]).array)
                continue
            tensor = self.tensor(number, leaves)
            frame.table[slot] = retain(tensor.array if kind == 0 else tensor.gradient.value)
        try:
            if program.work < LARGE:
                status = program.run(frame)
            else:
                with nogil:
                    status = program.run(frame)
            check(status)
            self.runs += 1
            results = [self.output(frame, given, leaves) for given in self.outputs]
            for number, slot in self.commits:
                self.commit(frame, self.tensor(number, leaves), slot)
        finally:
            for slot in range(program.n_slots):
                if frame.views[slot] == NULL:
                    release(frame.table[slot])
                    frame.table[slot] = NULL
            program.give_frame(frame)
        return results[0] if self.rebuild is None else self.rebuild(results)

    cdef object output(self, frame_t *frame, tuple given, object leaves):
        cdef Tensor made, model
        if given[0] == 0:
            return self.tensor(given[1], leaves)
        _, slot, base, model, node = given
        if base is None:
            made = wrap(self.program.leave(frame, slot))
        else:
            made = wrap_view(self.program.leave(frame, slot), self.tensor(base, leaves))
        made.view_kind = model.view_kind
        made.leaf_requires_grad = model.leaf_requires_grad
        if node is not None:
            made.node, made.output_nr = <Node>node, model.output_nr
        return made

    cdef int commit(self, frame_t *frame, Tensor leaf, int slot) except -1:
        """A leaf gets the gradient that is in a slot, or none."""
        cdef array_t *array = NULL if slot < 0 else self.program.leave(frame, slot)
        cdef array_t *replaced
        slot_of(leaf, b"backward")
        lock_patiently(&leaf.gradient.lock)
        replaced = leaf.gradient.value
        leaf.gradient.value = array
        unlock(&leaf.gradient.lock)
        leaf.grad_tensor = None
        release(replaced)
        return 0


def recordable():
    """Is this thread in a state in which its operations can be noted?"""
    cdef thread_state_t *state = thread_state()
    return not (state.saved_hooks != NULL or state.anomaly or state.dual_level or state.guarded or state.depth)


def equal_values(a, b):
    """Is it the same object, or a number or text of the same type and value?"""
    return same(a, b)


@cython.binding(False)
cdef class Replayer:
    """
    Calls a function through its recordings.

    Parameters
    ----------
    slow : callable
        Called with the arguments, as a tuple and a dict, where no recording holds.
    flatten : callable
        Gives the leaves of the arguments and their structure.
    """
    cdef readonly list variants
    cdef object slow, flatten
    cdef public bint nested       # some recording has other arguments than plain ones by position

    def __init__(self, slow, flatten):
        self.slow, self.flatten, self.variants = slow, flatten, []

    def __call__(self, *args, **kwargs):
        cdef Variant variant
        leaves, structure = args, None
        if self.nested or kwargs:
            leaves, structure = self.flatten(args, kwargs)
        for variant in self.variants:
            if (variant.structure is structure or variant.structure == structure) and (
                    variant.n_arguments == len(leaves)) and variant.holds(leaves):
                return variant.run(leaves)
        return self.slow(args, kwargs)
