/* Maxima of windows of one plane, for one type. The includer defines REAL, LOWEST, NAME(function) and
   IS_NAN(x). */

/* The first of the largest elements; if there are nans, the last of them. A window that meets only padding, as one with
   a dilation may, has the place -1. */
FOR_EACH_CPU
static void NAME(maxima)(const pooling_t *p, const REAL *plane, REAL *values, int64_t *indices) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++)
            for (int64_t c = 0; c < p->out[2]; c++) {
                const window_t x = p->windows[0][a], y = p->windows[1][b], z = p->windows[2][c];
                if (x.count * y.count * z.count == 0) {
                    *values++ = LOWEST;
                    *indices++ = -1;
                    continue;
                }
                int64_t best = (x.begin * p->size[1] + y.begin) * p->size[2] + z.begin;
                REAL value = plane[best];
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < y.count; j++) {
                        const int64_t line = ((x.begin + i * p->step[0]) * p->size[1] + y.begin + j * p->step[1])
                            * p->size[2] + z.begin;
                        for (int64_t k = 0; k < z.count; k++) {
                            const int64_t at = line + k * p->step[2];
                            const REAL other = plane[at];
                            if (other > value || IS_NAN(other)) {
                                value = other;
                                best = at;
                            }
                        }
                    }
                *values++ = value;
                *indices++ = best;
            }
}
