// The loops of moves by offsets.

#include "elementwise/offset_loops.h"

#include <string.h>
#include "arrays/element_types.h"

namespace {

template <class F> void for_number(int dtype, F f) {
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double, complex64_t, complex128_t>(dtype, f);
}

}  // namespace

void read_elements(int64_t size, const char *sparse, int64_t step, char *dense, const int64_t *offsets, int64_t n,
                   int64_t rows) {
    for_word(size, [=](auto x) {
        typedef decltype(x) T;
        T *out = (T *)dense;
        int64_t row = 0;
        for (; row + 4 <= rows; row += 4, out += 4 * n)         // one load of an offset for four elements
            for (int64_t i = 0; i < n; i++) {
                const char *const place = sparse + row * step + offsets[i];
                const T a = *(const T *)place, b = *(const T *)(place + step);
                const T c = *(const T *)(place + 2 * step), d = *(const T *)(place + 3 * step);
                out[i] = a, out[n + i] = b, out[2 * n + i] = c, out[3 * n + i] = d;
            }
        for (; row < rows; row++, out += n)
            for (int64_t i = 0; i < n; i++)
                out[i] = *(const T *)(sparse + row * step + offsets[i]);
    });
}

void move_elements(move_t move, int dtype, int64_t size, char *sparse, char *dense, const int64_t *offsets, int64_t n) {
    if (move == WRITE)
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
