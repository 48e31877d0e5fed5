/* Loops of pooling over one plane; see pooling.h.

   Of equal maxima the first wins, or the last nan. A window of padding alone, possible with dilation, has the
   index -1. */

/* The maximum of at least VECTOR_LANES<T> elements in a row, or nan. */
template <class T> INLINE T line_maximum(const T *line, int64_t n) {
    const auto farther = [](auto &a, const auto &x) { a = ((x > a) | (x != x)) ? x : a; };
    vector_t<T> best = load<T>(line + n - VECTOR_LANES<T>);
    for (int64_t k = 0; k + VECTOR_LANES<T> < n; k += VECTOR_LANES<T>)
        farther(best, load<T>(line + k));
    return folded<T, VECTOR_BYTES>(best, farther);
}

template <class T> INLINE void maximum(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z,
        T *result, int64_t *index) {
    typedef std::numeric_limits<T> limits;
    const bool joined = z->count == p->size[2] && p->step[1] == 1 && p->step[2] == 1;
    const int64_t lines = joined ? 1 : y->count, length = joined ? y->count * z->count : z->count;
    if (x->count * y->count * z->count == 0) {
        *result = limits::has_infinity ? -limits::infinity() : limits::lowest();
        *index = -1;
        return;
    }
    int64_t best = (x->begin * p->size[1] + y->begin) * p->size[2] + z->begin;
    T value = plane[best];
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < lines; j++) {
            const int64_t line = ((x->begin + i * p->step[0]) * p->size[1] + y->begin + j * p->step[1]) * p->size[2]
                + z->begin;
            int64_t k = 0, end = length;
            if (length >= VECTOR_LANES<T> && p->step[2] == 1) {     /* find the maximum of the line, then its place */
                const T most = line_maximum<T>(plane + line, length);
                if (most == most && !(most > value))
                    continue;
                while (most == most && plane[line + k] != most)
                    k++;
                end = most == most ? k + 1 : length;
            }
            for (; k < end; k++) {
                const int64_t at = line + k * p->step[2];
                const T other = plane[at];
                const bool better = (other > value) | (other != other);      /* no branches: they are hard to predict */
                value = better ? other : value;
                best = better ? at : best;
            }
        }
    *result = value;
    *index = best;
}

template <class T, int... LANE> INLINE vector_t<T> every_other(const T *from, std::integer_sequence<int, LANE...>) {
    constexpr int half = VECTOR_LANES<T> / 2;
    return SHUFFLE(load<T>(from), load<T>(from + 2 * half - 1), (2 * LANE + (LANE >= half))...);
}

/* Lanes of a vector of elements, each with a position of 32 bits. */
template <class T> constexpr int LANES_OF = std::min(VECTOR_LANES<T>, VECTOR_LANES<int32_t>);
template <class T, class E = T> using lanes_t = typename vector_of<E, LANES_OF<T> * sizeof(E)>::type;

/* Load the elements of `source` at the positions, which are STRIDE apart unless that is 0. */
template <class T, int STRIDE> INLINE lanes_t<T> load_lanes(const T *source, const int32_t *positions) {
    if constexpr (STRIDE == 1) {
        return load<T, sizeof(lanes_t<T>)>(source + *positions);
    } else if constexpr (STRIDE == 2 && LANES_OF<T> == VECTOR_LANES<T>) {
        return every_other(source + *positions, std::make_integer_sequence<int, LANES_OF<T>>());
    } else {
        lanes_t<T> values;
        for (int lane = 0; lane < LANES_OF<T>; lane++)
            values[lane] = source[positions[lane]];
        return values;
    }
}

/* Compute M vectors of windows that begin at `origins`, of `rows` times `lines` whole lines. */
template <class T, int STRIDE, int M> INLINE void some_maxima(
        const pooling_t *p, const T *plane, int64_t rows, int64_t lines, const int32_t *origins, T *values,
        int32_t *places) {
    constexpr int L = LANES_OF<T>;
    const int64_t row_step = p->step[0] * p->size[1] * p->size[2], line_step = p->step[1] * p->size[2];
    const int64_t step = p->step[2], whole = p->kernel[2];
    lanes_t<T> best[M];
    lanes_t<T, int32_t> found[M] = {};
    for (int m = 0; m < M; m++)
        best[m] = load_lanes<T, STRIDE>(plane, origins + m * L);
    for (int64_t i = 0, row = 0; i < rows; i++, row += row_step)
        for (int64_t j = 0, line = row; j < lines; j++, line += line_step)
            for (int64_t k = 0, place = line; k < whole; k++, place += step)
                for (int m = 0; m < M; m++) {
                    const lanes_t<T> x = load_lanes<T, STRIDE>(plane + place, origins + m * L);
                    const auto better = (x > best[m]) | (x != x);
                    best[m] = better ? x : best[m];
                    found[m] = __builtin_convertvector(better, decltype(found[m] + 0))
                        ? (found[m] ^ found[m]) + (int32_t)place : found[m];
                }
    for (int m = 0; m < M; m++) {
        store(values + m * L, best[m]);
        store(places + m * L, found[m]);
    }
}

