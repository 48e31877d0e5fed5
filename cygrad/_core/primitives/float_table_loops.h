/* Loops over tables; see float_tables.h. */

/* Return the segment of x, maybe fitted into `own`; NULL if its elements are not interpolated. */
INLINE const table_segment_t *segment_of(float_table_t *table, float x, table_segment_t *own) {
    const int bits_left = 23 - table->bits, lowest = (TABLE_LOWEST << table->bits) - 1;
    const int last = TABLE_OCTAVES << table->bits;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int place = (int)((bits & 0x7fffffff) >> bits_left) - lowest;
    if (place > last)
        return NULL;
    double center;
    place = 2 * (place > 0 ? place : 0) + (int)(bits >> 31);
    const table_segment_t *segment = &table->segments[place];
    __atomic_load(&segment->center, &center, __ATOMIC_ACQUIRE);
    return center == 0 ? find_segment(table, place, own) : segment;
}

static void table_loop(float_table_t *table, const char *x_of, int64_t x_step, char *out, int64_t out_step, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float x = *(const float *)(x_of + i * x_step);
        table_segment_t own;
        const table_segment_t *segment = segment_of(table, x, &own);
        if (segment == NULL) {
            *(float *)(out + i * out_step) = (float)table_exact(table, x);
            continue;
        }
        const double t = x - segment->center;
        const double value = TABLE_VALUE(multiply_add, segment->c, t);
        *(float *)(out + i * out_step) = (float)value;
    }
}

/* f(y) - f(x), less (y - x) f'(x) if `order` is 2: a divided difference of the polynomial of x where both are so near each
 * other that the difference would cancel. `exact` computes elements that are not interpolated. */
template <int order>
static void table_difference(float_table_t *table, double (*exact)(double, double), char **operands,
                             const int64_t *steps, char *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float x = *(const float *)(operands[0] + i * steps[0]), y = *(const float *)(operands[1] + i * steps[1]);
        table_segment_t own[2];
        const table_segment_t *at_x = segment_of(table, x, &own[0]), *at_y = segment_of(table, y, &own[1]);
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
