/* Padding with an array's own elements, in one pass: each row of the result copies the row that it repeats. */
#ifndef CYGRAD_PAD_ROWS_H
#define CYGRAD_PAD_ROWS_H

#include <stdint.h>
#include <string.h>

typedef struct {
    int ndim;
    int64_t bytes;                   /* of an element */
    const int64_t *shape;            /* of the result */
    const int64_t *index[64];        /* index of the element of a dimension at each position of the result */
    int64_t steps[64];               /* strides of the array in bytes */
    int64_t first, count;            /* positions of a row that are contiguous in the array */
    const char *source;
    char *result;
} pad_rows_t;

#define PAD_ENDS(type) do { \
        for (int64_t i = 0; i < p->first; i++) \
            ((type *)out)[i] = ((const type *)in)[index[i]]; \
        for (int64_t i = p->first + p->count; i < length; i++) \
            ((type *)out)[i] = ((const type *)in)[index[i]]; \
    } while (0)

typedef struct { uint64_t a, b; } pad_pair_t;

static void pad_rows(const pad_rows_t *p, int64_t begin, int64_t end) {
    const int last = p->ndim - 1;
    const int64_t length = p->shape[last], *index = p->index[last];
    char *out = p->result + begin * length * p->bytes;
    int64_t position[64], rest = begin;
    const char *in = p->source;
    for (int dim = last - 1; dim >= 0; dim--) {
        position[dim] = rest % p->shape[dim];
        rest /= p->shape[dim];
        in += p->index[dim][position[dim]] * p->steps[dim];
    }
    for (int64_t row = begin; row < end; row++, out += length * p->bytes) {
        if (p->count)
            memcpy(out + p->first * p->bytes, in + index[p->first] * p->bytes, (size_t)(p->count * p->bytes));
        switch (p->bytes) {
        case 1: PAD_ENDS(uint8_t); break;
        case 2: PAD_ENDS(uint16_t); break;
        case 4: PAD_ENDS(uint32_t); break;
        case 8: PAD_ENDS(uint64_t); break;
        default: PAD_ENDS(pad_pair_t); break;
        }
        for (int dim = last - 1; dim >= 0; dim--) {            /* the next row */
            const int64_t before = p->index[dim][position[dim]];
            position[dim] = position[dim] + 1 < p->shape[dim] ? position[dim] + 1 : 0;
            in += (p->index[dim][position[dim]] - before) * p->steps[dim];
            if (position[dim])
                break;
        }
    }
}
#undef PAD_ENDS

#endif
