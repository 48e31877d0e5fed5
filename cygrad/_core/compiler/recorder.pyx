"""
Noting what a function does: each operation, and where what it reads came from.

A thread that records has a tracing mode, the last one of its stack of modes. Backward runs on Tensors then, so what its
formulas do arrives here as operations like any other.

Arrays are told apart by their address. The recording holds each array that it has met, so no address is used twice and
nothing is computed in the memory of anything else: each buffer is written once, but for changes in place.

Memory is known if it was made by a noted operation, or if it was named before the recording began. Other memory is a
constant if this thread has made it since (its elements came from Python objects: all other ways for elements lead
through NumPy, where a door tells of it). If it is older, or another thread has made it, nobody can say where it will
come from next time.
"""

cimport cython
from cygrad._core.arrays.array cimport array_t, release, retain
from cygrad._core.arrays.dtype cimport BOOL, FLOAT16, dtype_name, dtype_object
from cygrad._core.arrays.interop cimport set_door
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, NOTHING, clear, copy_value, value_t
from cygrad._core.compiler.layouts cimport copy_with_layout
from cygrad._core.graph.boxing cimport box_number, frame_t, plain_object
from cygrad._core.graph.mode_stack cimport InplaceStep, Mode, abort_trace, exchange_mode, mode_at
from cygrad._core.graph.modes cimport TRACING_MODE, thread_state
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.traced_gradients cimport has_memory
from cygrad._core.optimizers.update_batch cimport ADAM_RULE, SGD_RULE, UpdateMode, rule_t
from cygrad._core.table.operator cimport Operator

from cygrad._core.creation.creation import from_numpy
from cygrad._core.graph.saved import set_guard
from cygrad._core.memory.storage import begin_generation, end_generation
from sys import _getframe
from numpy import asarray

# Operators whose results have shapes that depend on elements.
DATA_DEPENDENT = frozenset(("masked_select", "nonzero", "unique", "unique_dim"))


@cython.binding(False)
cdef class Constant:
    """A boxed argument that is no tensor."""

    def __dealloc__(self):
        clear(&self.value)

    @property
    def plain(self):
        """The Python object."""
        return plain_object(&self.value)


def constant(number):
    """A Constant for a Python number, or the Constant itself."""
    cdef Constant made
    if isinstance(number, Constant):
        return number
    made = Constant()
    box_number(number, &made.value)
    return made


cdef Constant _boxed(const value_t *value):
    cdef Constant made = Constant()
    copy_value(&made.value, value)
    return made


@cython.binding(False)
cdef class Held:
    """An array that the recording holds, so that its memory is nobody else's meanwhile."""

    def __dealloc__(self):
        release(self.array)

    @property
    def contiguous(self):
        """Is it row-major without gaps?"""
        return bool(lent(self).contiguous)

    @property
    def numel(self):
        """How many elements it has."""
        return lent(self).size

    @property
    def dtype(self):
        """Its type of elements."""
        return dtype_object(lent(self).dtype)

    @property
    def shape(self):
        """Its sizes."""
        return tuple([self.array.shape[i] for i in range(lent(self).ndim)])

    @property
    def strides(self):
        """Its steps, in elements."""
        return tuple([self.array.strides[i] for i in range(lent(self).ndim)])


@cython.binding(False)
cdef class Buffer:
    """Memory, and where it comes from."""


@cython.binding(False)
cdef class Step:
    """One operation: arguments are numbers of arrays, lists of them, Constants, or None."""

    def __repr__(self):
        return f"<{self.kind} {self.operator.name if self.operator is not None else self.optimizer}>"


