"""An executable program: operations on slots of arrays, run without Python."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t, kernel_t, value_t
from cygrad._core.compiler.guards cimport run_frame_t
from cygrad._core.elementwise.program cimport program_t
from cygrad._core.elementwise.tiles cimport fused_stage_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.optimize cimport rule_t
from cygrad._core.threads.parallel cimport tasks_t

# ---------------------------------------------------------------------------------------------------------- fused loops

# Element-wise expressions of compiled programs, and fused loops: several of them in one pass over memory.

cdef enum:
    MAX_OPERANDS = 48

cdef class Expression:
    cdef program_t program
    cdef list keep

cdef class FusedLoop:
    cdef int32_t n_stages, n_arguments, n_results, n_operands
    cdef program_t *programs[MAX_OPERANDS]
    cdef fused_stage_t stages[MAX_OPERANDS]       # without the specialized programs
    cdef list expressions
    # Results of the layouts layouts[slots[k]] go into table[slots[k]].
    cdef int run(self, const value_t *arguments, array_t **layouts, const int32_t *slots,
                 array_t **table) noexcept nogil

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
    cdef readonly int start           # first operation
    cdef readonly int stop            # one past the last operation

# -------------------------------------------------------------------------------------------------------------- program

ctypedef enum operation_kind_t:
    EVALUATE = 0          # an element-wise expression
    CHANGE                # the same, in the memory of `target`
    SUM                   # the same, reduced to the shape of `meta`
    KERNEL
    KERNEL_INTO           # a kernel that writes to its first argument
    KERNEL_COPY           # a kernel whose result is copied into `target`
    COPY                  # of a constant that is modified or returned
    OPTIMIZE
    DRAW                  # random numbers drawn before the execution
    FUSED_LOOP            # several expressions in one pass
    ACCUMULATE            # a product added to a result
    ACCUMULATE_INTO       # the same into aliased memory: `target`
    ALLOCATE              # memory that later operations write in parts
    FILL                  # a copy to a part of it: `target`

# View, and where it starts in its base.
ctypedef struct patch_t:
    int32_t slot
    int32_t base
    int64_t offset        # in bytes

ctypedef struct operation_t:
    int32_t kind
    int32_t target                        # slot to write to instead of a result, or -1
    int32_t arguments, n_arguments        # range of run_frame_t.arguments and of `slots`
    int32_t results, n_results            # range of program.result_slots
    int32_t is_list                       # the results are one list
    int32_t draw                          # number of the draw
    uint32_t reuse                        # bit mask of arguments whose memory the result may reuse
    int32_t patches, n_patches            # views of the results
    int32_t dead, n_dead                  # slots to release after it
    int32_t touched, n_touched            # slots that it uses and that die in its parallel section
    int32_t updates, n_updates            # of an optimizer
    kernel_t kernel
    program_t *program
    void *fused_loop      # FusedLoop, borrowed
    array_t *meta
    const char *name
    rule_t rule

# Layout of a contiguous result; ndim is -1 for other results.
ctypedef struct expected_t:
    int64_t size
    int32_t dtype
    int32_t ndim

# Operations that run in parallel.
ctypedef struct section_t:
    int32_t start, stop
    int32_t touched           # end of its range in program.touched
    const tasks_t *tasks

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
    ALL = -1                  # arguments

cdef class Executable:
    cdef int n_slots, n_operations, n_arguments, n_entries, n_updates
    cdef operation_t *operations
    cdef int32_t *slots               # per argument: a slot, -1 for none, or the start of a list in `entry_slots`
    cdef int32_t *entry_slots
    cdef int32_t *result_slots
    cdef expected_t *expected         # parallel to `result_slots`
    cdef int32_t *dead
    cdef int32_t *touched
    cdef int32_t *touches             # per slot: occurrences in `touched`
    cdef section_t *c_sections
    cdef int n_sections
    cdef readonly list sections
    cdef patch_t *patches             # those of inputs first
    cdef int32_t *steps               # slot of Adam's step counter, per update
    cdef int32_t *update_slots        # ROLES per update
    cdef value_t *templates           # arguments that are not arrays
    cdef int n_outer_patches
    cdef run_frame_t *free_frames
    cdef list keep
    cdef readonly list description    # of the operations, for explain()
    cdef input_t *inputs
    cdef int n_inputs, n_tensors, n_outgoing, n_draws
    cdef readonly list traced             # slot -> TracedArray
    cdef array_t **layouts            # the same as array_t, borrowed
    cdef list is_view
    cdef readonly list groups             # (operation, optimizer, param group) of optimizer steps
    cdef readonly int64_t work        # elements of all slots
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
    cdef void fill_list(self, run_frame_t *frame, int argument) noexcept nogil
    # `reuse`: further restricts the bit mask of the operation.
    cdef int run_operations(self, run_frame_t *frame, int start, int stop, uint32_t reuse, bint frees) noexcept nogil
    cdef int run_sections(self, run_frame_t *frame) noexcept nogil
    cdef int run_scheduled(self, int number, run_frame_t *frame) noexcept nogil
    cdef int step(self, const operation_t *operation, run_frame_t *frame, uint32_t reuse) noexcept nogil
    cdef int keep_results(self, const operation_t *operation, run_frame_t *frame, value_t *results) noexcept nogil
    cdef bint has_expected_layout(self, const array_t *array, int result) noexcept nogil
    cdef int optimize(self, const operation_t *operation, run_frame_t *frame) noexcept nogil
    # Return the array of a slot, as an owning array; return NULL and set a message on failure.
    cdef array_t *output_array(self, run_frame_t *frame, int slot) noexcept nogil
