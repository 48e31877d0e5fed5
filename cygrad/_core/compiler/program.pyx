"""
A recorded function as a list of operations on numbered arrays, run again and again without Python.

Each array of the recording that is still needed has a slot. Arrays that come from outside are put there before a run,
results by the operation that makes them. A view is made once: a run only tells it where its base lies. What no
operation reads any more goes back to the cache of the thread at once, where the next result finds it.
"""

cimport cython
from libc.stdint cimport int32_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    array_meta, array_t, array_view, release, retain, same_shape, shape_text)
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, INTEGERS, NOTHING, clear, find_kernel, kernel_t, value_t
from cygrad._core.compiler.frames cimport free_frame, new_frame, replay_frame_t
from cygrad._core.compiler.layouts cimport empty_with_layout, lay_out_as, lies_as, take_dimensions
from cygrad._core.compiler.recorder cimport Constant, Held, Step
from cygrad._core.compiler.regions cimport Region, Sweep, run_sweep
from cygrad._core.compiler.stretch cimport Stretch
from cygrad._core.compiler.turns cimport enter_interpreter, leave_interpreter
from cygrad._core.elementwise.elementwise cimport copy_into, evaluate
from cygrad._core.kernels.reduction.fused_reduction cimport evaluate_summed
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.graph.version_errors cimport forget_place
from cygrad._core.memory.atomic cimport atomic_decrement, atomic_increment, atomic_load, atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport storage_t, version_t
from cygrad._core.optimizers.optimize cimport adam_factors
from cygrad._core.optimizers.update_batch cimport ADAM_RULE, ROLES, release_work, run_updates, update_t
from cygrad._core.arrays.dtype cimport FLOAT32
from cygrad._core.table.operator cimport MAX_RESULTS, Operator
from cygrad._core.threads.parallel cimport thread_limit
from cygrad._core.threads.tasks cimport run_tasks

cdef kernel_t _sum_to = find_kernel("sum_to")
cdef kernel_t _add_product = find_kernel("add_product")
cdef kernel_t _add_product_into = find_kernel("add_product_into")

KINDS = ("evaluate", "change", "sum", "kernel", "kernel_into", "kernel_copy", "copy", "optimize", "draw",
         "sweep", "accumulate", "accumulate_into", "room", "fill")


cdef int32_t *_numbers(list numbers) except NULL:
    """A C array of integers."""
    cdef int32_t *made = <int32_t *>malloc((len(numbers) + 1) * sizeof(int32_t))
    cdef Py_ssize_t i
    if made == NULL:
        raise MemoryError("compile: no memory for a program")
    for i in range(len(numbers)):
        made[i] = numbers[i]
    return made


cdef Region _region(dict known, tuple made):
    """What a Region is made of -> the Region; equal ones are one, which stays in the caches."""
    n_inputs, constants, code, n_registers, result = made
    key = (n_inputs, tuple([(type(constant.plain), repr(constant.plain)) for constant in constants]),
           tuple([(primitive, out, *inputs) for primitive, out, inputs in code]), n_registers, result)
    if key not in known:
        known[key] = Region(*made)
    return known[key]


