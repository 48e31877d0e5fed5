"""Kernels of the reductions: arguments, dtypes and errors; `reduce_engine` has the loops."""

from libc.float cimport FLT_MAX
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport llabs
from libc.string cimport memcmp, memcpy
from cygrad._core.arrays.array cimport (
    ARRAY, BOOLEAN, INTEGER, MAX_DIMS, NOTHING, array_t, as_real, clear, is_number, is_true, kernel_t, register_kernel,
    release, retain, same_shape, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT32, FLOAT64, INT64, UINT8, computed_in, default_float, dtype_name, is_complex,
    is_differentiable, is_short, itemsize, promote, real_of,
)
from cygrad._core.elementwise.copying cimport (
    as_contiguous, as_copy, as_dtype, broadcast_shape, is_row_major_result, nest_add, nest_add_value, nest_begin,
    nest_finish,
)
from cygrad._core.elementwise.elementwise cimport evaluate, should_copy_transposed
from cygrad._core.elementwise.rows cimport rows_along, rows_t
from cygrad._core.elementwise.tiles cimport (
    MAX_CELLS, discard, nan_watchers, place_cells, prepare_task, produce, specialize, specialized_t, task_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, check_same_shape, integer_argument, integers_argument, new_array, new_zeros, view_result, wrap_dim,
    wrap_dims,
)
from cygrad._core.kernels.reduction.reduce_engine cimport (
    ALL, ANY, ARGMAX, ARGMIN, DEVIATION, LOGSUMEXP, MAXIMUM, MEAN, MINIMUM, NANSUM, NORM_0, NORM_1, NORM_2, NORM_MAX,
    NORM_MIN, NORM_P, PROD, SUM, VARIANCE, can_reduce_computed, element_source_t, reduce_array, reduce_computed,
)
from cygrad._core.kernels.shape.shape cimport reshaped
from cygrad._core.memory.atomic cimport atomic_add, atomic_load, atomic_store
from cygrad._core.memory.errors cimport (
    INDEX_ERROR, MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, TYPE_ERROR, message, sizes_text,
)
from cygrad._core.memory.storage cimport NO_ELEMENTS
from cygrad._core.primitives.primitive_table cimport cast_loops, loop_t
from cygrad._core.threads.grain cimport MOVED, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------- reduce kernels

cdef int read_reduction(const char *operation, const value_t *self, const value_t *dims,
                        const value_t *keepdim, reduction_t *reduction) noexcept nogil:
    cdef int[MAX_DIMS] wrapped
    cdef const int64_t *given
    cdef int i, count, status = array_argument(operation, b"self", self, &reduction.self)
    cdef array_t *array = reduction.self
    cdef bint keep = is_true(keepdim)
    if status == OK:
        status = integers_argument(operation, b"dim", dims, &count, &given)
    if status == OK:
        status = wrap_dims(operation, count, given, array.ndim, wrapped)
    if status != OK:
        return status
    reduction.dtype = computed_in(array.dtype) if is_short(array.dtype) else array.dtype
    reduction.all = count == 0
    for i in range(array.ndim):
        reduction.reduced[i] = reduction.all
    if array.ndim:
        for i in range(count):
            reduction.reduced[wrapped[i]] = True
    reduction.ndim = 0
    reduction.count = 1
    for i in range(array.ndim):
        if reduction.reduced[i]:
            reduction.count *= array.shape[i]
        if keep or not reduction.reduced[i]:
            reduction.shape[reduction.ndim] = 1 if reduction.reduced[i] else array.shape[i]
            reduction.ndim += 1
    return OK


# Contiguous elements to cast at once; with fewer, a copy of the array is faster.
cdef enum:
    SHORTEST = 8


cdef struct cast_t:
    loop_t loop
    int64_t[2] steps               # strides of the innermost dimension and of the new dtype, in bytes
    const char *data
    int64_t item                   # bytes of an element
    int ndim                       # in memory order, outermost first, merged
    int64_t[MAX_DIMS] shape, strides
    int64_t[MAX_DIMS] without_gaps  # strides of the cast elements, by dimension of the array


cdef inline bint _inside(const array_t *array, int a, int b) noexcept nogil:
    """Return whether dimension `a` is inside of `b`; broadcast dimensions (stride 0) are outermost, as in the
    engine."""
    return array.strides[a] != 0 and (array.strides[b] == 0 or llabs(array.strides[a]) < llabs(array.strides[b]))


