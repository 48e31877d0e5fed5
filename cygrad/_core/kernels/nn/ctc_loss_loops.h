/* Scores of CTC alignments (log-sums) of one sample, and linear recurrences with the shares of states in the next
   states; see losses.pyx. `row` is the stride from one time to the next, `n` the number of states.

   States are padded to blocks of one length, which are computed in vectors. */
#ifndef CYGRAD_ALIGNMENT_BLOCKS
#define CYGRAD_ALIGNMENT_BLOCKS
enum { STATES = 32 };
#endif

#include "simd/vector_functions.h"

#undef LOG_ZERO
#define LOG_ZERO ((REAL)-1e30)              /* unlike -inf, its differences are not nan */

INLINE REAL NAME(bounded)(REAL x) {
    return x < LOG_ZERO ? LOG_ZERO : x;
}

/* log(exp(a) + exp(b) + exp(c)) + share */
INLINE REAL NAME(joined_score)(REAL a, REAL b, REAL c, REAL share) {
    const REAL x = NAME(bounded)(a), y = NAME(bounded)(b), z = NAME(bounded)(c), two = x > y ? x : y;
    const REAL most = two > z ? two : z;
    const REAL sum = NAME(exponential)(x - most) + NAME(exponential)(y - most) + NAME(exponential)(z - most);
    return most + NAME(logarithm)(sum, 0) + share;
}

/* Return the share of one of the preceding states in a state's score. */
INLINE REAL NAME(share_of)(REAL before, REAL share, REAL score) {
    const REAL part = NAME(exponential)(before + (share - score));
    return score < LOG_ZERO / 2 ? 0 : part;
}

/* Load states start..start + STATES of n, padded with `rest`. */
INLINE void NAME(load)(const REAL *row, int64_t start, int64_t n, REAL rest, REAL *block) {
    if (start >= 0 && start + STATES <= n)
        memcpy(block, row + start, STATES * sizeof(REAL));
    else
        for (int64_t j = 0; j < STATES; j++)
            block[j] = start + j >= 0 && start + j < n ? row[start + j] : rest;
}

/* 1 for each state that can be reached from the state two before, else 0. */
INLINE void NAME(load_skips)(const uint8_t *skip, int64_t start, int64_t n, REAL *block) {
    for (int64_t j = 0; j < STATES; j++)
        block[j] = start + j < n ? skip[start + j] : 0;
}

static void NAME(alignment_scores)(const REAL *shares, const uint8_t *skip, REAL *scores, int64_t steps, int64_t all,
                                   int64_t row, int64_t n) {
    REAL same[STATES], one[STATES], two[STATES], share[STATES], skips[STATES];
    for (int64_t s = 0; all && s < n; s++)
        scores[s] = steps && s < 2 ? shares[s] : LOG_ZERO;
    for (int64_t t = 1; t < all; t++) {
        const REAL *before = scores + (t - 1) * row;
        REAL *score = scores + t * row;
        for (int64_t start = 0; start < n; start += STATES) {
            const int64_t count = n - start < STATES ? n - start : STATES;
            NAME(load)(before, start, n, LOG_ZERO, same);
            NAME(load)(before, start - 1, n, LOG_ZERO, one);
            NAME(load)(before, start - 2, n, LOG_ZERO, two);
            NAME(load)(shares + t * row, start, n, 0, share);
            NAME(load_skips)(skip, start, n, skips);
            for (int j = 0; j < STATES; j++) {
                const REAL value = NAME(joined_score)(same[j], one[j], skips[j] != 0 ? two[j] : LOG_ZERO, share[j]);
                same[j] = t < steps ? value : LOG_ZERO;
            }
            memcpy(score + start, same, count * sizeof(REAL));
        }
    }
}

/* out[t, s] = values[t, s] + the sum over preceding states of their shares times out[t - 1]; or its transpose, over
   following states with out[t + 1]. */
INLINE void NAME(recurrence)(const REAL *values, const REAL *scores, const REAL *shares, const uint8_t *skip, REAL *out,
                             int64_t steps, int64_t all, int64_t row, int64_t n, int reverse) {
    REAL result[STATES], skips[STATES], share[STATES], score[STATES], before[STATES], carried[STATES];
    memset(skips, 0, sizeof skips);
    for (int64_t k = 0; k < all; k++) {
        const int64_t t = reverse ? all - 1 - k : k, later = reverse ? t + 1 : t, other = reverse ? t + 1 : t - 1;
        for (int64_t start = 0; start < n; start += STATES) {
            const int64_t count = n - start < STATES ? n - start : STATES;
            NAME(load)(values + t * row, start, n, 0, result);
            for (int64_t by = 0; by < 3 && later > 0 && later < steps; by++) {
                const int64_t from = reverse ? start : start - by, to = reverse ? start + by : start;
                NAME(load)(scores + (later - 1) * row, from, n, LOG_ZERO, before);
                NAME(load)(scores + later * row, to, n, LOG_ZERO, score);
                NAME(load)(shares + later * row, to, n, 0, share);
                NAME(load)(out + other * row, reverse ? to : from, n, 0, carried);
                if (by == 2)
                    NAME(load_skips)(skip, to, n, skips);
                for (int j = 0; j < STATES; j++) {
                    const REAL part = NAME(share_of)(before[j], share[j], score[j]) * carried[j];
                    result[j] += ((by < 2) | (skips[j] != 0)) ? part : 0;
                }
            }
            memcpy(out + t * row + start, result, count * sizeof(REAL));
        }
    }
}

static void NAME(alignment_forward)(const REAL *values, const REAL *scores, const REAL *shares, const uint8_t *skip,
                                    REAL *out, int64_t steps, int64_t all, int64_t row, int64_t n) {
    NAME(recurrence)(values, scores, shares, skip, out, steps, all, row, n, 0);
}

static void NAME(alignment_reverse)(const REAL *values, const REAL *scores, const REAL *shares, const uint8_t *skip,
                                    REAL *out, int64_t steps, int64_t all, int64_t row, int64_t n) {
    NAME(recurrence)(values, scores, shares, skip, out, steps, all, row, n, 1);
}
