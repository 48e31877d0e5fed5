"""
Kernels on storage-only dtypes: float16, bfloat16, complex32, uint16, uint32 and uint64.

No kernel has loops for these. Arguments are cast to their compute dtypes, and results are rounded once. Element-wise
programs do not use this, because they cast tile by tile; nor do reductions, which cast block by block, and kernels that
only move elements.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_meta, array_t, array_view, release, retain
from cygrad._core.arrays.dtype cimport (
    COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, complex_of, computed_in, dtype_name, is_differentiable,
    is_short, itemsize, promote, real_of)
from cygrad._core.arrays.promotion cimport DIMENSIONED, ZERO_DIM, common_dtype
from cygrad._core.arrays.value cimport ARRAY, ARRAYS, DTYPE, NOTHING, clear, copy_value, set_array, set_arrays
from cygrad._core.elementwise.copying cimport as_dtype, copy_into
from cygrad._core.kernels.reduction.reduce_kernels cimport casts_itself
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, message
from cygrad._core.table.operator cimport DTYPE_, MAX_ARGUMENTS, MIXED, MOVES, VIEW

ctypedef struct meeting_t:
    int common                # promoted dtype of the floating arguments; -1: there are none
    int integer               # the first storage-only integer dtype, or -1
    int asked                 # the argument dtype=, or one of the two below
    bint mixed                # arguments have several floating dtypes, one of them of 16 bits

cdef enum:
    NOT_ASKED = -1
    NO_DTYPE_ARGUMENT = -2


cdef inline bint _is_storage_only(int64_t dtype) noexcept nogil:
    return dtype >= FLOAT16


cdef bint any_storage_only(const value_t *values, int n) noexcept nogil:
    cdef int i, k
    for i in range(n):
        if values[i].kind == ARRAY and _is_storage_only(values[i].of.array.dtype):
            return True
        if values[i].kind == DTYPE and _is_storage_only(values[i].of.integer):
            return True
        if values[i].kind == ARRAYS:
            for k in range(values[i].count):
                if values[i].of.arrays[k] != NULL and _is_storage_only(values[i].of.arrays[k].dtype):
                    return True
    return False


cdef array_t *_cast(array_t *array, int dtype) noexcept nogil:
    """Cast an array; one without memory changes only its dtype. Expanded elements are cast once."""
    cdef array_t *made
    cdef array_t *once
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t[MAX_DIMS] strides
    cdef int d
    cdef bint repeats = False
    if array.dtype == dtype:
        return retain(array)
    if array.storage == NULL:
        made = array_meta(array)
        if made != NULL:
            made.dtype = dtype
            made.data = NULL + <size_t>array.data // itemsize(array.dtype) * itemsize(dtype)
        return made
    for d in range(array.ndim):
        sizes[d] = 1 if array.strides[d] == 0 and array.shape[d] > 1 else array.shape[d]
        repeats = repeats or sizes[d] != array.shape[d]
    if not repeats:
        return as_dtype(array, dtype)
    made = array_view(array, array.dtype, array.ndim, sizes, array.strides, 0)
    if made == NULL:
        return NULL
    once = as_dtype(made, dtype)
    release(made)
    if once == NULL:
        return NULL
    for d in range(array.ndim):
        strides[d] = once.strides[d] if sizes[d] == array.shape[d] else 0
    made = array_view(once, dtype, array.ndim, array.shape, strides, 0)
    release(once)
    return made


cdef inline int _target(int dtype, bint apart) noexcept nogil:
    return FLOAT64 if apart and dtype == FLOAT32 else INT64 if dtype == UINT64 else computed_in(dtype)


cdef int _computed(const value_t *values, int n, bint apart, bint short_stay, value_t *made) noexcept nogil:
    """
    `apart`: float32 arguments become float64, so that the kernel sees a different dtype. `short_stay`: the kernel casts
    16-bit floats itself.
    """
    cdef array_t *array
    cdef int i, k, status = OK
    for i in range(n):
        made[i].kind = NOTHING
    for i in range(n):
        if values[i].kind == ARRAY:
            array = values[i].of.array
            array = (retain(array) if short_stay and is_short(array.dtype)
                     else _cast(array, _target(array.dtype, apart)))
            if array == NULL:
                status = MEMORY_ERROR
            else:
                set_array(&made[i], array)
        elif values[i].kind == ARRAYS:
            status = set_arrays(&made[i], values[i].count)
            if status == OK:
                for k in range(values[i].count):
                    array = values[i].of.arrays[k]
                    if array != NULL:
                        made[i].of.arrays[k] = _cast(array, _target(array.dtype, apart))
                        if made[i].of.arrays[k] == NULL:
                            status = MEMORY_ERROR
        else:
            status = copy_value(&made[i], &values[i])
            if made[i].kind == DTYPE:
                made[i].of.integer = _target(<int>made[i].of.integer, False)
        if status != OK:
            for k in range(n):
                clear(&made[k])
            return status
    return OK


cdef int cast_to_compute_dtypes(value_t *values, int n) noexcept nogil:
    cdef value_t made
    cdef int i, status
    for i in range(n):
        status = _computed(&values[i], 1, False, False, &made)
        if status != OK:
            return status
        clear(&values[i])
        values[i] = made
    return OK


cdef void _meet(meeting_t *meeting, int *ranks, const array_t *array) noexcept nogil:
    """Take one argument into account; tensors with dimensions decide, as they do for element-wise operators."""
    cdef int *met
    if array == NULL:
        return
    if not is_differentiable(array.dtype):
        if _is_storage_only(array.dtype) and meeting.integer < 0:
            meeting.integer = array.dtype
        return
    met = &ranks[DIMENSIONED if array.ndim else ZERO_DIM]
    if met[0] >= 0 and met[0] != array.dtype and array.ndim and (is_short(met[0]) or is_short(array.dtype)):
        meeting.mixed = True
    met[0] = array.dtype if met[0] < 0 else promote(met[0], array.dtype)


cdef meeting_t _meeting(const operator_t *op, const value_t *arguments) noexcept nogil:
    cdef meeting_t meeting = meeting_t(-1, -1, NO_DTYPE_ARGUMENT, False)
    cdef int[2] ranks
    cdef int i, k
    ranks[0] = ranks[1] = -1
    for i in range(op.n_arguments):
        if op.arguments[i].kind == DTYPE_:
            meeting.asked = <int>arguments[i].of.integer if arguments[i].kind == DTYPE else NOT_ASKED
        elif arguments[i].kind == ARRAY:
            _meet(&meeting, ranks, arguments[i].of.array)
        elif arguments[i].kind == ARRAYS:
            for k in range(arguments[i].count):
                _meet(&meeting, ranks, arguments[i].of.arrays[k])
        if op.flags & MIXED and i == 0:
            break                                # the first one decides
    meeting.common = common_dtype(ranks[0], ranks[1], -1)
    return meeting


cdef int _rounded(const operator_t *op, const meeting_t *meeting, int result, int dtype) noexcept nogil:
    """Return the dtype that a result is rounded to."""
    if meeting.asked >= 0:
        return meeting.asked if dtype == _target(meeting.asked, False) else dtype
    if not is_differentiable(dtype):
        # Sums stay in int64, and further results are positions.
        return (meeting.integer if meeting.integer >= 0 and dtype == INT64 and result == 0
                and meeting.asked == NO_DTYPE_ARGUMENT and op.differentiable_results & 1 else dtype)
    if op.flags & MIXED and result:
        return dtype
    if meeting.mixed:
        return meeting.common if dtype == FLOAT64 else dtype
    if meeting.common < 0 or not is_short(meeting.common):
        return dtype
    return (real_of(meeting.common) if dtype == FLOAT32 else complex_of(meeting.common) if dtype == COMPLEX64
            else dtype)


cdef int _round(array_t **array, int dtype) noexcept nogil:
    cdef array_t *made
    if array[0] == NULL or array[0].dtype == dtype:
        return OK
    made = as_dtype(array[0], dtype)
    if made == NULL:
        return MEMORY_ERROR
    release(array[0])
    array[0] = made
    return OK


cdef int _check_range(const operator_t *op, const value_t *arguments, const value_t *made) noexcept nogil:
    """uint64 is computed in int64, which does not hold all values; sums are the same in both."""
    cdef const int64_t *elements
    cdef int64_t k
    cdef int i
    for i in range(op.n_arguments):
        if op.arguments[i].kind == DTYPE_:
            return OK
    for i in range(op.n_arguments):
        if arguments[i].kind != ARRAY or arguments[i].of.array.dtype != UINT64:
            continue
        elements = <const int64_t *>made[i].of.array.data           # contiguous, or expanded, as it was cast
        for k in range(made[i].of.array.size if made[i].of.array.contiguous else 1):
            if elements[k] < 0:
                snprintf(message(), MESSAGE, b"%s: computed in int64, which does not hold all elements of a uint64 "
                         b"tensor (got %llu). Convert with to() first.", op.name, <unsigned long long>elements[k])
                return NOT_IMPLEMENTED
    return OK


cdef int run_in_compute_dtypes(const operator_t *op, kernel_t kernel, const value_t *arguments,
                               value_t *results) noexcept nogil:
    cdef value_t[MAX_ARGUMENTS] made
    cdef meeting_t meeting
    cdef int i, k, status
    if op.flags & (MOVES | VIEW):
        return kernel(arguments, results)
    meeting = _meeting(op, arguments)
    status = _computed(arguments, op.n_arguments, meeting.mixed, casts_itself(kernel), made)
    if status != OK:
        return status
    status = _check_range(op, arguments, made) or kernel(made, results)
    for i in range(op.n_arguments):
        clear(&made[i])
    if status != OK and meeting.mixed:
        snprintf(message(), MESSAGE, b"%s: expected tensors of the same dtype (got %s and others). Convert with to() "
                 b"first.", op.name, dtype_name(_first_short(arguments, op.n_arguments)))
    for i in range(op.n_results):
        if status == OK and results[i].kind == ARRAY:
            status = _round(&results[i].of.array, _rounded(op, &meeting, i, results[i].of.array.dtype))
        elif status == OK and results[i].kind == ARRAYS:
            for k in range(results[i].count):
                if status == OK and results[i].of.arrays[k] != NULL:
                    status = _round(&results[i].of.arrays[k],
                                    _rounded(op, &meeting, 0, results[i].of.arrays[k].dtype))
    if status != OK:
        for i in range(op.n_results):
            clear(&results[i])
    return status


cdef int _first_short(const value_t *arguments, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        if arguments[i].kind == ARRAY and is_short(arguments[i].of.array.dtype):
            return arguments[i].of.array.dtype
    return FLOAT16


cdef int run_in_compute_dtypes_inplace(const operator_t *op, kernel_t kernel, const value_t *arguments,
                                       value_t *results) noexcept nogil:
    cdef value_t[MAX_ARGUMENTS] made
    cdef int i, status
    if op.flags & MOVES:
        return kernel(arguments, results)
    status = _computed(arguments, op.n_arguments, False, False, made)
    if status != OK:
        return status
    status = kernel(made, results)        # it moves or adds: sums are the same in int64 and uint64
    if status == OK and made[0].of.array != arguments[0].of.array:
        status = copy_into(arguments[0].of.array, made[0].of.array)
    for i in range(op.n_arguments):
        clear(&made[i])
    return status
