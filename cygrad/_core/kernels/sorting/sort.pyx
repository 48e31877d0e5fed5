"""sort, argsort, topk, unique, searchsorted, kthvalue, median, nanmedian and mode. nan is the largest value."""

from libc.stdint cimport INT64_MAX, UINT32_MAX, UINT64_MAX, int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (
    MAX_DIMS, NOTHING, array_empty, array_empty_like, array_t, array_view, as_real, is_true, register_kernel, release,
    set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT32, INT64, dtype_name, is_complex, is_floating, itemsize
from cygrad._core.elementwise.copying cimport as_contiguous, copy_into
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, integer_argument, new_array, new_zeros, optional_integer, wrap_dim,
)
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.threads.grain cimport EXPENSIVE, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ----------------------------------------------------------------------------------------------------------------- sort

cdef extern from "kernels/sorting/loops.h" nogil:
    ctypedef struct sort_entry_t:
        uint64_t key
        int64_t index
    void make_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending,
                      sort_entry_t *entries)
    void sort_entries(sort_entry_t *entries, sort_entry_t *scratch, int64_t n)
    void select_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, int64_t k,
                        sort_entry_t *entries)
    int equal_entries(const sort_entry_t *entries, int64_t n)
    void sort_entries_unstably(sort_entry_t *entries, int64_t n)
    void select_entries_unstably(sort_entry_t *entries, int64_t n, int64_t k, int sorted)
    void insertion_points(int dtype, const char *row, int64_t n, const char *values, int64_t count, int right,
                          int64_t *out)
    void range_of(const int64_t *values, int64_t n, int64_t *smallest, int64_t *largest)
    void count_integers(const int64_t *values, int64_t n, int64_t bins, int64_t *counts)
    void count_in_bins(int dtype, const void *values, int64_t n, double low, double high, int64_t bins,
                       int64_t *counts)

cdef enum:
    FEW = 256              # longest rows sorted by comparisons
    DIGITS = 32768
    SEARCHED = 256         # values of one call
    SMALL = 16             # up to here PyTorch's unstable sort is a stable one

cdef enum order_t:         # order of equal elements
    BY_INDEX
    SORTED                 # that of PyTorch's sort
    SELECTED               # that of PyTorch's topk
    UNSORTED               # ... with sorted=False

cdef bint _as_in_pytorch = False


def equals_as_in_pytorch(bint wanted):
    """Set whether unstable sorts use PyTorch's order of equal elements."""
    global _as_in_pytorch
    _as_in_pytorch = wanted


ctypedef struct sort_t:
    int dtype
    int64_t item
    rows_t rows
    int64_t k              # requested elements of each row
    bint descending
    order_t order
    char *self
    char *values           # or NULL
    int64_t *indices
    int status


