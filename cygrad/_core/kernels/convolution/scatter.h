/* Add columns into images, for one element type. The includer defines ELEMENT and NAME(function). */

static inline __attribute__((always_inline)) void NAME(scatter_row)(
        const geometry_t *g, ELEMENT *channel, int64_t di, int64_t dj, int64_t dk,
        int64_t p0, int64_t p1, const ELEMENT *row) {
    const int64_t width = g->out[2], stride = g->stride[2], step = g->step[2] * stride;
    int64_t low = 0, high = width, line = p0 / width, k0 = p0 % width;
    int64_t i = line / g->out[1] * g->stride[0] + di, line_j = line % g->out[1], left = p1 - p0;
    inside(dk, stride, g->size[2], &low, &high);
    channel += dk * g->step[2];
    while (left > 0) {
        const int64_t k1 = k0 + left < width ? k0 + left : width, j = line_j * g->stride[1] + dj;
        const int64_t first = low > k0 ? low : k0, last = high < k1 ? high : k1;
        if (i >= 0 && i < g->size[0] && j >= 0 && j < g->size[1] && first < last) {
            ELEMENT *target = channel + i * g->step[0] + j * g->step[1] + first * step;
            const ELEMENT *source = row + (first - k0);
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

TARGET_CLONES
static void NAME(scatter)(const geometry_t *g, ELEMENT *image, int64_t c0, int64_t c1, int64_t p0, int64_t p1,
                          const ELEMENT *columns, int64_t leading) {
    for (int64_t c = c0; c < c1; c++)
        for (int64_t i = 0; i < g->kernel[0]; i++)
            for (int64_t j = 0; j < g->kernel[1]; j++)
                for (int64_t k = 0; k < g->kernel[2]; k++) {
                    NAME(scatter_row)(g, image + c * g->channel_step, i * g->dilation[0] - g->padding[0],
                                      j * g->dilation[1] - g->padding[1], k * g->dilation[2] - g->padding[2],
                                      p0, p1, columns);
                    columns += leading;
                }
}