cdef void _read_in_memory_order(const array_t *self, int dtype, cast_t *cast, array_t *like) noexcept nogil:
    """Set up a cast in memory order; `like` describes the cast array, without gaps."""
    cdef int[MAX_DIMS] order       # innermost first
    cdef int i, d, n = 0
    cdef int64_t step = 1
    like[0] = self[0]
    like.dtype = dtype
    cast.data, cast.loop = self.data, cast_loops[self.dtype][dtype]
    cast.item = itemsize(self.dtype)
    cast.steps[0], cast.steps[1] = cast.item, itemsize(dtype)
    cast.shape[0], cast.ndim = self.size, 1
    if self.contiguous:
        return
    like.strides = cast.without_gaps
    for d in range(self.ndim - 1, -1, -1):
        cast.without_gaps[d] = 1
        if self.shape[d] != 1:
            i = n
            while i > 0 and _inside(self, d, order[i - 1]):
                order[i] = order[i - 1]
                i -= 1
            order[i] = d
            n += 1
    cast.ndim = 0
    for i in range(n):
        d = order[i]
        cast.without_gaps[d] = step
        step *= self.shape[d]
    for i in range(n - 1, -1, -1):
        d = order[i]
        if cast.ndim and cast.strides[cast.ndim - 1] == self.strides[d] * self.shape[d]:
            cast.shape[cast.ndim - 1] *= self.shape[d]
        else:
            cast.shape[cast.ndim] = self.shape[d]
            cast.ndim += 1
        cast.strides[cast.ndim - 1] = self.strides[d]
        cast.steps[0] = self.strides[d] * cast.item


cdef void _cast_block(void *context, int64_t start, int64_t n, char *to) noexcept nogil:
    """Cast elements to the dtype of the reduction."""
    cdef cast_t *cast = <cast_t *>context
    cdef int inner = cast.ndim - 1, d
    cdef int64_t size = cast.shape[inner], at = start, row = 0, outer, offset, count
    cdef char *pointers[2]
    if inner:
        row, at = start // size, start % size
    while n > 0:
        offset, outer = 0, row
        for d in range(inner - 1, -1, -1):
            offset += outer % cast.shape[d] * cast.strides[d]
            outer //= cast.shape[d]
        count = min(n, size - at)
        pointers[0] = <char *>cast.data + offset * cast.item + at * cast.steps[0]
        pointers[1] = to
        cast.loop(pointers, &count, cast.steps, NULL)
        to += count * cast.steps[1]
        n -= count
        at = 0
        row += 1


cdef int _reduce_as(int operation, double parameter, int dtype, reduction_t *reduction, array_t *out) noexcept nogil:
    """Reduce while casting, without a cast copy of the array, if possible."""
    cdef array_t *self = reduction.self
    cdef array_t *source
    cdef array_t like
    cdef cast_t cast
    cdef element_source_t blocks
    cdef int status
    if self.dtype == dtype:
        return reduce_array(operation, parameter, self, reduction.reduced, out, NULL)
    _read_in_memory_order(self, dtype, &cast, &like)
    if can_reduce_computed(operation, dtype) and (self.contiguous or cast.shape[cast.ndim - 1] >= SHORTEST):
        blocks.produce, blocks.context = _cast_block, &cast
        return reduce_computed(operation, parameter, &like, reduction.reduced, out, &blocks)
    source = as_dtype(self, dtype)
    if source == NULL:
        return MEMORY_ERROR
    status = reduce_array(operation, parameter, source, reduction.reduced, out, NULL)
    release(source)
    return status


cdef int reduced_result(const char *name, int operation, double parameter, int dtype, int result_dtype,
                        reduction_t *reduction, value_t *result) noexcept nogil:
    cdef array_t *out
    cdef int status = new_array(name, result_dtype, reduction.ndim, reduction.shape, &out)
    if status == OK:
        status = _reduce_as(operation, parameter, dtype, reduction, out)
        if status == OK:
            set_array(result, out)
        else:
            release(out)
    return status


cdef int _guarded_result(const char *name, int operation, double parameter, int dtype, reduction_t *reduction,
                         value_t *result) noexcept nogil:
    """
    Compute a mean, variance or deviation; float32 again in float64 if a sum or square may have over- or underflowed.

    Results outside of the safe range are rare.
    """
    cdef int made = dtype if operation == MEAN else real_of(dtype)
    cdef double low = 0 if operation == MEAN else 1e-18 if operation == DEVIATION else 1e-36
    cdef array_t *out
    cdef array_t *narrow
    cdef value_t wide
    cdef int64_t i, n
    cdef int status = reduced_result(name, operation, parameter, dtype, made, reduction, result)
    if status != OK or real_of(dtype) != FLOAT32 or (
            reduction.self.storage != NULL and reduction.self.storage.size_class == NO_ELEMENTS):     # fake tensor
        return status
    out = result.of.array
    n = out.size * itemsize(made) // sizeof(float)
    for i in range(n):
        if not low <= fabs((<float *>out.data)[i]) <= FLT_MAX:
            status = reduced_result(name, operation, parameter, COMPLEX128 if is_complex(dtype) else FLOAT64,
                                    COMPLEX128 if is_complex(made) else FLOAT64, reduction, &wide)
            if status != OK:
                break
            narrow = as_dtype(wide.of.array, made)
            clear(&wide)
            if narrow == NULL:
                status = MEMORY_ERROR
                break
            clear(result)
            set_array(result, narrow)
            return OK
    if status != OK:
        clear(result)
    return status


