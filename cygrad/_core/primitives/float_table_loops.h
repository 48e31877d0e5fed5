/* Loops over tables; see float_tables.h. */

/* Return the segment of x, maybe fitted into `own`; NULL if its elements are not interpolated. `bits` are those of the
 * table, which a loop loads once. */
INLINE const table_segment_t *segment_of(float_table_t *table, int bits, float x, table_segment_t *own) {
    const int lowest = (TABLE_LOWEST << bits) - 1, last = TABLE_OCTAVES << bits;
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    int place = (int)((word & 0x7fffffff) >> (23 - bits)) - lowest;
    if (place > last)
        return NULL;
    double center;
    place = 2 * (place > 0 ? place : 0) + (int)(word >> 31);
    const table_segment_t *segment = &table->segments[place];
    __atomic_load(&segment->center, &center, __ATOMIC_ACQUIRE);
    return center == 0 ? find_segment(table, place, own) : segment;
}

INLINE float table_element(float_table_t *table, int bits, float x) {
    table_segment_t own;
    const table_segment_t *segment = segment_of(table, bits, x, &own);
    if (segment == NULL)
        return (float)table_exact(table, x);
    const double t = x - segment->center;
    return (float)TABLE_VALUE(multiply_add, segment->c, t);
}

#if SIMD_LEVEL > 0
typedef double quad_t __attribute__((vector_size(32)));

INLINE quad_t multiply_add_quad(quad_t a, quad_t b, quad_t c) {
    return (quad_t)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

/* Transpose four halves of segments. */
INLINE void transpose_quads(const table_segment_t *const *segments, int half, quad_t *c) {
    const auto part = [=](int k) { return load<double, 32>((const double *)segments[k] + half); };
    const quad_t x = part(0), y = part(1), z = part(2), w = part(3);
    const quad_t even = SHUFFLE(x, y, 0, 4, 2, 6), odd = SHUFFLE(x, y, 1, 5, 3, 7);
    const quad_t more_even = SHUFFLE(z, w, 0, 4, 2, 6), more_odd = SHUFFLE(z, w, 1, 5, 3, 7);
    c[0] = SHUFFLE(even, more_even, 0, 1, 4, 5), c[2] = SHUFFLE(even, more_even, 2, 3, 6, 7);
    c[1] = SHUFFLE(odd, more_odd, 0, 1, 4, 5), c[3] = SHUFFLE(odd, more_odd, 2, 3, 6, 7);
}
#endif

static void table_loop(float_table_t *table, const char *x_of, int64_t x_step, char *out, int64_t out_step, int64_t n) {
    const int bits = table->bits;
    int64_t i = 0;
#if SIMD_LEVEL > 0
    for (; i + 4 <= n && x_step == sizeof(float) && out_step == sizeof(float); i += 4) {
        const float *const x = (const float *)x_of + i;
        float *const results = (float *)out + i;
        table_segment_t own[4];
        const table_segment_t *const segments[4] = {
            segment_of(table, bits, x[0], &own[0]), segment_of(table, bits, x[1], &own[1]),
            segment_of(table, bits, x[2], &own[2]), segment_of(table, bits, x[3], &own[3])};
        if (segments[0] == NULL || segments[1] == NULL || segments[2] == NULL || segments[3] == NULL) {
            for (int k = 0; k < 4; k++)
                results[k] = table_element(table, bits, x[k]);
            continue;
        }
        quad_t c[8];                                          /* the last are the centers */
        transpose_quads(segments, 0, c);
        transpose_quads(segments, 4, c + 4);
        const quad_t t = (quad_t)_mm256_cvtps_pd(_mm_loadu_ps(x)) - c[7];
        _mm_storeu_ps(results, _mm256_cvtpd_ps((__m256d)TABLE_VALUE(multiply_add_quad, c, t)));
    }
#endif
    for (; i < n; i++)
        *(float *)(out + i * out_step) = table_element(table, bits, *(const float *)(x_of + i * x_step));
}

/* f(y) - f(x), less (y - x) f'(x) if `order` is 2: a divided difference of the polynomial of x where both are so near each
 * other that the difference would cancel. `exact` computes elements that are not interpolated. */
template <int order>
static void table_difference(float_table_t *table, double (*exact)(double, double), char **operands,
                             const int64_t *steps, char *out, int64_t n) {
    const int bits = table->bits;
    for (int64_t i = 0; i < n; i++) {
        const float x = *(const float *)(operands[0] + i * steps[0]), y = *(const float *)(operands[1] + i * steps[1]);
        table_segment_t own[2];
        const table_segment_t *at_x = segment_of(table, bits, x, &own[0]);
        const table_segment_t *at_y = segment_of(table, bits, y, &own[1]);
        const double apart = (double)y - x;
        double value, slope = 0, second = 0;
        if (at_x == NULL || at_y == NULL) {
            value = exact(x, y);
        } else {
            const double *c = at_x->c, t = x - at_x->center, u = y - at_x->center;
            value = c[TABLE_TERMS - 1];
            if (fabs(apart) * 512 < fabs(x)) {
                for (int k = TABLE_TERMS - 2; k >= 0; k--) {         /* differences at u, t, t; at u, t; at t */
                    second = multiply_add(second, u, slope);
                    slope = multiply_add(slope, order == 2 ? t : u, value);
                    value = multiply_add(value, t, c[k]);
                }
                value = order == 2 ? apart * apart * second : apart * slope;
            } else {
                const double w = y - at_y->center;
                for (int k = TABLE_TERMS - 2; k >= 0; k--) {
                    slope = multiply_add(slope, t, value);
                    value = multiply_add(value, t, c[k]);
                }
                value = TABLE_VALUE(multiply_add, at_y->c, w) - value - (order == 2 ? apart * slope : 0);
            }
        }
        *(float *)(out + i * steps[2]) = (float)value;
    }
}
