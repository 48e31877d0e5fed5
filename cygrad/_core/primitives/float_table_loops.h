/* The loop over a table; see float_tables.h. */

static void table_loop(float_table_t *table, const char *x_of, int64_t x_step, char *out, int64_t out_step, int64_t n) {
    const int bits_left = 23 - table->bits, lowest = (TABLE_LOWEST << table->bits) - 1;
    const int last = TABLE_OCTAVES << table->bits;
    for (int64_t i = 0; i < n; i++) {
        const float x = *(const float *)(x_of + i * x_step);
        table_segment_t own;
        const table_segment_t *segment = NULL;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        int place = (int)((bits & 0x7fffffff) >> bits_left) - lowest;
        if (place <= last) {
            double center;
            place = 2 * (place > 0 ? place : 0) + (int)(bits >> 31);
            segment = &table->segments[place];
            __atomic_load(&segment->center, &center, __ATOMIC_ACQUIRE);
            if (center == 0)
                segment = find_segment(table, place, &own);
        }
        if (segment == NULL) {
            *(float *)(out + i * out_step) = (float)table_exact(table, x);
            continue;
        }
        const double t = x - segment->center;
        const double value = TABLE_VALUE(multiply_add, segment->c, t);
        *(float *)(out + i * out_step) = (float)value;
    }
}
