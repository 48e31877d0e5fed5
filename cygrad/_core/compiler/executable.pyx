"""
Execution of a compiled program: frames, inputs, outputs and parallel sections.

Inputs are put into their slots before an execution, results by the instruction that computes them. View objects are
allocated once per frame; an execution only sets their data pointers.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, MAX_DIMS, NOTHING, array_empty, array_meta, array_t, array_view, clear, release, retain, set_array,
)
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, dtype, itemsize
from cygrad._core.compiler.guards cimport free_frame, new_frame, run_frame_t
from cygrad._core.compiler.tracer cimport Constant, OptimizerStep, TracedArray, array_of
from cygrad._core.elementwise.expression cimport expression_t
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.memory.atomic cimport atomic_decrement, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, check, message
from cygrad._core.optimizers.optimize cimport ADAM_RULE, ROLES, adam_factors, release_work, run_updates, update_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, number_to_cell, primitive, primitives
from cygrad._core.program.builder cimport build_program, integers, memory
from cygrad._core.program.executor cimport (
    ALL, CONSTANT_SPACE, EVALUATE, ROUTINE, execute, instruction_t, is_one_number, layout_t, operand_slot, values_t,
)
from cygrad._core.table.operator cimport Operator
from cygrad._core.threads.parallel cimport run_tasks, thread_limit

from cygrad._core.compiler.tracer import constant


# ---------------------------------------------------------------------------------------------------- traced operations

# What passes ask about operators and arrays of a trace.

cdef extern from *:
    """
    #ifdef CYGRAD_DEBUG
    enum { DEBUG_BUILD = 1 };
    #else
    enum { DEBUG_BUILD = 0 };
    #endif
    """
    const int DEBUG_BUILD


def forward_expression(Operator operator not None):
    """
    Return the forward of an element-wise operator: n_inputs, constants, instructions, register of the result.

    Instructions are (name of a primitive, register, registers of the operands).
    """
    cdef expression_t *expression
    cdef int i, k
    operator.ensure_expression()
    expression = operator.descriptor.expression
    if expression == NULL:
        return None
    constants = tuple([plain_object(&expression.constants[i]) for i in range(expression.n_constants)])
    code = tuple([(primitives[expression.code[i].primitive].name.decode(), expression.code[i].out,
                   tuple([expression.code[i].inputs[k] for k in range(MAX_ARITY) if expression.code[i].inputs[k] >= 0]))
                  for i in range(expression.n_instructions)])
    return expression.n_inputs, constants, code, expression.result


def primitive_cost(str name not None):
    """Return the cost of a primitive per element, in additions."""
    return primitives[primitive(name)].cost


def number_everywhere(TracedArray traced not None):
    """Return the number in all elements of a float32 or float64 array that is expanded from one element; else None."""
    if not is_one_number(array_of(traced)) or traced.array.size == 0:
        return None
    if traced.array.dtype == FLOAT32:
        return (<float *>traced.array.data)[0]
    return (<double *>traced.array.data)[0] if traced.array.dtype == FLOAT64 else None


def layout(dtype of not None, tuple shape not None, tuple strides=None, int buffer=0, int64_t offset=0, number=None):
    """
    Return the layout of an array: row-major, or with these strides in elements; without memory.

    number : make it an array of this number instead, expanded from one element.
    """
    cdef TracedArray made = TracedArray.__new__(TracedArray)
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t[MAX_DIMS] steps
    cdef array_t *one
    cdef array_t *array = NULL
    cdef int i, ndim = len(shape)
    for i in range(ndim):
        sizes[i] = shape[i]
        steps[i] = 0 if strides is None else strides[i]
    if strides is None and number is None:
        array = array_empty(of.code, ndim, sizes)
    else:
        one = array_empty(of.code, 0, sizes)
        if one != NULL and number is not None:
            number_to_cell(&(<Constant?>constant(number)).value, of.code, one.data)
        if one != NULL:
            array = array_view(one, of.code, ndim, sizes, steps, 0)
        release(one)
    if array != NULL and number is None:
        made.array = array_meta(array)
        release(array)
    else:
        made.array = array
    if made.array == NULL:
        raise MemoryError("compile: no memory for a layout")
    made.buffer, made.offset = buffer, offset
    return made


def layout_of(TracedArray model not None, tuple shape not None, tuple strides=None, int buffer=0, int64_t offset=0):
    """Return the layout of an array of the dtype of another one."""
    return layout(model.dtype, shape, strides, buffer, offset)


def debug_build():
    """Return whether this is a debug build, which verifies programs."""
    return bool(DEBUG_BUILD)


# ---------------------------------------------------------------------------------------------------------- gil handoff

# Hand the GIL over between threads that execute compiled functions.
#
# A small step takes a few microseconds and needs the GIL for less than one: to check guards and to make output Tensors.
# A thread that blocks on the GIL sleeps, and waking it takes as long as ten steps. So threads spin here first, for
# about as long as a wake-up takes, and block on the GIL only then.
#
# A thread that executes alone keeps the GIL during short work, because releasing and acquiring it would cost more.

cdef extern from *:
    """
    #include <Python.h>
    #if defined(__x86_64__) || defined(__i386__)
    #define cpu_pause() __builtin_ia32_pause()
    #else
    #define cpu_pause() ((void)0)
    #endif

    /* Thread state of the last thread that acquired the GIL here and has not released it here. */
    static void *holder;

    static void clear_holder(void *state) {
        __atomic_compare_exchange_n(&holder, &state, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }

    static void spin_for_holder(void *state, int rounds) {
        void *none = NULL;
        while (rounds--) {
            if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == NULL) {
                if (__atomic_compare_exchange_n(&holder, &none, state, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
                none = NULL;
            }
            cpu_pause();
        }
        __atomic_store_n(&holder, state, __ATOMIC_RELAXED);
    }
    """
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyThreadState_Get()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *) nogil
    void clear_holder(void *state)
    void spin_for_holder(void *state, int rounds) nogil

cdef enum:
    SPIN_ROUNDS = 512               # about 20 microseconds
    CONTENTION_WINDOW = 1 << 14     # executions for which the GIL is shared after another thread executed

cdef void *last_thread              # that executed a compiled function
cdef int64_t executions = 0, contended_until = 0
cdef int64_t n_released = 0


cdef void *release_gil(bint long_work) noexcept:
    global last_thread, executions, contended_until, n_released
    cdef void *thread = PyThreadState_Get()
    executions += 1
    if thread != last_thread:
        if last_thread != NULL:
            contended_until = executions + CONTENTION_WINDOW
        last_thread = thread
    if not long_work and executions >= contended_until:
        return NULL
    n_released += 1
    thread = PyEval_SaveThread()
    clear_holder(thread)
    return thread


cdef void acquire_gil(void *state) noexcept nogil:
    if state != NULL:
        spin_for_holder(state, SPIN_ROUNDS)
        PyEval_RestoreThread(<PyThreadState *>state)


def execution_counts():
    """Return the number of executions, and of those that released the GIL; for tests."""
    return executions, n_released


# ----------------------------------------------------------------------------------------------------- parallel section

# Section of a program whose operations run in parallel.

@cython.final
@cython.binding(False)
cdef class ParallelSection:
    """
    Section of a program whose operations run in parallel.

    Parameters
    ----------
    start : int
        First operation.
    needs : list of collection of int
        Per operation, its dependencies, relative to `start`.
    """

    def __cinit__(self, int start, list needs):
        cdef int i, n = len(needs)
        cdef list successors = [[] for _ in needs], starts = [0]
        for i in range(n):
            for need in needs[i]:
                successors[need].append(i)
        for found in successors:
            starts.append(starts[len(starts) - 1] + len(found))
        self.keep = []
        self.start, self.stop, self.tasks.n = start, start + n, n
        self.tasks.n_dependencies = integers(list(map(len, needs)), self.keep)
        self.tasks.successor_start = integers(starts, self.keep)
        self.tasks.successors = integers([other for found in successors for other in found], self.keep)


# ----------------------------------------------------------------------------------------------------------- executable

@cython.final
@cython.binding(False)
cdef class CompiledOperation:
    """
    Operation of a program with the slots that it uses.

    Parameters
    ----------
    operation : Operation
    slots : list
        Slot of each array of the program, or None.
    can_fail : bool
        Whether it may raise an error.
    """

    def __cinit__(self, operation, list slots not None, bint can_fail):
        self.operation, self.slots, self.can_fail, self.target = operation, slots, can_fail, -1
        self.reads = self.results = self.updates = self.views = self.dead = self.touched = ()
        self.instructions = []

    def text(self):
        """Return the operation with its results as text, by slots."""
        return self.operation.line(lambda number: f"%{self.slots[number]}")


@cython.final
@cython.binding(False)
cdef class Executable:
    """
    A Program as it is executed.

    Parameters
    ----------
    traced : list of TracedArray
        Layout of each slot.
    inputs : list of (int, int, int)
        Input slots: slot, input_kind_t, number of the tensor.
    instructions : list of Instruction
    constants : list
        Arguments that are not arrays.
    views : list of int
        Slots of views.
    lists : list of int
        Length of each list.
    operations : list of CompiledOperation
    sections : list of ParallelSection
        In order.
    """

    def __cinit__(self, list traced, list inputs, list instructions, list constants, list views, list lists,
                  list operations, list sections):
        cdef CompiledOperation operation
        cdef list touched = []
        cdef int i = 0
        self.keep, self.draws, self.groups = [], [], []
        self.traced, self.description, self.sections = traced, operations, sections
        self.n_slots, self.n_operations, self.n_sections = len(traced), len(operations), len(sections)
        self.program = build_program(instructions, [getattr(number, "plain", number) for number in constants],
                                     self.n_slots, self.keep)
        self.program.layouts = <layout_t *>memory(self.n_slots * sizeof(layout_t), self.keep)
        for i in range(self.n_slots):
            self.set_layout(&self.program.layouts[i], (<TracedArray?>traced[i]).array)
        self.n_inputs, self.inputs = len(inputs), <input_t *>memory(len(inputs) * sizeof(input_t), self.keep)
        for i, (slot, kind, number) in enumerate(inputs):
            self.inputs[i] = input_t(slot, kind, number)
            self.n_tensors = max(self.n_tensors, number + 1)
        self.is_view = <char *>calloc(self.n_slots + 1, 1)        # also read while the object is deallocated
        if self.is_view == NULL:
            raise MemoryError("compile: no memory for a program")
        for slot in views:
            self.is_view[<int>slot] = True
        self.n_lists, self.n_entries, self.list_sizes = len(lists), sum(lists), integers(lists, self.keep)
        self.operations = <operation_t *>memory((self.n_operations + 1) * sizeof(operation_t), self.keep)
        self.operations[self.n_operations].first = len(instructions)
        self.steps = <optimizer_step_t *>memory(self.n_operations * sizeof(optimizer_step_t), self.keep)
        i = 0
        for operation in operations:
            self.operations[i] = operation_t(operation.first, len(touched))
            touched.extend(operation.touched)
            self.operations[i + 1].touched = len(touched)
            kind = operation.operation.kind
            if kind == "draw":
                self.draws.append((operation.results[0], operation.operation.step.draw))
            elif kind == "sum":
                self.main(i, EVALUATE).meta = (<TracedArray?>operation.operation.meta).array
            elif kind == "optimize":
                self.add_step(self.main(i, ROUTINE), operation)
            i += 1
        self.touched, self.touches = integers(touched, self.keep), integers([0] * self.n_slots, self.keep)
        for slot in touched:
            self.touches[<int>slot] += 1
        self.c_sections = <section_t *>memory(self.n_sections * sizeof(section_t), self.keep)
        for i in range(self.n_sections):
            section = <ParallelSection?>sections[i]
            self.c_sections[i] = section_t((<ParallelSection>section).start, (<ParallelSection>section).stop,
                                           &(<ParallelSection>section).tasks)

    cdef void set_layout(self, layout_t *layout, array_t *array) noexcept:
        layout[0] = layout_t(array.size, array.dtype, array.ndim if array.contiguous else -1, array)
        self.work += array.size

    cdef instruction_t *main(self, int operation, int kind) noexcept:
        """Return the instruction of this kind of an operation."""
        cdef instruction_t *instruction = &self.program.instructions[self.operations[operation].first]
        while instruction.kind != kind:
            instruction += 1
        return instruction

    cdef int add_step(self, instruction_t *instruction, CompiledOperation operation) except -1:
        """Make an instruction run a step of an optimizer."""
        cdef optimizer_step_t *own = &self.steps[len(self.groups)]
        cdef OptimizerStep step = operation.operation.step
        own.rule, own.first, own.n = step.rule, self.n_updates, len(operation.updates)
        own.slots = integers([slot for counter, roles in operation.updates for slot in (counter, *roles)], self.keep)
        instruction.routine, instruction.context = _optimize, own
        self.n_updates += own.n
        self.groups.append((len(self.groups), step.optimizer, step.group))
        return 0

    def __dealloc__(self):
        cdef run_frame_t *frame = self.free_frames
        cdef run_frame_t *next
        while frame != NULL:
            next = frame.next
            free_frame(frame, self.n_slots, self.is_view)
            frame = next
        free(self.is_view)

    # ---------------------------------------------------------------------------------------------------------- frames

    cdef run_frame_t *acquire_frame(self) except NULL:
        cdef run_frame_t *frame = self.free_frames
        cdef array_t *view
        cdef int i, position = 0
        if frame != NULL:
            self.free_frames = frame.next
            return frame
        frame = new_frame(self.n_slots, self.n_lists, self.n_entries, self.n_updates, self.n_tensors, self.n_outgoing)
        if frame == NULL:
            raise MemoryError("compile: no memory for the arrays of a program")
        frame.values.spaces[CONSTANT_SPACE] = self.program.constants
        for i in range(self.n_lists):
            frame.lists[i].kind, frame.lists[i].count = ARRAYS, self.list_sizes[i]
            frame.lists[i].of.arrays = frame.entries + position
            position += self.list_sizes[i]
        for i in range(self.n_slots):
            if self.is_view[i]:
                view = array_meta(self.program.layouts[i].array)
                if view == NULL:
                    free_frame(frame, self.n_slots, self.is_view)
                    raise MemoryError("compile: no memory for a view")
                set_array(&frame.table[i], view)
        return frame

    cdef void release_frame(self, run_frame_t *frame) noexcept:
        frame.next = self.free_frames
        self.free_frames = frame

    cdef array_t *output_array(self, run_frame_t *frame, int slot) noexcept nogil:
        cdef array_t *array = frame.table[slot].of.array
        cdef array_t *base
        cdef int i
        if not self.is_view[slot]:
            return retain(array)
        for i in range(self.n_slots):              # find the array that owns the memory
            base = frame.table[i].of.array
            if not self.is_view[i] and frame.table[i].kind == ARRAY and base.storage == array.storage:
                return array_view(base, array.dtype, array.ndim, array.shape, array.strides,
                                  (array.data - base.data) // itemsize(array.dtype))
        snprintf(message(), MESSAGE, b"compile: the base of a view is missing")
        return NULL

    # ------------------------------------------------------------------------------------------------------- execution

    cdef array_t *source(self, const input_t *input, run_frame_t *frame) noexcept:
        """Return the borrowed array of an input."""
        if input.kind == CONSTANT_INPUT:
            return <array_t *>self.program.layouts[input.slot].array
        if input.kind == TENSOR_INPUT:
            return (<Tensor>frame.tensors[input.number]).array
        return frame.gradients[input.number]

    cdef void load_inputs(self, run_frame_t *frame) noexcept:
        cdef int i
        frame.filled = True
        for i in range(self.n_inputs):
            set_array(&frame.table[self.inputs[i].slot], retain(self.source(&self.inputs[i], frame)))

    cdef void clear_table(self, run_frame_t *frame) noexcept nogil:
        cdef int i
        if not frame.filled:
            return
        frame.filled = False
        for i in range(self.n_slots):
            if frame.table[i].kind != NOTHING and not self.is_view[i]:
                clear(&frame.table[i])

    cdef void finish(self, run_frame_t *frame) noexcept:
        cdef int i
        self.clear_table(frame)
        for i in range(self.n_outgoing):
            release(frame.outgoing[i])
            frame.outgoing[i] = NULL
        for i in range(self.n_tensors):
            release(frame.gradients[i])
            frame.gradients[i] = NULL
        self.release_frame(frame)

    cdef int collect_outputs(self, run_frame_t *frame, const int32_t *slots, int n) noexcept nogil:
        cdef int i
        for i in range(n):
            if slots[i] >= 0:
                frame.outgoing[i] = self.output_array(frame, slots[i])
                if frame.outgoing[i] == NULL:
                    return MEMORY_ERROR
        return OK

    def input_slots(self):
        """Return the slots of inputs that are not constants."""
        return [self.inputs[i].slot for i in range(self.n_inputs) if self.inputs[i].kind != CONSTANT_INPUT]

    def call(self, list tensors not None, list slots not None):
        """Execute on input tensors by number; return a new Tensor per slot."""
        cdef list keep = []
        cdef int32_t *numbers = integers([-1 if slot is None else slot for slot in slots], keep)
        cdef run_frame_t *frame = NULL
        cdef void *gil_state
        cdef int i, status
        cdef list results = []
        try:
            if self.n_outgoing == 0:             # frames are allocated for this number
                self.n_outgoing = len(slots)
            elif self.n_outgoing != len(slots):
                raise ValueError(f"compile: the number of outputs does not match (got {len(slots)} slots, "
                                 f"expected {self.n_outgoing}). Request the same outputs in each call.")
            frame = self.acquire_frame()
            for i in range(self.n_tensors):
                frame.tensors[i] = <void *>tensors[i]
            self.load_inputs(frame)
            gil_state = release_gil(self.work >= LONG_WORK)
            status = self.run(frame)
            if status == OK:
                status = self.collect_outputs(frame, numbers, self.n_outgoing)
            self.clear_table(frame)
            acquire_gil(gil_state)
            check(status)
            for i in range(self.n_outgoing):
                results.append(None)
                if numbers[i] >= 0:
                    results[i] = wrap(frame.outgoing[i])
                    frame.outgoing[i] = NULL
            return results
        finally:
            if frame != NULL:
                self.finish(frame)

    cdef int run(self, run_frame_t *frame) noexcept nogil:
        """Run all operations; the arrays left in the table, except views, belong to the caller."""
        if self.n_sections and thread_limit() > 1:
            return self.run_sections(frame)
        return execute(self.program, &frame.values, 0, self.program.n_instructions, ALL, True)

    cdef int run_range(self, run_frame_t *frame, int start, int stop, uint32_t reuse, bint frees) noexcept nogil:
        """Run operations in order."""
        return execute(self.program, &frame.values, self.operations[start].first, self.operations[stop].first, reuse,
                       frees)

    cdef int run_sections(self, run_frame_t *frame) noexcept nogil:
        """Run all operations, parallel sections by a team."""
        cdef section_run_t work
        cdef const section_t *section
        cdef int i, k, status, done = 0
        work.program, work.frame = <void *>self, frame
        status = execute(self.program, &frame.values, 0, self.operations.first, ALL, True)        # views of inputs
        for i in range(self.n_sections):
            section = &self.c_sections[i]
            status = status or self.run_range(frame, done, section.start, ALL, True)
            for k in range(self.operations[section.start].touched, self.operations[section.stop].touched):
                atomic_store(&frame.pending_uses[self.touched[k]], self.touches[self.touched[k]])
            work.start, done = section.start, section.stop
            status = status or run_tasks(section.tasks, _run_task, &work)
            if status != OK:
                return status
        return self.run_range(frame, done, self.n_operations, ALL, True)

    cdef int run_scheduled(self, int number, run_frame_t *frame) noexcept nogil:
        """Run an operation of a parallel section; the last user of a slot may reuse its memory and releases it."""
        cdef const instruction_t *instruction
        cdef uint32_t reuse = <uint32_t>ALL
        cdef int i, k, slot, status
        for i in range(self.operations[number].first, self.operations[number + 1].first):
            instruction = &self.program.instructions[i]
            for k in range(32 if instruction.last else 0):
                if (instruction.last >> k) & 1 and atomic_load(
                        &frame.pending_uses[operand_slot(instruction.operands[k])]) > 1:
                    reuse &= ~(<uint32_t>1 << k)
        status = self.run_range(frame, number, number + 1, reuse, False)
        if status == OK:
            for k in range(self.operations[number].touched, self.operations[number + 1].touched):
                slot = self.touched[k]
                if atomic_decrement(&frame.pending_uses[slot]) == 0:
                    clear(&frame.table[slot])
        return status


cdef int _run_task(void *context, int32_t task) noexcept nogil:
    cdef section_run_t *work = <section_run_t *>context
    return (<Executable>work.program).run_scheduled(work.start + task, work.frame)


cdef int _optimize(void *context, values_t *values) noexcept nogil:
    cdef const optimizer_step_t *step = <const optimizer_step_t *>context
    cdef run_frame_t *frame = <run_frame_t *>values
    cdef update_t *updates = frame.updates + step.first
    cdef update_t *update
    cdef const int32_t *slots
    cdef int i, k, status
    for i in range(step.n):
        update, slots = &updates[i], step.slots + i * (ROLES + 1)
        memset(&update.range, 0, sizeof(update.range))
        for k in range(ROLES):
            update.given[k] = NULL if slots[k + 1] < 0 else frame.table[slots[k + 1]].of.array
        if step.rule.kind == ADAM_RULE:
            adam_factors(update, &step.rule, _increment(frame.table[slots[0]].of.array))
    status = run_updates(updates, step.n, &step.rule)
    release_work(updates, step.n)
    return status


cdef double _increment(array_t *counter) noexcept nogil:
    """Increment a step counter."""
    if counter.dtype == FLOAT32:
        (<float *>counter.data)[0] += 1
        return (<float *>counter.data)[0]
    (<double *>counter.data)[0] += 1
    return (<double *>counter.data)[0]
