/* Loops of pooling over one plane; see pooling.h.

   Of equal maxima the first wins, or the last nan. A window of padding alone, possible with dilation, has the
   index -1. */

template <class T> INLINE void maximum(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z,
        T *result, int64_t *index) {
    typedef std::numeric_limits<T> limits;
    if (x->count * y->count * z->count == 0) {
        *result = limits::has_infinity ? -limits::infinity() : limits::lowest();
        *index = -1;
        return;
    }
    int64_t best = (x->begin * p->size[1] + y->begin) * p->size[2] + z->begin;
    T value = plane[best];
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            const int64_t line = ((x->begin + i * p->step[0]) * p->size[1] + y->begin + j * p->step[1]) * p->size[2]
                + z->begin;
            for (int64_t k = 0; k < z->count; k++) {
                const int64_t at = line + k * p->step[2];
                const T other = plane[at];
                if (other > value || other != other) {
                    value = other;
                    best = at;
                }
            }
        }
    *result = value;
    *index = best;
}

/* Compute n <= LANES adjacent windows inside a line, `stride` apart, vectorized over `lanes` windows. */
template <class T> INLINE void neighbors(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z, int n,
        const int lanes, const int64_t stride, T *values, int64_t *indices) {
    const int64_t origin = (x->begin * p->size[1] + y->begin) * p->size[2] + z->begin;
    T best[LANES];
    int32_t places[LANES];
    for (int lane = 0; lane < lanes; lane++) {
        best[lane] = plane[origin + lane * stride];
        places[lane] = 0;
    }
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++)
            for (int64_t k = 0; k < z->count; k++) {
                const int64_t place = (i * p->step[0] * p->size[1] + j * p->step[1]) * p->size[2] + k * p->step[2];
                const T *source = plane + origin + place;
                for (int lane = 0; lane < lanes; lane++) {
                    const T value = source[lane * stride];
                    const int better = (value > best[lane]) | (value != value);
                    best[lane] = better ? value : best[lane];
                    places[lane] = better ? (int32_t)place : places[lane];
                }
            }
    for (int lane = 0; lane < n; lane++) {
        values[lane] = best[lane];
        indices[lane] = origin + lane * stride + places[lane];
    }
}

/* Call `neighbors` with whole vectors if the plane is long enough; return number of windows. */
template <class T> INLINE int some_neighbors(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z, int64_t left,
        const int64_t stride, T *values, int64_t *indices) {
    const int n = left < LANES ? (int)left : LANES, lanes = (n + WHOLE_LANES - 1) / WHOLE_LANES * WHOLE_LANES;
    const int64_t last = ((x->begin + (x->count - 1) * p->step[0]) * p->size[1] + y->begin
                          + (y->count - 1) * p->step[1]) * p->size[2] + z->begin + (z->count - 1) * p->step[2];
    /* With a stride, vectors are assembled from single elements: fewer lanes are faster. */
    const int whole = stride == 1 && last + lanes - 1 < p->size[0] * p->size[1] * p->size[2];
    if (n == LANES)
        neighbors<T>(p, plane, x, y, z, LANES, LANES, stride, values, indices);
    else
        neighbors<T>(p, plane, x, y, z, n, whole ? lanes : n, stride, values, indices);
    return n;
}

template <class T> static void maxima(const pooling_t *p, const T *plane, T *values, int64_t *indices) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t left = c < p->inner_first ? 0 : p->inner_last - c;
                if (left >= 4 && x.count > 0 && y.count > 0) {
                    const int n = p->inner_stride == 1
                        ? some_neighbors<T>(p, plane, &x, &y, &z, left, 1, values, indices)
                        : p->inner_stride == 2 ? some_neighbors<T>(p, plane, &x, &y, &z, left, 2, values, indices)
                        : some_neighbors<T>(p, plane, &x, &y, &z, left, p->inner_stride, values, indices);
                    c += n;
                    values += n;
                    indices += n;
                } else {
                    maximum<T>(p, plane, &x, &y, &z, values++, indices++);
                    c++;
                }
            }
        }
}
template <class T> INLINE T divisor_of(const pooling_t *p, const window_t *x, const window_t *y, const window_t *z) {
    if (p->divisor != 0)
        return (T)p->divisor;
    if (p->with_padding)
        return (T)(x->full * y->full * z->full);
    return (T)(x->count * y->count * z->count);
}

/* Dividing the smallest integer by -1 raises a processor exception. */
template <class T> INLINE T quotient(T sum, T divisor) {
    return divisor == (T)-1 ? -sum : sum / divisor;
}

/* Sum contiguous elements in lanes, which the compiler vectorizes. */
template <class T> INLINE T line_total(const T *line, int64_t n) {
    T lanes[LANES] = {0}, sum = 0;
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += line[k + lane];
    for (int lane = 0; lane < LANES && n >= LANES; lane++)
        sum += lanes[lane];
    for (; k < n; k++)
        sum += line[k];
    return sum;
}

/* Average one window. */
template <class T> INLINE T average(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z) {
    T sum = 0;
    if (x->count * y->count * z->count == 0)
        return 0;
    for (int64_t i = 0; i < x->count; i++) {
        const T *line = plane + ((x->begin + i) * p->size[1] + y->begin) * p->size[2] + z->begin;
        if (z->count == p->size[2])
            sum += line_total<T>(line, y->count * z->count);
        else
            for (int64_t j = 0; j < y->count; j++)
                sum += line_total<T>(line + j * p->size[2], z->count);
    }
    return quotient<T>(sum, divisor_of<T>(p, x, y, z));
}

