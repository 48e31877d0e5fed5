/* See spectra.h. */

template <class T> static void complete(T *data, int64_t outer, int64_t n, int64_t inner, int forward) {
    for (int64_t o = 0; o < outer; o++) {
        T *line = data + 2 * o * n * inner;
        if (inner == 1)
            for (int64_t k = n / 2 + 1; k < n; k++) {
                line[2 * k] = line[2 * (n - k)];
                line[2 * k + 1] = -line[2 * (n - k) + 1];
            }
        else
            for (int64_t k = n / 2 + 1; k < n; k++)
                for (int64_t i = 0; i < 2 * inner; i += 2) {
                    line[2 * k * inner + i] = line[2 * (n - k) * inner + i];
                    line[2 * k * inner + i + 1] = -line[2 * (n - k) * inner + i + 1];
                }
        for (int64_t i = 1; !forward && i < 2 * n * inner; i += 2)
            line[i] = -line[i];
    }
}

template <class T> static void weigh(T *data, int64_t outer, int64_t n, int64_t inner, int64_t end, double factor) {
    for (int64_t o = 0; o < outer; o++) {
        T *line = data + 2 * o * n * inner;
        for (int64_t i = 2 * inner; i < 2 * end * inner; i++)
            line[i] = (T)(line[i] * factor);
    }
}
