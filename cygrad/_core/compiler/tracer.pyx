"""
Tracing: record each operation of a function and the source of each array it reads.

The tracing thread has a `TracingMode`, the last one of its stack of modes. With it, backward runs on Tensors, so the
operations of its formulas are traced like any other.

Arrays are identified by address. The trace keeps each array alive, so that no address and no memory is reused: each
buffer is written once, apart from in-place operations.

Memory is known if a traced operation computed it, or if it belongs to a registered tensor. Other memory is a constant
if this thread allocated it while tracing (its elements came from Python objects; elements from NumPy pass the
data-escape hook). Older memory and memory of other threads abort the trace, because its source is unknown.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport strcmp
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, DTYPE, MAX_DIMS, NOTHING, array_t, clear, copy_value, overlaps_itself, release, retain, set_integers,
    value_t,
)
from cygrad._core.arrays.dtype cimport BOOL, FLOAT16, dtype, dtype_name, dtype_object
from cygrad._core.graph.boxing cimport box_number, frame_t, plain_object
from cygrad._core.graph.mode_stack cimport InplaceStep, Mode, exchange_mode, mode_at
from cygrad._core.graph.modes cimport TRACING_MODE, thread_state
from cygrad._core.graph.native cimport NativeNode, has_memory
from cygrad._core.graph.node cimport Node, Py_REFCNT
from cygrad._core.graph.tensor cimport Tensor, grad_fn_of, requires_grad
from cygrad._core.memory.errors cimport check
from cygrad._core.optimizers.optimize cimport ADAM_RULE, SGD_RULE, UpdateMode, rule_t
from cygrad._core.program.builder cimport memory
from cygrad._core.program.executor cimport copy_with_layout
from cygrad._core.table.operator cimport Operator

from numpy import asarray
from sys import _getframe
from cygrad._core.creation.creation import from_numpy
from cygrad._core.graph.saved import set_guard
from cygrad._core.graph.tensor import install
from cygrad._core.memory.storage import begin_generation, end_generation


# --------------------------------------------------------------------------------------------------------------- tracer

# Operators whose result may depend on elements or on the memory layout; see `Tracer.check_elements`.
cdef frozenset DATA_DEPENDENT = frozenset(("as_strided", "count_integers", "index", "masked_select", "nonzero",
                                           "repeated_indices", "unique", "unique_dim"))


@cython.binding(False)
cdef class Constant:
    """Boxed argument that is not a tensor."""

    def __dealloc__(self):
        clear(&self.value)

    @property
    def plain(self):
        """The value as a Python object."""
        return plain_object(&self.value)


def constant(number):
    """Box a Python number, dtype, or dims; return a Constant unchanged."""
    cdef Constant made
    cdef int64_t[MAX_DIMS] dims
    if isinstance(number, Constant):
        return number
    made = Constant()
    if isinstance(number, tuple):
        for i, dim in enumerate(number):
            dims[<int>i] = dim
        check(set_integers(&made.value, len(number), dims))
    elif isinstance(number, dtype):
        made.value.kind, made.value.of.integer = DTYPE, (<dtype>number).code
    else:
        box_number(number, &made.value)
    return made


cdef Constant _boxed(const value_t *value):
    cdef Constant made = Constant.__new__(Constant)
    copy_value(&made.value, value)
    return made


@cython.binding(False)
cdef class TracedArray:
    """Array kept alive by the trace, so that its memory is not reused."""

    def __dealloc__(self):
        release(self.array)

    @property
    def contiguous(self):
        """Whether the array is C-contiguous."""
        return bool(array_of(self).contiguous)

    @property
    def numel(self):
        """Number of elements."""
        return array_of(self).size

    @property
    def dtype(self):
        """Data type."""
        return dtype_object(array_of(self).dtype)

    @property
    def shape(self):
        """Shape."""
        return tuple([self.array.shape[i] for i in range(array_of(self).ndim)])

    @property
    def strides(self):
        """Strides, in elements."""
        return tuple([self.array.strides[i] for i in range(array_of(self).ndim)])


@cython.binding(False)
cdef class Buffer:
    """
    Memory and its origin.

    Parameters
    ----------
    kind : str
        "tensor", "gradient", "constant" or "result".
    first : int
        First array over it.
    maker : int
        Step that computes it, or -1.
    writes : list of int, optional
        Steps that modify it in place.
    """

    def __init__(self, str kind not None, int first, int maker=-1, list writes=None):
        self.kind, self.first, self.maker, self.writes = kind, first, maker, () if writes is None else writes

    cdef int add_write(self, int step) except -1:
        if not self.writes:
            self.writes = []
        (<list>self.writes).append(step)
        return 0


@cython.binding(False)
cdef class Step:
    """One operation; arguments are array numbers, lists of them, Constants or None."""

    def __repr__(self):
        return f"<{self.kind} {'' if self.operator is None else self.operator.name}>"


@cython.binding(False)
cdef class OptimizerStep(Step):
    """Step of an optimizer."""


@cython.final
cdef class AddressMap:
    """Numbers by address."""

    def __dealloc__(self):
        free(self.entries)

    cdef address_t *find(self, const void *address) noexcept:
        """Return the entry of an address, or the free entry for it."""
        cdef size_t i = (<size_t>address >> 4) * 0x9E3779B97F4A7C15u >> 20
        while True:
            i &= self.capacity - 1
            if self.entries[i].address == NULL or self.entries[i].address == address:
                return &self.entries[i]
            i += 1

    cdef int get(self, const void *address) noexcept:
        cdef address_t *found
        if self.n == 0:
            return -1
        found = self.find(address)
        return -1 if found.address == NULL else found.number

    cdef int put(self, const void *address, int32_t number) except -1:
        cdef address_t *former = self.entries
        cdef size_t i, capacity = self.capacity
        if 2 * self.n >= capacity:
            self.capacity = 2 * capacity if capacity else 64
            self.entries = <address_t *>calloc(self.capacity, sizeof(address_t))
            if self.entries == NULL:
                self.entries, self.capacity = former, capacity
                raise MemoryError("compile: no memory for a trace")
            for i in range(capacity):
                if former[i].address != NULL:
                    self.find(former[i].address)[0] = former[i]
            free(former)
        self.find(address)[0] = address_t(address, number)
        self.n += 1
        return 0


@cython.binding(False)
@cython.nonecheck(True)     # a typed loop variable accepts None
cdef class Tracer:
    """
    Trace of one call of a function.

    Parameters
    ----------
    tensors : iterable of Tensor
        Inputs: arguments, parameters, optimizer state.

    Attributes
    ----------
    steps : list of Step
    arrays : list of TracedArray
    buffers : list of Buffer
    reason : str or None
        Reason why the trace was aborted.
    retryable : bool
        Whether a later call can be traced.
    """

    cdef readonly list steps, arrays, buffers, leaves
    cdef readonly object reason
    cdef readonly bint retryable
    cdef AddressMap by_array      # address of an array -> its number
    cdef AddressMap by_storage    # address of a storage -> index of its buffer
    cdef dict read_versions       # buffer of a result -> address of the version counter of its tensors
    cdef public list constants    # tensors that are the same in each call
    cdef readonly dict gradients  # id of a leaf -> number of its initial gradient
    cdef readonly set forgotten   # ids of leaves whose gradient was set to None without being read
    cdef readonly set unusual_gradients   # ids of leaves whose initial gradient is not a tensor without graph and hooks
    cdef size_t pending           # storage announced by the last `before_inplace`, until that operation is traced
    cdef set stepping             # storages that the last traced optimizer step modifies
    cdef int generation
    cdef readonly bint ran_backward       # an operation of a backward was traced

    def __init__(self, tensors):
        cdef Tensor tensor
        self.steps, self.arrays, self.buffers, self.leaves = [], [], [], []
        self.by_array, self.by_storage, self.gradients = AddressMap(), AddressMap(), {}
        self.forgotten, self.unusual_gradients = set(), set()
        self.stepping, self.constants, self.read_versions = set(), [], {}
        for tensor in tensors:
            if tensor.array.storage == NULL or tensor.array.version == NULL and not thread_state().inference:
                self.abort("a tensor without memory, or an inference tensor")
                return
            try:
                grad_fn_of(tensor)
            except RuntimeError as error:          # the history of a view that cannot be rewritten
                self.abort(str(error))
                return
            self.register(tensor.array, "tensor", tensor, -1)
        self.leaves = list(dict([(id(tensor), tensor) for tensor in tensors]).values())
        for tensor in self.leaves:
            if tensor.gradient != NULL and tensor.gradient.value != NULL:
                if overlaps_itself(tensor.gradient.value):
                    self.abort("a .grad is expanded")
                if not has_plain_gradient(tensor):
                    self.unusual_gradients.add(id(tensor))
                self.gradients[id(tensor)] = self.register(tensor.gradient.value, "gradient", tensor, -1)

    def start(self):
        """Start tracing this thread."""
        if self.by_storage is None:
            raise RuntimeError("Tracer.start: the tracer was created without __init__ (got an empty one). Create it "
                               "with Tracer(tensors).")
        self.generation = begin_generation()
        exchange_mode(TRACING_MODE, _mode_of(self))
        set_guard(self.before_inplace)

    def stop(self):
        """Stop tracing and check that no in-place operation was missed."""
        cdef Buffer buffer
        if _current_tracer() is self:
            exchange_mode(TRACING_MODE, None)
        set_guard(None)
        end_generation()
        if self.pending:
            self.abort("a tensor was modified in place in a way that cannot be traced")
        for buffer in self.buffers:
            if buffer.version != NULL and buffer.version.value != buffer.expected:
                self.abort("a tensor was modified in place in a way that cannot be traced")

    def abort(self, str reason, bint retryable=False):
        """Stop recording and keep the first reason."""
        if self.reason is None:
            self.reason = reason
            self.retryable = retryable
            if _current_tracer() is self:
                exchange_mode(TRACING_MODE, None)

    def before_inplace(self, size_t storage):
        """Expect an in-place operation on a storage; abort if the previous one was not traced."""
        if storage in self.stepping:
            return
        if self.pending and self.pending != storage:
            self.abort("a tensor was modified in place in a way that cannot be traced")
        self.pending = storage

    cdef int register(self, array_t *array, str kind, Tensor tensor, int maker) except -2:
        """Return the number of an array, which gets one if it is new."""
        cdef TracedArray traced
        cdef Buffer buffer
        cdef array_t *first
        cdef int number = self.by_array.get(array), position
        if number >= 0:
            return number
        if array.dtype >= FLOAT16:
            self.abort(f"a tensor of {dtype_name(array.dtype).decode()}, which kernels do not compute in")
        traced = TracedArray.__new__(TracedArray)
        traced.array = retain(array)
        number = len(self.arrays)
        traced.number = number
        position = self.by_storage.get(array.storage)
        if position < 0:
            buffer = Buffer.__new__(Buffer)
            buffer.kind, buffer.tensor, buffer.first, buffer.maker, buffer.writes = kind, tensor, number, maker, ()
            buffer.version = array.version
            buffer.expected = 0 if array.version == NULL else array.version.value
            position = len(self.buffers)
            self.by_storage.put(array.storage, position)
            self.buffers.append(buffer)
        else:
            buffer = <Buffer>self.buffers[position]
            first = array if buffer.first == number else (<TracedArray>self.arrays[buffer.first]).array
            traced.offset = array.data - first.data
            if kind in ("tensor", "gradient") and array.version != buffer.version:
                self.abort("two tensors share memory and count in-place operations separately (.data)")
        traced.buffer = position
        self.arrays.append(traced)
        self.by_array.put(array, number)
        return number

    cdef int operand(self, array_t *array) except -2:
        """Return the number of an array that an operation reads."""
        cdef Buffer buffer
        cdef int number, position
        if array.storage == NULL:
            self.abort("a tensor without memory")
            return -1
        position = self.by_storage.get(array.storage)
        if position < 0:
            if array.storage.writable != self.generation:
                self.abort("it reads a tensor that is neither an argument nor in a variable, module or container that "
                          "it names")
                return -1
            return self.register(array, "constant", None, -1)
        number = self.register(array, "constant", None, -1)
        buffer = <Buffer>self.buffers[position]
        if buffer.version != NULL and array.version == buffer.version and buffer.version.value != buffer.expected:
            self.abort("a tensor was modified in place in a way that cannot be traced")
        return number

    cdef object argument(self, const value_t *value):
        if value.kind == NOTHING:
            return None
        if value.kind == ARRAY:
            return self.shared(self.operand(value.of.array))
        if value.kind == ARRAYS:
            return [None if value.of.arrays[i] == NULL else self.shared(self.operand(value.of.arrays[i]))
                    for i in range(value.count)]
        return _boxed(value)

    cdef object shared(self, int number):
        """Return the number of an array as the one object for it, which takes less memory."""
        return number if number < 0 else (<TracedArray>self.arrays[number]).number

    cdef tuple arguments_of(self, frame_t *frame):
        cdef tuple arguments = PyTuple_New(frame.n)
        cdef int i
        for i in range(frame.n):
            argument = self.argument(&frame.values[i])
            Py_INCREF(argument)
            PyTuple_SET_ITEM(arguments, i, argument)
        return arguments

    def snapshot(self, int position):
        """Return a copy of the initial elements of a constant."""
        cdef Buffer buffer = <Buffer>self.buffers[position]
        cdef TracedArray copy
        if buffer.original is None:
            copy = TracedArray()
            copy.array = copy_with_layout(array_of(<TracedArray>self.arrays[buffer.first]))
            if copy.array == NULL:
                raise MemoryError("compile: no memory for a constant")
            buffer.original = copy
        return buffer.original

    def number_of(self, Tensor tensor not None):
        """Return the number of a tensor's array, or None if it is not in the trace."""
        cdef int number = self.by_array.get(tensor.array)
        return None if number < 0 else number

    def read(self, Tensor tensor not None):
        """Return the number of a result's array."""
        cdef int number = self.operand(tensor.array)
        cdef Buffer buffer
        if number >= 0:
            position = (<TracedArray>self.arrays[number]).buffer
            buffer = <Buffer>self.buffers[position]
            version = <size_t>(array_of(<TracedArray>self.arrays[buffer.first]) if buffer.kind != "result"
                               else tensor.array).version
            if self.read_versions.setdefault(position, version) != <size_t>tensor.array.version:
                self.abort("it returns a tensor with a version counter of its own (.data)")
        return number

    cdef int add_step(self, Step step) except -1:
        self.stepping.clear()
        self.steps.append(step)
        return 0

    cdef int check_elements(self, str name, const value_t *second) except -1:
        """Abort if an operator of `DATA_DEPENDENT` with this second argument reads elements or the memory layout."""
        cdef array_t *array
        cdef int i
        if name == "as_strided":
            self.abort("as_strided depends on the memory layout of its tensor")
        elif name == "index":
            for i in range(second.count):
                array = second.of.arrays[i]
                if array != NULL and array.dtype == BOOL:
                    self.abort("how many elements a mask selects depends on elements")
        elif name != "repeated_indices" or second.kind == NOTHING:
            self.abort(f"the shape of what {name} returns depends on elements")
        return 0

    cdef int trace_call(self, Operator operator, frame_t *frame, object results) except -1:
        cdef Step step = Step.__new__(Step)
        cdef Tensor tensor
        cdef bint fresh = False
        cdef list numbers = []
        if self.pending:
            self.abort("a tensor was modified in place in a way that cannot be traced")
        self.ran_backward = self.ran_backward or thread_state().depth > 0
        if operator.name in DATA_DEPENDENT:
            self.check_elements(operator.name, &frame.values[1])
        step.kind, step.operator, step.arguments, step.target = "call", operator, self.arguments_of(frame), -1
        if operator.descriptor.into != NULL and operator.descriptor.into == operator.descriptor.kernel:
            step.kind, step.results, step.target = "change", (), step.arguments[0]      # writes to its first argument
            (<Buffer>self.buffers[(<TracedArray>self.arrays[step.target]).buffer]).add_write(len(self.steps))
            return self.add_step(step)
        step.is_list = isinstance(results, tuple) and operator.descriptor.n_results == 1
        for result in results if isinstance(results, tuple) else (results,):
            if result is None:
                numbers.append(-1)
                continue
            if not isinstance(result, Tensor):
                self.abort(f"{operator.name} returns a Python object that depends on elements")
                return 0
            tensor = <Tensor>result
            if tensor.array.storage == NULL:
                self.abort("a tensor without memory")
                return 0
            if self.by_storage.get(tensor.array.storage) >= 0:      # a view, or an argument
                self.operand(tensor.array)
                numbers.append(-1)
            else:
                numbers.append(self.shared(self.register(tensor.array, "result", None, len(self.steps))))
                fresh = True
        if fresh:
            step.results = tuple(numbers)
            self.add_step(step)
        return 0

    def trace_draw(self, array, int number):
        """Return a tensor over the random numbers of draw `number`."""
        cdef Step step = Step()
        cdef Tensor tensor
        cdef Mode mode = exchange_mode(TRACING_MODE, None)
        tensor = from_numpy(asarray(array))
        exchange_mode(TRACING_MODE, mode)
        step.kind, step.target, step.draw = "draw", -1, number
        step.arguments, step.results = (), (self.register(tensor.array, "result", None, len(self.steps)),)
        self.add_step(step)
        return tensor

    cdef int trace_inplace(self, Step step, Tensor tensor) except -1:
        """Add the step of an in-place operation that has finished."""
        cdef Buffer buffer = <Buffer>self.buffers[(<TracedArray>self.arrays[step.target]).buffer]
        self.pending = 0
        buffer.add_write(len(self.steps))
        if buffer.version != NULL and tensor.array.version != buffer.version:
            self.abort("it modifies memory from outside in place through .data, which does not count the operation. "
                       "Modify the tensor itself, under no_grad()")
        elif buffer.version != NULL:
            buffer.expected += 1
        return self.add_step(step)

    cdef int trace_optimizer_step(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        """Add the step of an optimizer that is about to update its parameters."""
        cdef OptimizerStep step = OptimizerStep()
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
            self.abort(f"{operation} has no native update rule")
            return 0
        step.optimizer, step.group = self.group_of(parameters)
        if step.group is None:
            self.abort(f"{operation} was not called by its optimizer")
            return 0
        for parameter in parameters:
            if parameter.gradient == NULL or parameter.gradient.value == NULL:
                continue
            own = [self.operand(parameter.array), self.operand(parameter.gradient.value)]
            kept = state[parameter] if names else {}
            for name in names:
                if not isinstance(kept.get(name), Tensor):
                    self.abort(f"{operation} creates its state in this call", True)
                    return 0
                own.append(self.operand((<Tensor>kept[name]).array))
            if self.reason is not None:
                return 0
            for number in own[:1] + own[2:]:
                (<Buffer>self.buffers[(<TracedArray>self.arrays[number]).buffer]).add_write(len(self.steps))
            buffer = <Buffer>self.buffers[(<TracedArray>self.arrays[own[0]]).buffer]
            if buffer.version != NULL:
                buffer.expected += 1
            updates.append(own)
        step.arguments = tuple(updates)
        self.add_step(step)
        for own in updates:
            for number in own:
                self.stepping.add(<size_t>(<TracedArray>self.arrays[number]).array.storage)
        return 0

    cdef tuple group_of(self, list parameters):
        """Find the optimizer and param group of these parameters in the local variables of the callers."""
        frame = _getframe(0)
        while frame is not None:
            own = frame.f_locals.get("self")
            for group in getattr(own, "param_groups", ()):
                if group["params"] is parameters:
                    return own, group
            frame = frame.f_back
        return None, None

    def trace_zero_grad(self, parameters):
        """Mark the gradients of these leaves as set to None, unless they were read before."""
        for parameter in parameters:
            if self.gradient_number(parameter) == self.gradients.get(id(parameter)):
                self.forgotten.add(id(parameter))

    def has_other_references(self, outputs, bint graph, ended):
        """
        Is a computed tensor referenced by anything but outputs, .grad of known leaves and graph nodes?

        `ended` are the leaves of graphs whose backward has run. Those made by the function live as long as the graph.
        """
        cdef TracedArray traced
        cdef Tensor tensor
        cdef dict arrays = {}
        cdef list keep = []
        cdef int32_t *counts = <int32_t *>memory(len(self.buffers) * sizeof(int32_t), keep)      # arrays per buffer
        cdef int64_t others
        cdef set given = {id(tensor) for tensor in outputs}, known = {id(tensor) for tensor in self.leaves}
        for tensor in outputs:
            arrays[<size_t>tensor.array] = 1
        for tensor in self.leaves:
            _expect_gradient(arrays, tensor)
        for tensor in ended:
            if id(tensor) in known:
                continue
            # References: the node, `ended`, the loop variable; and that of the leaf to its gradient.
            if Py_REFCNT(<PyObject *>tensor) > 3 or tensor.grad_tensor is not None and (
                    id(tensor.grad_tensor) not in given and Py_REFCNT(<PyObject *>tensor.grad_tensor) > 1):
                return True
            arrays[<size_t>tensor.array] = arrays.get(<size_t>tensor.array, 0) + 1
            _expect_gradient(arrays, tensor)
        for traced in self.arrays:
            counts[traced.buffer] += 1
        for traced in self.arrays:
            if (<Buffer>self.buffers[traced.buffer]).kind == "result":
                others = traced.array.tensor != NULL if graph else traced.array.count - 1
                if traced.array.storage.count > counts[traced.buffer] or (
                        others and others > arrays.get(<size_t>traced.array, 0)):
                    return True
        return False

    def ended_leaves(self, outputs):
        """Return the leaves of the graphs of these tensors, or None if a backward through them is still possible."""
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

    def used_arrays(self):
        """Return the arrays that steps read or modify, and those whose memory other arrays share."""
        cdef TracedArray traced
        cdef Step step
        cdef set found = set()
        cdef int number = 0
        for step in self.steps:
            for argument in step.arguments:
                if isinstance(argument, int):
                    found.add(argument)
                elif isinstance(argument, list):
                    found.update(<list>argument)
        for traced in self.arrays:
            if (<Buffer>self.buffers[traced.buffer]).first != number:
                found |= {number, (<Buffer>self.buffers[traced.buffer]).first}
            number += 1
        return found

    def hashed(self, Tensor tensor not None):
        """Abort if the order of a set or the result of a lookup depends on an address that differs in each call."""
        if not any([tensor is other for other in self.constants]):
            self.abort("it hashes a tensor (in a set, or as the key of a dict) that differs in each call. Use a "
                       "list, or id() outside")

    def add_input(self, Tensor tensor not None):
        """Register a tensor that will be an input of a later part: the gradient of an output."""
        self.register(tensor.array, "tensor", tensor, -1)

    def gradient_number(self, Tensor leaf not None):
        """Return the number of the array in .grad: None without .grad, -1 if it is not in the trace."""
        if leaf.gradient == NULL or leaf.gradient.value == NULL:
            return None
        return self.by_array.get(leaf.gradient.value)


cdef bint has_plain_gradient(Tensor leaf) noexcept:
    cdef Tensor gradient = leaf.grad_tensor
    return gradient is None or gradient.array != leaf.gradient.value or (
        type(gradient) is Tensor and not requires_grad(gradient) and gradient.leaf_hooks is None
        and gradient.attributes == NULL and (gradient.base is None or not requires_grad(gradient.base))
        and (gradient.gradient == NULL or gradient.gradient.value == NULL))


cdef int _expect_gradient(dict arrays, Tensor leaf) except -1:
    """Count the references to the array in .grad: that of the leaf, and that of the Tensor for it."""
    if leaf.gradient != NULL and leaf.gradient.value != NULL:
        arrays[<size_t>leaf.gradient.value] = arrays.get(<size_t>leaf.gradient.value, 0) + 1
        if leaf.grad_tensor is not None and leaf.grad_tensor.array == leaf.gradient.value:
            arrays[<size_t>leaf.gradient.value] += 1
    return 0


cdef int number_of_array(object tracer, array_t *array) except -2:
    return (<Tracer?>tracer).operand(array)


cdef Tracer _current_tracer():
    cdef Mode mode = mode_at(TRACING_MODE)
    return (<TracingMode>mode).tracer if isinstance(mode, TracingMode) else None


def _hashed(tensor):
    """Tell the tracer of this thread that a tensor is hashed."""
    cdef Tracer tracer = _current_tracer()
    if tracer is not None:
        tracer.hashed(tensor)


install({"__hash__": _hashed})


cdef class TracedInplace(InplaceStep):
    """In-place operation, recorded before it runs."""
    cdef Tracer tracer
    cdef Step step

    cdef int saved_copy(self, array_t *original) except -1:
        cdef Step step = Step()
        if self.tracer.reason is None:
            step.kind, step.target, step.arguments = "keep", -1, (self.step.target,)
            step.results = (self.tracer.register(original, "result", None, len(self.tracer.steps)),)
            self.tracer.add_step(step)
        return 0

    cdef int finish(self, Tensor tensor, NativeNode node) except -1:
        if self.tracer.reason is None:
            self.tracer.trace_inplace(self.step, tensor)
        return 0


cdef InplaceStep _begin_inplace(Tracer tracer, Operator operator, frame_t *frame):
    cdef TracedInplace change
    change = TracedInplace()
    change.tracer, change.step = tracer, Step()
    change.step.kind, change.step.operator, change.step.results = "change", operator, ()
    change.step.arguments = tracer.arguments_of(frame)
    if tracer.reason is not None:
        return None
    change.step.target = change.step.arguments[0]
    position = (<TracedArray>tracer.arrays[change.step.target]).buffer
    if (<Buffer>tracer.buffers[position]).kind == "constant":
        if (<TracedArray>tracer.arrays[change.step.target]).array != (<TracedArray>tracer.arrays[
                (<Buffer>tracer.buffers[position]).first]).array:
            tracer.abort("a view of a new tensor is modified in place before the tensor itself was used")
            return None
        tracer.snapshot(position)
    return change


cdef class TracingMode(UpdateMode):
    """Mode that adds the operations of the thread to a trace."""

    cdef Tracer tracer

    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1:
        return self.tracer.trace_call(operator, frame, results)

    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame):
        return _begin_inplace(self.tracer, operator, frame)

    cdef int unsupported(self, str reason) except -1:
        self.tracer.abort(reason)
        return 0

    cdef int begin_step(self, list parameters, object state, const rule_t *rule, str operation) except -1:
        if rule == NULL:
            self.tracer.trace_zero_grad(parameters)
        else:
            self.tracer.trace_optimizer_step(parameters, state, rule, operation)
        return 0


