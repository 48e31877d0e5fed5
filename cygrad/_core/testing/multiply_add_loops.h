/* Fused multiply-adds of numbers in registers; see multiply_adds.h. */
constexpr int CHAINS = 12;       /* independent chains: two units, and some five cycles of latency */

template <class T> static int64_t multiply_adds(int64_t n) {
    volatile T unknown = 0.5;
    const vector_t<T> factor = every<T>(unknown), term = 1 - factor;
    vector_t<T> chains[CHAINS], sum = {};
    for (int i = 0; i < CHAINS; i++)
        chains[i] = every<T>(i);
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < CHAINS; i++)
            chains[i] = multiply_add(chains[i], factor, term);
    for (int i = 0; i < CHAINS; i++)
        sum += chains[i];
    unknown = sum[0];
    return n * CHAINS * VECTOR_LANES<T>;
}