cdef void _zero_nan(array_t *copy) noexcept nogil:
    """Replace each nan of a real array without gaps by 0."""
    cdef int64_t i
    for i in range(copy.size):
        if copy.dtype == FLOAT32:
            if (<float *>copy.data)[i] != (<float *>copy.data)[i]:
                (<float *>copy.data)[i] = 0
        elif (<double *>copy.data)[i] != (<double *>copy.data)[i]:
            (<double *>copy.data)[i] = 0


cdef int _sum_or_prod(const char *name, int operation, const value_t *arguments,
                      value_t *results) noexcept nogil:
    """sum, nansum, prod(self, dims, keepdim, dtype): integers and bool give int64 unless a dtype is given."""
    cdef reduction_t reduction
    cdef value_t wide
    cdef array_t *source
    cdef array_t *cast
    cdef int dtype, wanted, status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2],
                                                    &reduction)
    if status != OK:
        return status
    dtype = reduction.dtype
    wanted = dtype if is_differentiable(dtype) else INT64
    if arguments[3].kind != NOTHING:
        wanted = <int>arguments[3].of.integer
    if operation == NANSUM and (is_complex(dtype) or is_complex(wanted)):
        snprintf(message(), MESSAGE, b"nansum: does not support complex numbers (got %s). Use sum() instead.",
                 dtype_name(wanted))
        return RUNTIME_ERROR
    if operation == NANSUM and not is_differentiable(dtype):
        operation = SUM
    if is_differentiable(wanted):
        return reduced_result(name, operation, 0, wanted, wanted, &reduction, results)
    # Integers wrap around, so they may be cast after the 64-bit sum; bool and floats are cast before.
    if wanted == BOOL or is_differentiable(dtype):
        source = as_copy(reduction.self, dtype) if operation == NANSUM else retain(reduction.self)
        if operation == NANSUM and source != NULL:
            _zero_nan(source)
        cast = as_dtype(source, wanted) if source != NULL else NULL
        release(source)
        if cast == NULL:
            return MEMORY_ERROR
        reduction.self = cast
        status = reduced_result(name, SUM if operation == NANSUM else operation, 0, wanted, INT64, &reduction, &wide)
        release(cast)
    else:
        status = reduced_result(name, operation, 0, dtype, INT64, &reduction, &wide)
    if status != OK:
        return status
    cast = as_dtype(wide.of.array, wanted)
    release(wide.of.array)
    if cast == NULL:
        return MEMORY_ERROR
    set_array(results, cast)
    return OK


cdef int sum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sum(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"sum", SUM, arguments, results)


cdef int nansum_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """nansum(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"nansum", NANSUM, arguments, results)


cdef int prod_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """prod(self, dims, keepdim, dtype)."""
    return _sum_or_prod(b"prod", PROD, arguments, results)


cdef int mean_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mean(self, dims, keepdim, dtype) of floating and complex numbers."""
    cdef reduction_t reduction
    cdef int dtype, status = read_reduction(b"mean", &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    dtype = <int>arguments[3].of.integer if arguments[3].kind != NOTHING else reduction.dtype
    if not is_differentiable(dtype):
        snprintf(message(), MESSAGE, b"mean: needs a floating or complex dtype (got %s). Convert self or "
                 b"pass dtype=float32.", dtype_name(dtype))
        return RUNTIME_ERROR
    return _guarded_result(b"mean", MEAN, 0, dtype, &reduction, results)


cdef int _spread(const char *name, int operation, const value_t *arguments, value_t *results) noexcept nogil:
    """var, std(self, dims, correction, keepdim)."""
    cdef reduction_t reduction
    cdef double correction = 1
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[3], &reduction)
    if status != OK:
        return status
    if arguments[2].kind != NOTHING:
        if not is_number(&arguments[2]):
            snprintf(message(), MESSAGE, b"%s: correction must be a number.", name)
            return TYPE_ERROR
        correction = as_real(&arguments[2])
    if not is_differentiable(reduction.dtype):
        snprintf(message(), MESSAGE, b"%s: only supports floating point and complex dtypes (got %s). "
                 b"Convert self first.", name, dtype_name(reduction.dtype))
        return RUNTIME_ERROR
    return _guarded_result(name, operation, correction, reduction.dtype, &reduction, results)