cdef TracingMode _mode_of(Tracer tracer):
    cdef TracingMode mode = TracingMode()
    mode.tracer = tracer
    return mode


cdef class RuleCapture(UpdateMode):

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


# -------------------------------------------------------------------------------------------------------------- profile

# Events of `sys.setprofile` on their way to an observer in Python, without those that it has no interest in.

cdef extern from *:
    """
    #include <frameobject.h>
    #define code_of(frame) ((PyObject *)PyFrame_GetCode(frame))
    /* Return the name of a C function, NULL for other callables. */
    static const char *c_name(PyObject *function) {
        return PyCFunction_Check(function) ? ((PyCFunctionObject *)function)->m_ml->ml_name : NULL;
    }
    /* Return whether it is a C function of a module, which has no other state. */
    static int of_module(PyObject *function) {
        return PyCFunction_CheckExact(function) && PyCFunction_GET_SELF(function)
            && PyModule_Check(PyCFunction_GET_SELF(function));
    }
    """
    ctypedef struct PyFrameObject
    ctypedef int (*Py_tracefunc)(PyObject *, PyFrameObject *, int, PyObject *) except -1
    void PyEval_SetProfile(Py_tracefunc, PyObject *)
    object code_of(PyFrameObject *)
    object PyFrame_GetGlobals(PyFrameObject *)
    int PyTrace_CALL
    int PyTrace_C_CALL
    const char *c_name(PyObject *function)
    bint of_module(PyObject *function)


