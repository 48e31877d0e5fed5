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

template <class T> constexpr T LOWEST = std::numeric_limits<T>::has_infinity
    ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();

template <class T> INLINE void maximum(
        const pooling_t *p, const T *plane, const window_t *x, const window_t *y, const window_t *z,
        T *result, int64_t *index) {
    const bool joined = z->count == p->size[2] && p->step[1] == 1 && p->step[2] == 1;
    const int64_t lines = joined ? 1 : y->count, length = joined ? y->count * z->count : z->count;
    if (x->count * y->count * z->count == 0) {
        *result = LOWEST<T>;
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

/* Load elements that are `stride` apart: STRIDE, unless that is 0. */
template <class T, int STRIDE> INLINE lanes_t<T> load_lanes(const T *from, int64_t stride) {
    if constexpr (STRIDE == 1) {
        return load<T, sizeof(lanes_t<T>)>(from);
    } else if constexpr (STRIDE == 2 && LANES_OF<T> == VECTOR_LANES<T>) {
        return every_other(from, std::make_integer_sequence<int, LANES_OF<T>>());
    } else {
        lanes_t<T> values;
        for (int lane = 0; lane < LANES_OF<T>; lane++)
            values[lane] = from[stride * lane];
        return values;
    }
}

/* Compute M vectors of adjacent windows of `rows` times `lines` lines, of which the first begins at `from`; `found`
 * has the places of their first elements, relative to where the windows begin with padding. */
template <class T, int STRIDE, int M> INLINE void some_maxima(
        const pooling_t *p, const T *from, int64_t rows, int64_t lines, T *values, lanes_t<T, int32_t> (&found)[M]) {
    constexpr int L = LANES_OF<T>;
    const int64_t line_step = p->step[1] * p->line, row_step = p->step[0] * p->size[1] * p->line;
    const int64_t line_place = p->step[1] * p->size[2], row_place = p->step[0] * p->size[1] * p->size[2];
    const int64_t step = p->step[2], whole = p->kernel, stride = STRIDE ? STRIDE : p->inner_stride;
    lanes_t<T> best[M];
    for (int m = 0; m < M; m++)
        best[m] = lanes_t<T>{} + LOWEST<T>;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < lines; j++) {
            const T *source = from + i * row_step + j * line_step;
            int64_t place = i * row_place + j * line_place;
            for (int64_t k = 0; k < whole; k++, place += step, source += step)
                for (int m = 0; m < M; m++) {
                    const lanes_t<T> x = load_lanes<T, STRIDE>(source + m * L * stride, stride);
                    const auto better = (x > best[m]) | (x != x);
                    best[m] = better ? x : best[m];
                    found[m] = __builtin_convertvector(better, decltype(found[m] + 0))
                        ? (found[m] ^ found[m]) + (int32_t)place : found[m];
                }
        }
    for (int m = 0; m < M; m++)
        store(values + m * L, best[m]);
}

/* Compute n windows of a line of results, the first of which begins at `from` and has the index `origin`. The last
 * vectors overlap the ones before if lines are read in place. Otherwise they exceed the line, and the next line
 * overwrites what they have written, except at the end of a plane, where `room` results fit. */
template <class T, int STRIDE, int M> APART void line_maxima(
        const pooling_t *p, const T *from, int64_t rows, int64_t lines, int64_t n, int64_t origin, int64_t room,
        T *values, int64_t *indices) {
    constexpr int L = LANES_OF<T>, AT_ONCE = M * L;
    const int64_t stride = p->inner_stride;
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t first = at + AT_ONCE <= n || p->copied ? at : n - AT_ONCE;
        lanes_t<T, int32_t> found[M] = {};
        int32_t places[AT_ONCE];
        T best[AT_ONCE];
        for (int m = 0; m < M && p->copied; m++)
            found[m] = load<int32_t, sizeof(found[m])>(p->starts + first + m * L);
        some_maxima<T, STRIDE, M>(p, from + first * stride, rows, lines, best, found);
        for (int m = 0; m < M; m++)
            store(places + m * L, found[m]);
        if (room - first >= AT_ONCE) {
            memcpy(values + first, best, sizeof best);
            for (int lane = 0; lane < AT_ONCE; lane++)
                indices[first + lane] = origin + (first + lane) * stride + places[lane];
        } else {
            for (int lane = 0; lane < room - first; lane++) {
                values[first + lane] = best[lane];
                indices[first + lane] = origin + (first + lane) * stride + places[lane];
            }
        }
    }
}

template <class T> static void maxima(
        const pooling_t *p, int64_t planes, const T *plane, T *values, int64_t *indices) {
    constexpr int BEYOND = 8 * LANES;       /* two vectors exceed the last line, by elements up to four apart */
    T buffer[LARGEST_COPY + BEYOND];
    constexpr int L = LANES_OF<T>;
    const int64_t lines = p->size[0] * p->size[1], in_plane = lines * p->size[2];
    const int64_t out_plane = p->out[0] * p->out[1] * p->out[2];
    const bool copied = p->copied > 0;
    const int64_t first = p->inner_first, last = copied || p->inner_last - first >= L ? p->inner_last : first;
    const auto line = last - first >= (copied ? L + 1 : 2 * L)
        ? p->inner_stride == 1 ? line_maxima<T, 1, 2> : p->inner_stride == 2 ? line_maxima<T, 2, 2>
            : line_maxima<T, 0, 2>
        : p->inner_stride == 1 ? line_maxima<T, 1, 1> : p->inner_stride == 2 ? line_maxima<T, 2, 1>
            : line_maxima<T, 0, 1>;
    for (int64_t k = 0; k < p->copied + BEYOND && copied; k++)
        buffer[k] = LOWEST<T>;
    for (; planes--; plane += in_plane, values += out_plane, indices += out_plane) {
        if (copied && p->line == p->size[2])
            memcpy(buffer, plane, in_plane * sizeof(T));
        else
            for (int64_t k = 0; k < lines && copied; k++)
                memcpy(buffer + k * p->line + p->before, plane + k * p->size[2], p->size[2] * sizeof(T));
        const int64_t column = copied ? -p->before : p->windows[2][first].begin;
        const T *const source = copied ? buffer : plane + column;
        int64_t number = 0;
        for (int64_t a = 0; a < p->out[0]; a++)
            for (int64_t b = 0; b < p->out[1]; b++, number += p->out[2]) {
                const window_t *x = &p->windows[0][a], *y = &p->windows[1][b];
                const int64_t begin = x->begin * p->size[1] + y->begin;
                const bool in_lanes = x->count > 0 && y->count > 0 && first < last;
                if (in_lanes)
                    line(p, source + begin * p->line, x->count, y->count, last - first,
                         begin * p->size[2] + column, out_plane - number - first, values + number + first,
                         indices + number + first);
                for (int64_t c = 0; c < p->out[2]; c++) {
                    if (in_lanes && c == first)
                        c = last;
                    if (c < p->out[2])
                        maximum<T>(p, plane, x, y, &p->windows[2][c], &values[number + c], &indices[number + c]);
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
