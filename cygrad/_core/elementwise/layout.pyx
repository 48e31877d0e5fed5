"""
Layout of results: the order of their dimensions in memory, following the operands.

Dimensions are sorted by their strides in the first operand that distinguishes two of them; otherwise the order is
row-major. Row-major operands, by far the most frequent, are recognized first.
"""

from libc.string cimport memset
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_empty_like, array_view, overlaps_itself, release
from cygrad._core.arrays.value cimport ARRAY
from cygrad._core.elementwise.copying cimport copy_into
from cygrad._core.elementwise.program cimport MAX_INPUTS
from cygrad._core.memory.errors cimport OK
from cygrad._core.memory.storage cimport NO_ELEMENTS


cdef array_t *array_strided(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil:
    cdef array_t *array = array_empty(dtype, ndim, shape)
    cdef int64_t step = 1
    cdef int d
    if array == NULL or array.size <= 1:
        return array
    for d in range(ndim - 1, -1, -1):
        array.strides[d] = strides[d]
        if shape[d] != 1:
            if strides[d] != step:
                array.contiguous = False
            step *= shape[d]
    return array


cdef inline int64_t _magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef int _compared(const array_t *array, int ndim, const int64_t *shape, int inner, int outer) noexcept nogil:
    """Return 1 if `outer` belongs inside `inner` by this operand, -1 if not, 0 if it does not tell."""
    cdef int lead = ndim - array.ndim
    cdef int64_t a, b
    if inner < lead or outer < lead:
        return 0
    if array.shape[inner - lead] != shape[inner] or array.shape[outer - lead] != shape[outer]:
        return 0                                          # broadcast
    a, b = _magnitude(array.strides[inner - lead]), _magnitude(array.strides[outer - lead])
    if a == 0 or b == 0:
        return 0
    if a != b:
        return 1 if a > b else -1
    return 1 if shape[inner] > shape[outer] else 0


cdef void _find_order(int ndim, const int64_t *shape, const array_t **arrays, int n, int *order) noexcept nogil:
    """Sort the dimensions by ascending stride."""
    cdef int i, k, at, told, operand
    for i in range(ndim):
        order[i] = ndim - 1 - i
    for i in range(1, ndim):
        at = i
        for k in range(i - 1, -1, -1):
            told = 0
            for operand in range(n):
                told = _compared(arrays[operand], ndim, shape, order[k], order[at])
                if told:
                    break
            if told > 0:
                order[k], order[at] = order[at], order[k]
                at = k
            elif told < 0:
                break


cdef array_t *_sorted_by(int dtype, int ndim, const int64_t *shape, const array_t **arrays, int n) noexcept nogil:
    """Create an array in the layout of the operands, of which not all are row-major."""
    cdef int[MAX_DIMS] order
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t step = 1
    cdef int i
    _find_order(ndim, shape, arrays, n, order)
    for i in range(ndim):
        strides[order[i]] = step
        step *= shape[order[i]]
    return array_strided(dtype, ndim, shape, strides)


cdef int _arrays_of(const value_t *operands, int n, const array_t **arrays) noexcept nogil:
    """Return the number of array operands; 0 if all of these are row-major."""
    cdef int i, count = 0
    cdef bint row_major = True
    for i in range(n):
        if operands[i].kind == ARRAY:
            arrays[count] = operands[i].of.array
            row_major = row_major and arrays[count].contiguous
            count += 1
    return 0 if row_major else count


cdef inline bint _lacks_elements(const array_t *array) noexcept nogil:
    return array.storage != NULL and array.storage.size_class == NO_ELEMENTS


cdef array_t *_without_elements(const array_t *model, int dtype, int ndim, const int64_t *shape) noexcept nogil:
    """Create an array without elements (a fake tensor), as `model` is: nothing is computed."""
    cdef int64_t[MAX_DIMS] strides
    memset(strides, 0, sizeof(strides))
    return array_view(<array_t *>model, dtype, ndim, shape, strides, 0)


cdef array_t *array_for_operands(int dtype, int ndim, const int64_t *shape, const value_t *operands,
                                 int n) noexcept nogil:
    cdef const array_t *arrays[MAX_INPUTS]
    cdef int i, count = _arrays_of(operands, n, arrays)
    for i in range(count):
        if _lacks_elements(arrays[i]):
            return _without_elements(arrays[i], dtype, ndim, shape)
    return _sorted_by(dtype, ndim, shape, arrays, count) if count else array_empty(dtype, ndim, shape)


cdef bint is_row_major_result(int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil:
    cdef const array_t *arrays[MAX_INPUTS]
    cdef int[MAX_DIMS] order
    cdef int i, count = _arrays_of(operands, n, arrays)
    if count:
        _find_order(ndim, shape, arrays, count, order)
        for i in range(ndim):
            if order[i] != ndim - 1 - i:
                return False
    return True


cdef array_t *array_like(const array_t *like, int dtype) noexcept nogil:
    cdef const array_t *arrays[1]
    if like.contiguous:
        return array_empty_like(like, dtype)
    dtype = like.dtype if dtype < 0 else dtype
    if is_non_overlapping_and_dense(like):
        return array_strided(dtype, like.ndim, like.shape, like.strides)
    arrays[0] = like
    return _sorted_by(dtype, like.ndim, like.shape, arrays, 1)


cdef bint is_non_overlapping_and_dense(const array_t *array) noexcept nogil:
    cdef int64_t reach = 1
    cdef int d
    for d in range(array.ndim):
        if array.strides[d] < 0 and array.shape[d] > 1:
            return False
        reach += (array.shape[d] - 1) * array.strides[d]
    return reach == array.size and not overlaps_itself(array)


cdef array_t *copy_like(array_t *array, const array_t *like, int dtype) noexcept nogil:
    cdef array_t *copy
    dtype = array.dtype if dtype < 0 else dtype
    if _lacks_elements(array):
        return _without_elements(array, dtype, like.ndim, like.shape)
    copy = array_like(like, dtype)
    if copy != NULL and copy_into(copy, array) != OK:
        release(copy)
        return NULL
    return copy


cdef void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept nogil:
    cdef int64_t step = shape[1]
    cdef int d
    strides[1] = 1
    for d in range(ndim - 1, 1, -1):
        strides[d] = step
        step *= shape[d]
    strides[0] = step


cdef bint is_channels_last(const array_t *array) noexcept nogil:
    cdef int64_t least = 0
    cdef int i, d
    if array.contiguous or array.ndim < 4 or array.ndim > 5 or array.strides[1] == 0:
        return False
    for i in range(array.ndim):
        # Channels, pixels from the last dimension to the first, samples: strides must not decrease.
        d = 1 if i == 0 else 0 if i == array.ndim - 1 else array.ndim - i
        if array.shape[d] == 0 or array.strides[d] < least or (d == 0 and least == array.strides[1]):
            return False
        least = array.strides[d] * (array.shape[d] if array.shape[d] > 1 else 1)
    return True


cdef array_t *with_layout_of_images(array_t *result, const array_t *images) noexcept nogil:
    cdef int64_t[MAX_DIMS] strides
    cdef array_t *copy
    if result == NULL or images.contiguous or not is_channels_last(images) or result.ndim != images.ndim:
        return result
    channels_last_strides(result.ndim, result.shape, strides)
    copy = array_strided(result.dtype, result.ndim, result.shape, strides)
    if copy != NULL and copy_into(copy, result) != OK:
        release(copy)
        copy = NULL
    release(result)
    return copy