cdef class _CallFilter:
    """Passes on the calls that an observer has not confirmed yet."""
    cdef object observe           # see `observe_calls`
    cdef set known                # codes whose calls of C functions are all observed
    cdef list names               # of C functions that are observed in other codes, too
    cdef list confirmed           # (code, its global variables, is in `known`)
    cdef list functions           # C functions of modules
    cdef AddressMap by_code       # -> index in `confirmed`
    cdef AddressMap by_function   # -> index in `functions`

    cdef bint is_named(self, const char *name) except -1:
        cdef bytes known
        for known in self.names:
            if strcmp(PyBytes_AS_STRING(known), name) == 0:
                return True
        return False

    cdef int handle(self, PyFrameObject *frame, int event, PyObject *function) except -1:
        cdef const char *name
        cdef object code
        cdef tuple seen = None
        cdef int found
        if event != PyTrace_CALL and event != PyTrace_C_CALL:
            return 0
        code = code_of(frame)
        found = self.by_code.get(<void *>code)
        if found >= 0:
            seen = self.confirmed[found]
        if event == PyTrace_CALL:
            variables = PyFrame_GetGlobals(frame)
            if (seen is None or seen[1] is not variables) and self.observe(<object>frame, "call", None):
                if found < 0:
                    self.by_code.put(<void *>code, len(self.confirmed))
                    self.confirmed.append((code, variables, code in self.known))
            return 0
        if seen is not None and not seen[2]:
            name = c_name(function)
            if name != NULL and not self.is_named(name):
                return 0
        elif of_module(function) and self.by_function.get(function) >= 0:
            return 0
        if self.observe(<object>frame, "c_call", <object>function) and of_module(function):
            self.by_function.put(function, len(self.functions))
            self.functions.append(<object>function)
        return 0


cdef int _profile(PyObject *self, PyFrameObject *frame, int event, PyObject *argument) except -1:
    return (<_CallFilter><object>self).handle(frame, event, argument)


def observe_calls(observe, set known not None, tuple names not None):
    """
    Call ``observe(frame, event, argument)`` for "call" and "c_call" events of `sys.setprofile` in this thread.

    Where it returns True, the same code or function of a module is not observed again. Calls of C functions by other
    code than `known` are only observed if they have one of these names.
    """
    cdef _CallFilter filter = _CallFilter()
    filter.observe, filter.known, filter.confirmed, filter.functions = observe, known, [], []
    filter.by_code, filter.by_function = AddressMap(), AddressMap()
    filter.names = [name.encode() for name in names]
    PyEval_SetProfile(_profile, <PyObject *>filter)