cdef void _rows_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Sort rows begin..end-1 and write the first k elements of each."""
    cdef sort_t *work = <sort_t *>context
    cdef int64_t row, i, at, to, n = work.rows.n, inner = work.rows.inner
    # One more shows whether the last element has an equal outside of the result.
    cdef int64_t wanted = work.k if work.order == BY_INDEX else min(work.k + 1, n)
    # Searching for equals first would take as long as sorting.
    cdef bint direct = (work.order == UNSORTED or (work.order == SORTED and n <= FEW)
                        or (work.order == SELECTED and (work.k > 64 or work.k * 8 > n)))
    cdef int64_t nbytes = 2 * n * <int64_t>sizeof(sort_entry_t)
    cdef sort_entry_t *entries = <sort_entry_t *>allocate(nbytes)
    if entries == NULL:
        work.status = MEMORY_ERROR
        return
    for row in range(begin, end):
        at = row // inner * n * inner + row % inner
        to = row // inner * work.k * inner + row % inner
        if direct:
            pass
        elif wanted < n:
            select_entries(work.dtype, work.self + at * work.item, inner, n, work.descending, wanted, entries)
        else:
            make_entries(work.dtype, work.self + at * work.item, inner, n, work.descending, entries)
            sort_entries(entries, entries + n, n)
        if direct or (work.order != BY_INDEX and equal_entries(entries, wanted)):
            make_entries(work.dtype, work.self + at * work.item, inner, n, work.descending, entries)
            if work.order == SORTED:
                sort_entries_unstably(entries, n)
            else:
                select_entries_unstably(entries, n, work.k, work.order == SELECTED)
        for i in range(work.k):
            work.indices[to + i * inner] = entries[i].index
            if work.values != NULL:
                memcpy(work.values + (to + i * inner) * work.item,
                       work.self + (at + entries[i].index * inner) * work.item, work.item)
    deallocate(entries, nbytes)


cdef int _refuse_complex(const char *name, const array_t *array) noexcept nogil:
    if is_complex(array.dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s). Sort the real part or "
                 b"the absolute value.", name, dtype_name(array.dtype))
        return RUNTIME_ERROR
    return OK


cdef int _ordered(const char *name, array_t *self, int dim, int64_t k, bint descending, order_t order,
                  value_t *values_result, value_t *indices_result) noexcept nogil:
    """Sort the first k elements along a wrapped dimension; values_result may be NULL."""
    cdef sort_t work
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef array_t *source
    cdef int i, status
    for i in range(self.ndim):
        shape[i] = k if i == dim else self.shape[i]
    status = new_array(name, INT64, self.ndim, shape, &indices)
    if status == OK and values_result != NULL:
        status = new_array(name, self.dtype, self.ndim, shape, &values)
    source = as_contiguous(self, -1) if status == OK else NULL
    if source == NULL:
        release(values)
        release(indices)
        return status if status != OK else MEMORY_ERROR
    work.dtype, work.item = self.dtype, itemsize(self.dtype)
    rows_along(self, dim, &work.rows)
    work.k, work.descending, work.order, work.status = k, descending, order if _as_in_pytorch else BY_INDEX, OK
    work.self = source.data
    work.values = values.data if values != NULL else NULL
    work.indices = <int64_t *>indices.data
    if indices.size:
        parallel_for(_rows_body, &work, work.rows.outer * work.rows.inner, rows_per_chunk(work.rows.n, EXPENSIVE))
    release(source)
    if work.status != OK:
        snprintf(message(), MESSAGE, b"%s: out of memory", name)
        release(values)
        release(indices)
        return work.status
    if values_result != NULL:
        set_array(values_result, values)
    set_array(indices_result, indices)
    return OK


cdef int _read(const char *name, const value_t *self_value, const value_t *dim_value, array_t **self,
               int *dim) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(name, b"self", self_value, self)
    if status == OK:
        status = optional_integer(name, b"dim", dim_value, -1, &given)
    if status == OK:
        status = wrap_dim(name, given, self[0].ndim, dim)
    return _refuse_complex(name, self[0]) if status == OK else status


cdef order_t _sort_order(const array_t *self, int dim, bint descending, bint stable) noexcept nogil:
    """Return whether PyTorch sorts stably: it uses a radix sort for long rows of integers."""
    cdef int64_t n = self.shape[dim] if self.ndim else 1
    if stable or n <= SMALL or (n >= DIGITS and self.ndim == 1 and not descending and not is_floating(self.dtype)):
        return BY_INDEX
    return SORTED


cdef int sort_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sort(self, dim, descending, stable) -> values, indices; stable unless PyTorch's order is requested."""
    cdef array_t *self
    cdef int dim, status = _read(b"sort", &arguments[0], &arguments[1], &self, &dim)
    if status != OK:
        return status
    return _ordered(b"sort", self, dim, self.shape[dim] if self.ndim else 1, is_true(&arguments[2]),
                    _sort_order(self, dim, is_true(&arguments[2]), is_true(&arguments[3])), &results[0], &results[1])


