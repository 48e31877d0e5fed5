// Sorting of rows by unsigned keys: one order for all dtypes, and digits to sort by.

#include "kernels/sorting/loops.h"

#include <string.h>
#include <algorithm>
#include <limits>
#include <type_traits>

#define LOOPS "kernels/sorting/range_loops.h"
#include "simd/dispatch.h"

namespace {

template <class T> uint64_t key_of(T x) {
    if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value) {
        typedef typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type bits_t;
        const bits_t sign = bits_t(1) << (8 * sizeof(T) - 1);
        bits_t bits;
        const T positive = x + T(0);   // -0 becomes 0
        memcpy(&bits, &positive, sizeof x);
        bits ^= bits & sign ? std::numeric_limits<bits_t>::max() : sign;
        return x != x ? std::numeric_limits<bits_t>::max() : bits;
    } else if constexpr (std::is_signed<T>::value) {
        typedef typename std::make_unsigned<T>::type bits_t;
        return bits_t(bits_t(x) ^ bits_t(bits_t(1) << (8 * sizeof(T) - 1)));
    } else {
        return x;
    }
}

// Reverses the order of keys.
template <class T> uint64_t flip_mask(int descending) {
    const uint64_t all = sizeof(T) == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * sizeof(T) % 64)) - 1;
    return descending ? all : 0;
}

template <class T> void entries_of(const char *data, int64_t stride, int64_t n, int descending,
                                   sort_entry_t *entries) {
    const T *p = (const T *)data;
    const uint64_t flip = flip_mask<T>(descending);
    if (stride == 1)
        for (int64_t i = 0; i < n; i++) entries[i] = sort_entry_t{key_of(p[i]) ^ flip, i};
    else
        for (int64_t i = 0; i < n; i++) entries[i] = sort_entry_t{key_of(p[i * stride]) ^ flip, i};
}

// Return whether the insertion point is after the element. As in PyTorch, comparisons with nan are false.
template <class T, bool RIGHT> inline int64_t is_after(T element, T x) {
    return RIGHT ? !(element > x) : !(element >= x);
}

// Several searches at a time, without branches: the processor overlaps them and predicts nothing.
template <class T, bool RIGHT>
void search(const char *row, int64_t n, const char *values, int64_t count, int64_t *out) {
    enum { GROUP = 8 };
    const T *p = (const T *)row, *x = (const T *)values;
    int64_t i = 0;
    for (; n && p[n - 1] == p[n - 1] && i + GROUP <= count; i += GROUP, x += GROUP) {
        int64_t low[GROUP] = {0};
        for (int64_t length = n, half; length > 1; length -= half) {
            half = length / 2;
            for (int k = 0; k < GROUP; k++) low[k] += half & -is_after<T, RIGHT>(p[low[k] + half - 1], x[k]);
        }
        for (int k = 0; k < GROUP; k++) out[i + k] = low[k] + is_after<T, RIGHT>(p[low[k]], x[k]);
    }
    for (; i < count; i++, x++) {           // where nan is in the row, its position depends on the elements compared
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (is_after<T, RIGHT>(p[middle], *x)) low = middle + 1;
            else high = middle;
        }
        out[i] = low;
    }
}

// Add 1 to the count of each place but negative ones. Equal neighbors would wait for each other's store: four counts.
template <class F> void count_places(int64_t n, int64_t bins, int64_t *counts, F place) {
    enum { FEW = 1024 };
    int64_t partial[4][FEW], i = 0;
    if (bins <= FEW && n >= 4 * bins) {
        for (auto &part : partial) memset(part, 0, bins * sizeof *part);
        for (; i + 4 <= n; i += 4)
            for (int k = 0; k < 4; k++) {
                const int64_t at = place(i + k);
                if (at >= 0) partial[k][at]++;
            }
        for (int64_t bin = 0; bin < bins; bin++)
            counts[bin] += (partial[0][bin] + partial[1][bin]) + (partial[2][bin] + partial[3][bin]);
    }
    for (; i < n; i++) {
        const int64_t at = place(i);
        if (at >= 0) counts[at]++;
    }
}

