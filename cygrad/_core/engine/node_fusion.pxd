"""Execution of fused nodes: steps on gradients, tile by tile."""

from libc.stdint cimport int16_t, int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.elementwise.tiles cimport specialized_t

# ---------------------------------------------------------------------------------------------------------- fused tiles

# Execution of fused nodes: steps on gradients, tile by tile.

cdef enum:
    MOST_FLOWS = 128
    MOST_STEPS = 48
    MOST_CELLS = 256
    MOST_CALLS = 192
    WIDEST = 8                # bytes of an element: fusions have no complex numbers

# What a step reads or writes: a saved array, or a gradient.
ctypedef struct flow_t:
    array_t *array            # its whole memory; NULL: it exists one tile at a time
    int64_t step              # bytes from one element to the next; 0: one for all
    int64_t row               # n > 0: each is for n elements of a row; -n < 0: n elements are repeated for all
    int32_t dtype
    int32_t slot              # its slot in the workspace, if it has one: without an array, or broadcast
    int32_t last              # the last step that reads it, or -1
    int32_t deliveries        # number of consumers outside of the fusion
    int32_t owned             # the fusion holds a reference to the array
    int32_t computed          # written by a step: until then `array` is the destination

ctypedef struct fusion_step_t:
    const specialized_t *program      # NULL: the sum of two flows
    int32_t first_cell        # of its numbers in `cells`
    int32_t n_inputs
    int16_t inputs[MAX_INPUTS]        # flows; -1: a number
    int16_t out

ctypedef struct program_of_fusion_t:
    int64_t size              # elements
    int32_t n_flows, n_steps, n_cells
    int32_t n_calls           # of loops, for each tile
    flow_t flows[MOST_FLOWS]
    fusion_step_t steps[MOST_STEPS]
    char *cells[MOST_CELLS]           # the numbers, each in the dtype that its step needs
    double complex numbers[MOST_CELLS]

# Do the tiles support this dtype?
cdef bint fits_tiles(const specialized_t *program) noexcept nogil
# Run the steps over all tiles.
cdef int run_fusion(program_of_fusion_t *fusion) noexcept nogil