@cython.final
@cython.binding(False)
cdef class Program:
    """
    What `lowering.lower` has made of a recording, ready to run.

    Parameters
    ----------
    held : list of Held
        The layout of each slot.
    inputs : list of (int, int, int)
        Slots that come from outside: the slot, its kind, the number of the tensor.
    views : list of (int, int, int)
        Slot, slot of the base, offset in bytes; those of what comes from outside first.
    n_outer : int
        How many these are.
    operations : list of dict
    stretches : list of Stretch
        Of operations that threads share, in order.
    """

    def __cinit__(self, list held, list inputs, list views, int n_outer, list operations, list stretches):
        cdef operation_t *operation
        cdef list slots = [], templates = [], entries = [], results = [], dead = [], updates = [], steps = [], patches
        cdef list touched = []
        cdef dict regions = {}
        cdef Step step
        cdef Operator operator
        cdef int i, k
        self.held, self.keep, self.groups = held, [], []
        self.n_inputs = len(inputs)
        self.inputs = <input_t *>calloc(len(inputs) + 1, sizeof(input_t))
        if self.inputs == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, (slot, kind, number) in enumerate(inputs):
            self.inputs[i] = input_t(slot, kind, number)
            self.n_tensors = max(self.n_tensors, number + 1)
        self.is_view = [False] * len(held)
        self.n_slots, self.n_operations, self.n_outer_patches = len(held), len(operations), n_outer
        self.operations = <operation_t *>calloc(len(operations) + 1, sizeof(operation_t))
        if self.operations == NULL:
            raise MemoryError("compile: no memory for a program")
        patches = views[:n_outer]
        for i, given in enumerate(operations):
            operation = &self.operations[i]
            operation.kind = KINDS.index(given["kind"])
            operation.target = given.get("target", -1)
            operation.reuse = given.get("reuse", 0)
            operation.listed = given.get("listed", False)
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
            if given.get("region") is not None:
                region = _region(regions, given["region"])
                self.keep.append(region)
                operation.program = &(<Region>region).program
            if operation.kind == SWEEP:
                sweep = Sweep(operation.n_arguments, operation.n_results, *given["sweep"])
                self.keep.append(sweep)
                operation.sweep = &(<Sweep>sweep).sweep
            if given.get("meta") is not None:
                self.keep.append(given["meta"])
                operation.meta = (<Held?>given["meta"]).array
            if operation.kind == DRAW:
                operation.listed = (<Step?>given["step"]).draw
            if operation.kind == OPTIMIZE:
                step = given["step"]
                operation.rule = step.rule
                operation.updates, operation.n_updates = len(updates) // ROLES, len(given["updates"])
                for counter, roles in given["updates"]:
                    steps.append(counter)
                    updates.extend(roles)
                self.groups.append((i, step.optimizer, step.group))
        self.description, self.stretches, self.n_stretches = operations, stretches, len(stretches)
        self.n_arguments, self.n_entries, self.n_updates = len(slots), len(entries), len(steps)
        self.slots, self.entry_slots, self.result_slots = _numbers(slots), _numbers(entries), _numbers(results)
        self.dead, self.update_slots, self.steps = _numbers(dead), _numbers(updates), _numbers(steps)
        self.touched, self.touches = _numbers(touched), _numbers([0] * len(held))
        for slot in touched:
            self.touches[<int>slot] += 1
        self.shared = <shared_t *>calloc(len(stretches) + 1, sizeof(shared_t))
        if self.shared == NULL:
            raise MemoryError("compile: no memory for a program")
        for i, stretch in enumerate(stretches):
            operation = &self.operations[(<Stretch?>stretch).stop - 1]
            self.shared[i] = shared_t((<Stretch>stretch).start, (<Stretch>stretch).stop,
                                      operation.touched + operation.n_touched, &(<Stretch>stretch).tasks)
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
        self.layouts = <array_t **>calloc(len(held) + 1, sizeof(array_t *))
        if self.layouts == NULL:
            raise MemoryError("compile: no memory for a program")
        for k in range(self.n_slots):
            self.layouts[k] = (<Held?>held[k]).array
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
        cdef replay_frame_t *frame = self.free_frames
        cdef replay_frame_t *next
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
        free(self.shared)
        free(self.patches)
        free(self.steps)
        free(self.update_slots)
        free(self.templates)

    # ---------------------------------------------------------------------------------------------------------- frames

    cdef replay_frame_t *take_frame(self) except NULL:
        cdef replay_frame_t *frame = self.free_frames
        cdef Held held
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
                held = <Held>self.held[i]
                frame.views[i] = array_meta(held.array)
                if frame.views[i] == NULL:
                    free_frame(frame, self.n_slots)
                    raise MemoryError("compile: no memory for a view")
                frame.table[i] = frame.views[i]
        return frame

    cdef void give_frame(self, replay_frame_t *frame) noexcept:
        frame.next = self.free_frames
        self.free_frames = frame

    cdef array_t *leave(self, replay_frame_t *frame, int slot) noexcept nogil:
        cdef array_t *array = frame.table[slot]
        cdef array_t *base
        cdef int i
        if frame.views[slot] == NULL:
            return retain(array)
        for i in range(self.n_slots):              # the array that owns the memory
            base = frame.table[i]
            if frame.views[i] == NULL and base != NULL and base.storage == array.storage:
                return array_view(base, array.dtype, array.ndim, array.shape, array.strides,
                                  (array.data - base.data) // itemsize(array.dtype))
        snprintf(message(), MESSAGE, b"compile: a view has lost its base")
        return NULL

    # ----------------------------------------------------------------------------------------------------------- a run

    cdef array_t *source(self, const input_t *input, replay_frame_t *frame) noexcept:
        """What the slot of an input is filled with, borrowed."""
        if input.kind == CONSTANT_INPUT:
            return self.layouts[input.slot]
        if input.kind == TENSOR_INPUT:
            return (<Tensor>frame.tensors[input.number]).array
        return frame.gradients[input.number]

    cdef void begin(self, replay_frame_t *frame) noexcept:
        cdef int i
        frame.filled = True
        for i in range(self.n_inputs):
            frame.table[self.inputs[i].slot] = retain(self.source(&self.inputs[i], frame))

    cdef void empty(self, replay_frame_t *frame) noexcept nogil:
        cdef int i
        if not frame.filled:
            return
        frame.filled = False
        for i in range(self.n_slots):
            if frame.views[i] == NULL and frame.table[i] != NULL:
                release(frame.table[i])
                frame.table[i] = NULL

    cdef void end(self, replay_frame_t *frame) noexcept:
        cdef int i
        self.empty(frame)
        for i in range(self.n_outgoing):
            release(frame.outgoing[i])
            frame.outgoing[i] = NULL
        for i in range(self.n_draws):
            release(frame.drawn[i])
            frame.drawn[i] = NULL
        for i in range(self.n_tensors):
            release(frame.gradients[i])
            frame.gradients[i] = NULL
        self.give_frame(frame)

    cdef int hand_out(self, replay_frame_t *frame, const int32_t *slots, int n) noexcept nogil:
        cdef int i
        for i in range(n):
            if slots[i] >= 0:
                frame.outgoing[i] = self.leave(frame, slots[i])
                if frame.outgoing[i] == NULL:
                    return MEMORY_ERROR
        return OK

    def call(self, list tensors not None, list slots not None):
        """Run it on tensors from outside, by their numbers; -> a new Tensor for each slot."""
        cdef int32_t *numbers = _numbers([-1 if slot is None else slot for slot in slots])
        cdef replay_frame_t *frame = NULL
        cdef void *left
        cdef int i, status
        cdef list results = []
        try:
            if self.n_outgoing == 0:             # frames are made for that many
                self.n_outgoing = len(slots)
            elif self.n_outgoing != len(slots):
                raise ValueError(f"compile: the program hands out other results (got {len(slots)} slots, expected "
                                 f"{self.n_outgoing}). Ask for the same in each call.")
            frame = self.take_frame()
            for i in range(self.n_tensors):
                frame.tensors[i] = <void *>tensors[i]
            self.begin(frame)
            left = leave_interpreter(self.work >= LONG_WORK)
            status = self.run(frame)
            if status == OK:
                status = self.hand_out(frame, numbers, self.n_outgoing)
            self.empty(frame)
            enter_interpreter(left)
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
                self.end(frame)

    cdef int run(self, replay_frame_t *frame) noexcept nogil:
        """Run all operations; what is left in the table belongs to the caller, views apart."""
        cdef int i
        for i in range(self.n_outer_patches):
            _place(frame, &self.patches[i])
        if self.n_stretches and thread_limit() > 1:
            return self.run_shared(frame)
        return self.run_operations(frame, 0, self.n_operations, ALL, True)

    cdef int run_operations(self, replay_frame_t *frame, int start, int stop, uint32_t reuse,
                            bint frees) noexcept nogil:
        """One after the other."""
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
                _place(frame, &self.patches[k])
            if frees:
                for k in range(operation.dead, operation.dead + operation.n_dead):
                    release(frame.table[self.dead[k]])
                    frame.table[self.dead[k]] = NULL
        return OK

    cdef int run_shared(self, replay_frame_t *frame) noexcept nogil:
        """The same with stretches that threads share."""
        cdef shared_run_t work
        cdef const shared_t *stretch
        cdef int i, k, done = 0, status = OK
        work.program, work.frame = <void *>self, frame
        for i in range(self.n_stretches):
            stretch = &self.shared[i]
            status = self.run_operations(frame, done, stretch.start, ALL, True)
            for k in range(self.operations[stretch.start].touched, stretch.touched):
                atomic_store(&frame.untouched[self.touched[k]], self.touches[self.touched[k]])
            work.start, done = stretch.start, stretch.stop
            status = status or run_tasks(stretch.tasks, _run_task, &work)
            if status != OK:
                return status
        return self.run_operations(frame, done, self.n_operations, ALL, True)

    cdef int run_beside(self, int number, replay_frame_t *frame) noexcept nogil:
        """One while threads run others: who is the last to touch a result may compute in its memory, and frees it."""
        cdef const operation_t *operation = &self.operations[number]
        cdef uint32_t reuse = operation.reuse
        cdef int k, slot, status
        for k in range(32 if reuse else 0):
            if (reuse >> k) & 1 and atomic_load(&frame.untouched[self.slots[operation.arguments + k]]) > 1:
                reuse &= ~(<uint32_t>1 << k)
        status = self.run_operations(frame, number, number + 1, reuse, False)
        if status == OK:
            for k in range(operation.touched, operation.touched + operation.n_touched):
                slot = self.touched[k]
                if atomic_decrement(&frame.untouched[slot]) == 0:
                    release(frame.table[slot])
                    frame.table[slot] = NULL
        return status

    cdef void fill_list(self, replay_frame_t *frame, int argument) noexcept nogil:
        cdef int k, slot
        for k in range(frame.arguments[argument].count):
            slot = self.entry_slots[self.slots[argument] + k]
            frame.arguments[argument].of.arrays[k] = NULL if slot < 0 else frame.table[slot]

    cdef int step(self, const operation_t *operation, replay_frame_t *frame, uint32_t reuse) noexcept nogil:
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
            if status != OK or self.lies_as_expected(frame.table[slot], operation.results):
                return status
            return lay_out_as(&frame.table[slot], self.layouts[slot])
        if operation.kind == CHANGE:
            status = evaluate(operation.program, arguments, 0, target, NULL)
            return _changed(target, status)
        if operation.kind == OPTIMIZE:
            return self.optimize(operation, frame)
        if operation.kind == SWEEP:
            return run_sweep(operation.sweep, arguments, self.layouts, self.result_slots + operation.results,
                             frame.table)
        if operation.kind == DRAW:
            slot = self.result_slots[operation.results]
            frame.table[slot], frame.drawn[operation.listed] = frame.drawn[operation.listed], NULL
            return OK
        if operation.kind == COPY or operation.kind == ROOM:
            slot = self.result_slots[operation.results]
            array = empty_with_layout(self.layouts[slot])
            if array == NULL:
                return MEMORY_ERROR
            frame.table[slot] = array
            return OK if operation.kind == ROOM else copy_into(array, arguments.of.array)
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
                status = take_dimensions(results, self.layouts[self.result_slots[operation.results]])
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
            return _changed(target, status)
        return self.keep_results(operation, frame, results)

    cdef int keep_results(self, const operation_t *operation, replay_frame_t *frame, value_t *results) noexcept nogil:
        """Put what a kernel has made into its slots."""
        cdef array_t *array
        cdef int k, slot, status = OK
        for k in range(operation.n_results):
            slot = self.result_slots[operation.results + k]
            if operation.listed:
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
            if self.lies_as_expected(array, operation.results + k):
                continue
            if array.dtype == self.layouts[slot].dtype and same_shape(array, self.layouts[slot]):
                if status == OK:
                    status = lay_out_as(&frame.table[slot], self.layouts[slot])
            else:
                snprintf(message(), MESSAGE, b"%s: the result has another layout than when the function was compiled "
                         b"(got shape %s). Pass fullgraph=False and disable=True for this function.",
                         operation.name, shape_text(array))
                status = RUNTIME_ERROR
        for k in range(MAX_RESULTS):
            if results[k].kind != NOTHING:
                clear(&results[k])
        return status

    cdef bint lies_as_expected(self, const array_t *array, int result) noexcept nogil:
        """Has it the layout of the recording? What is asked first lies in the order in which it is asked."""
        cdef const expected_t *expected = &self.expected[result]
        return (array.contiguous and array.ndim == expected.ndim and array.size == expected.size
                and array.dtype == expected.dtype) or lies_as(array, self.layouts[self.result_slots[result]])

    cdef int optimize(self, const operation_t *operation, replay_frame_t *frame) noexcept nogil:
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
                adam_factors(update, &operation.rule, _count(counter))
        status = run_updates(updates, operation.n_updates, &operation.rule)
        release_work(updates, operation.n_updates)
        return status


cdef int _run_task(void *context, int32_t task) noexcept nogil:
    cdef shared_run_t *work = <shared_run_t *>context
    return (<Program>work.program).run_beside(work.start + task, work.frame)


cdef double _count(array_t *counter) noexcept nogil:
    """Raise a number of steps by one."""
    if counter.dtype == FLOAT32:
        (<float *>counter.data)[0] += 1
        return (<float *>counter.data)[0]
    (<double *>counter.data)[0] += 1
    return (<double *>counter.data)[0]


cdef int _changed(array_t *target, int status) noexcept nogil:
    if status == OK and target.version != NULL:
        atomic_increment(&target.version.value)
        forget_place(target.version)
    return status


cdef inline void _place(replay_frame_t *frame, const patch_t *patch) noexcept nogil:
    """A view learns where its base lies."""
    cdef array_t *view = frame.views[patch.slot]
    cdef const array_t *base = frame.table[patch.base]
    view.data = base.data + patch.offset
    view.storage = <storage_t *>base.storage
    view.version = <version_t *>base.version
