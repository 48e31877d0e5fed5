"""Execution of a specialized expression over a loop nest, tile by tile."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint64_t
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.elementwise.copying cimport MAX_OPERANDS, nest_t
from cygrad._core.elementwise.expression cimport MAX_INPUTS, expression_t
from cygrad._core.primitives.primitive_table cimport MAX_ARITY, loop_t

# ------------------------------------------------------------------------------------------------------------ nan watch

# Detecting nan while gradients are computed (anomaly mode).

# State of the nan watch of a thread.
ctypedef struct watch_t:
    int on                # whether this thread watches
    int nan               # an element-wise expression has written a nan
    int plain             # the running expression is plain arithmetic on numbers and gradients without nan
    int kernels           # a kernel other than an element-wise expression has run: unchecked

# Number of threads that watch; a fast check before `watch()`.
cdef int64_t nan_watchers
# The watch of the calling thread.
cdef watch_t *watch() noexcept nogil
# How to watch the results of an expression; 0: not at all.
cdef enum:
    LISTEN = 1            # test the status flag that the processor sets if arithmetic makes a nan of numbers
    LOOK = 2              # scan every number
cdef int how_to_watch() noexcept nogil
cdef void clear_invalid() noexcept nogil
cdef bint was_invalid() noexcept nogil
# Return whether there is a nan among n contiguous elements.
cdef bint may_hold_nan(int watched, const char *data, int dtype, int64_t n) noexcept nogil
cdef void begin_watch() noexcept nogil
cdef void end_watch() noexcept nogil
# Return whether there is a nan among n elements, `step` bytes apart.
cdef bint row_holds_nan(const char *data, int dtype, int64_t n, int64_t step) noexcept nogil
cdef bint holds_nan(const array_t *array) noexcept nogil

# ----------------------------------------------------------------------------------------------------------- specialize

# Expressions specialized for the dtypes of their inputs: loops resolved, casts inserted, buffers assigned.

cdef enum:
    MAX_CELLS = 64
    MAX_BUFFERS = 64
    # A slot holds an operand of a step: inputs, then cells, then buffers; and the result.
    OUT_SLOT = -1

# A number in the dtype that a step needs.
ctypedef struct cell_t:
    double value[2]
    int32_t input             # which input; -1: a constant, whose `value` never changes
    int32_t dtype

ctypedef struct step_t:
    loop_t loop
    void *data
    int16_t n_inputs
    int16_t out               # slot, or OUT_SLOT in the last step
    int16_t inputs[MAX_ARITY]  # slots
    int16_t out_size          # bytes per element of its result
    int16_t operation         # of a chain (short_loops.chain_operation), or -1
    int16_t links             # number of steps from this one on that may form a chain; 0: none
    int16_t kept              # a step after the next one reads it

# Immutable once published.
ctypedef struct specialized_t:
    uint64_t key[2]
    specialized_t *next
    int32_t dtype             # of the result
    int32_t n_inputs
    int32_t n_cells
    int32_t n_buffers
    int32_t width             # bytes per element of the widest buffer
    int32_t cost              # per element, in additions
    int32_t exact             # loops are bit-identical for any strides
    int32_t partial           # a loop may refuse a value: check loop_status()
    int32_t direct            # one step whose operands are the inputs, in order
    int32_t temporary         # not cached: the caller frees it
    int32_t n_steps
    step_t *steps
    cell_t cells[MAX_CELLS]

# Return the specialization for these inputs; NULL with a message and a status if there is none. If `temporary` is set,
# the caller passes it to discard().
cdef specialized_t *specialize(expression_t *expression, const value_t *inputs, int *status) noexcept nogil
cdef void discard(specialized_t *specialized) noexcept nogil
# Free all specializations of an expression.
cdef void forget(expression_t *expression) noexcept nogil

# ---------------------------------------------------------------------------------------------------------------- tiles

cdef enum:
    MAX_SLOTS = MAX_INPUTS + MAX_CELLS + MAX_BUFFERS
    TARGET = 8192         # bytes of temporaries per tile: they fit into the L1 cache
    SMALLEST = 64         # elements of a tile, at least and as a multiple
    WORKSPACE = (MAX_BUFFERS + MAX_OPERANDS) * 16 * SMALLEST

# Addresses of the operands of the steps during one tile.
ctypedef struct slots_t:
    char *data[MAX_SLOTS]
    int64_t steps[MAX_SLOTS]      # bytes from one element to the next; 0: the same for all
    char *out
    int64_t out_step

ctypedef struct task_t:
    const specialized_t *expression
    nest_t nest                   # operand 0: the result, then the inputs (numbers as NULL values)
    int32_t itemsize[MAX_OPERANDS]
    loop_t move[MAX_OPERANDS]     # copies the operand into a tile; [0]: casts a tile into the result
    slots_t cells                 # the numbers, already set
    # Set by run_task():
    int32_t even[MAX_OPERANDS]    # the operand has one stride throughout
    int32_t ready[MAX_OPERANDS]   # read or written directly, without a buffer
    int32_t same[MAX_OPERANDS]    # gathered once, because all tiles have the same elements of it
    int64_t tile                  # elements of a tile
    int64_t tiles_per_row         #
    int64_t rows                  # rows in a tile that holds several, else 0
    int64_t capacity              # elements of a buffer
    int32_t watched               # how to watch for nan (nan_watch.how_to_watch)
    int64_t nan                   # a nan was written, or may have been
    int64_t error                 # status of the first loop that refused a value
    char text[256]

# Return the tile size for temporaries of n bytes per element.
cdef int64_t tile_size(int64_t bytes) noexcept nogil
# Run the steps on n elements at the addresses of `slots`; buffers are in `workspace`.
cdef void run_steps(const specialized_t *expression, slots_t *slots, char *workspace, int64_t capacity,
                    int64_t n) noexcept nogil
# Fill the cells: `numbers` is memory for those that are inputs.
cdef void place_cells(const specialized_t *expression, const value_t *inputs, slots_t *slots,
                      double complex *numbers) noexcept nogil
# Run a task whose expression, nest, sizes, moves and cells are set.
cdef int run_task(task_t *task) noexcept nogil
# The same on demand, for a task without a result (operand 0 has no memory and would be contiguous): prepare it once;
# then compute `n` elements from number `start` on into the contiguous memory `to`.
cdef void prepare_task(task_t *task) noexcept nogil
cdef void produce(void *task, int64_t start, int64_t n, char *to) noexcept nogil

# ---------------------------------------------------------------------------------------------------------- fused loops

# Several specialized expressions over elements of one shape, tile by tile.

cdef enum:
    MAX_FUSED = 128       # operands

# An operand or result of a stage.
ctypedef struct fused_operand_t:
    char *data                # NULL: it exists one tile at a time
    int64_t step              # bytes from one element to the next; 0: one for all
    int64_t row               # n > 0: each is for n elements of a row; -n < 0: n elements are repeated for all
    int32_t dtype
    int32_t kept              # a stage writes it to `data`

ctypedef struct fused_stage_t:
    const specialized_t *expression      # NULL: the sum of its two inputs
    char **cells              # its numbers, each in the dtype that its step needs; NULL: all are constants
    int16_t inputs[MAX_INPUTS]        # operands; unused for a number
    int16_t out

ctypedef struct fused_loop_t:
    int64_t size              # elements
    int32_t n_operands, n_stages
    fused_operand_t *operands
    fused_stage_t *stages

# Run all stages; each bit is that of the expressions run one after the other, for any number of threads.
cdef int run_fused_loop(const fused_loop_t *loop) noexcept nogil
