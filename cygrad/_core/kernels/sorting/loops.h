// C interface of sorting.
#pragma once

#include <stdint.h>
#include "simd/exported.h"

// Sort key of an element as an unsigned number (nan last, zeros equal), and its position.
typedef struct {
    uint64_t key;
    int64_t index;
} sort_entry_t;

// Order-preserving keys of n elements at `stride` (in elements); `dtype` is real.
EXPORTED void make_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending,
                           sort_entry_t *entries);
// Sort stably by key. `scratch` is scratch memory for n entries.
EXPORTED void sort_entries(sort_entry_t *entries, sort_entry_t *scratch, int64_t n);
// Select the `k` <= n smallest of n elements in order, ties by index; `entries` has capacity n.
EXPORTED void select_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, int64_t k,
                             sort_entry_t *entries);
// Return whether two adjacent of n sorted entries are equal.
EXPORTED int equal_entries(const sort_entry_t *entries, int64_t n);
// Sort by key, ties in the order of PyTorch's unstable sort.
EXPORTED void sort_entries_unstably(sort_entry_t *entries, int64_t n);
// Move the `k` smallest to the front, in order if `sorted`; ties as in PyTorch's topk.
EXPORTED void select_entries_unstably(sort_entry_t *entries, int64_t n, int64_t k, int sorted);
// Insertion points of values in a sorted row: before (or, `right`, after) their equals.
EXPORTED void insertion_points(int dtype, const char *row, int64_t n, const char *values, int64_t count, int right,
                               int64_t *out);
// The smallest and the largest of n > 0 integers.
EXPORTED void (*const range_of)(const int64_t *values, int64_t n, int64_t *smallest, int64_t *largest);
// Add how often each integer in [0, bins) occurs; all are in that range.
EXPORTED void count_integers(const int64_t *values, int64_t n, int64_t bins, int64_t *counts);
// Add how many float32 or float64 numbers are in each of the equal bins of [low, high].
EXPORTED void count_in_bins(int dtype, const void *values, int64_t n, double low, double high, int64_t bins,
                            int64_t *counts);
