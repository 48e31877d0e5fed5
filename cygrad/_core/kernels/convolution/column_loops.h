/* Patches to columns, and back, for one type of elements; see columns.h. */

/* target[k] = source[2 * k] for k < count, if that is more than LANES; return how many. The last load overlaps the one
 * before, so no memory after the last needed element is read. */
template <int LANES, class T> INLINE int64_t even_elements(T *target, const T *source, int64_t count) {
    constexpr int BYTES = LANES * sizeof(T);
    if (count <= LANES)
        return 0;
    int64_t k = 0;
    for (; k + LANES < count; k += LANES)
        store(target + k, alternate<T, BYTES, 0>(load<T, BYTES>(source + 2 * k),
                                                 load<T, BYTES>(source + 2 * k + LANES)));
    k = count - LANES;
    source += 2 * k - 1;
    store(target + k, alternate<T, BYTES, 1>(load<T, BYTES>(source), load<T, BYTES>(source + LANES)));
    return count;
}

template <class T> INLINE int64_t even_elements(T *target, const T *source, int64_t count) {
    constexpr int MOST = 64 / sizeof(T);
    if constexpr (MOST != 8 && MOST != 16)
        return 0;
    else
        return count > MOST ? even_elements<MOST>(target, source, count)
            : count > MOST / 2 ? even_elements<MOST / 2>(target, source, count)
            : even_elements<4>(target, source, count);
}

template <class T> INLINE void clear(T *target, int64_t count) {
    if (count > 16) {
        memset((void *)target, 0, count * sizeof(T));
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        target[k] = 0;
        __asm__ volatile("" ::: "memory");      /* prevent a memset call for one or two elements */
    }
}

/* Gather whole lines of one row of the matrix for contiguous elements, in blocks of lines with the same bounds. */
template <class T> INLINE void gather_lines(
        const geometry_t *g, const T *channel, int64_t di, int64_t dj, int64_t dk, int64_t line, int64_t lines,
        T *row) {
    const int64_t width = g->out[2], line_step = g->step[1] * g->stride[1];
    int64_t low = 0, high = width;
    inside(dk, 1, g->size[2], &low, &high);
    if (high <= low)
        low = high = width;
    while (lines > 0) {
        const int64_t i = line / g->out[1] * g->stride[0] + di, begin = line % g->out[1];
        const int64_t end = begin + lines < g->out[1] ? begin + lines : g->out[1];
        int64_t first = begin, last = end;
        inside(dj, g->stride[1], g->size[1], &first, &last);
        if (i < 0 || i >= g->size[0] || last <= first || low == high)
            first = last = end;
        clear<T>(row, (first - begin) * width);
        if (first < last) {
            T *target = row + (first - begin) * width;
            const T *source = channel + i * g->step[0] + dj * g->step[1] + first * line_step + dk + low;
            copy_lines((char *)(target + low), width * sizeof(T), (const char *)source,
                       line_step * sizeof(T), last - first, (high - low) * sizeof(T));
            if (low > 0)
                for (int64_t j = first; j < last; j++)
                    clear<T>(target + (j - first) * width, low);
            if (high < width)
                for (int64_t j = first; j < last; j++)
                    clear<T>(target + (j - first) * width + high, width - high);
        }
        clear<T>(row + (last - begin) * width, (end - last) * width);
        row += (end - begin) * width;
        lines -= end - begin;
        line += end - begin;
    }
}

/* Gather one row of the matrix: one tap of one channel. In a line of the output, positions in [low, high) read the
   image, the others the padding. */
