// The loops of walks.

#include "kernels/indexing/walks.h"

#include <string.h>
#include "arrays/element_types.h"

namespace {

// element index[j] of a row
template <class T> inline T *place_of(const walk_row_t &walk, char *base, int64_t index, int64_t j) {
    return (T *)(base + index * walk.along + j * walk.across);
}

template <class T> void read_row(walk_row_t walk, char *base, T *dense, const int64_t *indices) {
    if (walk.along == sizeof(T) && walk.across == 0 && !walk.negative)
        for (int64_t j = 0; j < walk.length; j++)
            dense[j] = ((const T *)base)[indices[j]];
    else
        for (int64_t j = 0; j < walk.length; j++)
            dense[j] = *place_of<T>(walk, base, indices[j] + (indices[j] >> 63 & walk.size), j);
}

template <class T> void write_row(walk_row_t walk, char *base, T *dense, const int64_t *indices) {
    const int64_t step = walk.dense_step != 0;
    for (int64_t j = 0; j < walk.length; j++)
        *place_of<T>(walk, base, indices[j], j) = dense[j * step];
}

// Leave zeros, from the last to the first.
template <class T> void take_row(walk_row_t walk, char *base, T *dense, const int64_t *indices) {
    for (int64_t j = walk.length - 1; j >= 0; j--) {
        T *place = place_of<T>(walk, base, indices[j], j);
        dense[j] = *place;
        memset(place, 0, sizeof(T));
    }
}

// Combine dense[j] with element index[j]; nan wins.
template <class T> void combine_row(walk_row_t walk, char *base, const T *dense, const int64_t *indices) {
    const int64_t step = walk.dense_step != 0;
    if (walk.move == ADD && walk.along == sizeof(T) && walk.across == 0 && step)
        for (int64_t j = 0; j < walk.length; j++) {
            T *place = (T *)base + indices[j];
            *place = (T)(wrapping(*place) + wrapping(dense[j]));
        }
    else if (walk.move == ADD)
        for (int64_t j = 0; j < walk.length; j++) {
            T *place = place_of<T>(walk, base, indices[j], j);
            *place = (T)(wrapping(*place) + wrapping(dense[j * step]));
        }
    else if (walk.move == PROD)
        for (int64_t j = 0; j < walk.length; j++) {
            T *place = place_of<T>(walk, base, indices[j], j);
            *place = (T)(wrapping(*place) * wrapping(dense[j * step]));
        }
    else if constexpr (!is_complex<T>)
        for (int64_t j = 0; j < walk.length; j++) {
            T *place = place_of<T>(walk, base, indices[j], j);
            const T value = dense[j * step], old = *place;
            const T extreme = walk.move == AMAX ? (value > old ? value : old) : value < old ? value : old;
            *place = value != value ? value : extreme;      // instructions for extrema: a branch would be mispredicted
        }
}

}  // namespace

void walk_row(const walk_row_t *walk, char *base, char *dense, const int64_t *indices) {
    if (walk->move == ADD && walk->dtype == BOOL_DTYPE) {
        for (int64_t j = 0; j < walk->length; j++)
            if (dense[walk->dense_step ? j : 0])
                *place_of<char>(*walk, base, indices[j], j) = 1;
    } else if (walk->move == ADD || walk->move > TAKE)
        for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, complex64_t, complex128_t>(
            walk->dtype, [=](auto x) { combine_row(*walk, base, (const decltype(x) *)dense, indices); });
    else
        for_word(walk->itemsize, [=](auto x) {
            typedef decltype(x) T;
            (walk->move == READ ? read_row<T> : walk->move == TAKE ? take_row<T> : write_row<T>)(
                *walk, base, (T *)dense, indices);
        });
}

void fill_where(const uint8_t *mask, char *data, const void *value, int64_t size, int64_t begin, int64_t end) {
    for_word(size, [=](auto x) {
        typedef decltype(x) T;
        T *words = (T *)data;
        const T word = *(const T *)value;
        for (int64_t i = begin; i < end; i++)
            words[i] = mask[i] ? word : words[i];      // in any case: faster than a mispredicted branch
    });
}
