"""Execution of a compiled program: frames, inputs, outputs and parallel sections."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.compiler.guards cimport run_frame_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.optimize cimport rule_t
from cygrad._core.program.executor cimport instruction_t, layout_t, program_t
from cygrad._core.threads.parallel cimport tasks_t

# ---------------------------------------------------------------------------------------------------------- gil handoff

# Hand the GIL over between threads that execute compiled functions.

# Release the GIL and return the thread state; return NULL if the GIL was kept because no other thread executes.
# `long_work`: release it in any case.
cdef void *release_gil(bint long_work) noexcept
# Acquire the GIL again; takes the return value of `release_gil`.
cdef void acquire_gil(void *state) noexcept nogil

# ----------------------------------------------------------------------------------------------------- parallel section

# Section of a program whose operations run in parallel.

cdef class ParallelSection:
    cdef tasks_t tasks
    cdef list keep                    # owner of its memory
    cdef readonly int start           # first operation
    cdef readonly int stop            # one past the last operation

# ----------------------------------------------------------------------------------------------------------- executable

# Operation: a range of instructions, up to the first one of the next operation.
ctypedef struct operation_t:
    int32_t first
    int32_t touched           # the slots that it uses and that die in its parallel section: start in `touched`

# Operations that run in parallel.
ctypedef struct section_t:
    int32_t start, stop
    const tasks_t *tasks

# Operation of a program with the slots that it uses, for the description of the executable. Tuples of numbers cost the
# cyclic collector nothing.
cdef class CompiledOperation:
    cdef readonly object operation        # of the Program
    cdef readonly list slots              # per array of the program: its slot, or None
    cdef readonly bint can_fail
    cdef readonly int first               # of its instructions
    cdef readonly int target              # slot of the tensor that it modifies in place, or -1
    cdef readonly tuple reads, results    # slots; -1: unused
    cdef readonly tuple updates           # of an optimizer: (slot of the step counter or -1, slots of the roles)
    cdef readonly tuple views             # (slot, slot of the base) of the views of its results
    cdef readonly tuple dead              # slots that are released after it
    cdef readonly tuple touched           # slots that it uses and that die in its parallel section
    cdef list instructions                # until the executable is made

# Step of an optimizer.
ctypedef struct optimizer_step_t:
    rule_t rule
    int32_t first, n          # range of run_frame_t.updates
    const int32_t *slots      # per update: that of Adam's step counter or -1, then ROLES

# Source of an input slot.
ctypedef enum input_kind_t:
    TENSOR_INPUT = 0
    GRADIENT_INPUT        # .grad
    CONSTANT_INPUT

ctypedef struct input_t:
    int32_t slot
    int32_t kind
    int32_t number        # of the tensor

# Parallel section in execution.
ctypedef struct section_run_t:
    void *program             # borrowed
    run_frame_t *frame
    int start

cdef enum:
    LONG_WORK = 1 << 14       # elements from which an execution releases the GIL even without other threads

cdef class Executable:
    cdef program_t *program
    cdef operation_t *operations
    cdef section_t *c_sections
    cdef optimizer_step_t *steps
    cdef input_t *inputs
    cdef int32_t *list_sizes
    cdef int32_t *touched
    cdef int32_t *touches             # per slot: occurrences in `touched`
    cdef char *is_view                # per slot
    cdef int n_slots, n_operations, n_sections, n_inputs, n_lists, n_entries, n_updates, n_tensors, n_outgoing
    cdef run_frame_t *free_frames
    cdef list keep                    # owners of the memory above
    cdef readonly list sections
    cdef readonly list description    # of CompiledOperation, for explain()
    cdef readonly list traced         # slot -> TracedArray
    cdef readonly list draws          # (slot, number of the draw) of random numbers drawn before an execution
    cdef readonly list groups         # (number, optimizer, param group) of optimizer steps
    cdef readonly int64_t work        # elements of all slots
    cdef void set_layout(self, layout_t *layout, array_t *array) noexcept
    cdef instruction_t *main(self, int operation, int kind) noexcept
    cdef int add_step(self, instruction_t *instruction, CompiledOperation operation) except -1
    cdef run_frame_t *acquire_frame(self) except NULL
    cdef void release_frame(self, run_frame_t *frame) noexcept
    cdef int run(self, run_frame_t *frame) noexcept nogil
    # Fill the input slots from frame.tensors; release the arrays in slots.
    cdef void load_inputs(self, run_frame_t *frame) noexcept
    cdef array_t *source(self, const input_t *input, run_frame_t *frame) noexcept
    cdef void clear_table(self, run_frame_t *frame) noexcept nogil
    cdef void finish(self, run_frame_t *frame) noexcept
    # Put the arrays of output slots into frame.outgoing; slot -1: none.
    cdef int collect_outputs(self, run_frame_t *frame, const int32_t *slots, int n) noexcept nogil
    cdef int run_range(self, run_frame_t *frame, int start, int stop, uint32_t reuse, bint frees) noexcept nogil
    cdef int run_sections(self, run_frame_t *frame) noexcept nogil
    cdef int run_scheduled(self, int number, run_frame_t *frame) noexcept nogil
    # Return the array of a slot, as an owning array; return NULL and set a message on failure.
    cdef array_t *output_array(self, run_frame_t *frame, int slot) noexcept nogil
