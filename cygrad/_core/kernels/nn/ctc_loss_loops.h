/* Scores of CTC alignments (log-sums) of one sample, and linear recurrences with the shares of states in the next
   states; see losses.pyx. `row` is the stride from one time to the next, `n` the number of states.

   States are padded to blocks of one length, which are computed in vectors. */
#include "simd/vector_functions.h"

constexpr int STATES = 32;
template <class T> constexpr T LOG_ZERO = T(-1e30);              /* unlike -inf, its differences are not nan */

template <class T> INLINE T bounded(T x) {
    return x < LOG_ZERO<T> ? LOG_ZERO<T> : x;
}

/* log(exp(a) + exp(b) + exp(c)) + share */
template <class T> INLINE T joined_score(T a, T b, T c, T share) {
    const T x = bounded<T>(a), y = bounded<T>(b), z = bounded<T>(c), two = x > y ? x : y;
    const T most = two > z ? two : z;
    const T sum = exponential<T>(x - most) + exponential<T>(y - most) + exponential<T>(z - most);
    return most + logarithm<T>(sum, 0) + share;
}

/* Return the share of one of the preceding states in a state's score. */
template <class T> INLINE T share_of(T before, T share, T score) {
    const T part = exponential<T>(before + (share - score));
    return score < LOG_ZERO<T> / 2 ? 0 : part;
}

/* Load states start..start + STATES of n, padded with `rest`. */
template <class T> INLINE void load(const T *row, int64_t start, int64_t n, T rest, T *block) {
    if (start >= 0 && start + STATES <= n)
        memcpy(block, row + start, STATES * sizeof(T));
    else
        for (int64_t j = 0; j < STATES; j++)
            block[j] = start + j >= 0 && start + j < n ? row[start + j] : rest;
}

/* 1 for each state that can be reached from the state two before, else 0. */
template <class T> INLINE void load_skips(const uint8_t *skip, int64_t start, int64_t n, T *block) {
    for (int64_t j = 0; j < STATES; j++)
        block[j] = start + j < n ? skip[start + j] : 0;
}

template <class T> static void alignment_scores(const T *shares, const uint8_t *skip, T *scores, int64_t steps,
                                                int64_t all, int64_t row, int64_t n) {
    T same[STATES], one[STATES], two[STATES], share[STATES], skips[STATES];
    for (int64_t s = 0; all && s < n; s++)
        scores[s] = steps && s < 2 ? shares[s] : LOG_ZERO<T>;
    for (int64_t t = 1; t < all; t++) {
        const T *before = scores + (t - 1) * row;
        T *score = scores + t * row;
        for (int64_t start = 0; start < n; start += STATES) {
            const int64_t count = n - start < STATES ? n - start : STATES;
            load<T>(before, start, n, LOG_ZERO<T>, same);
            load<T>(before, start - 1, n, LOG_ZERO<T>, one);
            load<T>(before, start - 2, n, LOG_ZERO<T>, two);
            load<T>(shares + t * row, start, n, 0, share);
            load_skips<T>(skip, start, n, skips);
            for (int j = 0; j < STATES; j++) {
                const T value = joined_score<T>(same[j], one[j], skips[j] != 0 ? two[j] : LOG_ZERO<T>, share[j]);
                same[j] = t < steps ? value : LOG_ZERO<T>;
            }
            memcpy(score + start, same, count * sizeof(T));
        }
    }
}

/* out[t, s] = values[t, s] + the sum over preceding states of their shares times out[t - 1]; or its transpose, over
   following states with out[t + 1]. */
template <class T> INLINE void recurrence(const T *values, const T *scores, const T *shares, const uint8_t *skip,
                                          T *out, int64_t steps, int64_t all, int64_t row, int64_t n, int reverse) {
    T result[STATES], skips[STATES], share[STATES], score[STATES], before[STATES], carried[STATES];
    memset(skips, 0, sizeof skips);
    for (int64_t k = 0; k < all; k++) {
        const int64_t t = reverse ? all - 1 - k : k, later = reverse ? t + 1 : t, other = reverse ? t + 1 : t - 1;
        for (int64_t start = 0; start < n; start += STATES) {
            const int64_t count = n - start < STATES ? n - start : STATES;
            load<T>(values + t * row, start, n, 0, result);
            for (int64_t by = 0; by < 3 && later > 0 && later < steps; by++) {
                const int64_t from = reverse ? start : start - by, to = reverse ? start + by : start;
                load<T>(scores + (later - 1) * row, from, n, LOG_ZERO<T>, before);
                load<T>(scores + later * row, to, n, LOG_ZERO<T>, score);
                load<T>(shares + later * row, to, n, 0, share);
                load<T>(out + other * row, reverse ? to : from, n, 0, carried);
                if (by == 2)
                    load_skips<T>(skip, to, n, skips);
                for (int j = 0; j < STATES; j++) {
                    const T part = share_of<T>(before[j], share[j], score[j]) * carried[j];
                    result[j] += ((by < 2) | (skips[j] != 0)) ? part : 0;
                }
            }
            memcpy(out + t * row + start, result, count * sizeof(T));
        }
    }
}

template <class T> static void alignment_forward(const T *values, const T *scores, const T *shares, const uint8_t *skip,
                                                 T *out, int64_t steps, int64_t all, int64_t row, int64_t n) {
    recurrence<T>(values, scores, shares, skip, out, steps, all, row, n, 0);
}

template <class T> static void alignment_reverse(const T *values, const T *scores, const T *shares, const uint8_t *skip,
                                                 T *out, int64_t steps, int64_t all, int64_t row, int64_t n) {
    recurrence<T>(values, scores, shares, skip, out, steps, all, row, n, 1);
}
