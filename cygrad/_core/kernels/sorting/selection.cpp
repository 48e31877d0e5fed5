// Selection by the standard library, which bounds its time whatever the order of the entries.
#include "kernels/sorting/selection.h"

#include <algorithm>

extern "C" int64_t nth_index(sort_entry_t *entries, int64_t n, int64_t k) {
    std::nth_element(entries, entries + k, entries + n, [](const sort_entry_t &a, const sort_entry_t &b) {
        return a.key != b.key ? a.key < b.key : a.index < b.index;
    });
    return entries[k].index;
}
