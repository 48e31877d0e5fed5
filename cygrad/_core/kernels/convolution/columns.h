/* im2col and col2im for any dtype. An image has three dimensions (leading ones of size 1 where it has fewer). Row
 * (c, i, j, k) of the matrix holds, for each output position, the element of channel c under tap (i, j, k) of the
 * kernel; zero in the padding. */
#ifndef CYGRAD_CONVOLUTION_COLUMNS_H
#define CYGRAD_CONVOLUTION_COLUMNS_H

#include <complex.h>
#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"
#include "simd/shuffle.h"

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

/* target[k] = source[2 * k] by contiguous vector loads. The last load overlaps the one before, so no memory after the
 * last needed element is read. */
#define EVEN_4 0, 2, 4, 6
#define EVEN_8 EVEN_4, 8, 10, 12, 14
#define EVEN_16 EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_4 1, 3, 5, 7
#define ODD_8 ODD_4, 9, 11, 13, 15
#define ODD_16 ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#define HALVES(name, word, lanes) \
    static inline __attribute__((always_inline)) int64_t name(word *target, const word *source, int64_t count) { \
        typedef word vector __attribute__((vector_size(lanes * sizeof(word)), aligned(sizeof(word)), may_alias)); \
        int64_t k = 0; \
        if (count <= lanes) \
            return 0; \
        for (; k + lanes < count; k += lanes) \
            *(vector *)(target + k) = SHUFFLE(*(const vector *)(source + 2 * k), \
                                              *(const vector *)(source + 2 * k + lanes), EVEN_##lanes); \
        k = count - lanes; \
        *(vector *)(target + k) = SHUFFLE(*(const vector *)(source + 2 * k - 1), \
                                          *(const vector *)(source + 2 * k - 1 + lanes), ODD_##lanes); \
        return count; \
    }
HALVES(sixteen_halves, uint32_t, 16)
HALVES(eight_halves, uint32_t, 8)
HALVES(four_halves, uint32_t, 4)
HALVES(eight_double_halves, uint64_t, 8)
HALVES(four_double_halves, uint64_t, 4)
#undef HALVES
#define NO_HALVES(target, source, count) 0
#define WORD_HALVES(target, source, count) \
    (count > 16 ? sixteen_halves(target, source, count) : count > 8 ? eight_halves(target, source, count) \
        : four_halves(target, source, count))
#define DOUBLE_HALVES(target, source, count) \
    (count > 8 ? eight_double_halves(target, source, count) : four_double_halves(target, source, count))

#define SOME_HALVES NO_HALVES
#define ELEMENT uint8_t
#define NAME(function) function##_1
#include "kernels/convolution/gather.h"
#undef ELEMENT
#undef NAME
#define ELEMENT uint16_t
#define NAME(function) function##_2
#include "kernels/convolution/gather.h"
#undef ELEMENT
#undef NAME
#undef SOME_HALVES
#define SOME_HALVES WORD_HALVES
#define ELEMENT uint32_t
#define NAME(function) function##_4
#include "kernels/convolution/gather.h"
#undef ELEMENT
#undef NAME
#undef SOME_HALVES
#define SOME_HALVES DOUBLE_HALVES
#define ELEMENT uint64_t
#define NAME(function) function##_8
#include "kernels/convolution/gather.h"
#undef ELEMENT
#undef NAME
#undef SOME_HALVES
#define SOME_HALVES NO_HALVES
#define ELEMENT double _Complex
#define NAME(function) function##_16
#include "kernels/convolution/gather.h"
#undef ELEMENT
#undef NAME
#undef SOME_HALVES
#undef NO_HALVES
#undef WORD_HALVES
#undef DOUBLE_HALVES

#define ELEMENT float
#define NAME(function) function##_float
#include "kernels/convolution/scatter.h"
#undef ELEMENT
#undef NAME
#define ELEMENT double
#define NAME(function) function##_double
#include "kernels/convolution/scatter.h"
#undef ELEMENT
#undef NAME
#define ELEMENT float _Complex
#define NAME(function) function##_complex_float
#include "kernels/convolution/scatter.h"
#undef ELEMENT
#undef NAME
#define ELEMENT double _Complex
#define NAME(function) function##_complex_double
#include "kernels/convolution/scatter.h"
#undef ELEMENT
#undef NAME
#define ELEMENT uint64_t
#define NAME(function) function##_integer
#include "kernels/convolution/scatter.h"
#undef ELEMENT
#undef NAME

/* Channels [c0, c1) of one image (of one group) at positions [p0, p1): rows of p1 - p0 elements of `bytes` bytes,
   `leading` elements apart. */
static inline void gather_columns(const geometry_t *g, int64_t bytes, const char *image, int64_t c0, int64_t c1,
                                  int64_t p0, int64_t p1, char *columns, int64_t leading) {
    switch (bytes) {
        case 1: gather_1(g, (const uint8_t *)image, c0, c1, p0, p1, (uint8_t *)columns, leading); break;
        case 2: gather_2(g, (const uint16_t *)image, c0, c1, p0, p1, (uint16_t *)columns, leading); break;
        case 4: gather_4(g, (const uint32_t *)image, c0, c1, p0, p1, (uint32_t *)columns, leading); break;
        case 8: gather_8(g, (const uint64_t *)image, c0, c1, p0, p1, (uint64_t *)columns, leading); break;
        default: gather_16(g, (const double _Complex *)image, c0, c1, p0, p1, (double _Complex *)columns, leading);
    }
}

/* Transpose of gather_columns: add columns to channels [c0, c1). kind: 0 float, 1 double, 2 and 3 complex, 4 int64. */
static inline void scatter_columns(const geometry_t *g, int kind, char *image, int64_t c0, int64_t c1,
                                   int64_t p0, int64_t p1, const char *columns, int64_t leading) {
    switch (kind) {
        case 0: scatter_float(g, (float *)image, c0, c1, p0, p1, (const float *)columns, leading); break;
        case 1: scatter_double(g, (double *)image, c0, c1, p0, p1, (const double *)columns, leading); break;
        case 2: scatter_complex_float(g, (float _Complex *)image, c0, c1, p0, p1, (const float _Complex *)columns,
                                      leading);
            break;
        case 3: scatter_complex_double(g, (double _Complex *)image, c0, c1, p0, p1, (const double _Complex *)columns,
                                       leading);
            break;
        default: scatter_integer(g, (uint64_t *)image, c0, c1, p0, p1, (const uint64_t *)columns, leading);
    }
}

#endif
