"""
An executable program: operations on slots of arrays, run without Python.

Inputs are put into their slots before an execution, results by the operation that computes them. View objects are
allocated once per frame; an execution only sets their data pointers. Each array is released after its last use, to the
memory cache of the thread, where the next result finds it.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    ARRAY, ARRAYS, INTEGERS, MAX_DIMS, NOTHING, array_empty, array_empty_like, array_meta, array_t, array_view, clear,
    find_kernel, kernel_t, release, retain, same_shape, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, dtype, itemsize
from cygrad._core.compiler.guards cimport free_frame, new_frame, run_frame_t
from cygrad._core.compiler.tracer cimport (
    Constant, Step, TracedArray, array_of, copy_to_layout, empty_with_layout, has_layout, view_as_layout,
)
from cygrad._core.elementwise.elementwise cimport copy_into, evaluate, forget, program_t
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport (
    discard, fused_loop_t, fused_operand_t, fused_stage_t, run_fused_loop, specialize, specialized_t,
)
from cygrad._core.graph.boxing cimport plain_object
from cygrad._core.graph.node cimport forget_place
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.kernels.reduction.reductions cimport evaluate_summed
from cygrad._core.memory.atomic cimport atomic_decrement, atomic_increment, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport storage_t, version_t
from cygrad._core.optimizers.optimize cimport ADAM_RULE, ROLES, adam_factors, release_work, run_updates, update_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, number_to_cell, primitive, primitives
from cygrad._core.table.interpreter cimport set_instructions
from cygrad._core.table.operator cimport MAX_RESULTS, Operator
from cygrad._core.threads.parallel cimport run_tasks, thread_limit

from cygrad._core.compiler.tracer import constant


# ---------------------------------------------------------------------------------------------------------- fused loops

# Element-wise expressions of compiled programs, and fused loops: several of them in one pass over memory.

cdef extern from *:
    """
    #ifdef CYGRAD_DEBUG
    enum { DEBUG_BUILD = 1 };
    #else
    enum { DEBUG_BUILD = 0 };
    #endif
    """
    const int DEBUG_BUILD


def forward_program(Operator operator not None):
    """
    Return the forward of an element-wise operator: n_inputs, constants, instructions, register of the result.

    Instructions are (name of a primitive, register, registers of the operands).
    """
    cdef program_t *program
    cdef int i, k
    operator.ensure_program()
    program = operator.descriptor.program
    if program == NULL:
        return None
    constants = tuple([plain_object(&program.constants[i]) for i in range(program.n_constants)])
    code = tuple([(primitives[program.code[i].primitive].name.decode(), program.code[i].out,
                   tuple([program.code[i].inputs[k] for k in range(MAX_ARITY) if program.code[i].inputs[k] >= 0]))
                  for i in range(program.n_instructions)])
    return program.n_inputs, constants, code, program.result


def primitive_cost(str name not None):
    """Return the cost of a primitive per element, in additions."""
    return primitives[primitive(name)].cost


def number_everywhere(TracedArray traced not None):
    """Return the number in all elements of a float32 or float64 array that is expanded from one element; else None."""
    if not _is_one_number(array_of(traced)) or traced.array.size == 0:
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


@cython.final
@cython.binding(False)
cdef class Expression:
    """Owns an element-wise program."""

    def __cinit__(self, int n_inputs, list constants, list code, int result):
        cdef int i
        cdef Constant number
        memset(&self.program, 0, sizeof(program_t))
        self.keep = [constants]
        set_instructions(&self.program, n_inputs, len(constants), code, result, self.keep)
        for i, number in enumerate(constants):
            self.program.constants[i] = number.value

    def __dealloc__(self):
        forget(&self.program)


@cython.final
@cython.binding(False)
cdef class FusedLoop:
    """
    Owns the stages of a fused loop.

    Parameters
    ----------
    n_arguments, n_results, n_operands : int
        Operands are numbered: arguments, results, then those that exist one tile at a time.
    stages : list of tuple
        (arguments of `Expression`, operands of its inputs, operand of its result).
    """

    def __cinit__(self, int n_arguments, int n_results, int n_operands, list stages):
        cdef Expression expression
        cdef int i, k
        if n_operands > MAX_OPERANDS or len(stages) > MAX_OPERANDS:
            raise RuntimeError(f"compile: too many operands of a fused loop (got {n_operands})")
        self.expressions = []
        self.n_stages, self.n_arguments = len(stages), n_arguments
        self.n_results, self.n_operands = n_results, n_operands
        for i, (program, inputs, out) in enumerate(stages):
            expression = Expression(*program)
            self.expressions.append(expression)
            self.programs[i], self.stages[i].out = &expression.program, out
            for k in range(len(inputs)):
                self.stages[i].inputs[k] = inputs[k]

    cdef int run(self, const value_t *arguments, array_t **layouts, const int32_t *slots,
                 array_t **table) noexcept nogil:
        cdef fused_loop_t loop
        cdef fused_operand_t operands[MAX_OPERANDS]
        cdef fused_stage_t stages[MAX_OPERANDS]
        cdef value_t[<int>MAX_INPUTS] values
        cdef array_t *model = layouts[slots[0]]
        cdef specialized_t *made
        cdef program_t *program
        cdef int64_t step = itemsize(model.dtype)
        cdef int i, k, n_ready = 0, status = OK
        loop.size, loop.n_operands, loop.n_stages = model.size, self.n_operands, self.n_stages
        loop.operands, loop.stages = operands, stages
        for i in range(self.n_operands):
            operands[i] = fused_operand_t(NULL, step, 0, model.dtype, False)
        for i in range(self.n_arguments):
            operands[i].data = arguments[i].of.array.data
            operands[i].step = 0 if _is_one_number(arguments[i].of.array) else step
        for i in range(self.n_results):
            table[slots[i]] = array_empty_like(layouts[slots[i]], -1)
            if table[slots[i]] == NULL:
                return MEMORY_ERROR
            operands[self.n_arguments + i].data, operands[self.n_arguments + i].kept = table[slots[i]].data, True
        for i in range(self.n_stages):
            stages[i] = self.stages[i]
            program = self.programs[i]
            for k in range(program.n_inputs):
                if stages[i].inputs[k] < self.n_arguments:
                    values[k] = arguments[stages[i].inputs[k]]
                else:
                    set_array(&values[k], model)
            made = specialize(program, values, &status)
            if made == NULL:
                break
            stages[i].program = made
            n_ready += 1
        if status == OK:
            status = run_fused_loop(&loop)
        for i in range(n_ready):
            if stages[i].program.temporary:
                discard(<specialized_t *>stages[i].program)
        return status


cdef inline bint _is_one_number(const array_t *array) noexcept nogil:
    """Return whether all elements share one location in memory."""
    cdef int i
    for i in range(array.ndim):
        if array.shape[i] > 1 and array.strides[i] != 0:
            return False
    return True


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
        cdef list successors = [[] for _ in needs]
        self.start, self.stop, self.tasks.n = start, start + n, n
        self.tasks.n_dependencies = <int32_t *>calloc(n + 1, sizeof(int32_t))
        self.tasks.successor_start = <int32_t *>calloc(n + 2, sizeof(int32_t))
        self.tasks.successors = <int32_t *>calloc(sum(map(len, needs)) + 1, sizeof(int32_t))
        if not (self.tasks.n_dependencies and self.tasks.successor_start and self.tasks.successors):
            raise MemoryError("compile: no memory for a parallel section")
        for i in range(n):
            for need in needs[i]:
                successors[need].append(i)
        for i in range(n):
            self.tasks.n_dependencies[i] = len(needs[i])
            self.tasks.successor_start[i + 1] = self.tasks.successor_start[i]
            for other in successors[i]:
                self.tasks.successors[self.tasks.successor_start[i + 1]] = other
                self.tasks.successor_start[i + 1] += 1

    def __dealloc__(self):
        free(self.tasks.n_dependencies)
        free(self.tasks.successor_start)
        free(self.tasks.successors)


# -------------------------------------------------------------------------------------------------------------- program

cdef kernel_t _sum_to = find_kernel("sum_to")
cdef kernel_t _add_product = find_kernel("add_product")
cdef kernel_t _add_product_into = find_kernel("add_product_into")

KINDS = ("evaluate", "change", "sum", "kernel", "kernel_into", "kernel_copy", "copy", "optimize", "draw",
         "fused_loop", "accumulate", "accumulate_into", "allocate", "fill")


cdef int32_t *_numbers(list numbers) except NULL:
    """Return a C array of integers."""
    cdef int32_t *made = <int32_t *>malloc((len(numbers) + 1) * sizeof(int32_t))
    cdef Py_ssize_t i
    if made == NULL:
        raise MemoryError("compile: no memory for a program")
    for i in range(len(numbers)):
        made[i] = numbers[i]
    return made


cdef Expression _expression(dict known, tuple made):
    """Return the Expression of these arguments; equal ones share one object, for the caches."""
    n_inputs, constants, code, result = made
    key = (n_inputs, tuple([(type(constant.plain), repr(constant.plain)) for constant in constants]),
           tuple([(name, out, *inputs) for name, out, inputs in code]), result)
    if key not in known:
        known[key] = Expression(*made)
    return known[key]


@cython.final
@cython.binding(False)
cdef class Executable:
    """
    A Program with slots for its arrays, as it is executed.

    Parameters
    ----------
    traced : list of TracedArray
        Layout of each slot.
    inputs : list of (int, int, int)
        Input slots: slot, input_kind_t, number of the tensor.
    views : list of (int, int, int)
        Slot, slot of the base, offset in bytes; those of inputs first.
    n_outer : int
        Number of views of inputs.
    operations : list of dict
    sections : list of ParallelSection
        In order.
    """

    def __cinit__(self, list traced, list inputs, list views, int n_outer, list operations, list sections):
        cdef operation_t *operation
        cdef list slots = [], templates = [], entries = [], results = [], dead = [], updates = [], steps = [], patches
        cdef list touched = []
        cdef dict expressions = {}
        cdef Step step
        cdef Operator operator
        cdef int i, k
        self.traced, self.keep, self.groups = traced, [], []
        self.n_inputs = len(inputs)
        self.inputs = <input_t *>calloc(len(inputs) + 1, sizeof(input_t))
        if self.inputs == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, (slot, kind, number) in enumerate(inputs):
            self.inputs[i] = input_t(slot, kind, number)
            self.n_tensors = max(self.n_tensors, number + 1)
        self.is_view = [False] * len(traced)
        self.n_slots, self.n_operations, self.n_outer_patches = len(traced), len(operations), n_outer
        self.operations = <operation_t *>calloc(len(operations) + 1, sizeof(operation_t))
        if self.operations == NULL:
            raise MemoryError("compile: no memory for a program")
        patches = views[:n_outer]
        for i, given in enumerate(operations):
            operation = &self.operations[i]
            operation.kind = KINDS.index(given["kind"])
            operation.target = given.get("target", -1)
            operation.reuse = given.get("reuse", 0)
            operation.is_list = given.get("is_list", False)
            operation.arguments, operation.n_arguments = len(slots), len(given["arguments"])
            for argument in given["arguments"]:
                if isinstance(argument, list):
                    slots.append(len(entries))
                    templates.append(len(argument))
                    entries.extend([-1 if entry is None else entry for entry in argument])
                elif isinstance(argument, Constant):
                    slots.append(-1)
                    templates.append(argument)
                else:
                    slots.append(-1 if argument is None else argument)
                    templates.append(None)
            operation.results, operation.n_results = len(results), len(given["results"])
            results.extend(given["results"])
            operation.dead, operation.n_dead = len(dead), len(given["dead"])
            dead.extend(given["dead"])
            operation.touched, operation.n_touched = len(touched), len(given["touched"])
            touched.extend(given["touched"])
            operation.patches, operation.n_patches = len(patches), len(given["views"])
            patches.extend(given["views"])
            operator = given.get("operator")
            if operator is not None:
                operation.name = operator.descriptor.name
                operation.kernel = (operator.descriptor.into if operation.kind == KERNEL_INTO
                                    else operator.descriptor.kernel)
            if operation.kind == ACCUMULATE or operation.kind == ACCUMULATE_INTO:
                operation.name = b"matmul"
                operation.kernel = _add_product if operation.kind == ACCUMULATE else _add_product_into
            if given.get("expression") is not None:
                expression = _expression(expressions, given["expression"])
                self.keep.append(expression)
                operation.program = &(<Expression>expression).program
            if operation.kind == FUSED_LOOP:
                fused_loop = FusedLoop(operation.n_arguments, operation.n_results, *given["fused_loop"])
                self.keep.append(fused_loop)
                operation.fused_loop = <void *>fused_loop
            if given.get("meta") is not None:
                self.keep.append(given["meta"])
                operation.meta = (<TracedArray?>given["meta"]).array
            if operation.kind == DRAW:
                operation.draw = (<Step?>given["step"]).draw
            if operation.kind == OPTIMIZE:
                step = given["step"]
                operation.rule = step.rule
                operation.updates, operation.n_updates = len(updates) // ROLES, len(given["updates"])
                for counter, roles in given["updates"]:
                    steps.append(counter)
                    updates.extend(roles)
                self.groups.append((i, step.optimizer, step.group))
        self.description, self.sections, self.n_sections = operations, sections, len(sections)
        self.n_arguments, self.n_entries, self.n_updates = len(slots), len(entries), len(steps)
        self.slots, self.entry_slots, self.result_slots = _numbers(slots), _numbers(entries), _numbers(results)
        self.dead, self.update_slots, self.steps = _numbers(dead), _numbers(updates), _numbers(steps)
        self.touched, self.touches = _numbers(touched), _numbers([0] * len(traced))
        for slot in touched:
            self.touches[<int>slot] += 1
        self.c_sections = <section_t *>calloc(len(sections) + 1, sizeof(section_t))
        if self.c_sections == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, section in enumerate(sections):
            operation = &self.operations[(<ParallelSection?>section).stop - 1]
            self.c_sections[i] = section_t((<ParallelSection>section).start, (<ParallelSection>section).stop,
                                      operation.touched + operation.n_touched, &(<ParallelSection>section).tasks)
        self.templates = <value_t *>calloc(len(templates) + 1, sizeof(value_t))
        self.patches = <patch_t *>calloc(len(patches) + 1, sizeof(patch_t))
        if self.templates == NULL or self.patches == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, template in enumerate(templates):
            self.templates[i].kind = NOTHING if slots[i] < 0 else ARRAY
            if isinstance(template, Constant):
                self.keep.append(template)
                self.templates[i] = (<Constant>template).value
            elif template is not None:
                self.templates[i].kind, self.templates[i].count = ARRAYS, template
        for i, (slot, base, offset) in enumerate(patches):
            self.patches[i] = patch_t(slot, base, offset)
            self.is_view[slot] = True
        self.layouts = <array_t **>calloc(len(traced) + 1, sizeof(array_t *))
        if self.layouts == NULL:
            raise MemoryError("compile: no memory for a program")
        for k in range(self.n_slots):
            self.layouts[k] = (<TracedArray?>traced[k]).array
            self.work += self.layouts[k].size
        self.expected = <expected_t *>calloc(len(results) + 1, sizeof(expected_t))
        if self.expected == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, slot in enumerate(results):
            if slot >= 0 and self.layouts[<int>slot].contiguous:
                self.expected[i] = expected_t(self.layouts[<int>slot].size, self.layouts[<int>slot].dtype,
                                              self.layouts[<int>slot].ndim)
            else:
                self.expected[i].ndim = -1

    def __dealloc__(self):
        cdef run_frame_t *frame = self.free_frames
        cdef run_frame_t *next
        while frame != NULL:
            next = frame.next
            free_frame(frame, self.n_slots)
            frame = next
        free(self.operations)
        free(self.inputs)
        free(self.layouts)
        free(self.slots)
        free(self.entry_slots)
        free(self.result_slots)
        free(self.expected)
        free(self.dead)
        free(self.touched)
        free(self.touches)
        free(self.c_sections)
        free(self.patches)
        free(self.steps)
        free(self.update_slots)
        free(self.templates)

    # ---------------------------------------------------------------------------------------------------------- frames

    cdef run_frame_t *acquire_frame(self) except NULL:
        cdef run_frame_t *frame = self.free_frames
        cdef TracedArray traced
        cdef int i
        if frame != NULL:
            self.free_frames = frame.next
            return frame
        frame = new_frame(self.n_slots, self.n_arguments, self.n_entries, self.n_updates, self.n_tensors,
                          self.n_outgoing, self.n_draws)
        if frame == NULL:
            raise MemoryError("compile: no memory for the arrays of a program")
        memcpy(frame.arguments, self.templates, self.n_arguments * sizeof(value_t))
        for i in range(self.n_arguments):
            if frame.arguments[i].kind == ARRAYS:
                frame.arguments[i].of.arrays = frame.entries + self.slots[i]
        for i in range(self.n_slots):
            if self.is_view[i]:
                traced = <TracedArray>self.traced[i]
                frame.views[i] = array_meta(traced.array)
                if frame.views[i] == NULL:
                    free_frame(frame, self.n_slots)
                    raise MemoryError("compile: no memory for a view")
                frame.table[i] = frame.views[i]
        return frame

    cdef void release_frame(self, run_frame_t *frame) noexcept:
        frame.next = self.free_frames
        self.free_frames = frame

    cdef array_t *output_array(self, run_frame_t *frame, int slot) noexcept nogil:
        cdef array_t *array = frame.table[slot]
        cdef array_t *base
        cdef int i
        if frame.views[slot] == NULL:
            return retain(array)
        for i in range(self.n_slots):              # find the array that owns the memory
            base = frame.table[i]
            if frame.views[i] == NULL and base != NULL and base.storage == array.storage:
                return array_view(base, array.dtype, array.ndim, array.shape, array.strides,
                                  (array.data - base.data) // itemsize(array.dtype))
        snprintf(message(), MESSAGE, b"compile: the base of a view is missing")
        return NULL

    # ------------------------------------------------------------------------------------------------------- execution

    cdef array_t *source(self, const input_t *input, run_frame_t *frame) noexcept:
        """Return the borrowed array of an input."""
        if input.kind == CONSTANT_INPUT:
            return self.layouts[input.slot]
        if input.kind == TENSOR_INPUT:
            return (<Tensor>frame.tensors[input.number]).array
        return frame.gradients[input.number]

    cdef void load_inputs(self, run_frame_t *frame) noexcept:
        cdef int i
        frame.filled = True
        for i in range(self.n_inputs):
            frame.table[self.inputs[i].slot] = retain(self.source(&self.inputs[i], frame))

    cdef void clear_table(self, run_frame_t *frame) noexcept nogil:
        cdef int i
        if not frame.filled:
            return
        frame.filled = False
        for i in range(self.n_slots):
            if frame.views[i] == NULL and frame.table[i] != NULL:
                release(frame.table[i])
                frame.table[i] = NULL

    cdef void finish(self, run_frame_t *frame) noexcept:
        cdef int i
        self.clear_table(frame)
        for i in range(self.n_outgoing):
            release(frame.outgoing[i])
            frame.outgoing[i] = NULL
        for i in range(self.n_draws):
            release(frame.drawn[i])
            frame.drawn[i] = NULL
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
        cdef int32_t *numbers = _numbers([-1 if slot is None else slot for slot in slots])
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
            free(numbers)
            if frame != NULL:
                self.finish(frame)

    cdef int run(self, run_frame_t *frame) noexcept nogil:
        """Run all operations; the arrays left in the table, except views, belong to the caller."""
        cdef int i
        for i in range(self.n_outer_patches):
            _patch_view(frame, &self.patches[i])
        if self.n_sections and thread_limit() > 1:
            return self.run_sections(frame)
        return self.run_operations(frame, 0, self.n_operations, ALL, True)

    cdef int run_operations(self, run_frame_t *frame, int start, int stop, uint32_t reuse,
                            bint frees) noexcept nogil:
        """Run operations in order."""
        cdef const operation_t *operation
        cdef int i, k, status
        for i in range(start, stop):
            operation = &self.operations[i]
            for k in range(operation.arguments, operation.arguments + operation.n_arguments):
                if frame.arguments[k].kind == ARRAY:
                    frame.arguments[k].of.array = frame.table[self.slots[k]]
                elif frame.arguments[k].kind == ARRAYS:
                    self.fill_list(frame, k)
            status = self.step(operation, frame, operation.reuse & reuse)
            if status != OK:
                return status
            for k in range(operation.patches, operation.patches + operation.n_patches):
                _patch_view(frame, &self.patches[k])
            if frees:
                for k in range(operation.dead, operation.dead + operation.n_dead):
                    release(frame.table[self.dead[k]])
                    frame.table[self.dead[k]] = NULL
        return OK

    cdef int run_sections(self, run_frame_t *frame) noexcept nogil:
        """Run all operations, parallel sections by a team."""
        cdef section_run_t work
        cdef const section_t *section
        cdef int i, k, done = 0, status = OK
        work.program, work.frame = <void *>self, frame
        for i in range(self.n_sections):
            section = &self.c_sections[i]
            status = self.run_operations(frame, done, section.start, ALL, True)
            for k in range(self.operations[section.start].touched, section.touched):
                atomic_store(&frame.pending_uses[self.touched[k]], self.touches[self.touched[k]])
            work.start, done = section.start, section.stop
            status = status or run_tasks(section.tasks, _run_task, &work)
            if status != OK:
                return status
        return self.run_operations(frame, done, self.n_operations, ALL, True)

    cdef int run_scheduled(self, int number, run_frame_t *frame) noexcept nogil:
        """Run an operation of a parallel section; the last user of a slot may reuse its memory and releases it."""
        cdef const operation_t *operation = &self.operations[number]
        cdef uint32_t reuse = operation.reuse
        cdef int k, slot, status
        for k in range(32 if reuse else 0):
            if (reuse >> k) & 1 and atomic_load(&frame.pending_uses[self.slots[operation.arguments + k]]) > 1:
                reuse &= ~(<uint32_t>1 << k)
        status = self.run_operations(frame, number, number + 1, reuse, False)
        if status == OK:
            for k in range(operation.touched, operation.touched + operation.n_touched):
                slot = self.touched[k]
                if atomic_decrement(&frame.pending_uses[slot]) == 0:
                    release(frame.table[slot])
                    frame.table[slot] = NULL
        return status

    cdef void fill_list(self, run_frame_t *frame, int argument) noexcept nogil:
        cdef int k, slot
        for k in range(frame.arguments[argument].count):
            slot = self.entry_slots[self.slots[argument] + k]
            frame.arguments[argument].of.arrays[k] = NULL if slot < 0 else frame.table[slot]

    cdef int step(self, const operation_t *operation, run_frame_t *frame, uint32_t reuse) noexcept nogil:
        cdef value_t *arguments = frame.arguments + operation.arguments
        cdef value_t[MAX_RESULTS] results
        cdef value_t[2] summed
        cdef array_t *array = NULL
        cdef array_t *target = NULL if operation.target < 0 else frame.table[operation.target]
        cdef int k, slot, status
        if operation.kind == EVALUATE and target != NULL:
            return evaluate(operation.program, arguments, 0, target, NULL)
        if operation.kind == EVALUATE:
            slot = self.result_slots[operation.results]
            status = evaluate(operation.program, arguments, reuse, NULL, &frame.table[slot])
            if status != OK or self.has_expected_layout(frame.table[slot], operation.results):
                return status
            return copy_to_layout(&frame.table[slot], self.layouts[slot])
        if operation.kind == CHANGE:
            status = evaluate(operation.program, arguments, 0, target, NULL)
            return _bump_version(target, status)
        if operation.kind == OPTIMIZE:
            return self.optimize(operation, frame)
        if operation.kind == FUSED_LOOP:
            return (<FusedLoop>operation.fused_loop).run(arguments, self.layouts, self.result_slots + operation.results,
                                                         frame.table)
        if operation.kind == DRAW:
            slot = self.result_slots[operation.results]
            frame.table[slot], frame.drawn[operation.draw] = frame.drawn[operation.draw], NULL
            return OK
        if operation.kind == COPY or operation.kind == ALLOCATE:
            slot = self.result_slots[operation.results]
            array = empty_with_layout(self.layouts[slot])
            if array == NULL:
                return MEMORY_ERROR
            frame.table[slot] = array
            return OK if operation.kind == ALLOCATE else copy_into(array, arguments.of.array)
        if operation.kind == FILL:
            return copy_into(target, arguments.of.array)
        for k in range(MAX_RESULTS):
            results[k].kind = NOTHING
        if operation.kind == SUM:
            status = evaluate_summed(operation.program, arguments, reuse, operation.meta, &array)
            if status != OK:
                return status
            results[0].kind = ARRAY
            results[0].of.array = array
            if not same_shape(array, operation.meta):
                summed[0] = results[0]
                summed[1].kind, summed[1].count = INTEGERS, operation.meta.ndim
                summed[1].of.integers = operation.meta.shape
                status = _sum_to(summed, results)
                release(array)
                array = results[0].of.array if status == OK else NULL
            if array != NULL and array.ndim != self.layouts[self.result_slots[operation.results]].ndim:
                status = view_as_layout(results, self.layouts[self.result_slots[operation.results]])
        else:
            status = operation.kernel(arguments, results)
        if status != OK:
            return status
        if operation.kind == ACCUMULATE_INTO:
            return OK
        if operation.kind == KERNEL and target != NULL:
            status = copy_into(target, results[0].of.array)
            clear(&results[0])
            return status
        if operation.kind == KERNEL_INTO or operation.kind == KERNEL_COPY:
            if operation.kind == KERNEL_COPY:
                status = copy_into(target, results[0].of.array)
            clear(&results[0])
            return _bump_version(target, status)
        return self.keep_results(operation, frame, results)

    cdef int keep_results(self, const operation_t *operation, run_frame_t *frame, value_t *results) noexcept nogil:
        """Put the results of a kernel into their slots."""
        cdef array_t *array
        cdef int k, slot, status = OK
        for k in range(operation.n_results):
            slot = self.result_slots[operation.results + k]
            if operation.is_list:
                array = results[0].of.arrays[k]
                results[0].of.arrays[k] = NULL
            elif results[k].kind == ARRAY:
                array = results[k].of.array
                results[k].kind = NOTHING
            else:
                continue
            if slot < 0:
                release(array)
                continue
            frame.table[slot] = array
            if self.has_expected_layout(array, operation.results + k):
                continue
            if array.dtype == self.layouts[slot].dtype and same_shape(array, self.layouts[slot]):
                if status == OK:
                    status = copy_to_layout(&frame.table[slot], self.layouts[slot])
            else:
                snprintf(message(), MESSAGE, b"%s: the layout of the result differs from the trace (got shape %s). "
                                             b"Pass fullgraph=False and disable=True for this function.",
                         operation.name, shape_text(array))
                status = RUNTIME_ERROR
        for k in range(MAX_RESULTS):
            if results[k].kind != NOTHING:
                clear(&results[k])
        return status

    cdef bint has_expected_layout(self, const array_t *array, int result) noexcept nogil:
        """Check the layout of a result; fields are ordered by access."""
        cdef const expected_t *expected = &self.expected[result]
        return (array.contiguous and array.ndim == expected.ndim and array.size == expected.size
                and array.dtype == expected.dtype) or has_layout(array, self.layouts[self.result_slots[result]])

    cdef int optimize(self, const operation_t *operation, run_frame_t *frame) noexcept nogil:
        cdef update_t *updates = frame.updates + operation.updates
        cdef update_t *update
        cdef const int32_t *slots
        cdef array_t *counter
        cdef int i, k, status
        for i in range(operation.n_updates):
            update = &updates[i]
            slots = self.update_slots + (operation.updates + i) * ROLES
            memset(&update.range, 0, sizeof(update.range))
            for k in range(ROLES):
                update.given[k] = NULL if slots[k] < 0 else frame.table[slots[k]]
            if operation.rule.kind == ADAM_RULE:
                counter = frame.table[self.steps[operation.updates + i]]
                adam_factors(update, &operation.rule, _increment(counter))
        status = run_updates(updates, operation.n_updates, &operation.rule)
        release_work(updates, operation.n_updates)
        return status


cdef int _run_task(void *context, int32_t task) noexcept nogil:
    cdef section_run_t *work = <section_run_t *>context
    return (<Executable>work.program).run_scheduled(work.start + task, work.frame)


cdef double _increment(array_t *counter) noexcept nogil:
    """Increment a step counter."""
    if counter.dtype == FLOAT32:
        (<float *>counter.data)[0] += 1
        return (<float *>counter.data)[0]
    (<double *>counter.data)[0] += 1
    return (<double *>counter.data)[0]


cdef int _bump_version(array_t *target, int status) noexcept nogil:
    if status == OK and target.version != NULL:
        atomic_increment(&target.version.value)
        forget_place(target.version)
    return status


cdef inline void _patch_view(run_frame_t *frame, const patch_t *patch) noexcept nogil:
    """Point a view to its base."""
    cdef array_t *view = frame.views[patch.slot]
    cdef const array_t *base = frame.table[patch.base]
    view.data = base.data + patch.offset
    view.storage = <storage_t *>base.storage
    view.version = <version_t *>base.version