/* Average n adjacent windows that are not cut by padding: sum columns, then adjacent columns. */
template <class T> INLINE void neighbor_averages(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z, int64_t n,
        const int64_t stride, T *values) {
    T columns[SEGMENT], sums[SEGMENT];
    const int64_t length = (n - 1) * stride + z->count;
    const T divisor = divisor_of<T>(p, x, y, z);
    for (int64_t m = 0; m < length; m++)
        columns[m] = 0;
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            const T *line = plane + ((x->begin + i) * p->size[1] + y->begin + j) * p->size[2] + z->begin;
            for (int64_t m = 0; m < length; m++)
                columns[m] += line[m];
        }
    for (int64_t c = 0; c < n; c++)
        sums[c] = columns[c * stride];
    for (int64_t k = 1; k < z->count; k++)
        for (int64_t c = 0; c < n; c++)
            sums[c] += columns[c * stride + k];
    for (int64_t c = 0; c < n; c++)
        values[c] = quotient<T>(sums[c], divisor);
}

template <class T> static void averages(const pooling_t *p, const T *plane, T *values) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t n = x.count > 0 && y.count > 0 ? windows_of_segment(p, c) : 0;
                if (n < 4) {
                    *values++ = average<T>(p, plane, &x, &y, &z);
                    c++;
                    continue;
                }
                if (p->inner_stride == 1)
                    neighbor_averages<T>(p, plane, &x, &y, &z, n, 1, values);
                else if (p->inner_stride == 2)
                    neighbor_averages<T>(p, plane, &x, &y, &z, n, 2, values);
                else
                    neighbor_averages<T>(p, plane, &x, &y, &z, n, p->inner_stride, values);
                values += n;
                c += n;
            }
        }
}

/* Transpose of neighbor_averages: a column gets the same in all lines of the windows. */
template <class T> INLINE void neighbor_shares(
        const pooling_t *p, const T *grad, const window_t *x, const window_t *y, const window_t *z, int64_t n,
        const int64_t stride, T *plane) {
    T shares[2 * SEGMENT], columns[SEGMENT];
    const int64_t length = (n - 1) * stride + z->count, zeros = stride == 1 ? z->count - 1 : 0;
    const T divisor = divisor_of<T>(p, x, y, z);
    for (int64_t k = 0; k < zeros; k++)
        shares[k] = shares[zeros + n + k] = 0;
    for (int64_t c = 0; c < n; c++)
        shares[zeros + c] = quotient<T>(grad[c], divisor);
    for (int64_t m = 0; m < length; m++)
        columns[m] = 0;
    for (int64_t k = 0; k < z->count; k++) {
        if (stride == 1)
            for (int64_t m = 0; m < length; m++)
                columns[m] += shares[zeros - k + m];
        else
            for (int64_t c = 0; c < n; c++)
                columns[c * stride + k] += shares[c];
    }
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            T *line = plane + ((x->begin + i) * p->size[1] + y->begin + j) * p->size[2] + z->begin;
            for (int64_t m = 0; m < length; m++)
                line[m] += columns[m];
        }
}

/* Distribute each element of `grad` equally to its window; `plane` starts at zero. */
template <class T> static void shares(const pooling_t *p, const T *grad, T *plane) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t n = x.count > 0 && y.count > 0 ? windows_of_segment(p, c) : 0;
                if (n >= 4) {
                    if (p->inner_stride == 1)
                        neighbor_shares<T>(p, grad, &x, &y, &z, n, 1, plane);
                    else if (p->inner_stride == 2)
                        neighbor_shares<T>(p, grad, &x, &y, &z, n, 2, plane);
                    else
                        neighbor_shares<T>(p, grad, &x, &y, &z, n, p->inner_stride, plane);
                    grad += n;
                    c += n;
                    continue;
                }
                c++;
                const T value = *grad++;
                if (x.count * y.count * z.count == 0)
                    continue;
                const T share = quotient<T>(value, divisor_of<T>(p, &x, &y, &z));
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < y.count; j++) {
                        T *line = plane + ((x.begin + i) * p->size[1] + y.begin + j) * p->size[2] + z.begin;
                        for (int64_t k = 0; k < z.count; k++)
                            line[k] += share;
                    }
            }
        }
}

/* Move one element; return whether its position is out of bounds. */
template <class T, int MOVE> INLINE int64_t move_one(T *small, T *large, const int64_t *positions, int64_t limit,
                                                     int64_t i) {
    const int64_t at = positions[i];
    if ((uint64_t)at >= (uint64_t)limit) {
        if (MOVE == PICK && at == -1)
            small[i] = 0;
        return at != -1 || MOVE == PLACE;
    }
    if (MOVE == PICK)
        small[i] = large[at];
    else
        large[at] = MOVE == SPREAD ? large[at] + small[i] : small[i];
    return 0;
}

/* Adjacent elements often have the same position. Interleave four parts, so that sums do not wait for each other;
   PLACE is in order, because the last element wins. */
template <class T, int MOVE> static int64_t move_plane(T *small, T *large, const int64_t *positions, int64_t n,
                                                       int64_t limit) {
    const int64_t part = MOVE == PLACE ? 0 : n / 4;
    int64_t wrong = 0;
    if (MOVE != PICK)
        memset((void *)large, 0, limit * sizeof(T));
    for (int64_t i = 0; i < part; i++)
        wrong |= move_one<T, MOVE>(small, large, positions, limit, i)
            | move_one<T, MOVE>(small, large, positions, limit, part + i)
            | move_one<T, MOVE>(small, large, positions, limit, 2 * part + i)
            | move_one<T, MOVE>(small, large, positions, limit, 3 * part + i);
    for (int64_t i = 4 * part; i < n; i++)
        wrong |= move_one<T, MOVE>(small, large, positions, limit, i);
    return wrong;
}