template <class T> INLINE void gather_row(
        const geometry_t *g, const T *channel, int64_t di, int64_t dj, int64_t dk, int64_t p0, int64_t p1, T *row) {
    const int64_t width = g->out[2], stride = g->stride[2], step = g->step[2] * stride;
    int64_t low = 0, high = width, line = p0 / width, k0 = p0 % width;
    int64_t i = line / g->out[1] * g->stride[0] + di, line_j = line % g->out[1], left = p1 - p0;
    if (step == 1 && k0 == 0 && left % width == 0) {
        gather_lines<T>(g, channel, di, dj, dk, line, left / width, row);
        return;
    }
    inside(dk, stride, g->size[2], &low, &high);
    channel += dk * g->step[2];
    while (left > 0) {
        const int64_t k1 = k0 + left < width ? k0 + left : width, j = line_j * g->stride[1] + dj;
        int64_t first = low > k0 ? low : k0, last = high < k1 ? high : k1;
        if (i < 0 || i >= g->size[0] || j < 0 || j >= g->size[1] || last <= first)
            first = last = k1;
        for (int64_t k = k0; k < first; k++)
            row[k - k0] = 0;
        if (first < last) {
            const T *source = channel + i * g->step[0] + j * g->step[1] + first * step;
            T *target = row + (first - k0);
            const int64_t count = last - first;
            if (step == 1) {
                memcpy(target, source, count * sizeof(T));
            } else if (step == 2) {
                for (int64_t k = even_elements<T>(target, source, count); k < count; k++)
                    target[k] = source[2 * k];
            } else {
                for (int64_t k = 0; k < count; k++)
                    target[k] = source[k * step];
            }
            for (int64_t k = last; k < k1; k++)
                row[k - k0] = 0;
        }
        row += k1 - k0;
        left -= k1 - k0;
        k0 = 0;
        if (++line_j == g->out[1]) {
            line_j = 0;
            i += g->stride[0];
        }
    }
}

template <class T> static void gather(
        const geometry_t *g, const T *image, int64_t c0, int64_t c1, int64_t p0, int64_t p1, T *columns,
        int64_t leading) {
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i = 0; i < g->kernel[0]; i++)
            for (int64_t j = 0; j < g->kernel[1]; j++)
                for (int64_t k = 0; k < g->kernel[2]; k++) {
                    gather_row<T>(g, image + c * g->channel_step, i * g->dilation[0] - g->padding[0],
                                  j * g->dilation[1] - g->padding[1], k * g->dilation[2] - g->padding[2],
                                  p0, p1, columns);
                    columns += leading;
                }
}

/* Add one row of the matrix into the image. */
template <class T> INLINE void scatter_row(
        const geometry_t *g, T *channel, int64_t di, int64_t dj, int64_t dk, int64_t p0, int64_t p1, const T *row) {
    const int64_t width = g->out[2], stride = g->stride[2], step = g->step[2] * stride;
    int64_t low = 0, high = width, line = p0 / width, k0 = p0 % width;
    int64_t i = line / g->out[1] * g->stride[0] + di, line_j = line % g->out[1], left = p1 - p0;
    inside(dk, stride, g->size[2], &low, &high);
    channel += dk * g->step[2];
    while (left > 0) {
        const int64_t k1 = k0 + left < width ? k0 + left : width, j = line_j * g->stride[1] + dj;
        const int64_t first = low > k0 ? low : k0, last = high < k1 ? high : k1;
        if (i >= 0 && i < g->size[0] && j >= 0 && j < g->size[1] && first < last) {
            T *target = channel + i * g->step[0] + j * g->step[1] + first * step;
            const T *source = row + (first - k0);
            const int64_t count = last - first;
            if (step == 1) {
                for (int64_t k = 0; k < count; k++)
                    target[k] += source[k];
            } else {
                for (int64_t k = 0; k < count; k++)
                    target[k * step] += source[k];
            }
        }
        row += k1 - k0;
        left -= k1 - k0;
        k0 = 0;
        if (++line_j == g->out[1]) {
            line_j = 0;
            i += g->stride[0];
        }
    }
}

template <class T> static void scatter(
        const geometry_t *g, T *image, int64_t c0, int64_t c1, int64_t p0, int64_t p1, const T *columns,
        int64_t leading) {
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i = 0; i < g->kernel[0]; i++)
            for (int64_t j = 0; j < g->kernel[1]; j++)
                for (int64_t k = 0; k < g->kernel[2]; k++) {
                    scatter_row<T>(g, image + c * g->channel_step, i * g->dilation[0] - g->padding[0],
                                   j * g->dilation[1] - g->padding[1], k * g->dilation[2] - g->padding[2],
                                   p0, p1, columns);
                    columns += leading;
                }
}
