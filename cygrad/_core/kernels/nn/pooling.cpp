// The loops of pooling for the SIMD target of this processor.

#include <algorithm>
#include "kernels/nn/pooling.h"

enum { SEGMENT = 256 };

/* Return the number of windows from `c` on, without padding, in a segment of a line. */
static inline int64_t windows_of_segment(const pooling_t *p, int64_t c) {
    if (c < p->inner_first || c >= p->inner_last)
        return 0;
    const int64_t most = (SEGMENT - p->windows[2][c].count) / p->inner_stride + 1, left = p->inner_last - c;
    return left < most ? left : most;
}

#define LOOPS "kernels/nn/pooling_loops.h"
#include "simd/dispatch.h"

// The wider sets only for floats: compiling takes its time.
#define MAXIMA(T) (maxima_t)DISPATCH(maxima<T>)
#define AVERAGES(T) (averages_t)DISPATCH(averages<T>)
#define SHARES(T) (averages_t)DISPATCH(shares<T>)
#define INTEGER_MAXIMA(T) (maxima_t)baseline::maxima<T>
#define MOVES(T) {(move_plane_t)baseline::move_plane<T, PICK>, (move_plane_t)baseline::move_plane<T, SPREAD>, \
                  (move_plane_t)baseline::move_plane<T, PLACE>}

const maxima_t window_maxima[] = {NULL, INTEGER_MAXIMA(uint8_t), INTEGER_MAXIMA(int8_t), INTEGER_MAXIMA(int16_t),
                                  INTEGER_MAXIMA(int32_t), INTEGER_MAXIMA(int64_t), MAXIMA(float), MAXIMA(double)};
const averages_t window_averages[] = {NULL, NULL, NULL, NULL, NULL, (averages_t)baseline::averages<int64_t>,
                                      AVERAGES(float), AVERAGES(double)};
const averages_t window_shares[] = {NULL, NULL, NULL, NULL, NULL, (averages_t)baseline::shares<int64_t>,
                                    SHARES(float), SHARES(double)};
const move_plane_t plane_moves[][3] = {{}, {}, {}, {}, {}, {}, MOVES(float), MOVES(double), MOVES(_Complex float),
                                       MOVES(_Complex double)};