cdef int argsort_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argsort(self, dim, descending, stable)."""
    cdef array_t *self
    cdef int dim, status = _read(b"argsort", &arguments[0], &arguments[1], &self, &dim)
    if status != OK:
        return status
    return _ordered(b"argsort", self, dim, self.shape[dim] if self.ndim else 1, is_true(&arguments[2]),
                    _sort_order(self, dim, is_true(&arguments[2]), is_true(&arguments[3])), NULL, &results[0])


cdef int topk_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """topk(self, k, dim, largest, sorted) -> values, indices; sorted, ties by index, unless in PyTorch's order."""
    cdef array_t *self
    cdef int64_t k, n
    cdef int dim, status = _read(b"topk", &arguments[0], &arguments[2], &self, &dim)
    if status == OK:
        status = integer_argument(b"topk", b"k", &arguments[1], &k)
    if status != OK:
        return status
    n = self.shape[dim] if self.ndim else 1
    if k < 0 or k > n:
        snprintf(message(), MESSAGE, b"topk: selected index k out of range (got %lld, expected 0 to %lld).",
                 <long long>k, <long long>n)
        return RUNTIME_ERROR
    return _ordered(b"topk", self, dim, k, is_true(&arguments[3]) or arguments[3].kind == NOTHING,
                    SELECTED if is_true(&arguments[4]) or arguments[4].kind == NOTHING else UNSORTED,
                    &results[0], &results[1])


# ---------------------------------------------------------------- unique

cdef int unique_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """
    unique(self, sorted, return_inverse, return_counts) of the flattened array -> values, inverse, counts (NOTHING if
    not requested); every nan is unique.
    """
    cdef array_t *self
    cdef array_t *source
    cdef array_t *values = NULL
    cdef array_t *inverse = NULL
    cdef array_t *counts = NULL
    cdef sort_entry_t *entries
    cdef int64_t i, n, nbytes, item, after, groups = 0
    cdef int status = array_argument(b"unique", b"self", &arguments[0], &self)
    if status == OK:
        status = _refuse_complex(b"unique", self)
    if status != OK:
        return status
    n, item = self.size, itemsize(self.dtype)
    nbytes = max(1, 2 * n) * <int64_t>sizeof(sort_entry_t)
    source = as_contiguous(self, -1)
    inverse = array_empty_like(self, INT64)
    entries = <sort_entry_t *>allocate(nbytes)
    if source != NULL and inverse != NULL and entries != NULL:
        make_entries(self.dtype, source.data, 1, n, False, entries)
        if n:
            sort_entries(entries, entries + n, n)
        for i in range(n):
            if (i == 0 or entries[i].key != entries[i - 1].key
                    or _is_nan(self.dtype, source.data + entries[i].index * item)):
                # The key is no longer needed: reuse it for the position of the group's first entry.
                entries[n + groups].index = i
                groups += 1
            (<int64_t *>inverse.data)[entries[i].index] = groups - 1
        values = array_empty(self.dtype, 1, &groups)
        counts = array_empty(INT64, 1, &groups)
    if values != NULL and counts != NULL:
        for i in range(groups):
            memcpy(values.data + i * item, source.data + entries[entries[n + i].index].index * item, item)
            after = entries[n + i + 1].index if i + 1 < groups else n
            (<int64_t *>counts.data)[i] = after - entries[n + i].index
        set_array(&results[0], values)
        if is_true(&arguments[2]):
            set_array(&results[1], inverse)
            inverse = NULL
        if is_true(&arguments[3]):
            set_array(&results[2], counts)
            counts = NULL
    else:
        release(values)
        status = MEMORY_ERROR
    if entries != NULL:
        deallocate(entries, nbytes)
    release(source)
    release(inverse)
    release(counts)
    return status