cdef int var_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """var(self, dims, correction, keepdim)."""
    return _spread(b"var", VARIANCE, arguments, results)


cdef int std_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """std(self, dims, correction, keepdim)."""
    return _spread(b"std", DEVIATION, arguments, results)


cdef int _truth(const char *name, int operation, const value_t *arguments, value_t *results) noexcept nogil:
    """all, any(self, dims, keepdim): bool, but uint8 stays uint8."""
    cdef reduction_t reduction
    cdef int i, dtype, status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    if reduction.all and arguments[1].kind != NOTHING:
        # An empty list reduces no dimension, as in PyTorch.
        reduction.ndim = reduction.self.ndim
        for i in range(reduction.ndim):
            reduction.reduced[i] = False
            reduction.shape[i] = reduction.self.shape[i]
    dtype = reduction.dtype
    return reduced_result(name, operation, 0, dtype, UINT8 if dtype == UINT8 else BOOL, &reduction, results)


cdef int all_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """all(self, dims, keepdim)."""
    return _truth(b"all", ALL, arguments, results)


cdef int any_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """any(self, dims, keepdim)."""
    return _truth(b"any", ANY, arguments, results)


cdef int _norm_dtype(const value_t *given, int dtype, int *chosen) noexcept nogil:
    """Choose the dtype of a norm; refuse narrower ones than that of self."""
    chosen[0] = <int>given.of.integer if given.kind != NOTHING else dtype
    if not is_differentiable(dtype) or not is_differentiable(chosen[0]):
        snprintf(message(), MESSAGE, b"norm: expected a floating point or complex dtype (got %s). Convert "
                 b"self first.",
                 dtype_name(chosen[0] if is_differentiable(dtype) else dtype))
        return RUNTIME_ERROR
    if is_complex(chosen[0]) != is_complex(dtype):
        snprintf(message(), MESSAGE, b"norm: dtype should be %s for %s inputs (got %s).",
                 b"complex" if is_complex(dtype) else b"real", dtype_name(dtype), dtype_name(chosen[0]))
        return RUNTIME_ERROR
    if chosen[0] < dtype:
        snprintf(message(), MESSAGE, b"norm: dtype should not be narrower than that of self (got %s, "
                 b"expected %s).",
                 dtype_name(chosen[0]), dtype_name(dtype))
        return RUNTIME_ERROR
    return OK


cdef int norm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """norm(self, p, dims, keepdim, dtype): the vector norm of any order."""
    cdef reduction_t reduction
    cdef double p = as_real(&arguments[1]) if arguments[1].kind != NOTHING else 2
    cdef int operation = NORM_P
    cdef int dtype, status = read_reduction(b"norm", &arguments[0], &arguments[2], &arguments[3], &reduction)
    if status == OK:
        status = _norm_dtype(&arguments[4], reduction.dtype, &dtype)
    if status != OK:
        return status
    if reduction.count == 0 and (p < 0 or p == INFINITY):
        snprintf(message(), MESSAGE, b"norm: the norm of order %g of an empty tensor is not defined (got shape %s). "
                 b"Reduce dimensions of non-zero size, or use an order that is finite and not negative.",
                 p, shape_text(reduction.self))
        return RUNTIME_ERROR
    if p == 0:
        operation = NORM_0
    elif p == 1:
        operation = NORM_1
    elif p == 2:
        operation = NORM_2
    elif p == INFINITY:
        operation = NORM_MAX
    elif p == -INFINITY:
        operation = NORM_MIN
    return reduced_result(b"norm", operation, p, dtype, real_of(dtype), &reduction, results)


cdef int logsumexp_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """logsumexp(self, dims, keepdim), without overflow; integers are cast to the default float."""
    cdef reduction_t reduction
    cdef int dtype, status = read_reduction(b"logsumexp", &arguments[0], &arguments[1], &arguments[2],
                                            &reduction)
    if status != OK:
        return status
    dtype = reduction.dtype
    if is_complex(dtype):
        snprintf(message(), MESSAGE, b"logsumexp: complex numbers are not supported (got %s). Use "
                 b"x.exp().sum(dim).log().", dtype_name(dtype))
        return NOT_IMPLEMENTED
    if not is_differentiable(dtype):
        dtype = default_float()
    return reduced_result(b"logsumexp", LOGSUMEXP, 0, dtype, dtype, &reduction, results)


