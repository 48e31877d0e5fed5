"""
embedding_bag: sums, means and maxima of rows of a table, and the gradients of sums.

Rows are added without copies. Bags are independent, and rows of a gradient are added in order, so results are
bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset
from cygrad._core.arrays.array cimport array_t, release, shape_text
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, dtype_name, itemsize
from cygrad._core.arrays.value cimport NOTHING, is_true, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, check_same_shape, integer_argument, list_text, new_array, new_zeros)
from cygrad._core.kernels.indexing.positions cimport check_index_dtype, index_rule_t, offsets_of
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from *:
    """
    #define LOOPS "kernels/indexing/embedding_bag_loops.h"
    #include "simd/simd_targets.h"
    #undef LOOPS
    typedef void (*bag_sum_t)(const char *table, const int64_t *offsets, const void *factors, int64_t count, int64_t m,
                              int mean, void *out);
    typedef void (*bag_spread_t)(char *table, const int64_t *offsets, const void *factors, int64_t count, int64_t m,
                                 int mean, const void *grad);
    typedef void (*bag_products_t)(const char *table, const int64_t *offsets, int64_t count, int64_t m, int mean,
                                   const void *grad, void *out);
    typedef void (*bag_maximum_t)(const char *table, const int64_t *offsets, int64_t count, int64_t m, int64_t row_size,
                                  void *out, int64_t *chosen);
    static const bag_sum_t bag_sums[SIMD_TARGETS][2] = SIMD_VARIANTS(bag_sum);
    static const bag_spread_t bag_spreads[SIMD_TARGETS][2] = SIMD_VARIANTS(bag_spread);
    static const bag_products_t bag_products[SIMD_TARGETS][2] = SIMD_VARIANTS(bag_products);
    static const bag_maximum_t bag_maxima[SIMD_TARGETS][2] = SIMD_VARIANTS(bag_maximum);
    """
    ctypedef void (*bag_sum_t)(const char *table, const int64_t *offsets, const void *factors, int64_t count,
                               int64_t m, bint mean, void *out) noexcept nogil
    ctypedef void (*bag_spread_t)(char *table, const int64_t *offsets, const void *factors, int64_t count,
                                  int64_t m, bint mean, const void *grad) noexcept nogil
    ctypedef void (*bag_products_t)(const char *table, const int64_t *offsets, int64_t count, int64_t m, bint mean,
                                    const void *grad, void *out) noexcept nogil
    ctypedef void (*bag_maximum_t)(const char *table, const int64_t *offsets, int64_t count, int64_t m,
                                   int64_t row_size, void *out, int64_t *chosen) noexcept nogil
    bag_sum_t[3][2] bag_sums
    bag_spread_t[3][2] bag_spreads
    bag_products_t[3][2] bag_products
    bag_maximum_t[3][2] bag_maxima
    int simd_target() nogil

cdef enum:
    PIECE = 1 << 16       # elements worth a thread

ctypedef struct bags_t:
    array_t *table        # (rows, m), contiguous as all of them
    array_t *factors      # of the rows; NULL for ones
    array_t *offsets      # of rows in the table, in bytes, SKIP for those that are left out
    array_t *starts       # of bags, and where the last one ends
    array_t *bags         # (bags, m): results, or their gradients
    array_t *out          # products or numbers of rows; NULL for sums
    int64_t count         # of bags
    int64_t m
    bint mean


cdef void _close(bags_t *work) noexcept nogil:
    """Release all operands; the caller owns the results."""
    release(work.table)
    release(work.factors)
    release(work.offsets)
    release(work.starts)


cdef int _find_starts(bags_t *work, const value_t *value, array_t *index, bint last) noexcept nogil:
    """Where bags begin, from the offsets, or from a matrix whose rows are the bags; copied before it is checked."""
    cdef array_t *given
    cdef array_t *values = NULL
    cdef int64_t *starts
    cdef int64_t i, slots, n = index.size
    cdef bint fits = True
    cdef int status
    if value.kind == NOTHING:
        if index.ndim != 2:
            snprintf(message(), MESSAGE, b"embedding_bag: without offsets the input must be a matrix (got shape %s).",
                     shape_text(index))
            return RUNTIME_ERROR
        work.count = index.shape[0]
    else:
        status = array_argument(b"embedding_bag", b"offsets", value, &given)
        status = status or check_index_dtype(b"embedding_bag", given, RUNTIME_ERROR)
        if status != OK:
            return status
        values = as_contiguous(given, INT64)
        if values == NULL:
            return MEMORY_ERROR
        work.count = max(<int64_t>0, values.size - last)
    slots = work.count + 1
    status = new_array(b"embedding_bag", INT64, 1, &slots, &work.starts)
    if status == OK:
        starts = <int64_t *>work.starts.data
        for i in range(work.count):
            starts[i] = (<int64_t *>values.data)[i] if values != NULL else i * index.shape[1]
            fits = fits and (starts[i] >= starts[i - 1] if i else starts[i] == 0) and starts[i] <= n
        starts[work.count] = n
        if last and fits and values != NULL and values.size:
            i = (<int64_t *>values.data)[work.count]
            fits = (starts[work.count - 1] if work.count else 0) <= i <= n and (work.count or i == 0)
        if not fits:
            snprintf(message(), MESSAGE, b"embedding_bag: offsets[0] has to be 0, and the others in order up to %lld, "
                     b"the length of the input (got %s).", <long long>n, list_text(values.size, <int64_t *>values.data))
            status = RUNTIME_ERROR
    release(values)
    return status


cdef int _open(bags_t *work, int dtype, int64_t rows, int64_t m, const value_t *arguments, array_t **index,
               const value_t *factors, bint last, const value_t *padding) noexcept nogil:
    """Index and offsets of the arguments, and the factors."""
    cdef index_rule_t rule
    cdef array_t *given
    cdef int status = array_argument(b"embedding_bag", b"input", &arguments[0], index)
    memset(work, 0, sizeof(bags_t))
    memset(&rule, 0, sizeof(rule))
    if dtype != FLOAT32 and dtype != FLOAT64:
        snprintf(message(), MESSAGE, b"embedding_bag: expected a table of float32 or float64 (got %s).",
                 dtype_name(dtype))
        return NOT_IMPLEMENTED
    status = status or check_index_dtype(b"embedding_bag", index[0], RUNTIME_ERROR)
    status = status or integer_argument(b"embedding_bag", b"padding_idx", padding, &rule.skipped)
    work.m = m
    rule.operation, rule.error, rule.size, rule.step = b"embedding_bag", RUNTIME_ERROR, rows, m * itemsize(dtype)
    rule.skipping = rule.skipped >= 0
    status = status or offsets_of(index[0], &rule, &work.offsets)
    status = status or _find_starts(work, &arguments[1], index[0], last)
    if status == OK and factors != NULL and factors.kind != NOTHING:
        status = array_argument(b"embedding_bag", b"per_sample_weights", factors, &given)
        if status == OK and (given.dtype != dtype or given.size != index[0].size):
            snprintf(message(), MESSAGE, b"embedding_bag: the factors do not fit (got %s of shape %s, expected %s of "
                     b"shape %s).", dtype_name(given.dtype), shape_text(given), dtype_name(dtype), shape_text(index[0]))
            status = RUNTIME_ERROR
        if status == OK:
            work.factors = as_contiguous(given, -1)
            status = OK if work.factors != NULL else MEMORY_ERROR
    if status != OK:
        _close(work)
    return status


cdef int _table(const char *name, const value_t *value, array_t **table) noexcept nogil:
    """An argument that is a matrix."""
    cdef int status = array_argument(b"embedding_bag", name, value, table)
    if status == OK and table[0].ndim != 2:
        snprintf(message(), MESSAGE, b"embedding_bag: %s must be a matrix (got shape %s).", name, shape_text(table[0]))
        return RUNTIME_ERROR
    return status


cdef int _of_bags(bags_t *work, array_t *grad, int dtype) noexcept nogil:
    """A gradient for each bag."""
    cdef int64_t[2] shape
    shape[0], shape[1] = work.count, work.m
    cdef int status = check_same_shape(b"embedding_bag", b"the gradient", grad, 2, shape)
    if status == OK and grad.dtype != dtype:
        snprintf(message(), MESSAGE, b"embedding_bag: the gradient must have the dtype of the table (got %s, expected "
                 b"%s).", dtype_name(grad.dtype), dtype_name(dtype))
        return RUNTIME_ERROR
    if status == OK:
        work.bags = as_contiguous(grad, -1)
        status = OK if work.bags != NULL else MEMORY_ERROR
    return status


cdef int _open_table(bags_t *work, const value_t *table, const value_t *arguments, array_t **index,
                     const value_t *factors, bint last, const value_t *padding) noexcept nogil:
    """`_open`, for a table whose rows are read."""
    cdef array_t *weight
    cdef int status = _table(b"weight", table, &weight)
    status = status or _open(work, weight.dtype, weight.shape[0], weight.shape[1], arguments, index, factors, last,
                             padding)
    if status == OK:
        work.table = as_contiguous(weight, -1)
        if work.table == NULL:
            _close(work)
            status = MEMORY_ERROR
    return status


cdef void _each_bag(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Bags begin..end: sums; or products or maxima, where there is a place for them."""
    cdef bags_t *work = <bags_t *>context
    cdef int set_ = simd_target(), double_precision = work.table.dtype == FLOAT64
    cdef const int64_t *starts = <int64_t *>work.starts.data
    cdef int64_t bag, count, size = itemsize(work.table.dtype)
    cdef const int64_t *offsets
    cdef char *row
    for bag in range(begin, end):
        offsets, count = <int64_t *>work.offsets.data + starts[bag], starts[bag + 1] - starts[bag]
        row = work.bags.data + bag * work.m * size
        if work.out == NULL:
            bag_sums[set_][double_precision](
                work.table.data, offsets, NULL if work.factors == NULL else work.factors.data + starts[bag] * size,
                count, work.m, work.mean, row)
        elif work.out.dtype == INT64:
            bag_maxima[set_][double_precision](work.table.data, offsets, count, work.m, work.m * size, row,
                                               <int64_t *>work.out.data + bag * work.m)
        else:
            bag_products[set_][double_precision](work.table.data, offsets, count, work.m, work.mean, row,
                                                 work.out.data + starts[bag] * size)


