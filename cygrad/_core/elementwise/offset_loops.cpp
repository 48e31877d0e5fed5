// The loops of moves by offsets.

#include "elementwise/offset_loops.h"

#include <string.h>
#include "arrays/element_types.h"

namespace {

template <class F> void for_number(int dtype, F f) {
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, complex64_t, complex128_t>(dtype, f);
}

}  // namespace

void move_elements(move_t move, int dtype, int64_t size, char *sparse, char *dense, const int64_t *offsets, int64_t n) {
    if (move == READ)
        for_word(size, [=](auto x) {
            typedef decltype(x) T;
            for (int64_t i = 0; i < n; i++)
                ((T *)dense)[i] = *(const T *)(sparse + offsets[i]);
        });
    else if (move == WRITE)
        for_word(size, [=](auto x) {
            typedef decltype(x) T;
            for (int64_t i = 0; i < n; i++)
                if (offsets[i] != SKIP)
                    *(T *)(sparse + offsets[i]) = ((const T *)dense)[i];
        });
    else if (dtype == BOOL_DTYPE) {
        for (int64_t i = 0; i < n; i++)
            if (offsets[i] != SKIP && dense[i])
                sparse[offsets[i]] = 1;
    } else
        for_number(dtype, [=](auto x) {
            typedef decltype(x) T;
            for (int64_t i = 0; i < n; i++)
                if (offsets[i] != SKIP) {
                    T *place = (T *)(sparse + offsets[i]);
                    *place = (T)(wrapping(*place) + wrapping(((const T *)dense)[i]));
                }
        });
}

void move_row(move_t move, int dtype, int64_t size, char *sparse, char *dense, int64_t stride, int64_t n) {
    if (move != ADD && stride == size)
        memcpy(move == READ ? dense : sparse, move == READ ? sparse : dense, n * size);
    else if (move != ADD)
        for_word(size, [=](auto x) {
            typedef decltype(x) T;
            if (move == READ)
                for (int64_t i = 0; i < n; i++)
                    ((T *)dense)[i] = *(const T *)(sparse + i * stride);
            else
                for (int64_t i = 0; i < n; i++)
                    *(T *)(sparse + i * stride) = ((const T *)dense)[i];
        });
    else if (dtype == BOOL_DTYPE) {
        for (int64_t i = 0; i < n; i++)
            if (dense[i])
                sparse[i * stride] = 1;
    } else
        for_number(dtype, [=](auto x) {
            typedef decltype(x) T;
            if (stride == sizeof(T))
                for (int64_t i = 0; i < n; i++)
                    ((T *)sparse)[i] = (T)(wrapping(((const T *)sparse)[i]) + wrapping(((const T *)dense)[i]));
            else
                for (int64_t i = 0; i < n; i++) {
                    T *place = (T *)(sparse + i * stride);
                    *place = (T)(wrapping(*place) + wrapping(((const T *)dense)[i]));
                }
        });
}