cdef array_t *_dim_first(array_t *array, int dim) noexcept nogil:
    """Return a view with one dimension moved to the front."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i, n = 1
    shape[0], strides[0] = array.shape[dim], array.strides[dim]
    for i in range(array.ndim):
        if i != dim:
            shape[n], strides[n] = array.shape[i], array.strides[i]
            n += 1
    return array_view(array, array.dtype, array.ndim, shape, strides, 0)


cdef void _sort_slices(int dtype, const char *rows, int64_t n, int64_t m, sort_entry_t *entries) noexcept nogil:
    """
    Sort n rows of m elements lexicographically: stably by each element, from the last one on; scratch memory for n
    entries follows the 2 n entries.
    """
    cdef int64_t i, column = m - 1, item = itemsize(dtype)
    cdef sort_entry_t *order = entries + 2 * n
    for i in range(n):
        order[i].index = i
    while column >= 0:
        for i in range(n):
            make_entries(dtype, rows + (order[i].index * m + column) * item, 1, 1, False, &entries[i])
            entries[i].index = i
        sort_entries(entries, entries + n, n)
        for i in range(n):
            entries[i].index = order[entries[i].index].index
        memcpy(order, entries, n * sizeof(sort_entry_t))
        column -= 1


cdef bint _same_slice(int dtype, const char *a, const char *b, int64_t m) noexcept nogil:
    cdef sort_entry_t x, y
    cdef int64_t i, item = itemsize(dtype)
    for i in range(m):
        make_entries(dtype, a + i * item, 1, 1, False, &x)
        make_entries(dtype, b + i * item, 1, 1, False, &y)
        if x.key != y.key or _is_nan(dtype, a + i * item):
            return False
    return True


cdef int unique_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unique_dim(self, dim) -> values, inverse, counts of the lexicographically sorted slices along dim."""
    cdef array_t *self
    cdef array_t *view = NULL
    cdef array_t *source = NULL
    cdef array_t *values = NULL
    cdef array_t *inverse = NULL
    cdef array_t *counts = NULL
    cdef array_t *target = NULL
    cdef array_t *part = NULL
    cdef sort_entry_t *entries
    cdef sort_entry_t *order
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t i, n, m, nbytes, width, groups = 0
    cdef int dim, status = _read(b"unique_dim", &arguments[0], &arguments[1], &self, &dim)
    if status == OK and self.ndim == 0:
        snprintf(message(), MESSAGE, b"unique_dim: a 0-dim tensor has no slices (got shape ()). Use unique "
                 b"without dim.")
        status = RUNTIME_ERROR
    if status != OK:
        return status
    n = self.shape[dim]
    m = self.size // n if n else 0
    if n and not self.size:
        snprintf(message(), MESSAGE, b"unique_dim: slices without elements cannot be compared (got shape "
                 b"%s).",
                 shape_text(self))
        return RUNTIME_ERROR
    nbytes = max(1, 3 * n) * <int64_t>sizeof(sort_entry_t)
    width = m * itemsize(self.dtype)
    entries = <sort_entry_t *>allocate(nbytes)
    view = _dim_first(self, dim)
    source = as_contiguous(view, -1) if view != NULL else NULL
    inverse = array_empty(INT64, 1, &n)
    if entries != NULL and source != NULL and inverse != NULL:
        order = entries + 2 * n
        _sort_slices(self.dtype, source.data, n, m, entries)
        for i in range(n):
            if i == 0 or not _same_slice(self.dtype, source.data + order[i].index * width,
                                         source.data + order[i - 1].index * width, m):
                entries[groups].index = i
                groups += 1
            (<int64_t *>inverse.data)[order[i].index] = groups - 1
        for i in range(self.ndim):
            shape[i] = groups if i == dim else self.shape[i]
        values = array_empty(self.dtype, self.ndim, shape)
        counts = array_empty(INT64, 1, &groups)
        target = _dim_first(values, dim) if values != NULL else NULL
        part = array_empty_like(target, -1) if target != NULL else NULL
    status = MEMORY_ERROR
    if part != NULL and counts != NULL:
        for i in range(groups):
            memcpy(part.data + i * width, source.data + order[entries[i].index].index * width, width)
            (<int64_t *>counts.data)[i] = (entries[i + 1].index if i + 1 < groups else n) - entries[i].index
        status = copy_into(target, part)
    if entries != NULL:
        deallocate(entries, nbytes)
    release(view)
    release(source)
    release(target)
    release(part)
    if status == OK:
        set_array(&results[0], values)
        set_array(&results[1], inverse)
        set_array(&results[2], counts)
    else:
        release(values)
        release(inverse)
        release(counts)
    return status


# ---------------------------------------------------------------- searchsorted

ctypedef struct search_t:
    int dtype
    int64_t item
    int64_t n              # length of a sorted row
    int64_t m              # values that belong to one row
    bint single            # one row for all
    bint right
    char *rows
    char *values
    int64_t *wide          # the result: one of these
    int32_t *narrow


