/* Compare without an early exit, so that compilers vectorize. */
template <class T> int differ(const T *a, const T *b, int64_t n) {
    int different = 0;
    for (int64_t i = 0; i < n; i++)
        different |= a[i] != b[i];
    return different;
}
