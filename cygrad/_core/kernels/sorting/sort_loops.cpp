// Sorting of rows by unsigned keys: one order for all dtypes, and digits to sort by.

#include "kernels/sorting/sort_loops.h"

#include <string.h>
#include <algorithm>
#include <limits>
#include <type_traits>

namespace {

template <class T> uint64_t key_of(T x) {
    if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value) {
        typedef typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type bits_t;
        const bits_t sign = bits_t(1) << (8 * sizeof(T) - 1);
        bits_t bits;
        if (x != x) return std::numeric_limits<bits_t>::max();
        x += T(0);   // -0 becomes 0
        memcpy(&bits, &x, sizeof x);
        return bits & sign ? bits_t(~bits) : bits_t(bits | sign);
    } else if constexpr (std::is_signed<T>::value) {
        typedef typename std::make_unsigned<T>::type bits_t;
        return bits_t(bits_t(x) ^ bits_t(bits_t(1) << (8 * sizeof(T) - 1)));
    } else {
        return x;
    }
}

// Reverses the order of keys.
template <class T> uint64_t turn_of(int descending) {
    const uint64_t all = sizeof(T) == 8 ? ~uint64_t(0) : (uint64_t(1) << (8 * sizeof(T) % 64)) - 1;
    return descending ? all : 0;
}

template <class T> void entries_of(const char *data, int64_t stride, int64_t n, int descending,
                                   sort_entry_t *entries) {
    const T *p = (const T *)data;
    const uint64_t turn = turn_of<T>(descending);
    for (int64_t i = 0; i < n; i++) entries[i] = sort_entry_t{key_of(p[i * stride]) ^ turn, i};
}

// As PyTorch does it: by comparisons that are false for nan.
template <class T> int64_t search(const char *row, int64_t n, const char *value, int right) {
    const T *p = (const T *)row;
    T x;
    memcpy(&x, value, sizeof x);
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (right ? !(p[middle] > x) : !(p[middle] >= x)) low = middle + 1;
        else high = middle;
    }
    return low;
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
    const uint64_t turn = turn_of<T>(descending);
    entries_of<T>(data, stride, k, descending, entries);
    std::sort(entries, entries + k, before);
    uint64_t worst = entries[k - 1].key;
    for (int64_t i = k; i < n; i++) {
        uint64_t key = key_of(p[i * stride]) ^ turn;
        if (key >= worst) continue;
        int64_t place = k - 1;
        for (; place > 0 && entries[place - 1].key > key; place--) entries[place] = entries[place - 1];
        entries[place] = sort_entry_t{key, i};
        worst = entries[k - 1].key;
    }
}

// Least significant digit first; digits that are the same everywhere are skipped.
void sort_by_digits(sort_entry_t *entries, sort_entry_t *spare, int64_t n) {
    enum { BITS = 8, DIGITS = 64 / BITS, VALUES = 1 << BITS };
    static thread_local int64_t counts[DIGITS][VALUES];
    sort_entry_t *from = entries, *to = spare;
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

int64_t insertion_point(int dtype, const char *row, int64_t n, const char *value, int right) {
#define CALL(T) return search<T>(row, n, value, right)
    FOR_DTYPE(CALL)
#undef CALL
}

void sort_entries(sort_entry_t *entries, sort_entry_t *spare, int64_t n) {
    if (n <= 256) std::sort(entries, entries + n, before);
    else sort_by_digits(entries, spare, n);
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