bool before(const sort_entry_t &a, const sort_entry_t &b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

bool smaller(const sort_entry_t &a, const sort_entry_t &b) { return a.key < b.key; }

template <class T> void smallest(const char *data, int64_t stride, int64_t n, int descending, int64_t k,
                                 sort_entry_t *entries) {
    if (k <= 0) return;
    if (k > 64 || k * 8 > n) {
        entries_of<T>(data, stride, n, descending, entries);
        if (k < n) std::nth_element(entries, entries + (k - 1), entries + n, before);
        std::sort(entries, entries + k, before);
        return;
    }
    // Few of many: most elements are only compared with the worst that was kept.
    const T *p = (const T *)data;
    const uint64_t flip = flip_mask<T>(descending);
    entries_of<T>(data, stride, k, descending, entries);
    std::sort(entries, entries + k, before);
    uint64_t worst = entries[k - 1].key;
    for (int64_t i = k; i < n; i++) {
        uint64_t key = key_of(p[i * stride]) ^ flip;
        if (key >= worst) continue;
        int64_t place = k - 1;
        for (; place > 0 && entries[place - 1].key > key; place--) entries[place] = entries[place - 1];
        entries[place] = sort_entry_t{key, i};
        worst = entries[k - 1].key;
    }
}

// Least significant digit first; digits that are the same everywhere are skipped.
void sort_by_digits(sort_entry_t *entries, sort_entry_t *scratch, int64_t n) {
    enum { BITS = 8, DIGITS = 64 / BITS, VALUES = 1 << BITS };
    static thread_local int64_t counts[DIGITS][VALUES];
    sort_entry_t *from = entries, *to = scratch;
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) counts[d][(entries[i].key >> (BITS * d)) & (VALUES - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t *count = counts[d], total = 0;
        if (count[(entries[0].key >> (BITS * d)) & (VALUES - 1)] == n) continue;
        for (int v = 0; v < VALUES; v++) {
            int64_t c = count[v];
            count[v] = total;
            total += c;
        }
        for (int64_t i = 0; i < n; i++) to[count[(from[i].key >> (BITS * d)) & (VALUES - 1)]++] = from[i];
        std::swap(from, to);
    }
    if (from != entries) memcpy(entries, from, n * sizeof(sort_entry_t));
}

}  // namespace

#define FOR_DTYPE(call)                     \
    switch (dtype) {                        \
        case 0: case 1: call(uint8_t);      \
        case 2: call(int8_t);               \
        case 3: call(int16_t);              \
        case 4: call(int32_t);              \
        case 5: call(int64_t);              \
        case 6: call(float);                \
        default: call(double);              \
    }

void make_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, sort_entry_t *entries) {
#define CALL(T) return entries_of<T>(data, stride, n, descending, entries)
    FOR_DTYPE(CALL)
#undef CALL
}

void insertion_points(int dtype, const char *row, int64_t n, const char *values, int64_t count, int right,
                      int64_t *out) {
#define CALL(T) return (right ? search<T, true> : search<T, false>)(row, n, values, count, out)
    FOR_DTYPE(CALL)
#undef CALL
}

void (*const range_of)(const int64_t *, int64_t, int64_t *, int64_t *) = DISPATCH(range_of_integers);

void count_integers(const int64_t *values, int64_t n, int64_t bins, int64_t *counts) {
    count_places(n, bins, counts, [=](int64_t i) { return values[i]; });
}

void count_in_bins(int dtype, const void *values, int64_t n, double low, double high, int64_t bins, int64_t *counts) {
    const double scale = bins / (high - low);
    const auto place = [=](double x) {
        return x >= low && x <= high ? std::min(int64_t((x - low) * scale), bins - 1) : -1;
    };
    if (dtype == 6) count_places(n, bins, counts, [=](int64_t i) { return place(((const float *)values)[i]); });
    else count_places(n, bins, counts, [=](int64_t i) { return place(((const double *)values)[i]); });
}

void sort_entries(sort_entry_t *entries, sort_entry_t *scratch, int64_t n) {
    if (n <= 256) std::sort(entries, entries + n, before);
    else sort_by_digits(entries, scratch, n);
}

void select_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, int64_t k,
                    sort_entry_t *entries) {
#define CALL(T) return smallest<T>(data, stride, n, descending, k, entries)
    FOR_DTYPE(CALL)
#undef CALL
}

int equal_entries(const sort_entry_t *entries, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (entries[i - 1].key == entries[i].key) return 1;
    return 0;
}

// PyTorch, too, sorts and selects by the standard library: the same calls leave equal elements in the same order.
void sort_entries_unstably(sort_entry_t *entries, int64_t n) { std::sort(entries, entries + n, smaller); }

void select_entries_unstably(sort_entry_t *entries, int64_t n, int64_t k, int sorted) {
    if (k <= 0) return;
    if (k * 64 <= n) {
        std::partial_sort(entries, entries + k, entries + n, smaller);
    } else {
        std::nth_element(entries, entries + (k - 1), entries + n, smaller);
        if (sorted) std::sort(entries, entries + (k - 1), smaller);
    }
}
