// The k-th of n entries, in time proportional to n: plain C for its users.
#pragma once

#include "kernels/sorting/sort_loops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where the element was that comes at position `k` in the order of keys, equals by index; the entries change places.
int64_t nth_index(sort_entry_t *entries, int64_t n, int64_t k);

#ifdef __cplusplus
}
#endif
