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
// Insertion point of `value` in a sorted row: before (or, `right`, after) its equals.
int64_t insertion_point(int dtype, const char *row, int64_t n, const char *value, int right);

#ifdef __cplusplus
}
#endif
