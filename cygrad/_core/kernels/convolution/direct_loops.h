/* Lines of images and of outputs; see direct.h. */

/* Split a contiguous line into its even and odd elements, or merge them. */
template <class T> INLINE void deal_pairs(T *line, int64_t count, T *even, T *odd, int back) {
    constexpr int FOUR = 4 * sizeof(T);
    int64_t k = 0;
    if (count >= 8)
        for (; k < count / 2; k += 4) {
            if (k + 4 > count / 2)
                k = count / 2 - 4;      /* the last vectors may overlap */
            if (back) {
                const auto first = load<T, FOUR>(even + k), second = load<T, FOUR>(odd + k);
                store(line + 2 * k, SHUFFLE(first, second, 0, 4, 1, 5));
                store(line + 2 * k + 4, SHUFFLE(first, second, 2, 6, 3, 7));
            } else {
                const auto first = load<T, FOUR>(line + 2 * k), second = load<T, FOUR>(line + 2 * k + 4);
                store(even + k, SHUFFLE(first, second, 0, 2, 4, 6));
                store(odd + k, SHUFFLE(first, second, 1, 3, 5, 7));
            }
        }
    for (; k < (count + 1) / 2; k++) {
        if (back) {
            line[2 * k] = even[k];
            if (2 * k + 1 < count) line[2 * k + 1] = odd[k];
        } else {
            even[k] = line[2 * k];
            if (2 * k + 1 < count) odd[k] = line[2 * k + 1];
        }
    }
}

/* Split an image with contiguous lines into the phases of stride 2. */
template <class T> INLINE void deal_halves(const geometry_t *g, const lines_t *lines, T *image, T *buffer, int back) {
    const int64_t *s = g->stride, pad = g->padding[2];
    const int64_t even = pad % 2 * lines->phase + pad / 2, odd = (pad + 1) % 2 * lines->phase + (pad + 1) / 2;
    const int64_t b0 = g->padding[1] % s[1], j0 = g->padding[1] / s[1];
    for (int64_t i = 0; i < g->size[0]; i++) {
        const int64_t a = (i + g->padding[0]) % s[0], plane = (i + g->padding[0]) / s[0];
        int64_t b = b0;
        T *line = buffer + (a * s[1] + b0) * 2 * lines->phase + (plane * lines->extent[1] + j0) * lines->extent[2];
        for (int64_t j = 0; j < g->size[1]; j++) {
            deal_pairs<T>(image + i * g->step[0] + j * g->step[1], g->size[2], line + even, line + odd, back);
            line += 2 * lines->phase;
            if (++b == s[1]) {
                b = 0;
                line += lines->extent[2] - s[1] * 2 * lines->phase;
            }
        }
    }
}

/* Copy an image with stride 1, which is its only phase. */
template <class T> INLINE void deal_whole(const geometry_t *g, const lines_t *lines, T *image, T *buffer, int back) {
    const int64_t wide = lines->extent[2], *pad = g->padding, bytes = g->size[2] * sizeof(T);
    for (int64_t i = 0; i < g->size[0]; i++) {
        char *plane = (char *)(image + i * g->step[0]);
        char *line = (char *)(buffer + ((i + pad[0]) * lines->extent[1] + pad[1]) * wide + pad[2]);
        if (back)
            copy_lines(plane, g->step[1] * sizeof(T), line, wide * sizeof(T), g->size[1], bytes);
        else
            copy_lines(line, wide * sizeof(T), plane, g->step[1] * sizeof(T), g->size[1], bytes);
    }
}

/* Copy a strided plane of the image to its phases, or `back`. */
template <class T> static void deal(const geometry_t *g, const lines_t *lines, T *image, T *buffer, int back) {
    const int64_t *s = g->stride;
    if (s[2] == 2 && g->step[2] == 1) {
        deal_halves<T>(g, lines, image, buffer, back);
        return;
    }
    if (direct_phases(g) == 1 && g->step[2] == 1) {
        deal_whole<T>(g, lines, image, buffer, back);
        return;
    }
    for (int64_t a = 0; a < s[0]; a++)
        for (int64_t b = 0; b < s[1]; b++)
            for (int64_t c = 0; c < s[2]; c++) {
                T *phase = buffer + ((a * s[1] + b) * s[2] + c) * lines->phase;
                int64_t first[3] = {0, 0, 0}, last[3] = {lines->extent[0], lines->extent[1], lines->extent[2]};
                inside(a - g->padding[0], s[0], g->size[0], &first[0], &last[0]);
                inside(b - g->padding[1], s[1], g->size[1], &first[1], &last[1]);
                inside(c - g->padding[2], s[2], g->size[2], &first[2], &last[2]);
                const int64_t step = s[2] * g->step[2], count = last[2] - first[2];
                for (int64_t i = first[0]; i < last[0]; i++)
                    for (int64_t j = first[1]; j < last[1]; j++) {
                        T *place = image + (i * s[0] + a - g->padding[0]) * g->step[0]
                            + (j * s[1] + b - g->padding[1]) * g->step[1]
                            + (first[2] * s[2] + c - g->padding[2]) * g->step[2];
                        T *line = phase + (i * lines->extent[1] + j) * lines->extent[2] + first[2];
                        for (int64_t k = 0; k < count; k++)
                            *(back ? place + step * k : line + k) = *(back ? line + k : place + step * k);
                    }
            }
}

/* Copy a contiguous plane of outputs to lines as long as those of the input's phases. */
template <class T> static void spread(const geometry_t *g, const lines_t *lines, const T *plane, T *buffer) {
    const int64_t wide = lines->extent[2] * sizeof(T), narrow = g->out[2] * sizeof(T);
    for (int64_t i = 0; i < g->out[0]; i++)
        copy_lines((char *)(buffer + i * lines->extent[1] * lines->extent[2]), wide,
                   (const char *)(plane + i * g->out[1] * g->out[2]), narrow, g->out[1], narrow);
}

template <class T> static void take(const T *source, const int64_t *places, int64_t n, T *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = source[places[i]];
}

template <class T> static int are_finite(const T *numbers, int64_t n) {
    int finite = 1;
    for (int64_t i = 0; i < n; i++)
        finite &= isfinite(numbers[i]);
    return finite;
}

template <class T> static void add_rows(const double *sums, int64_t parts, int64_t size, T *weight) {
    for (int64_t i = 0; i < size; i++) {
        double total = sums[i];
        for (int64_t part = 1; part < parts; part++)
            total += sums[part * size + i];
        weight[i] = (T)total;
    }
}
