// The loops of normalization for the SIMD target of this processor.

#include <limits>
#include "kernels/nn/normalization.h"

enum {
    COLUMNS = 256,                   /* maximum of a tile of channels with short lines */
    SHORT_LINE = 32,                 /* elements below which a line is short */
    LINES = 64                       /* lines summed in the precision of the type */
};
enum { PLAIN, SQUARES, PRODUCTS };   /* terms summed over each column of a tile */

int64_t tile_of(const channels_t *c) {
    return c->by_channel && c->inner > 0 && c->inner < SHORT_LINE && c->outer > 1 ? COLUMNS / c->inner : 0;
}

#define LOOPS "kernels/nn/normalization_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(normalize, normalize);
LOOP_TABLE(normalize_sums, normalize_sums);
LOOP_TABLE(normalize_backward, normalize_backward);
