"""Execution of a specialized program over a loop nest, tile by tile."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.iteration cimport MAX_OPERANDS, nest_t
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.elementwise.specialize cimport MAX_BUFFERS, MAX_CELLS, specialized_t
from cygrad._core.primitives.primitive_table cimport loop_t

cdef enum:
    MAX_SLOTS = MAX_INPUTS + MAX_CELLS + MAX_BUFFERS
    TARGET = 8192         # bytes of temporaries per tile: they fit into the L1 cache
    SMALLEST = 64         # elements of a tile, at least and as a multiple
    WORKSPACE = (MAX_BUFFERS + MAX_OPERANDS) * 16 * SMALLEST
    WORK = 65536          # additions per chunk of a parallel loop

# Addresses of the operands of the steps during one tile.
ctypedef struct slots_t:
    char *data[MAX_SLOTS]
    int64_t steps[MAX_SLOTS]      # bytes from one element to the next; 0: the same for all
    char *out
    int64_t out_step

ctypedef struct task_t:
    const specialized_t *program
    nest_t nest                   # operand 0: the result, then the inputs (numbers as NULL values)
    int32_t itemsize[MAX_OPERANDS]
    loop_t move[MAX_OPERANDS]     # copies the operand into a tile; [0]: casts a tile into the result
    slots_t cells                 # the numbers, already set
    # Set by run_task():
    int32_t even[MAX_OPERANDS]    # the operand has one stride throughout
    int32_t ready[MAX_OPERANDS]   # read or written directly, without a buffer
    int32_t same[MAX_OPERANDS]    # gathered once, because all tiles have the same elements of it
    int64_t piece                 # elements of a tile
    int64_t pieces                # tiles in a row
    int64_t rows                  # rows in a tile that holds several, else 0
    int64_t capacity              # elements of a buffer
    int32_t watched               # how to watch for nan (nan_watch.how_to_watch)
    int64_t nan                   # a nan was written, or may have been
    int64_t error                 # status of the first loop that refused a value
    char text[256]

# Return the tile size for temporaries of n bytes per element.
cdef int64_t tile_size(int64_t bytes) noexcept nogil
# Run the steps on n elements at the addresses of `slots`; buffers are in `workspace`.
cdef void run_steps(const specialized_t *program, slots_t *slots, char *workspace, int64_t capacity,
                    int64_t n) noexcept nogil
# Fill the cells: `numbers` is memory for those that are inputs.
cdef void place_cells(const specialized_t *program, const value_t *inputs, slots_t *slots,
                      double complex *numbers) noexcept nogil
# Run a task whose program, nest, sizes, moves and cells are set.
cdef int run_task(task_t *task) noexcept nogil
# The same on demand, for a task without a result (operand 0 has no memory and would be contiguous): prepare it once;
# then compute `n` elements from number `start` on into the contiguous memory `to`.
cdef void prepare_task(task_t *task) noexcept nogil
cdef void produce(void *task, int64_t start, int64_t n, char *to) noexcept nogil