cdef void _search_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef search_t *search = <search_t *>context
    cdef int64_t[SEARCHED] places
    cdef int64_t *out
    cdef int64_t i, row, count
    while begin < end:
        row = 0 if search.single else begin // search.m
        count = min(end if search.single else min(end, (row + 1) * search.m), begin + SEARCHED) - begin
        out = search.wide + begin if search.wide != NULL else places
        insertion_points(search.dtype, search.rows + row * search.n * search.item, search.n,
                         search.values + begin * search.item, count, search.right, out)
        if search.wide == NULL:
            for i in range(count):
                search.narrow[begin + i] = <int32_t>places[i]
        begin += count


cdef int _check_search(const array_t *rows, const array_t *values, bint narrow) noexcept nogil:
    cdef int i
    cdef bint fits = rows.ndim >= 1 and (rows.ndim == 1 or rows.ndim == values.ndim)
    if fits and rows.ndim > 1:
        for i in range(rows.ndim - 1):
            fits = fits and rows.shape[i] == values.shape[i]
    if not fits:
        snprintf(message(), MESSAGE, b"searchsorted: sorted_sequence must be 1-dimensional, or agree with "
                 b"the values in "
                 b"all but the last dimension (got %s and %s).", shape_text(rows), shape_text(values))
        return RUNTIME_ERROR
    if rows.dtype != values.dtype:
        snprintf(message(), MESSAGE, b"searchsorted: sorted_sequence and values should have the same dtype "
                 b"(got %s and "
                 b"%s). Convert one of them.", dtype_name(rows.dtype), dtype_name(values.dtype))
        return RUNTIME_ERROR
    if narrow and rows.shape[rows.ndim - 1] >= 2147483647:
        snprintf(message(), MESSAGE, b"searchsorted: the sorted row is too long for out_int32 (got %lld "
                 b"elements).",
                 <long long>rows.shape[rows.ndim - 1])
        return RUNTIME_ERROR
    return _refuse_complex(b"searchsorted", rows)


cdef int searchsorted_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """searchsorted(sorted_sequence, values, right, out_int32)."""
    cdef search_t search
    cdef array_t *rows
    cdef array_t *values
    cdef array_t *out
    cdef bint narrow = is_true(&arguments[3])
    cdef int status = array_argument(b"searchsorted", b"sorted_sequence", &arguments[0], &rows)
    if status == OK:
        status = array_argument(b"searchsorted", b"values", &arguments[1], &values)
    if status == OK:
        status = _check_search(rows, values, narrow)
    if status != OK:
        return status
    rows = as_contiguous(rows, -1)
    values = as_contiguous(values, -1)
    out = array_empty_like(values, INT32 if narrow else INT64) if values != NULL else NULL
    if rows == NULL or out == NULL:
        release(out)
        status = MEMORY_ERROR
    else:
        search.dtype, search.item = rows.dtype, itemsize(rows.dtype)
        search.n = rows.shape[rows.ndim - 1]
        search.m = values.shape[values.ndim - 1] if values.ndim else 1
        search.single = rows.ndim == 1
        search.right = is_true(&arguments[2])
        search.rows, search.values = rows.data, values.data
        search.wide = NULL if narrow else <int64_t *>out.data
        search.narrow = <int32_t *>out.data if narrow else NULL
        parallel_for(_search_body, &search, out.size, rows_per_chunk(1, EXPENSIVE))
        set_array(results, out)
    release(rows)
    release(values)
    return status


# ---- counts