/* Compute the windows of a line of results that its ends do not cut, from `origin` on; the last vectors overlap. */
template <class T, int M> static void line_maxima(
        const pooling_t *p, const T *plane, int64_t rows, int64_t lines, int64_t origin, T *values, int64_t *indices) {
    constexpr int AT_ONCE = M * LANES_OF<T>;
    const int64_t n = p->inner_last - p->inner_first;
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t first = at + AT_ONCE <= n ? at : n - AT_ONCE;
        int32_t origins[AT_ONCE], places[AT_ONCE];
        T best[AT_ONCE];
        for (int lane = 0; lane < AT_ONCE; lane++)
            origins[lane] = (int32_t)(origin + (first + lane) * p->inner_stride);
        if (p->inner_stride == 1)
            some_maxima<T, 1, M>(p, plane, rows, lines, origins, best, places);
        else if (p->inner_stride == 2)
            some_maxima<T, 2, M>(p, plane, rows, lines, origins, best, places);
        else
            some_maxima<T, 0, M>(p, plane, rows, lines, origins, best, places);
        for (int lane = 0; lane < AT_ONCE; lane++) {
            values[first + lane] = best[lane];
            indices[first + lane] = origins[lane] + places[lane];
        }
    }
}

template <class T> static void maxima(const pooling_t *p, const T *plane, T *values, int64_t *indices) {
    constexpr int L = LANES_OF<T>;
    const bool by_lines = p->origins != NULL && p->inner_last - p->inner_first >= L;
    for (int64_t at = 0; at < p->n_whole && !by_lines; at += L) {
        const int64_t first = at + L <= p->n_whole || at == 0 ? at : p->n_whole - L;
        const int32_t *origins = p->origins + first, *numbers = p->numbers + first;
        T best[L];
        int32_t places[L];
        some_maxima<T, 0, 1>(p, plane, p->kernel[0], p->kernel[1], origins, best, places);
        for (int lane = 0; lane < L; lane++) {
            values[numbers[lane]] = best[lane];
            indices[numbers[lane]] = origins[lane] + places[lane];
        }
    }
    for (int64_t a = 0, number = p->inner_first; a < p->out[0] && by_lines; a++)
        for (int64_t b = 0; b < p->out[1]; b++, number += p->out[2]) {
            const window_t *x = &p->windows[0][a], *y = &p->windows[1][b];
            const auto line = p->inner_last - p->inner_first >= 2 * L ? line_maxima<T, 2> : line_maxima<T, 1>;
            if (x->count > 0 && y->count > 0)
                line(p, plane, x->count, y->count, (x->begin * p->size[1] + y->begin) * p->size[2]
                     + p->windows[2][p->inner_first].begin, values + number, indices + number);
        }
    for (int64_t i = 0, a = 0, b = 0, c = 0, last = 0; i < p->n_cut; i++) {
        const int64_t number = p->cut != NULL ? p->cut[i] : i;
        for (c += number - last, last = number; c >= p->out[2]; c -= p->out[2])
            if (++b == p->out[1])
                b = 0, a++;
        const window_t *x = &p->windows[0][a], *y = &p->windows[1][b];
        if (!(by_lines && c >= p->inner_first && c < p->inner_last && x->count > 0 && y->count > 0))
            maximum<T>(p, plane, x, y, &p->windows[2][c], &values[number], &indices[number]);
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

/* Sum contiguous elements in lanes of 128 bytes, so that results do not depend on the width of vectors. */
template <class T> INLINE T line_total(const T *line, int64_t n) {
    enum { K = VECTOR_LANES<T>, WIDTH = 64 / VECTOR_BYTES };
    T rest = 0;
    int64_t k = 0;
    if (n < WIDTH * K) {
        for (; k < n; k++)
            rest += line[k];
        return rest;
    }
    vector_t<T> lanes[2 * WIDTH] = {};
    for (; k + 2 * WIDTH * K <= n; k += 2 * WIDTH * K)
        for (int j = 0; j < 2 * WIDTH; j++)
            lanes[j] += load<T>(line + k + j * K);
    if (k + WIDTH * K <= n)
        for (int j = 0; j < WIDTH; j++, k += K)
            lanes[j] += load<T>(line + k);
    for (; k < n; k++)
        rest += line[k];
    for (int left = WIDTH; left; left /= 2)
        for (int j = 0; j < left; j++)
            lanes[j] += lanes[left + j];
    return rest + folded<T, VECTOR_BYTES>(lanes[0], [](auto &a, const auto &x) { a += x; });
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
                const bool joined = z.count == p->size[2];
                const int64_t lines = joined ? 1 : y.count, length = joined ? y.count * z.count : z.count;
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < lines; j++) {
                        T *line = plane + ((x.begin + i) * p->size[1] + y.begin + j) * p->size[2] + z.begin;
                        for (int64_t k = 0; k < length; k++)
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
