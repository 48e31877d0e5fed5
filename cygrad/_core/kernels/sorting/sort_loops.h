// Sorting of rows, as its users see it: plain C.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Sort key of an element as an unsigned number (nan last, zeros equal), and its position.
typedef struct {
    uint64_t key;
    int64_t index;
} sort_entry_t;

// Order-preserving keys of n elements at `stride` (in elements); `dtype` is real.
void make_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, sort_entry_t *entries);
// Sort by key; equal keys stay in order. `spare` has room for n entries more.
void sort_entries(sort_entry_t *entries, sort_entry_t *spare, int64_t n);
// The `k` <= n smallest of n elements in order, equal keys by index; `entries` has room for n.
void select_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, int64_t k,
                    sort_entry_t *entries);
// Whether two neighbors of n sorted entries are equal.
int equal_entries(const sort_entry_t *entries, int64_t n);
// Sort by key; equal keys come in the order in which PyTorch's unstable sort leaves them.
void sort_entries_unstably(sort_entry_t *entries, int64_t n);
// The `k` smallest in front, in order if `sorted`; equal keys are chosen and come as in PyTorch's topk.
void select_entries_unstably(sort_entry_t *entries, int64_t n, int64_t k, int sorted);
// Insertion points of values in a sorted row: before (or, `right`, after) their equals.
void insertion_points(int dtype, const char *row, int64_t n, const char *values, int64_t count, int right,
                      int64_t *out);
// The smallest and the largest of n > 0 integers.
void range_of(const int64_t *values, int64_t n, int64_t *smallest, int64_t *largest);
// Add how often each integer in [0, bins) occurs; all are in that range.
void count_integers(const int64_t *values, int64_t n, int64_t bins, int64_t *counts);
// Add how many float32 or float64 numbers are in each of the equal bins of [low, high].
void count_in_bins(int dtype, const void *values, int64_t n, double low, double high, int64_t bins, int64_t *counts);

#ifdef __cplusplus
}
#endif