cdef int count_integers_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """count_integers(self, minlength): how often each integer from 0 on occurs."""
    cdef array_t *self
    cdef array_t *counts = NULL
    cdef int64_t size, least = 0, most = -1
    cdef int status = array_argument(b"bincount", b"input", &arguments[0], &self)
    status = status or integer_argument(b"bincount", b"minlength", &arguments[1], &size)
    if status != OK:
        return status
    self = as_contiguous(self, INT64)
    if self == NULL:
        return MEMORY_ERROR
    if self.size:
        range_of(<int64_t *>self.data, self.size, &least, &most)
    if least < 0:
        snprintf(message(), MESSAGE, b"bincount: numbers must not be negative (got %lld).", <long long>least)
        status = RUNTIME_ERROR
    size = max(size, min(most, <int64_t>1 << 62) + 1)
    status = status or new_zeros(b"bincount", INT64, 1, &size, &counts)
    if status == OK:
        count_integers(<int64_t *>self.data, self.size, size, <int64_t *>counts.data)
    release(self)
    return array_result(counts, &results[0]) if status == OK else status


cdef int count_in_bins_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """count_in_bins(self, bins, low, high): how many elements are in each of the equal bins."""
    cdef array_t *self
    cdef array_t *counts = NULL
    cdef int64_t bins
    cdef int status = array_argument(b"histc", b"input", &arguments[0], &self)
    status = status or integer_argument(b"histc", b"bins", &arguments[1], &bins)
    status = status or new_zeros(b"histc", INT64, 1, &bins, &counts)
    if status != OK:
        return status
    self = as_contiguous(self, FLOAT32 if self.dtype == FLOAT32 else FLOAT64)
    if self == NULL:
        release(counts)
        return MEMORY_ERROR
    count_in_bins(self.dtype, self.data, self.size, as_real(&arguments[2]), as_real(&arguments[3]), bins,
                  <int64_t *>counts.data)
    release(self)
    return array_result(counts, &results[0])


cdef int repeated_indices_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """repeated_indices(repeats, output_size): each index as often as `repeats` says."""
    cdef array_t *repeats
    cdef array_t *out = NULL
    cdef const int64_t *counts
    cdef int64_t i, k, expected, size = 0, at = 0
    cdef int status = array_argument(b"repeat_interleave", b"repeats", &arguments[0], &repeats)
    status = status or optional_integer(b"repeat_interleave", b"output_size", &arguments[1], 0, &expected)
    if status != OK:
        return status
    repeats = as_contiguous(repeats, INT64)
    if repeats == NULL:
        return MEMORY_ERROR
    counts = <const int64_t *>repeats.data
    for i in range(repeats.size):
        if counts[i] < 0:
            snprintf(message(), MESSAGE, b"repeat_interleave: repeats must not be negative (got %lld).",
                     <long long>counts[i])
            status = RUNTIME_ERROR
        elif size > INT64_MAX - counts[i]:
            snprintf(message(), MESSAGE, b"repeat_interleave: the sum of repeats is too large for 64-bit arithmetic.")
            status = RUNTIME_ERROR
        if status != OK:
            break
        size += counts[i]
    if status == OK and arguments[1].kind != NOTHING and expected != size:
        snprintf(message(), MESSAGE, b"repeat_interleave: output_size must be the sum of repeats (got %lld, expected "
                 b"%lld).", <long long>expected, <long long>size)
        status = RUNTIME_ERROR
    status = status or new_array(b"repeat_interleave", INT64, 1, &size, &out)
    if status == OK:
        for i in range(repeats.size):
            for k in range(at, at + counts[i]):
                (<int64_t *>out.data)[k] = i
            at += counts[i]
    release(repeats)
    return array_result(out, &results[0]) if status == OK else status


register_kernel("count_integers", count_integers_kernel)
register_kernel("repeated_indices", repeated_indices_kernel)
register_kernel("count_in_bins", count_in_bins_kernel)
register_kernel("sort", sort_kernel)
register_kernel("argsort", argsort_kernel)
register_kernel("topk", topk_kernel)
register_kernel("unique", unique_kernel)
register_kernel("unique_dim", unique_dim_kernel)
register_kernel("searchsorted", searchsorted_kernel)


# ----------------------------------------------------------------------------------------------------- order statistics

cdef extern from "kernels/sorting/selection.h" nogil:
    int64_t nth_index(sort_entry_t *entries, int64_t n, int64_t k)

ctypedef enum choice_t:
    KTH
    MEDIAN                 # the lower one of two; nan if there is one
    NANMEDIAN              # of the elements that are not nan
    MODE                   # the smallest of the most frequent elements

