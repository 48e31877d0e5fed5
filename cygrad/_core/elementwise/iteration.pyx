"""Loop nests over several arrays: broadcast, with dimensions sorted and merged."""

from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport same_shape, shape_text
from cygrad._core.arrays.dtype cimport itemsize
from cygrad._core.arrays.value cimport ARRAY
from cygrad._core.memory.errors cimport MESSAGE, message
from cygrad._core.memory.sizes cimport elements_of


cdef void nest_begin(nest_t *nest, int ndim, const int64_t *shape) noexcept nogil:
    cdef int d
    nest.ndim = ndim
    nest.n = 0
    nest.size = 1
    for d in range(ndim):
        nest.shape[d] = shape[ndim - 1 - d]
        nest.size *= shape[d]


cdef void nest_add(nest_t *nest, const array_t *array) noexcept nogil:
    cdef int d, k = nest.n
    cdef int64_t size = itemsize(array.dtype)
    nest.n += 1
    nest.data[k] = array.data
    for d in range(array.ndim):
        nest.strides[k][d] = (0 if array.shape[array.ndim - 1 - d] == 1
                              else array.strides[array.ndim - 1 - d] * size)
    for d in range(array.ndim, nest.ndim):
        nest.strides[k][d] = 0


cdef void nest_add_value(nest_t *nest, char *value) noexcept nogil:
    cdef int d
    nest.data[nest.n] = value
    for d in range(nest.ndim):
        nest.strides[nest.n][d] = 0
    nest.n += 1


cdef inline int64_t _magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef void _swap_dims(nest_t *nest, int a, int b) noexcept nogil:
    cdef int k
    nest.shape[a], nest.shape[b] = nest.shape[b], nest.shape[a]
    for k in range(nest.n):
        nest.strides[k][a], nest.strides[k][b] = nest.strides[k][b], nest.strides[k][a]


cdef void nest_finish(nest_t *nest) noexcept nogil:
    cdef int d, k, at, kept = 0
    cdef bint merges
    if nest.size == 0:
        return
    # Drop sizes of 1; walk forwards through the memory of operand 0.
    for d in range(nest.ndim):
        if nest.shape[d] == 1:
            continue
        nest.shape[kept] = nest.shape[d]
        for k in range(nest.n):
            nest.strides[k][kept] = nest.strides[k][d]
        if nest.strides[0][kept] < 0:
            for k in range(nest.n):
                nest.data[k] += nest.strides[k][kept] * (nest.shape[kept] - 1)
                nest.strides[k][kept] = -nest.strides[k][kept]
        kept += 1
    nest.ndim = kept
    # Insertion sort: strides are almost always sorted already.
    for d in range(1, kept):
        at = d
        while at > 0 and nest.strides[0][at] < nest.strides[0][at - 1]:
            _swap_dims(nest, at, at - 1)
            at -= 1
    at = 0
    for d in range(1, kept):
        merges = True
        for k in range(nest.n):
            if nest.strides[k][d] != nest.strides[k][at] * nest.shape[at]:
                merges = False
                break
        if merges:
            nest.shape[at] *= nest.shape[d]
            continue
        at += 1
        nest.shape[at] = nest.shape[d]
        for k in range(nest.n):
            nest.strides[k][at] = nest.strides[k][d]
    nest.ndim = at + 1
    if kept == 0:
        nest.ndim = 1
        nest.shape[0] = 1
        for k in range(nest.n):
            nest.strides[k][0] = 0


cdef char *nest_pointer(const nest_t *nest, int k, int64_t index) noexcept nogil:
    cdef char *pointer = nest.data[k]
    cdef int d
    for d in range(nest.ndim - 1):
        pointer += (index % nest.shape[d]) * nest.strides[k][d]
        index //= nest.shape[d]
    return pointer + index * nest.strides[k][nest.ndim - 1]


cdef int broadcast_shape(const value_t *operands, int n, int64_t *shape) noexcept nogil:
    cdef int i, d, at, ndim = 0
    cdef int64_t size
    cdef const array_t *array
    for i in range(n):
        if operands[i].kind == ARRAY and operands[i].of.array.ndim > ndim:
            ndim = operands[i].of.array.ndim
    for d in range(ndim):
        shape[d] = 1
    for i in range(n):
        if operands[i].kind != ARRAY:
            continue
        array = operands[i].of.array
        for d in range(array.ndim):
            at = ndim - array.ndim + d
            size = array.shape[d]
            if size == shape[at] or size == 1:
                continue
            if shape[at] != 1:
                return _refuse_shapes(operands, n, at, shape[at], size)
            shape[at] = size
    return ndim if elements_of(ndim, shape) >= 0 else -2         # they broadcast, but the size exceeds 64 bits


cdef int _refuse_shapes(const value_t *operands, int n, int dim, int64_t first, int64_t second) noexcept nogil:
    """Write the message that names all shapes, without the operation, which `check_operation` adds; -> -1."""
    cdef char *text = message()
    cdef const char *joint = b""
    cdef int i, left = 0, used = snprintf(text, MESSAGE, b": cannot broadcast shapes ")
    for i in range(n):
        left += operands[i].kind == ARRAY
    for i in range(n):
        if operands[i].kind == ARRAY and used < MESSAGE - 400:
            left -= 1
            used += snprintf(text + used, MESSAGE - used, b"%s%s", joint, shape_text(operands[i].of.array))
            joint = b", " if left > 1 else b" and "
    snprintf(text + used, MESSAGE - used, b": the size of tensor a (%lld) must match the size of tensor b (%lld) at "
             b"non-singleton dimension %d. Reshape one of the tensors.", <long long>first, <long long>second, dim)
    return -1


cdef bint broadcasts_to(const array_t *array, int ndim, const int64_t *shape) noexcept nogil:
    cdef int d
    if array.ndim > ndim:
        return False
    for d in range(array.ndim):
        if array.shape[d] != 1 and array.shape[d] != shape[ndim - array.ndim + d]:
            return False
    return True


cdef bint same_place(const array_t *a, const array_t *b) noexcept nogil:
    cdef int d
    if a.data != b.data or a.dtype != b.dtype or not same_shape(a, b):
        return False
    for d in range(a.ndim):
        if a.shape[d] > 1 and a.strides[d] != b.strides[d]:
            return False
    return True
