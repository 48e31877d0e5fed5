/* im2col and col2im for any dtype. An image has three dimensions (leading ones of size 1 where it has fewer). Row
 * (c, i, j, k) of the matrix holds, for each output position, the element of channel c under tap (i, j, k) of the
 * kernel; zero in the padding. */
#ifndef CYGRAD_CONVOLUTION_COLUMNS_H
#define CYGRAD_CONVOLUTION_COLUMNS_H

#include <stdint.h>
#include <string.h>
#include "simd/exported.h"

typedef struct {
    int64_t batch, groups, in_channels, out_channels;      /* channels of one group */
    int64_t size[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t positions, taps;                               /* products of `out` and `kernel` */
    int64_t batch_step, channel_step, step[3];             /* of the input, in elements */
} geometry_t;

/* Find the output positions [begin, end) whose tap is within `size`; `offset` is that of position 0, maybe negative. */
static inline void inside(int64_t offset, int64_t stride, int64_t size, int64_t *begin, int64_t *end) {
    int64_t low = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t high = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
    if (*begin < low) *begin = low;
    if (*end > high) *end = high;
    if (*end < *begin) *end = *begin;
}

/* Copy `lines` short blocks of equal size; the copy loop is chosen once. Two moves of a fixed size cover a block and
   overlap if it is smaller. */
static inline __attribute__((always_inline)) void copy_lines(
        char *target, int64_t target_step, const char *source, int64_t source_step, int64_t lines, int64_t bytes) {
#define BLOCKS(size) \
    if (bytes >= size && bytes <= 2 * size) { \
        for (; lines > 0; lines--, target += target_step, source += source_step) { \
            __builtin_memcpy(target, source, size); \
            __builtin_memcpy(target + bytes - size, source + bytes - size, size); \
        } \
        return; \
    }
    BLOCKS(64) BLOCKS(32) BLOCKS(16) BLOCKS(8) BLOCKS(4) BLOCKS(1)
#undef BLOCKS
    for (; lines > 0; lines--, target += target_step, source += source_step)
        memcpy(target, source, bytes);
}

/* Channels [c0, c1) of one image (of one group) at positions [p0, p1): rows of p1 - p0 elements of `bytes` bytes,
   `leading` elements apart. */
EXPORTED void gather_columns(const geometry_t *g, int64_t bytes, const void *image, int64_t c0, int64_t c1, int64_t p0,
                             int64_t p1, void *columns, int64_t leading);

/* Transpose of gather_columns: add columns to channels [c0, c1); for float, double, complex float and double, int64. */
EXPORTED void (*const scatter_columns[5])(const geometry_t *g, void *image, int64_t c0, int64_t c1, int64_t p0,
                                          int64_t p1, const void *columns, int64_t leading);

#endif