ctypedef struct order_statistic_t:
    choice_t choice
    int dtype
    int64_t item
    int64_t k              # from 0
    rows_t rows
    char *self
    char *values
    int64_t *indices
    int status


cdef inline bint _is_nan(int dtype, const char *data) noexcept nogil:
    if dtype == FLOAT32:
        return (<const float *>data)[0] != (<const float *>data)[0]
    return dtype == FLOAT64 and (<const double *>data)[0] != (<const double *>data)[0]


cdef int64_t _nans(int dtype, const sort_entry_t *entries, int64_t n, int64_t *first) noexcept nogil:
    """Count the nans, which have the largest key, and find the first."""
    cdef int64_t i, count = 0
    cdef uint64_t key = UINT32_MAX if dtype == FLOAT32 else UINT64_MAX
    if dtype == FLOAT32 or dtype == FLOAT64:
        for i in range(n):
            count += entries[i].key == key
    first[0] = 0
    while count and entries[first[0]].key != key:
        first[0] += 1
    return count


cdef int64_t _most_frequent(sort_entry_t *entries, int64_t n) noexcept nogil:
    """Sort the entries and return the last one of the first longest run of equal keys."""
    cdef int64_t i, run = 0, longest = 0, found = 0
    sort_entries(entries, entries + n, n)
    for i in range(n):
        run = run + 1 if i > 0 and entries[i].key == entries[i - 1].key else 1
        if (i + 1 == n or entries[i + 1].key != entries[i].key) and run > longest:
            longest, found = run, entries[i].index
    return found


cdef int64_t _chosen(const order_statistic_t *work, const char *row, sort_entry_t *entries) noexcept nogil:
    """Return the position of the requested element in its row."""
    cdef int64_t n = work.rows.n, nans, first, k = work.k
    if work.choice == KTH and k < SMALL:
        select_entries(work.dtype, row, work.rows.inner, n, False, k + 1, entries)
        return entries[k].index
    make_entries(work.dtype, row, work.rows.inner, n, False, entries)
    if work.choice == MEDIAN or work.choice == NANMEDIAN:
        nans = _nans(work.dtype, entries, n, &first)
        if nans and (work.choice == MEDIAN or nans == n):
            return first
        k = (n - nans - 1) // 2
    return _most_frequent(entries, n) if work.choice == MODE else nth_index(entries, n, k)


cdef void _statistic_body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef order_statistic_t *work = <order_statistic_t *>context
    cdef int64_t row, place, n = work.rows.n, inner = work.rows.inner
    cdef int64_t nbytes = (2 if work.choice == MODE else 1) * n * <int64_t>sizeof(sort_entry_t)
    cdef sort_entry_t *entries = <sort_entry_t *>allocate(nbytes)
    cdef char *start
    if entries == NULL:
        work.status = MEMORY_ERROR
        return
    for row in range(begin, end):
        start = work.self + (row // inner * n * inner + row % inner) * work.item
        place = _chosen(work, start, entries)
        work.indices[row] = place
        memcpy(work.values + row * work.item, start + place * inner * work.item, work.item)
    deallocate(entries, nbytes)


cdef int _reduced(const char *name, choice_t choice, array_t *self, int dim, int64_t k, bint keepdim,
                  value_t *results) noexcept nogil:
    """Select an element of each row and its index."""
    cdef order_statistic_t work
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef array_t *source
    cdef int i, ndim = 0, status
    for i in range(self.ndim):
        if i != dim or keepdim:
            shape[ndim] = 1 if i == dim else self.shape[i]
            ndim += 1
    status = new_array(name, self.dtype, ndim, shape, &values)
    if status == OK:
        status = new_array(name, INT64, ndim, shape, &indices)
    if status == OK and values.size and self.size == 0:
        snprintf(message(), MESSAGE, b"%s: cannot select from an empty dimension (got shape %s and "
                 b"dimension %d). Reduce another one.", name, shape_text(self), dim)
        status = INDEX_ERROR
    source = as_contiguous(self, -1) if status == OK else NULL
    if status == OK and source == NULL:
        status = MEMORY_ERROR
    if status == OK and values.size:
        work.choice, work.dtype, work.item, work.k, work.status = choice, self.dtype, itemsize(self.dtype), k, OK
        rows_along(self, dim, &work.rows)
        work.self, work.values, work.indices = source.data, values.data, <int64_t *>indices.data
        parallel_for(_statistic_body, &work, values.size, rows_per_chunk(work.rows.n, EXPENSIVE))
        status = work.status
        if status != OK:
            snprintf(message(), MESSAGE, b"%s: out of memory", name)
    release(source)
    if status != OK:
        release(values)
        release(indices)
        return status
    set_array(&results[0], values)
    set_array(&results[1], indices)
    return OK


cdef int _read_statistic(const char *name, const value_t *self_value, const value_t *dim_value, array_t **self,
                         int *dim) noexcept nogil:
    cdef int64_t given
    cdef int status = array_argument(name, b"self", self_value, self)
    if status == OK:
        status = integer_argument(name, b"dim", dim_value, &given)
    if status == OK:
        status = wrap_dim(name, given, self[0].ndim, dim)
    if status == OK and is_complex(self[0].dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s). Take the real part or the absolute "
                 b"value.", name, dtype_name(self[0].dtype))
        status = NOT_IMPLEMENTED
    return status


