/* Patches to columns for one type of elements. The includer defines ELEMENT, NAME(function) and
   SOME_HALVES(target, source, count), which copies every other element, if it can, and says how many. */

static inline __attribute__((always_inline)) void NAME(clear)(ELEMENT *target, int64_t count) {
    if (count > 16) {
        memset(target, 0, count * sizeof(ELEMENT));
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        target[k] = 0;
        __asm__ volatile("" ::: "memory");      /* prevent a memset call for one or two elements */
    }
}

/* Gather whole lines of one row of the matrix for contiguous elements, in blocks of lines with the same bounds. */
static inline __attribute__((always_inline)) void NAME(gather_lines)(
        const geometry_t *g, const ELEMENT *channel, int64_t di, int64_t dj, int64_t dk,
        int64_t line, int64_t lines, ELEMENT *row) {
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
        NAME(clear)(row, (first - begin) * width);
        if (first < last) {
            ELEMENT *target = row + (first - begin) * width;
            const ELEMENT *source = channel + i * g->step[0] + dj * g->step[1] + first * line_step + dk + low;
            copy_lines((char *)(target + low), width * sizeof(ELEMENT), (const char *)source,
                       line_step * sizeof(ELEMENT), last - first, (high - low) * sizeof(ELEMENT));
            if (low > 0)
                for (int64_t j = first; j < last; j++)
                    NAME(clear)(target + (j - first) * width, low);
            if (high < width)
                for (int64_t j = first; j < last; j++)
                    NAME(clear)(target + (j - first) * width + high, width - high);
        }
        NAME(clear)(row + (last - begin) * width, (end - last) * width);
        row += (end - begin) * width;
        lines -= end - begin;
        line += end - begin;
    }
}

/* Gather one row of the matrix: one tap of one channel. In a line of the output, positions in [low, high) read the
   image, the others the padding. */
static inline __attribute__((always_inline)) void NAME(gather_row)(
        const geometry_t *g, const ELEMENT *channel, int64_t di, int64_t dj, int64_t dk,
        int64_t p0, int64_t p1, ELEMENT *row) {
    const int64_t width = g->out[2], stride = g->stride[2], step = g->step[2] * stride;
    int64_t low = 0, high = width, line = p0 / width, k0 = p0 % width;
    int64_t i = line / g->out[1] * g->stride[0] + di, line_j = line % g->out[1], left = p1 - p0;
    if (step == 1 && k0 == 0 && left % width == 0) {
        NAME(gather_lines)(g, channel, di, dj, dk, line, left / width, row);
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
            const ELEMENT *source = channel + i * g->step[0] + j * g->step[1] + first * step;
            ELEMENT *target = row + (first - k0);
            const int64_t count = last - first;
            if (step == 1) {
                memcpy(target, source, count * sizeof(ELEMENT));
            } else if (step == 2) {
                for (int64_t k = SOME_HALVES(target, source, count); k < count; k++)
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

TARGET_CLONES
static void NAME(gather)(const geometry_t *g, const ELEMENT *image, int64_t c0, int64_t c1, int64_t p0, int64_t p1,
                         ELEMENT *columns, int64_t leading) {
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i = 0; i < g->kernel[0]; i++)
            for (int64_t j = 0; j < g->kernel[1]; j++)
                for (int64_t k = 0; k < g->kernel[2]; k++) {
                    NAME(gather_row)(g, image + c * g->channel_step, i * g->dilation[0] - g->padding[0],
                                     j * g->dilation[1] - g->padding[1], k * g->dilation[2] - g->padding[2],
                                     p0, p1, columns);
                    columns += leading;
                }
}
