/* The loops of indices.h. */

static int indices_within(const int64_t *indices, int64_t n, int64_t low, int64_t high) {
    const uint64_t span = (uint64_t)high - (uint64_t)low;
    int64_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint64_t)indices[i] - (uint64_t)low >= span;
    return !outside;
}

static int indices_scaled(const int64_t *indices, int64_t *offsets, int64_t n, int64_t size, int64_t wrapping,
                          int64_t step) {
    int failed = 0;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const uint64_t index = (uint64_t)(indices[i] + (indices[i] < 0 ? wrapping : 0));
        failed |= index >= (uint64_t)size;
        offsets[i] = (int64_t)(index * (uint64_t)step);
    }
    return failed;
}