cdef int dimensions_summed(const array_t *self, int ndim, const int64_t *shape, bint *reduced) noexcept nogil:
    cdef bint any = ndim != self.ndim
    cdef int i, lead = self.ndim - ndim
    if lead < 0:
        return -1
    for i in range(self.ndim):
        reduced[i] = i < lead or (shape[i - lead] == 1 and self.shape[i] != 1)
        any = any or reduced[i]
        if i >= lead and not reduced[i] and shape[i - lead] != self.shape[i]:
            return -1
    return any


cdef int summed_to(array_t *self, int ndim, const int64_t *shape, array_t **result) noexcept nogil:
    cdef bint[MAX_DIMS] reduced
    cdef int needed = dimensions_summed(self, ndim, shape, reduced), status
    cdef array_t *source
    if needed < 0 and ndim > self.ndim:
        snprintf(message(), MESSAGE, b"sum_to: cannot sum shape %s to more dimensions (got %s).",
                 shape_text(self), sizes_text(ndim, <const long long *>shape))
        return RUNTIME_ERROR
    if needed < 0:
        snprintf(message(), MESSAGE, b"sum_to: the shape does not broadcast to that of self (got %s, expected one that "
                 b"broadcasts to %s).", sizes_text(ndim, <const long long *>shape), shape_text(self))
        return RUNTIME_ERROR
    if not needed:
        result[0] = retain(self)
        return OK
    # Integers and bool are summed in 64 bits and cast back.
    status = new_array(b"sum_to", self.dtype if is_differentiable(self.dtype) else INT64, ndim, shape, result)
    if status == OK:
        status = reduce_array(SUM, 0, self, reduced, result[0], NULL)
        if status != OK:
            release(result[0])
    if status == OK and result[0].dtype != self.dtype:
        source = result[0]
        result[0] = as_dtype(source, self.dtype)
        release(source)
        if result[0] == NULL:
            return MEMORY_ERROR
    return status