cdef int _without_k(const char *name, choice_t choice, const value_t *arguments, value_t *results) noexcept nogil:
    cdef array_t *self
    cdef int dim, status = _read_statistic(name, &arguments[0], &arguments[1], &self, &dim)
    return _reduced(name, choice, self, dim, 0, is_true(&arguments[2]), results) if status == OK else status


cdef int median_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """median_dim(self, dim, keepdim) -> values, indices."""
    return _without_k(b"median", MEDIAN, arguments, results)


cdef int nanmedian_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nanmedian_dim(self, dim, keepdim) -> values, indices."""
    return _without_k(b"nanmedian", NANMEDIAN, arguments, results)


cdef int mode_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mode(self, dim, keepdim) -> values, indices."""
    return _without_k(b"mode", MODE, arguments, results)


cdef int median_of_all_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """median_of_all(self, ignore_nan): median of the flattened array, which is not empty."""
    cdef value_t pair[2]
    cdef array_t *self
    cdef array_t *flat
    cdef array_t *source
    cdef int64_t step = 1
    cdef int status = array_argument(b"median", b"self", &arguments[0], &self)
    if status != OK:
        return status
    source = as_contiguous(self, -1)
    flat = array_view(source, self.dtype, 1, &self.size, &step, 0) if source != NULL else NULL
    release(source)
    if flat == NULL:
        return MEMORY_ERROR
    status = _reduced(b"median", NANMEDIAN if is_true(&arguments[1]) else MEDIAN, flat, 0, 0, False, pair)
    release(flat)
    if status == OK:
        set_array(&results[0], pair[0].of.array)
        release(pair[1].of.array)
    return status


cdef int kthvalue_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """kthvalue(self, k, dim, keepdim) -> values, indices; k from 1, nan last."""
    cdef array_t *self
    cdef int64_t k, n
    cdef int dim, status = _read_statistic(b"kthvalue", &arguments[0], &arguments[2], &self, &dim)
    if status == OK:
        status = integer_argument(b"kthvalue", b"k", &arguments[1], &k)
    if status != OK:
        return status
    n = self.shape[dim] if self.ndim else 1
    if (k < 1 or k > n) and (n or self.size):
        snprintf(message(), MESSAGE, b"kthvalue: selected number k out of range (got %lld, expected 1 to %lld).",
                 <long long>k, <long long>n)
        return RUNTIME_ERROR
    return _reduced(b"kthvalue", KTH, self, dim, k - 1, is_true(&arguments[3]), results)


register_kernel("kthvalue", kthvalue_kernel)
register_kernel("median_dim", median_kernel)
register_kernel("nanmedian_dim", nanmedian_kernel)
register_kernel("median_of_all", median_of_all_kernel)
register_kernel("mode", mode_kernel)
