/* Gather, scatter and scatter-add by a list of offsets in bytes; see copying.pxd. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* An offset that stands for "leave out" when writing or adding. */
#define SKIP ((int64_t)(-0x7fffffffffffffffLL))

typedef enum {
    READ,          /* dense = sparse[offsets] */
    WRITE,         /* sparse[offsets] = dense; the last of equal offsets wins */
    ADD,           /* sparse[offsets] += dense, in the order of the offsets; a sum of bools is true if one of them is */
    TAKE           /* READ from the last offset to the first, each leaving zeros: undoes WRITE */
} move_t;

/* Read one element of `size` bytes at each of n offsets, from rows `step` bytes apart, into contiguous rows. */
EXPORTED void read_elements(int64_t size, const char *sparse, int64_t step, char *dense, const int64_t *offsets,
                            int64_t n, int64_t rows);
/* WRITE or ADD one element at each of n offsets. */
EXPORTED void move_elements(move_t move, int dtype, int64_t size, char *sparse, char *dense, const int64_t *offsets,
                            int64_t n);
/* READ, WRITE or ADD a row of n elements, `stride` bytes apart in `sparse`. */
EXPORTED void move_row(move_t move, int dtype, int64_t size, char *sparse, char *dense, int64_t stride, int64_t n);