cdef int sum_to_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """sum_to(self, shape): the transpose of broadcasting."""
    cdef array_t *self
    cdef array_t *result
    cdef const int64_t *shape
    cdef int count, status = array_argument(b"sum_to", b"self", &arguments[0], &self)
    if status == OK:
        status = integers_argument(b"sum_to", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = summed_to(self, count, shape, &result)
    if status == OK:
        set_array(results, result)
    return status


cdef kernel_t[16] _casting
cdef int _n_casting = 0


cdef int register_reduction(str name, kernel_t kernel) except -1:
    global _n_casting
    _casting[_n_casting] = kernel
    _n_casting += 1
    return register_kernel(name, kernel)


cdef bint casts_itself(kernel_t kernel) noexcept nogil:
    cdef int i
    for i in range(_n_casting):
        if _casting[i] == kernel:
            return True
    return False


register_reduction("sum", sum_kernel)
register_reduction("nansum", nansum_kernel)
register_reduction("prod", prod_kernel)
register_reduction("mean", mean_kernel)
register_reduction("var", var_kernel)
register_reduction("std", std_kernel)
register_reduction("all", all_kernel)
register_reduction("any", any_kernel)
register_reduction("norm", norm_kernel)
register_reduction("logsumexp", logsumexp_kernel)
register_kernel("sum_to", sum_to_kernel)


# ------------------------------------------------------------------------------------------------------- reduce extrema

cdef int _check_extremum(const char *name, const reduction_t *reduction, int status_of_complex,
                         int status_of_empty) noexcept nogil:
    """Refuse complex numbers and empty reductions."""
    cdef array_t *self = reduction.self
    cdef int i
    if is_complex(self.dtype):
        snprintf(message(), MESSAGE, b"%s: complex numbers have no order (got %s). Reduce the real part or "
                 b"the absolute value.", name, dtype_name(self.dtype))
        return status_of_complex
    if reduction.all and self.size == 0:
        snprintf(message(), MESSAGE, b"%s: an empty tensor has none (got shape %s). Specify the reduction "
                 b"dim with the 'dim' argument.", name, shape_text(self))
        return status_of_empty
    for i in range(self.ndim):
        if reduction.reduced[i] and self.shape[i] == 0:
            snprintf(message(), MESSAGE, b"%s: expected reduction dim %d to have non-zero size (got shape "
                     b"%s).",
                     name, i, shape_text(self))
            return INDEX_ERROR
    return OK


cdef int _extremum(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """amax, amin(self, dims, keepdim)."""
    cdef reduction_t reduction
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status == OK:
        status = _check_extremum(name, &reduction, NOT_IMPLEMENTED, RUNTIME_ERROR)
    if status != OK:
        return status
    return reduced_result(name, operation, 0, reduction.dtype, reduction.dtype, &reduction, results)


cdef int amax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amax(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amax", MAXIMUM, arguments, results)


cdef int amin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """amin(self, dims, keepdim): nan if there is one."""
    return _extremum(b"amin", MINIMUM, arguments, results)


cdef int _extremum_dim(const char *name, int operation, const value_t *arguments,
                       value_t *results) noexcept nogil:
    """max_dim, min_dim(self, dim, keepdim): values and the index of the first of equals."""
    cdef reduction_t reduction
    cdef array_t *values = NULL
    cdef array_t *indices = NULL
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if (status == OK and arguments[1].kind != INTEGER
            and (arguments[1].kind == NOTHING or arguments[1].count != 1)):
        snprintf(message(), MESSAGE, b"%s: expected one dimension.", name)
        status = TYPE_ERROR
    if status == OK:
        status = _check_extremum(name, &reduction, RUNTIME_ERROR, RUNTIME_ERROR)
    if status == OK:
        status = new_array(name, reduction.self.dtype, reduction.ndim, reduction.shape, &values)
    if status != OK:
        return status
    status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status == OK:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, values, indices)
    if status != OK:
        release(values)
        release(indices)
        return status
    set_array(&results[0], values)
    set_array(&results[1], indices)
    return OK


cdef int max_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """max_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"max", ARGMAX, arguments, results)


cdef int min_dim_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """min_dim(self, dim, keepdim) -> values, indices."""
    return _extremum_dim(b"min", ARGMIN, arguments, results)


cdef int _position(const char *name, int operation, const value_t *arguments,
                   value_t *results) noexcept nogil:
    """argmax, argmin(self, dim, keepdim): index of the first of equals; without dim, in the flattened
    array."""
    cdef reduction_t reduction
    cdef array_t *source
    cdef array_t *flat
    cdef array_t *indices
    cdef bint[1] whole
    cdef int status = read_reduction(name, &arguments[0], &arguments[1], &arguments[2], &reduction)
    if status != OK:
        return status
    if reduction.self.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: does not support bool. Convert self to uint8.", name)
        return RUNTIME_ERROR
    status = _check_extremum(name, &reduction, RUNTIME_ERROR, INDEX_ERROR)
    if status == OK:
        status = new_array(name, INT64, reduction.ndim, reduction.shape, &indices)
    if status != OK:
        return status
    if reduction.all:
        # Positions count in row-major order.
        source = as_contiguous(reduction.self, -1)
        flat = reshaped(source, 1, &source.size) if source != NULL else NULL
        whole[0] = True
        status = reduce_array(operation, 0, flat, whole, NULL, indices) if flat != NULL else MEMORY_ERROR
        release(flat)
        release(source)
    else:
        status = reduce_array(operation, 0, reduction.self, reduction.reduced, NULL, indices)
    if status != OK:
        release(indices)
        return status
    set_array(results, indices)
    return OK


cdef int argmax_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmax(self, dim, keepdim)."""
    return _position(b"argmax", ARGMAX, arguments, results)


cdef int argmin_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """argmin(self, dim, keepdim)."""
    return _position(b"argmin", ARGMIN, arguments, results)


register_reduction("amax", amax_kernel)
register_reduction("amin", amin_kernel)
register_kernel("max_dim", max_dim_kernel)
register_kernel("min_dim", min_dim_kernel)
register_kernel("argmax", argmax_kernel)
register_kernel("argmin", argmin_kernel)


# ------------------------------------------------------------------------------------------------------ fused reduction

# Reductions fused with the element-wise expression of their input, which is not stored.
#
# The gradient of a broadcast operand is computed in the broadcast shape and then summed. The reduction requests blocks
# of elements in its own order, which the expression computes: operands are read once, and only the sum is written.
# Results are bit-identical to those of separate steps.

cdef int64_t _from = 4096         # minimum elements; fewer are in the cache anyway
cdef int64_t _sums = 0


cdef int evaluate_summed(expression_t *expression, const value_t *inputs, uint32_t reuse, const array_t *meta,
                         array_t **result) noexcept nogil:
    cdef specialized_t *specialized
    cdef int64_t[MAX_DIMS] full
    cdef int64_t[MAX_DIMS] strides
    cdef bint[MAX_DIMS] reduced
    cdef array_t like
    cdef int i, status = OK
    like.ndim = broadcast_shape(inputs, expression.n_inputs, full)
    if like.ndim < 0:
        return RUNTIME_ERROR
    like.shape, like.strides, like.data, like.contiguous, like.size = full, strides, NULL, True, 1
    like.storage = NULL
    for i in range(like.ndim - 1, -1, -1):
        strides[i] = like.size
        like.size *= full[i]
    # The reduction would read elements that are not in rows in another order.
    if (like.size < _from or nan_watchers or dimensions_summed(&like, meta.ndim, meta.shape, reduced) <= 0
            or not is_row_major_result(like.ndim, full, inputs, expression.n_inputs)):
        return evaluate(expression, inputs, reuse, NULL, result)
    specialized = specialize(expression, inputs, &status)
    if specialized == NULL:
        return status
    like.dtype = specialized.dtype
    status = _sum(specialized, inputs, &like, reduced, meta, result)
    if specialized.temporary:
        discard(specialized)
    return status if status >= 0 else evaluate(expression, inputs, reuse, NULL, result)


cdef int _sum(const specialized_t *expression, const value_t *inputs, const array_t *like, const bint *reduced,
              const array_t *meta, array_t **result) noexcept nogil:
    """Evaluate fused; return -1 if this expression or these operands are not supported."""
    cdef task_t task
    cdef double complex[MAX_CELLS] numbers
    cdef element_source_t source
    cdef array_t *array
    cdef int i, status
    # For a complex gradient of a real operand the caller takes the real part first.
    if expression.partial or is_complex(expression.dtype) and not is_complex(meta.dtype):
        return -1
    if not is_differentiable(expression.dtype) or not can_reduce_computed(SUM, expression.dtype):
        return -1
    task.expression = expression
    task.move[0] = NULL
    task.itemsize[0] = itemsize(expression.dtype)
    nest_begin(&task.nest, like.ndim, like.shape)
    nest_add(&task.nest, like)
    for i in range(expression.n_inputs):
        if inputs[i].kind != ARRAY:
            nest_add_value(&task.nest, NULL)
            continue
        array = inputs[i].of.array
        if should_copy_transposed(array, like):
            return -1
        nest_add(&task.nest, array)
        task.move[i + 1] = cast_loops[array.dtype][array.dtype]
        task.itemsize[i + 1] = itemsize(array.dtype)
    nest_finish(&task.nest)
    place_cells(expression, inputs, &task.cells, numbers)
    prepare_task(&task)
    source.produce, source.context = produce, &task
    status = new_array(b"sum_to", expression.dtype, meta.ndim, meta.shape, result)
    if status == OK:
        status = reduce_computed(SUM, 0, like, reduced, result[0], &source)
        if status != OK:
            release(result[0])
        atomic_add(&_sums, 1)
    return status


def count_summed():
    """Return the number of fused sums, for tests."""
    return _sums


def set_summed_from(int64_t elements):
    """Set the minimum number of elements to fuse; return the former number. For tests."""
    global _from
    former, _from = _from, elements
    return former


# ------------------------------------------------------------------------------------------------------ reduce backward

cdef enum:
    BLOCK = 4096           # numbers compared between checks for a difference

cdef extern from "kernels/reduction/differences.h" nogil:
    bint (*numbers_differ[2])(const void *a, const void *b, int64_t n)


cdef int unreduce_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """unreduce(grad, shape, dims, keepdim): the gradient of a reduction, repeated without a copy."""
    cdef reduction_t reduction
    cdef array_t like
    cdef value_t self
    cdef array_t *grad
    cdef const int64_t *shape
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t[MAX_DIMS] sizes
    cdef int i, at = 0, count, status = array_argument(b"unreduce", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"unreduce", b"shape", &arguments[1], &count, &shape)
    if status == OK and count > MAX_DIMS:
        snprintf(message(), MESSAGE, b"unreduce: too many dimensions (got %d, expected at most %d).",
                 count, <int>MAX_DIMS)
        status = RUNTIME_ERROR
    if status != OK:
        return status
    for i in range(count):
        sizes[i] = shape[i]
    like.ndim, like.shape, like.dtype = count, sizes, grad.dtype
    set_array(&self, &like)
    status = read_reduction(b"unreduce", &self, &arguments[2], &arguments[3], &reduction)
    if status == OK:
        status = check_same_shape(b"unreduce", b"grad", grad, reduction.ndim, reduction.shape)
    if status != OK:
        return status
    for i in range(count):
        strides[i] = 0 if reduction.reduced[i] else grad.strides[at]
        if not reduction.reduced[i] or reduction.ndim == count:
            at += 1
    return view_result(grad, count, sizes, strides, 0, results)


cdef int select_backward_index_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """select_backward_index(grad, shape, dim, indices, keepdim): zeros, with grad at the indices along dim."""
    cdef array_t *grad
    cdef array_t *indices
    cdef array_t *values = NULL
    cdef array_t *places = NULL
    cdef array_t *out = NULL
    cdef rows_t rows
    cdef const int64_t *shape
    cdef int64_t given, i, item
    cdef int count, dim, status = array_argument(b"select_backward_index", b"grad", &arguments[0], &grad)
    if status == OK:
        status = integers_argument(b"select_backward_index", b"shape", &arguments[1], &count, &shape)
    if status == OK:
        status = integer_argument(b"select_backward_index", b"dim", &arguments[2], &given)
    if status == OK:
        status = array_argument(b"select_backward_index", b"indices", &arguments[3], &indices)
    if status == OK:
        status = wrap_dim(b"select_backward_index", given, count, &dim)
    if status == OK:
        status = check_same_shape(b"select_backward_index", b"grad", grad, indices.ndim, indices.shape)
    if status == OK:
        status = new_zeros(b"select_backward_index", grad.dtype, count, shape, &out)
    if status != OK:
        return status
    rows_along(out, dim, &rows)
    values = as_contiguous(grad, -1)
    places = as_contiguous(indices, INT64)
    if values == NULL or places == NULL:
        status = MEMORY_ERROR
    elif rows.outer * rows.inner != values.size:
        snprintf(message(), MESSAGE, b"select_backward_index: grad has the wrong size (got %lld, expected "
                 b"%lld).",
                 <long long>values.size, <long long>(rows.outer * rows.inner))
        status = RUNTIME_ERROR
    else:
        item = itemsize(grad.dtype)
        for i in range(values.size):
            given = (<int64_t *>places.data)[i]
            if given < 0 or given >= rows.n:
                snprintf(message(), MESSAGE, b"select_backward_index: index out of range (got %lld, "
                         b"expected 0 to %lld).",
                         <long long>given, <long long>(rows.n - 1))
                status = INDEX_ERROR
                break
            memcpy(out.data + item * ((i // rows.inner * rows.n + given) * rows.inner + i % rows.inner),
                   values.data + item * i, item)
    release(values)
    release(places)
    if status == OK:
        set_array(results, out)
    else:
        release(out)
    return status


ctypedef struct comparison_t:
    const char *a
    const char *b
    int width                  # bytes of one number
    bint real                  # -0 equals 0 and nan never compares equal; else compare bytes
    int64_t different          # was a difference found?


cdef void _compare_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compare numbers begin..end-1, block by block up to the first difference of any thread."""
    cdef comparison_t *job = <comparison_t *>context
    cdef const char *a
    cdef const char *b
    cdef int64_t until
    cdef bint different
    while begin < end and not atomic_load(&job.different):
        until = min(begin + BLOCK, end)
        a, b = job.a + begin * job.width, job.b + begin * job.width
        if job.real:
            different = numbers_differ[job.width == sizeof(double)](a, b, until - begin)
        else:
            different = memcmp(a, b, (until - begin) * job.width) != 0
        if different:
            atomic_store(&job.different, 1)
        begin = until


cdef int equal_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """equal(a, b): same shape and elements; nan never compares equal."""
    cdef array_t *a
    cdef array_t *b
    cdef comparison_t job
    cdef int parts, dtype, status = array_argument(b"equal", b"self", &arguments[0], &a)
    if status == OK:
        status = array_argument(b"equal", b"other", &arguments[1], &b)
    if status != OK:
        return status
    results[0].kind = BOOLEAN
    results[0].of.integer = 0
    if not same_shape(a, b):
        return OK
    dtype = promote(a.dtype, b.dtype)
    a = as_contiguous(a, dtype)
    b = as_contiguous(b, dtype)
    if a == NULL or b == NULL:
        status = MEMORY_ERROR
    else:
        parts = 2 if dtype >= COMPLEX64 else 1
        job.a, job.b, job.width, job.real = a.data, b.data, itemsize(dtype) // parts, is_differentiable(dtype)
        job.different = 0
        parallel_for(_compare_chunk, &job, parts * a.size, rows_per_chunk(1, MOVED))
        results[0].of.integer = not job.different
    release(a)
    release(b)
    if status != OK:
        results[0].kind = 0
    return status


register_kernel("unreduce", unreduce_kernel)
register_kernel("select_backward_index", select_backward_index_kernel)
register_kernel("equal", equal_kernel)
