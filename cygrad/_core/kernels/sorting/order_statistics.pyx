"""One element of each row, chosen by its place in the order: kthvalue, median, nanmedian, mode."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, shape_text
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, dtype_name, is_complex, itemsize
from cygrad._core.arrays.value cimport is_true, register_kernel, set_array, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.kernels.arguments cimport array_argument, integer_argument, new_array, wrap_dim
from cygrad._core.memory.errors cimport INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/sorting/selection.h" nogil:
    ctypedef struct sort_entry_t:
        uint64_t key
        int64_t index
    void make_entries(int dtype, const char *data, int64_t stride, int64_t n, int descending, sort_entry_t *entries)
    void sort_entries(sort_entry_t *entries, sort_entry_t *spare, int64_t n)
    int64_t nth_index(sort_entry_t *entries, int64_t n, int64_t k)

cdef enum:
    PIECE = 4096           # elements worth a thread

ctypedef enum choice_t:
    KTH
    MEDIAN                 # the lower one of two; nan if there is one
    NANMEDIAN              # of those which are no nan
    MODE                   # the smallest of those that occur most often

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


cdef int64_t _nans(const order_statistic_t *work, const char *row, int64_t *first) noexcept nogil:
    """How many there are, and where the first is."""
    cdef int64_t i, count = 0
    first[0] = -1
    if work.dtype == FLOAT32 or work.dtype == FLOAT64:
        for i in range(work.rows.n):
            if _is_nan(work.dtype, row + i * work.rows.inner * work.item):
                if count == 0:
                    first[0] = i
                count += 1
    return count


cdef int64_t _most_frequent(sort_entry_t *entries, int64_t n) noexcept nogil:
    """The last of the longest run of equal keys, of the first such run; the entries become sorted."""
    cdef int64_t i, run = 0, longest = 0, found = 0
    sort_entries(entries, entries + n, n)
    for i in range(n):
        run = run + 1 if i > 0 and entries[i].key == entries[i - 1].key else 1
        if (i + 1 == n or entries[i + 1].key != entries[i].key) and run > longest:
            longest, found = run, entries[i].index
    return found


cdef int64_t _chosen(const order_statistic_t *work, const char *row, sort_entry_t *entries) noexcept nogil:
    """Return the position of the requested element in its row."""
    cdef int64_t n = work.rows.n, nans = 0, first = -1, k = work.k
    if work.choice == MEDIAN or work.choice == NANMEDIAN:
        nans = _nans(work, row, &first)
        if nans and (work.choice == MEDIAN or nans == n):
            return first
        k = (n - nans - 1) // 2
    make_entries(work.dtype, row, work.rows.inner, n, False, entries)
    return _most_frequent(entries, n) if work.choice == MODE else nth_index(entries, n, k)


cdef void _rows_body(void *context, int64_t begin, int64_t end) noexcept nogil:
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
    """The chosen element of each row, and its place."""
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
        parallel_for(_rows_body, &work, values.size, max(1, PIECE // work.rows.n))
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


cdef int _read(const char *name, const value_t *self_value, const value_t *dim_value, array_t **self,
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
    cdef int dim, status = _read(name, &arguments[0], &arguments[1], &self, &dim)
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
    """median_of_all(self, ignore_nan): of the flattened array, which has elements."""
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
    cdef int dim, status = _read(b"kthvalue", &arguments[0], &arguments[2], &self, &dim)
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
