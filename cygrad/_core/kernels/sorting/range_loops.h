// The smallest and the largest of n > 0 integers.
static void range_of_integers(const int64_t *values, int64_t n, int64_t *smallest, int64_t *largest) {
    int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
    for (int64_t i = 0; i < n; i++) low = std::min(low, values[i]), high = std::max(high, values[i]);
    *smallest = low, *largest = high;
}