cdef void _run(bags_t *work) noexcept nogil:
    """All bags, in pieces that are worth a thread."""
    cdef int64_t elements = work.m * (work.offsets.size + work.count)
    if work.count:
        parallel_for(_each_bag, work, work.count, max(<int64_t>1, PIECE // max(<int64_t>1, elements // work.count)))


cdef int embedding_bag_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag(weight, index, offsets, factors, mean, last, padding_idx)."""
    cdef bags_t work
    cdef array_t *index
    cdef int64_t[2] shape
    cdef int status = _open_table(&work, &arguments[0], &arguments[1], &index, &arguments[3], is_true(&arguments[5]),
                                  &arguments[6])
    if status != OK:
        return status
    shape[0], shape[1] = work.count, work.m
    work.mean = is_true(&arguments[4])
    status = new_array(b"embedding_bag", work.table.dtype, 2, shape, &work.bags)
    if status == OK:
        _run(&work)
    _close(&work)
    return array_result(work.bags, &results[0]) if status == OK else status


cdef int embedding_bag_maximum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_maximum(weight, index, offsets, last, padding_idx): the maxima, and the rows that have them."""
    cdef bags_t work
    cdef array_t *index
    cdef int64_t[2] shape
    cdef int status = _open_table(&work, &arguments[0], &arguments[1], &index, NULL, is_true(&arguments[3]),
                                  &arguments[4])
    if status != OK:
        return status
    shape[0], shape[1] = work.count, work.m
    status = new_array(b"embedding_bag", work.table.dtype, 2, shape, &work.bags)
    status = status or new_array(b"embedding_bag", INT64, 2, shape, &work.out)
    if status == OK:
        _run(&work)
    _close(&work)
    if status != OK:
        release(work.bags)
        return status
    array_result(work.bags, &results[0])
    return array_result(work.out, &results[1])


cdef int embedding_bag_products_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_products(grad, weight, index, offsets, mean, last, padding_idx): the gradient by the factors."""
    cdef bags_t work
    cdef array_t *grad
    cdef array_t *index
    cdef int status = _table(b"the gradient", &arguments[0], &grad)
    status = status or _open_table(&work, &arguments[1], &arguments[2], &index, NULL, is_true(&arguments[5]),
                                   &arguments[6])
    if status != OK:
        return status
    work.mean = is_true(&arguments[4])
    status = _of_bags(&work, grad, work.table.dtype)
    status = status or new_zeros(b"embedding_bag", work.table.dtype, index.ndim, index.shape, &work.out)
    if status == OK:
        _run(&work)
    _close(&work)
    release(work.bags)
    return array_result(work.out, &results[0]) if status == OK else status


cdef int embedding_bag_backward_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """embedding_bag_backward(grad, index, offsets, factors, mean, last, padding_idx, rows): by the table."""
    cdef bags_t work
    cdef array_t *grad
    cdef array_t *index
    cdef array_t *table = NULL
    cdef const int64_t *starts
    cdef int64_t[2] shape
    cdef int64_t bag, size
    cdef int set_ = simd_target(), status = _table(b"the gradient", &arguments[0], &grad)
    status = status or integer_argument(b"embedding_bag", b"rows", &arguments[7], &shape[0])
    status = status or _open(&work, grad.dtype, shape[0], grad.shape[1], &arguments[1], &index, &arguments[3],
                             is_true(&arguments[5]), &arguments[6])
    if status != OK:
        return status
    shape[1] = work.m
    status = _of_bags(&work, grad, grad.dtype)
    status = status or new_zeros(b"embedding_bag", grad.dtype, 2, shape, &table)
    if status == OK:
        starts, size = <int64_t *>work.starts.data, itemsize(grad.dtype)
        for bag in range(work.count):
            bag_spreads[set_][grad.dtype == FLOAT64](
                table.data, <int64_t *>work.offsets.data + starts[bag],
                NULL if work.factors == NULL else work.factors.data + starts[bag] * size,
                starts[bag + 1] - starts[bag], work.m, is_true(&arguments[4]), work.bags.data + bag * work.m * size)
    _close(&work)
    release(work.bags)
    return array_result(table, &results[0]) if status == OK else status


register_kernel("embedding_bag", embedding_bag_kernel)
register_kernel("embedding_bag_maximum", embedding_bag_maximum_kernel)
register_kernel("embedding_bag_products", embedding_bag_products_kernel)
register_kernel("embedding_bag_backward", embedding_bag_backward_kernel)