@cython.binding(False)
@cython.nonecheck(True)     # a typed loop variable accepts None
cdef class Recorder:
    """
    What one run of a function does.

    Parameters
    ----------
    tensors : iterable of Tensor
        What is known before: arguments, parameters, state of optimizers.

    Attributes
    ----------
    steps : list of Step
    arrays : list of Held
    buffers : list of Buffer
    reason : str or None
        Why the recording ended early.
    transient : bool
        The next call may have more luck.
    """

    cdef readonly list steps, arrays, buffers, leaves
    cdef readonly object reason
    cdef readonly bint transient
    cdef dict by_array            # address of an array -> its number
    cdef dict by_storage          # address of a storage -> number of its buffer
    cdef readonly dict gradients  # id of a leaf -> the number of the array that was its gradient at first
    cdef readonly set forgotten   # ids of leaves whose gradient was set to None
    cdef size_t pending           # memory that is about to change in a way not noted so far
    cdef set stepping             # memory that the optimizer which was noted last is about to change
    cdef int generation

    def __init__(self, tensors):
        cdef Tensor tensor
        self.steps, self.arrays, self.buffers, self.leaves = [], [], [], []
        self.by_array, self.by_storage, self.gradients, self.forgotten = {}, {}, {}, set()
        self.stepping = set()
        for tensor in tensors:
            if tensor.array.storage == NULL or tensor.array.version == NULL and not thread_state().inference:
                self.lose("a tensor without memory, or an inference tensor")
                return
            self.meet(tensor.array, "tensor", tensor, -1)
        self.leaves = list(dict([(id(tensor), tensor) for tensor in tensors]).values())
        for tensor in self.leaves:
            if tensor.gradient != NULL and tensor.gradient.value != NULL:
                self.gradients[id(tensor)] = self.meet(tensor.gradient.value, "gradient", tensor, -1)

    def begin(self):
        """Record from now on what this thread does."""
        if self.by_storage is None:
            raise RuntimeError("Recorder.begin: it was made without __init__. Make it by Recorder(tensors).")
        self.generation = begin_generation()
        exchange_mode(TRACING_MODE, _mode_of(self))
        set_guard(self.about_to_change)

    def end(self):
        """No more."""
        cdef Buffer buffer
        if _active() is self:
            exchange_mode(TRACING_MODE, None)
        set_guard(None)
        end_generation()
        if self.pending:
            self.lose("a tensor was changed in place in a way that is not recorded")
        for buffer in self.buffers:
            if buffer.version != NULL and buffer.version.value != buffer.expected:
                self.lose("a tensor was changed in place in a way that is not recorded")

    def lose(self, str reason, bint transient=False):
        """Give up."""
        if self.reason is None:
            self.reason = reason
            self.transient = transient
            if _active() is self:
                exchange_mode(TRACING_MODE, None)

    def about_to_change(self, size_t storage):
        """Before each change in place: one that is not noted next is not recorded."""
        if storage in self.stepping:
            return
        if self.pending and self.pending != storage:
            self.lose("a tensor was changed in place in a way that is not recorded")
        self.pending = storage

    cdef int meet(self, array_t *array, str kind, Tensor tensor, int maker) except -2:
        """The number of an array that is new here."""
        cdef Held held
        cdef Buffer buffer
        cdef array_t *first
        found = self.by_array.get(<size_t>array)
        if found is not None:
            return found
        if array.dtype >= FLOAT16:
            self.lose(f"a tensor of {dtype_name(array.dtype).decode()}, which kernels do not compute in")
        held = Held()
        held.array = retain(array)
        number = len(self.arrays)
        place = self.by_storage.get(<size_t>array.storage)
        if place is None:
            buffer = Buffer()
            buffer.kind, buffer.tensor, buffer.first, buffer.maker, buffer.writes = kind, tensor, number, maker, []
            buffer.version = array.version
            buffer.expected = 0 if array.version == NULL else array.version.value
            place = self.by_storage[<size_t>array.storage] = len(self.buffers)
            self.buffers.append(buffer)
        else:
            buffer = <Buffer>self.buffers[place]
            first = array if buffer.first == number else (<Held>self.arrays[buffer.first]).array
            held.offset = array.data - first.data
        held.buffer = place
        self.arrays.append(held)
        self.by_array[<size_t>array] = number
        return number

    cdef int ref(self, array_t *array) except -2:
        """The number of an array that an operation reads."""
        cdef Buffer buffer
        cdef int number
        if array.storage == NULL:
            self.lose("a tensor without memory")
            return -1
        place = self.by_storage.get(<size_t>array.storage)
        if place is None:
            if array.storage.writable != self.generation:
                self.lose("it reads a tensor that is neither an argument nor in a variable, module or container that "
                          "it names")
                return -1
            return self.meet(array, "constant", None, -1)
        number = self.meet(array, "constant", None, -1)
        buffer = <Buffer>self.buffers[place]
        if buffer.version != NULL and array.version == buffer.version and buffer.version.value != buffer.expected:
            self.lose("a tensor was changed in place in a way that is not recorded")
        return number

    cdef object argument(self, const value_t *value):
        if value.kind == NOTHING:
            return None
        if value.kind == ARRAY:
            return self.ref(value.of.array)
        if value.kind == ARRAYS:
            return [None if value.of.arrays[i] == NULL else self.ref(value.of.arrays[i]) for i in range(value.count)]
        return _boxed(value)

    cdef tuple arguments_of(self, frame_t *frame):
        return tuple([self.argument(&frame.values[i]) for i in range(frame.n)])

    def snapshot(self, int place):
        """A copy of the elements that a constant had when it was met first."""
        cdef Buffer buffer = <Buffer>self.buffers[place]
        cdef Held copy
        if buffer.original is None:
            copy = Held()
            copy.array = copy_with_layout(lent(<Held>self.arrays[buffer.first]))
            if copy.array == NULL:
                raise MemoryError("compile: no memory for a constant")
            buffer.original = copy
        return buffer.original

    def number_of(self, Tensor tensor not None):
        """The number of a tensor's array; None if the recording has not met it."""
        return self.by_array.get(<size_t>tensor.array)

    def read(self, Tensor tensor not None):
        """The number of the array of a result."""
        return self.ref(tensor.array)

    cdef int note(self, Step step) except -1:
        self.stepping.clear()
        self.steps.append(step)
        return 0

    cdef int called(self, Operator operator, frame_t *frame, object results) except -1:
        cdef Step step = Step()
        cdef array_t *array
        cdef Tensor tensor
        cdef bint fresh = False
        cdef int i
        cdef list numbers = []
        if self.pending:
            self.lose("a tensor was changed in place in a way that is not recorded")
        if operator.name in DATA_DEPENDENT:
            self.lose(f"the shape of what {operator.name} returns depends on elements")
        if operator.name == "as_strided":
            self.lose("as_strided depends on where its tensor lies in memory")
        if operator.name == "index":
            for i in range(frame.values[1].count):
                array = frame.values[1].of.arrays[i]
                if array != NULL and array.dtype == BOOL:
                    self.lose("how many elements a mask selects depends on elements")
        step.kind, step.operator, step.arguments, step.target = "call", operator, self.arguments_of(frame), -1
        if operator.descriptor.into != NULL and operator.descriptor.into == operator.descriptor.kernel:
            step.kind, step.results, step.target = "change", (), step.arguments[0]      # it writes into its argument
            (<Buffer>self.buffers[(<Held>self.arrays[step.target]).buffer]).writes.append(len(self.steps))
            return self.note(step)
        step.listed = isinstance(results, tuple) and operator.descriptor.n_results == 1
        for result in results if isinstance(results, tuple) else (results,):
            if result is None:
                numbers.append(-1)
                continue
            if not isinstance(result, Tensor):
                self.lose(f"{operator.name} returns a Python object that depends on elements")
                return 0
            tensor = <Tensor>result
            if tensor.array.storage == NULL:
                self.lose("a tensor without memory")
                return 0
            if <size_t>tensor.array.storage in self.by_storage:      # a view, or an argument itself
                self.ref(tensor.array)
                numbers.append(-1)
            else:
                numbers.append(self.meet(tensor.array, "result", None, len(self.steps)))
                fresh = True
        if fresh:
            step.results = tuple(numbers)
            self.note(step)
        return 0

    def drawn(self, array, int number):
        """The tensor over random numbers, those of draw `number`."""
        cdef Step step = Step()
        cdef Tensor tensor
        cdef Mode mode = exchange_mode(TRACING_MODE, None)
        tensor = from_numpy(asarray(array))
        exchange_mode(TRACING_MODE, mode)
        step.kind, step.target, step.draw = "draw", -1, number
        step.arguments, step.results = (), (self.meet(tensor.array, "result", None, len(self.steps)),)
        self.note(step)
        return tensor

    cdef int changed(self, Step step, Tensor tensor) except -1:
        """A change in place has happened of which `step` was noted before."""
        cdef Buffer buffer = <Buffer>self.buffers[(<Held>self.arrays[step.target]).buffer]
        self.pending = 0
        buffer.writes.append(len(self.steps))
        if buffer.version != NULL and tensor.array.version == buffer.version:
            buffer.expected += 1
        return self.note(step)

    cdef int optimized(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        """An optimizer is about to change its parameters."""
        cdef Step step = Step()
        cdef Tensor parameter
        cdef Buffer buffer
        cdef list updates = []
        cdef tuple names = ()
        step.kind, step.target, step.results, step.rule = "optimize", -1, (), rule[0]
        self.pending = 0
        if rule.kind == SGD_RULE:
            names = ("momentum_buffer",) if rule.momentum else ()
        elif rule.kind == ADAM_RULE:
            names = ("step", "exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if rule.amsgrad else ())
        else:
            self.lose(f"{operation} has no native form here")
            return 0
        step.optimizer, step.group = self.group_of(parameters)
        if step.group is None:
            self.lose(f"{operation} was called by something else than its optimizer")
            return 0
        for parameter in parameters:
            if parameter.gradient == NULL or parameter.gradient.value == NULL:
                continue
            own = [self.ref(parameter.array), self.ref(parameter.gradient.value)]
            kept = state[parameter] if names else {}
            for name in names:
                if not isinstance(kept.get(name), Tensor):
                    self.lose(f"{operation} makes its state in this call", True)
                    return 0
                own.append(self.ref((<Tensor>kept[name]).array))
            if self.reason is not None:
                return 0
            for number in own[:1] + own[2:]:
                (<Buffer>self.buffers[(<Held>self.arrays[number]).buffer]).writes.append(len(self.steps))
            buffer = <Buffer>self.buffers[(<Held>self.arrays[own[0]]).buffer]
            if buffer.version != NULL:
                buffer.expected += 1
            updates.append(own)
        step.arguments = tuple(updates)
        self.note(step)
        for own in updates:
            for number in own:
                self.stepping.add(<size_t>(<Held>self.arrays[number]).array.storage)
        return 0

    cdef tuple group_of(self, list parameters):
        """The optimizer and the group whose parameters these are: they are local variables of who calls."""
        frame = _getframe(0)
        while frame is not None:
            own = frame.f_locals.get("self")
            for group in getattr(own, "param_groups", ()):
                if group["params"] is parameters:
                    return own, group
            frame = frame.f_back
        return None, None

    def forget(self, parameters):
        """The gradients of these leaves are about to be None: what they were does not matter if nothing has read it."""
        for parameter in parameters:
            if self.gradient_number(parameter) == self.gradients.get(id(parameter)):
                self.forgotten.add(id(parameter))

    def kept_elsewhere(self, outputs, bint graph):
        """Does something else than outputs, .grad of known leaves and nodes of a graph hold what was computed?"""
        cdef Held held
        cdef Tensor tensor
        cdef dict arrays = {}, storages = {}
        for tensor in outputs:
            arrays[<size_t>tensor.array] = 1
        for tensor in self.leaves:
            if tensor.gradient != NULL and tensor.gradient.value != NULL:
                arrays[<size_t>tensor.gradient.value] = arrays.get(<size_t>tensor.gradient.value, 0) + 1
                if tensor.grad_tensor is not None and tensor.grad_tensor.array == tensor.gradient.value:
                    arrays[<size_t>tensor.gradient.value] += 1
        for held in self.arrays:
            storages[held.buffer] = storages.get(held.buffer, 0) + 1
        for held in self.arrays:
            if (<Buffer>self.buffers[held.buffer]).kind == "result":
                if graph and arrays.get(<size_t>held.array, 0) == 0 and held.array.tensor != NULL:
                    return True
                if not graph and held.array.count > 1 + arrays.get(<size_t>held.array, 0):
                    return True
                if held.array.storage.count > storages[held.buffer]:
                    return True
        return False

    def alive(self, outputs):
        """What the graphs of these tensors end in: the leaves, or None if a backward can still run through one."""
        cdef Tensor tensor
        cdef Node node
        cdef int i
        cdef bint released = False
        cdef set seen = set()
        cdef list stack = [], leaves = []
        for tensor in outputs:
            if tensor.node is not None:
                stack.append(tensor.node)
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node.c.gradient != NULL:
                leaves.append(node.payload)
                continue
            if node.c.op == NULL and not node.c.released:
                return None
            released = released or node.c.released
            for i in range(node.c.n_saved):
                if has_memory(&node.c.saved[i].value):
                    return None
            if node.hooks is not None or node.packed is not None:
                return None
            for i in range(node.c.n_edges):
                if node.c.edges[i].node != NULL:
                    stack.append(<object>node.c.edges[i].node.object)
        return leaves if released or not seen else None

    def foresee(self, Tensor tensor not None):
        """A tensor that will come from outside in a later part: the gradient of an output."""
        self.meet(tensor.array, "tensor", tensor, -1)

    def gradient_number(self, Tensor leaf not None):
        """The number of the array in .grad; None if there is none, -1 if the recording has not met it."""
        if leaf.gradient == NULL or leaf.gradient.value == NULL:
            return None
        return self.by_array.get(<size_t>leaf.gradient.value, -1)


cdef int number_of_array(object recorder, array_t *array) except -2:
    return (<Recorder?>recorder).ref(array)


cdef Recorder _active():
    """The recorder of this thread, or None."""
    cdef Mode mode = mode_at(TRACING_MODE)
    return (<TracingMode>mode).recorder if isinstance(mode, TracingMode) else None


cdef class NotedChange(InplaceStep):
    """A change in place, noted before it happens."""
    cdef Recorder recorder
    cdef Step step

    cdef int saved_copy(self, array_t *original) except -1:
        cdef Step step = Step()
        if self.recorder.reason is None:
            step.kind, step.target, step.arguments = "keep", -1, (self.step.target,)
            step.results = (self.recorder.meet(original, "result", None, len(self.recorder.steps)),)
            self.recorder.note(step)
        return 0

    cdef int finish(self, Tensor tensor, NativeNode node) except -1:
        if self.recorder.reason is None:
            self.recorder.changed(self.step, tensor)
        return 0


cdef InplaceStep _changing(Recorder recorder, Operator operator, frame_t *frame):
    cdef NotedChange change
    change = NotedChange()
    change.recorder, change.step = recorder, Step()
    change.step.kind, change.step.operator, change.step.results = "change", operator, ()
    change.step.arguments = recorder.arguments_of(frame)
    if recorder.reason is not None:
        return None
    change.step.target = change.step.arguments[0]
    place = (<Held>recorder.arrays[change.step.target]).buffer
    if (<Buffer>recorder.buffers[place]).kind == "constant":
        if (<Held>recorder.arrays[change.step.target]).array != (<Held>recorder.arrays[
                (<Buffer>recorder.buffers[place]).first]).array:
            recorder.lose("a view of a new tensor is changed before the tensor itself was used")
            return None
        recorder.snapshot(place)
    return change


cdef class TracingMode(UpdateMode):
    """Add what the thread does to the trace of a recorder."""

    cdef Recorder recorder

    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1:
        return self.recorder.called(operator, frame, results)

    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame):
        return _changing(self.recorder, operator, frame)

    cdef int unsupported(self, str reason) except -1:
        self.recorder.lose(reason)
        return 0

    cdef int begin_step(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        if rule == NULL:
            self.recorder.forget(parameters)
        else:
            self.recorder.optimized(parameters, state, rule, operation)
        return 0


cdef TracingMode _mode_of(Recorder recorder):
    cdef TracingMode mode = TracingMode()
    mode.recorder = recorder
    return mode


cdef void _elements_seen() noexcept:
    abort_trace("elements went to Python or NumPy, or came from there")


cdef class RuleCapture(UpdateMode):
    """Takes the rule of a step, and lets the optimizer update nothing."""

    cdef int begin_step(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        if rule != NULL:
            self.rule, self.is_set = rule[0], True
        return 1


cdef bint read_rule(object optimizer, object group, rule_t *rule) except -1:
    cdef RuleCapture capture = RuleCapture()
    cdef Mode outer = exchange_mode(TRACING_MODE, capture)
    try:
        optimizer.update(group)
    except Exception:
        return False
    finally:
        exchange_mode(TRACING_MODE, outer)
    rule[0] = capture.rule
    return capture.is_set


set_door(_elements_seen)
