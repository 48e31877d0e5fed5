// Selection of the k-th of n entries in linear time; C interface.
#pragma once

#include "kernels/sorting/loops.h"

// Return the index of the element at position `k` in the order of keys, ties by index; reorders the entries.
EXPORTED int64_t nth_index(sort_entry_t *entries, int64_t n, int64_t k);
