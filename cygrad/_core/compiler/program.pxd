"""A recorded function as a list of operations on numbered arrays, run again and again without Python."""

from libc.stdint cimport int32_t, int64_t, uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport kernel_t, value_t
from cygrad._core.compiler.frames cimport replay_frame_t
from cygrad._core.compiler.regions cimport sweep_t
from cygrad._core.elementwise.program cimport program_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.update_batch cimport rule_t
from cygrad._core.threads.tasks cimport tasks_t

ctypedef enum operation_kind_t:
    EVALUATE = 0          # an element-wise program
    CHANGE                # the same in the memory of `target`
    SUM                   # the same, summed to the shape of `meta`
    KERNEL
    KERNEL_INTO           # a kernel that writes into its first argument
    KERNEL_COPY           # a kernel whose result is copied into `target`
    COPY                  # of a constant that is changed later, or goes out
    OPTIMIZE
    DRAW                  # random numbers that were drawn before the run
    SWEEP                 # several element-wise programs in one pass
    ACCUMULATE            # a product on top of a result
    ACCUMULATE_INTO       # ... of which others have the memory around it: `target`
    ROOM                  # memory that later operations write, piece by piece
    FILL                  # a copy into a piece of it: `target`

# Where a view lies once its base is there.
ctypedef struct patch_t:
    int32_t slot
    int32_t base
    int64_t offset        # in bytes

ctypedef struct operation_t:
    int32_t kind
    int32_t target                        # written in place of a result, if there is one
    int32_t arguments, n_arguments        # in replay_frame_t.arguments, and the same places of `slots`
    int32_t results, n_results            # in program.result_slots
    int32_t listed                        # the results are one list; of a draw: its number
    uint32_t reuse                        # arguments in whose memory the result may be computed
    int32_t patches, n_patches            # views of the results
    int32_t dead, n_dead                  # results that nobody reads after this
    int32_t touched, n_touched            # results that die in the stretch that it is part of, and that it touches
    int32_t updates, n_updates            # of an optimizer
    kernel_t kernel
    program_t *program
    sweep_t *sweep
    array_t *meta
    const char *name
    rule_t rule

# The layout of a contiguous result; a number of dimensions of -1: it is another one.
ctypedef struct expected_t:
    int64_t size
    int32_t dtype
    int32_t ndim

# Operations that threads share.
ctypedef struct shared_t:
    int32_t start, stop
    int32_t touched           # behind its places in program.touched
    const tasks_t *tasks

# What a slot from outside is filled with.
ctypedef enum input_kind_t:
    TENSOR_INPUT = 0
    GRADIENT_INPUT        # what is in .grad
    CONSTANT_INPUT

ctypedef struct input_t:
    int32_t slot
    int32_t kind
    int32_t number        # of the tensor

# A stretch that is run.
ctypedef struct shared_run_t:
    void *program             # borrowed
    replay_frame_t *frame
    int start

cdef enum:
    LONG_WORK = 1 << 14       # elements from which a replay gives the interpreter's lock up even if it is alone
    ALL = -1                  # arguments

cdef class Program:
    cdef int n_slots, n_operations, n_arguments, n_entries, n_updates
    cdef operation_t *operations
    cdef int32_t *slots               # of arguments: a slot; -1: none; of a list: its first entry in `entry_slots`
    cdef int32_t *entry_slots
    cdef int32_t *result_slots
    cdef expected_t *expected         # the same places as in `result_slots`
    cdef int32_t *dead
    cdef int32_t *touched
    cdef int32_t *touches             # of slots: how often they are in `touched`
    cdef shared_t *shared
    cdef int n_stretches
    cdef readonly list stretches
    cdef patch_t *patches             # those of what comes from outside first
    cdef int32_t *steps               # the slot of Adam's number of steps, for each update
    cdef int32_t *update_slots        # five for each update
    cdef value_t *templates           # arguments that are no arrays
    cdef int n_outer_patches
    cdef replay_frame_t *free_frames
    cdef list keep
    cdef readonly list description    # of the operations, for people
    cdef input_t *inputs
    cdef int n_inputs, n_tensors, n_outgoing, n_draws
    cdef readonly list held           # slot -> Held: layouts
    cdef array_t **layouts            # the same, borrowed
    cdef list is_view
    cdef readonly list groups                  # (operation, optimizer, group, options) of optimizers
    cdef readonly int64_t work        # elements that all operations touch
    cdef replay_frame_t *take_frame(self) except NULL
    cdef void give_frame(self, replay_frame_t *frame) noexcept
    cdef int run(self, replay_frame_t *frame) noexcept nogil
    # Fill the slots that come from outside from frame.tensors; empty the slots.
    cdef void begin(self, replay_frame_t *frame) noexcept
    cdef array_t *source(self, const input_t *input, replay_frame_t *frame) noexcept
    cdef void empty(self, replay_frame_t *frame) noexcept nogil
    cdef void end(self, replay_frame_t *frame) noexcept
    # Arrays of slots that leave, into frame.outgoing; a slot of -1: none.
    cdef int hand_out(self, replay_frame_t *frame, const int32_t *slots, int n) noexcept nogil
    cdef void fill_list(self, replay_frame_t *frame, int argument) noexcept nogil
    # `reuse`: arguments in whose memory results may be computed, if the operation says so too.
    cdef int run_operations(self, replay_frame_t *frame, int start, int stop, uint32_t reuse, bint frees) noexcept nogil
    cdef int run_shared(self, replay_frame_t *frame) noexcept nogil
    cdef int run_beside(self, int number, replay_frame_t *frame) noexcept nogil
    cdef int step(self, const operation_t *operation, replay_frame_t *frame, uint32_t reuse) noexcept nogil
    cdef int keep_results(self, const operation_t *operation, replay_frame_t *frame, value_t *results) noexcept nogil
    cdef bint lies_as_expected(self, const array_t *array, int result) noexcept nogil
    cdef int optimize(self, const operation_t *operation, replay_frame_t *frame) noexcept nogil
    # A slot's array as one of its own that may leave; NULL with a message if memory is exhausted.
    cdef array_t *leave(self, replay_frame_t *frame, int slot) noexcept nogil
