/* Sums of c[k] T_k(t) for each t, by Clenshaw's recurrence. */
static void chebyshev_sums_of(const double *c, int n, const double *t, double *sums, int count) {
    double before[PIECEWISE_BLOCK], last[PIECEWISE_BLOCK];
    for (int i = 0; i < count; i++) before[i] = last[i] = 0;
    for (int k = n - 1; k > 0; k--) {
        for (int i = 0; i < count; i++) {
            const double next = 2 * t[i] * last[i] - before[i] + c[k];
            before[i] = last[i];
            last[i] = next;
        }
    }
    for (int i = 0; i < count; i++) sums[i] = t[i] * last[i] - before[i] + c[0];
}
