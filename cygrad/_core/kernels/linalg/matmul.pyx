"""Matrix products: mm, bmm, mv, matmul, dot, outer, cross, addmm, linear, and linear with prepacked weights.

Integers wrap around, so alpha may multiply the operands instead of the sum.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.array cimport (
    ARRAY, COMPLEX, MAX_DIMS, NOTHING, REAL, array_empty, array_t, as_real, exclusive, is_number, register_kernel,
    release, retain, set_array, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, INT64, dtype_name, is_complex, is_differentiable, is_floating, itemsize, promote,
)
from cygrad._core.elementwise.copying cimport (
    array_for_operands, as_contiguous, as_dtype, broadcast_shape, nest_add, nest_begin, nest_finish, nest_pointer,
    nest_t,
)
from cygrad._core.kernels.arguments cimport (
    array_argument, array_result, new_array, optional_integer, wrap_dim,
)
from cygrad._core.kernels.linalg.blas cimport (
    BLAS_MAX, blas_scalar_t, column_of, dot, fold_rows, gemm, gemv, lay_out, matrix_of, matrix_t, reads_in_place,
    release_matrix, row_of, transpose_matrix,
)
from cygrad._core.kernels.linalg.product_blocks cimport (
    WORKSPACE_BYTES, fits_blocks, multiply as multiply_in_blocks, needs_workspace,
)
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, TYPE_ERROR, message
from cygrad._core.memory.storage cimport allocate, deallocate, storage_new, storage_release, storage_t
from cygrad._core.primitives.primitive_table cimport entries, entry_t, primitive
from cygrad._core.threads.grain cimport MOVED, products_per_chunk, rows_per_chunk
from cygrad._core.threads.parallel cimport parallel_for


# ------------------------------------------------------------------------------------------------------- integer matmul

cdef extern from "kernels/linalg/matrix_loops.h" nogil:
    void multiply_add_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, const void *a,
                               int64_t a_row_step, int64_t a_column_step, const void *b, int64_t b_step, void *c,
                               int64_t c_step)
    void dot_of_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                         void *result)
    void scale_row(int dtype, void *c, int64_t n, double real, double imag, int64_t integer_beta)
    void cross_products(int dtype, char **out, char **a, char **b, const int64_t *steps, int64_t n)


cdef void multiply_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha,
                            const void *a, int64_t a_row_step, int64_t a_column_step,
                            const void *b, int64_t b_step, int64_t beta, void *c, int64_t c_step) noexcept nogil:
    cdef blas_scalar_t unused
    unused.real = unused.imag = 0
    if beta != 1:
        scale_tile(dtype, m, n, unused, beta, c, c_step)
    multiply_add_integers(dtype, m, n, k, alpha, a, a_row_step, a_column_step, b, b_step, c, c_step)


cdef void dot_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                       void *result) noexcept nogil:
    dot_of_integers(dtype, n, x, x_step, y, y_step, result)


cdef void scale_tile(int dtype, int64_t m, int64_t n, blas_scalar_t beta, int64_t integer_beta,
                     void *c, int64_t c_step) noexcept nogil:
    cdef int64_t size = itemsize(dtype), i
    cdef char *row
    cdef bint zero = beta.real == 0 and beta.imag == 0 if dtype >= FLOAT32 else integer_beta == 0
    for i in range(m):
        row = <char *>c + i * c_step * size
        if zero:
            memset(row, 0, n * size)
        else:
            scale_row(dtype, row, n, beta.real, beta.imag, integer_beta)


# ------------------------------------------------------------------------------------------------------- product checks

cdef int check_arrays(text_t operation, const value_t *arguments, int n) noexcept nogil:
    cdef array_t *first
    cdef array_t *other
    cdef int i
    for i in range(n):
        if arguments[i].kind != ARRAY:
            snprintf(message(), MESSAGE, b"%s: argument %d must be a tensor", operation, i + 1)
            return TYPE_ERROR
    first = arguments[0].of.array
    for i in range(1, n):
        other = arguments[i].of.array
        if other.dtype != first.dtype:
            snprintf(message(), MESSAGE, b"%s: expected the operands to have the same dtype (got %s and %s). "
                     b"Convert one of them first.", operation, dtype_name(first.dtype), dtype_name(other.dtype))
            return RUNTIME_ERROR
    if first.dtype == BOOL:
        snprintf(message(), MESSAGE, b"%s: not implemented for bool. Convert to an integer or floating "
                 b"dtype first.", operation)
        return NOT_IMPLEMENTED
    return OK


cdef int check_ndim(text_t operation, text_t name, const array_t *array, int ndim) noexcept nogil:
    """Check the number of dimensions of the array."""
    if array.ndim == ndim:
        return OK
    snprintf(message(), MESSAGE, b"%s: %s must be a %s (got shape %s, expected %d dimension%s)", operation, name,
             b"vector" if ndim == 1 else b"matrix" if ndim == 2 else b"3-D tensor", shape_text(array), ndim,
             b"" if ndim == 1 else b"s")
    return RUNTIME_ERROR


cdef int cannot_multiply(text_t operation, const array_t *a, const array_t *b) noexcept nogil:
    snprintf(message(), MESSAGE, b"%s: mat1 and mat2 shapes cannot be multiplied (got %s and %s, expected the "
             b"last dimension of the first to match the rows of the second)",
             operation, shape_text(a), shape_text(b))
    return RUNTIME_ERROR


# ------------------------------------------------------------------------------------------------------------- multiply

# Batches of matrices in tiles that depend only on the problem. Each tile is one product over the whole inner dimension,
# so results are bit-identical for any number of threads. Operands are packed for each tile, so tiles are as large as
# parallelism allows, and nearly square. Operands in the caches are multiplied in register blocks (product_blocks.h),
# others by BLAS.

cdef extern from "kernels/linalg/small_products.h" nogil:
    bint is_small(bint double_precision, int64_t m, int64_t n, int64_t k)
    void (*small_product[2])(const void *a, int64_t a_row, int64_t a_column, const void *b, int64_t b_row,
                             int64_t b_column, const void *addend, int64_t addend_row, void *c, int64_t c_row,
                             int64_t m, int64_t n, int64_t k, double alpha, double beta)
    void (*outer_product[2])(const void *a, int64_t a_row, const void *b, void *c, int64_t c_row, int64_t m, int64_t n)

cdef enum:
    VECTOR_WORK = 1 << 18     # ... or a tile that uses each element of a matrix once
    MANY_TILES = 16
    SHORT_SIDE = 64           # minimum side of a tile
    LARGEST_SIDE = 1024       # ... and maximum


cdef void start_product(product_t *product, int dtype, int64_t m, int64_t n, int64_t k) noexcept nogil:
    product.dtype = dtype
    product.m, product.n, product.k = m, n, k
    product.alpha.real, product.alpha.imag = 1, 0
    product.beta.real, product.beta.imag = 0, 0
    product.integer_alpha, product.integer_beta = 1, 0
    product.addend = NULL
    product.addend_row_step = product.addend_column_step = 0
    product.batch_ndim = 0


cdef inline int64_t _half(int64_t side) noexcept nogil:
    """Return half of a side, rounded up to a multiple of 32 for the innermost loops of BLAS."""
    return ((side + 1) // 2 + 31) // 32 * 32


cdef int64_t _wanted_tiles(int64_t work, bint vector) noexcept nogil:
    """Return the number of tiles that pay off: s / 64 for a cube of side s."""
    cdef int64_t tiles = 1
    if vector:
        tiles = work // VECTOR_WORK
        return tiles if tiles < MANY_TILES else MANY_TILES
    while tiles < MANY_TILES and (64 * (tiles + 1)) ** 3 <= work:
        tiles += 1
    return tiles


cdef void _choose_tiles(product_t *product) noexcept nogil:
    """Halve the longer side until there are enough tiles, or they would become too small."""
    cdef int64_t rows = product.m, columns = product.n, tiles = 1, wanted
    cdef bint vector = rows == 1 or columns == 1
    wanted = _wanted_tiles(rows * columns * max(product.k, 1), vector)
    while True:
        product.row_tiles = (product.m + rows - 1) // rows
        product.column_tiles = (product.n + columns - 1) // columns
        tiles = product.row_tiles * product.column_tiles
        if rows <= LARGEST_SIDE and columns <= LARGEST_SIDE or vector:
            if tiles >= wanted or rows <= SHORT_SIDE and columns <= SHORT_SIDE:
                break
        if rows > columns:
            rows = _half(rows)
        else:
            columns = _half(columns)
    product.tile_rows, product.tile_columns = rows, columns


cdef void _set_addend(product_t *product, char *c, int64_t row, int64_t rows,
                      int64_t column, int64_t columns) noexcept nogil:
    """Copy a tile of the addend into the result."""
    cdef int64_t size = itemsize(product.dtype)
    cdef int64_t row_bytes = product.addend_row_step * size, column_bytes = product.addend_column_step * size
    cdef const char *source
    cdef char *target
    cdef int64_t i, j
    for i in range(rows):
        source = product.addend + (row + i) * row_bytes + column * column_bytes
        target = c + i * product.n * size
        if column_bytes == size:
            memcpy(target, source, columns * size)
        else:
            for j in range(columns):
                memcpy(target + j * size, source + j * column_bytes, size)


cdef void _multiply_small(product_t *product, char *a, char *b, char *c) noexcept nogil:
    """Compute a product that is cheaper than a call of BLAS; a, b and c are whole matrices."""
    cdef const char *addend = product.addend
    cdef int64_t addend_row = product.addend_row_step
    if addend != NULL and product.addend_column_step != 1 and product.n > 1:
        _set_addend(product, c, 0, product.m, 0, product.n)
        addend, addend_row = c, product.n
    small_product[product.dtype == FLOAT64](
        a, 1 if product.a.transposed else product.a.leading, product.a.leading if product.a.transposed else 1, b,
        1 if product.b.transposed else product.b.leading, product.b.leading if product.b.transposed else 1, addend,
        addend_row, c, product.n, product.m, product.n, product.k, product.alpha.real, product.beta.real)


cdef inline bint _is_small(const product_t *product) noexcept nogil:
    return (is_floating(product.dtype) and product.k > 0 and product.alpha.real != 0
            and is_small(product.dtype == FLOAT64, product.m, product.n, product.k))


cdef inline bint _fits_blocks(const product_t *product) noexcept nogil:
    return (is_floating(product.dtype) and product.alpha.real == 1
            and (product.addend == NULL or product.beta.real == 1)
            and fits_blocks(product.dtype == FLOAT64, reads_in_place(), product.tile_rows, product.tile_columns,
                            product.k, product.a.leading * itemsize(product.dtype) if product.a.transposed else 0,
                            product.b.transposed))


cdef bint _multiply_in_blocks(product_t *product, const char *a, const char *b, char *c, int64_t row, int64_t rows,
                              int64_t column, int64_t columns) noexcept nogil:
    """Compute one tile, at a, b and c; False if memory is exhausted."""
    cdef const char *addend = product.addend
    cdef int64_t addend_row = product.addend_row_step
    cdef int64_t a_row = product.a.leading, a_step = 1, b_row = product.b.leading, b_column = 1
    cdef storage_t *workspace = NULL
    if product.a.transposed:
        a_row, a_step = a_step, a_row
    if product.b.transposed:
        b_row, b_column = b_column, b_row
    if needs_workspace(product.dtype == FLOAT64, columns, b_row, b_column):
        workspace = storage_new(WORKSPACE_BYTES)
        if workspace == NULL:
            return False
    if addend != NULL and product.addend_column_step == 1:
        addend += (row * addend_row + column) * itemsize(product.dtype)
    elif addend != NULL:
        _set_addend(product, c, row, rows, column, columns)
        addend, addend_row = c, product.n
    multiply_in_blocks[product.dtype == FLOAT64](
        rows, columns, product.k, a, a_row, a_step, b, b_row, b_column, addend, addend_row, c, product.n,
        NULL if workspace == NULL else workspace.data)
    if workspace != NULL:
        storage_release(workspace)
    return True


cdef inline void _multiply_tile(product_t *product, char *a, char *b, char *c, int64_t row,
                                int64_t column) noexcept nogil:
    """Compute one tile; a, b and c are whole matrices."""
    cdef int64_t size = itemsize(product.dtype)
    cdef int64_t rows = min(product.tile_rows, product.m - row)
    cdef int64_t columns = min(product.tile_columns, product.n - column)
    cdef blas_scalar_t beta = product.beta
    a += row * (1 if product.a.transposed else product.a.leading) * size
    b += column * (product.b.leading if product.b.transposed else 1) * size
    c += (row * product.n + column) * size
    if product.in_blocks and _multiply_in_blocks(product, a, b, c, row, rows, column, columns):
        return
    if product.addend != NULL and product.addend != product.c:
        _set_addend(product, c, row, rows, column, columns)
    if product.k == 0 or (product.alpha.real == 0 and product.alpha.imag == 0):
        # a and b are ignored, nan included.
        scale_tile(product.dtype, rows, columns, beta, product.integer_beta, c, product.n)
    elif not is_differentiable(product.dtype):
        multiply_integers(product.dtype, rows, columns, product.k, product.integer_alpha, a,
                          1 if product.a.transposed else product.a.leading,
                          product.a.leading if product.a.transposed else 1,
                          b, product.b.leading, product.integer_beta, c, product.n)
    elif (product.k == 1 and is_floating(product.dtype) and product.addend == NULL and product.alpha.real == 1
          and not product.b.transposed):
        outer_product[product.dtype == FLOAT64](a, 1 if product.a.transposed else product.a.leading, b, c, product.n,
                                                rows, columns)
    elif columns == 1 and product.n == 1:
        if product.addend == NULL:
            memset(c, 0, rows * size)     # gemv may read it despite beta = 0
        gemv(product.dtype, product.a.transposed, product.k if product.a.transposed else rows,
             rows if product.a.transposed else product.k, product.alpha, a, product.a.leading,
             b, 1 if product.b.transposed else product.b.leading, beta, c, 1)
    elif product.m == 1:
        if product.addend == NULL:
            memset(c, 0, columns * size)
        gemv(product.dtype, not product.b.transposed, columns if product.b.transposed else product.k,
             product.k if product.b.transposed else columns, product.alpha, b, product.b.leading,
             a, product.a.leading if product.a.transposed else 1, beta, c, 1)
    else:
        gemm(product.dtype, product.a.transposed, product.b.transposed, rows, columns, product.k,
             product.alpha, a, product.a.leading, b, product.b.leading, beta, c, product.n)


cdef void _run_tiles(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute some tiles, numbered through the matrices of the batch."""
    cdef product_t *product = <product_t *>context
    cdef int64_t size = itemsize(product.dtype)
    cdef int64_t tiles = product.row_tiles * product.column_tiles
    cdef int64_t chunk, tile, rest, place, a_offset = 0, b_offset = 0, matrix, last = -1
    cdef int i
    for chunk in range(begin, end):
        matrix = chunk // tiles
        tile = chunk % tiles
        if matrix != last:
            last = rest = matrix
            a_offset = b_offset = 0
            for i in range(product.batch_ndim - 1, -1, -1):
                place = rest % product.batch_shape[i]
                rest = rest // product.batch_shape[i]
                a_offset += place * product.a_steps[i]
                b_offset += place * product.b_steps[i]
        if product.small:
            _multiply_small(product, product.a.data + a_offset * size, product.b.data + b_offset * size,
                            product.c + matrix * product.c_step * size)
            continue
        _multiply_tile(product, product.a.data + a_offset * size, product.b.data + b_offset * size,
                       product.c + matrix * product.c_step * size,
                       tile // product.column_tiles * product.tile_rows,
                       tile % product.column_tiles * product.tile_columns)


cdef void multiply(product_t *product) noexcept nogil:
    """Compute the product."""
    cdef int64_t matrices = 1, tiles
    cdef int i
    for i in range(product.batch_ndim):
        matrices *= product.batch_shape[i]
    if matrices == 0 or product.m == 0 or product.n == 0:
        return
    product.c_step = product.m * product.n
    product.small = _is_small(product)
    if product.small:
        if matrices == 1 and product.batch_ndim == 0:
            _multiply_small(product, product.a.data, product.b.data, product.c)
            return
        product.row_tiles = product.column_tiles = 1
        product.tile_rows, product.tile_columns = product.m, product.n
        product.in_blocks = False
    else:
        _choose_tiles(product)
        product.in_blocks = _fits_blocks(product)
    tiles = product.row_tiles * product.column_tiles
    parallel_for(_run_tiles, product, matrices * tiles,
                 products_per_chunk(product.tile_rows * product.tile_columns * max(<int64_t>1, product.k)))


def same_bits_by_rows(int size, int64_t m, int64_t n, int64_t k):
    """Return whether m x k times transposed k x n elements is bit-identical to the product of a row-major copy."""
    cdef product_t product
    if size != 4 and size != 8:
        return False
    start_product(&product, FLOAT64 if size == 8 else FLOAT32, m, n, k)
    product.a.transposed, product.b.transposed = False, True
    _choose_tiles(&product)
    return m > 1 and n > 1 and (_is_small(&product) or _fits_blocks(&product))


# ------------------------------------------------------------------------------------------------------ vector products

cdef int _mul = primitive("mul")

cdef enum:
    DOT_CHUNK = 1 << 16       # elements of one call of BLAS; the sums are added in order
    CELL = 16                 # bytes of a sum of any dtype

ctypedef struct dot_t:
    int dtype
    bint conjugate
    const char *a
    const char *b
    int64_t a_step
    int64_t b_step
    char *sums                # one cell for each chunk

ctypedef struct outer_t:
    array_t *a
    array_t *b
    array_t *result


cdef void _dot_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute the sum over one chunk."""
    cdef dot_t *work = <dot_t *>context
    cdef int64_t size = itemsize(work.dtype)
    cdef const char *a = work.a + begin * work.a_step * size
    cdef const char *b = work.b + begin * work.b_step * size
    cdef char *total = work.sums + begin // DOT_CHUNK * CELL
    if is_differentiable(work.dtype):
        dot(work.dtype, work.conjugate, end - begin, a, work.a_step, b, work.b_step, total)
    else:
        dot_integers(work.dtype, end - begin, a, work.a_step, b, work.b_step, total)


cdef void _add_cells(int dtype, char *total, const char *other) noexcept nogil:
    """total += other for sums of any dtype."""
    if dtype == FLOAT32:
        (<float *>total)[0] += (<const float *>other)[0]
    elif dtype == FLOAT64:
        (<double *>total)[0] += (<const double *>other)[0]
    elif dtype == COMPLEX64:
        (<float *>total)[0] += (<const float *>other)[0]
        (<float *>total)[1] += (<const float *>other)[1]
    elif dtype > COMPLEX64:
        (<double *>total)[0] += (<const double *>other)[0]
        (<double *>total)[1] += (<const double *>other)[1]
    else:
        # Integers wrap: the low bytes of the wide sum are right, whatever follows the element (on little-endian
        # machines, which the build requires).
        (<int64_t *>total)[0] += (<const int64_t *>other)[0]


cdef array_t *_steady(array_t *vector) noexcept nogil:
    """Return the vector, retained, or a copy if BLAS does not support its stride."""
    if vector.shape[0] <= 1 or 0 < vector.strides[0] <= BLAS_MAX:
        return retain(vector)
    return as_contiguous(vector, -1)


cdef int _sum_of_products(dot_t *work, int64_t n, char *result) noexcept nogil:
    """Compute the chunks and add their sums in order."""
    cdef int64_t chunks = (n + DOT_CHUNK - 1) // DOT_CHUNK, i
    cdef char[CELL] one
    memset(one, 0, CELL)
    work.sums = one
    if chunks == 1:
        _dot_chunk(work, 0, n)
    elif chunks > 1:
        work.sums = <char *>allocate(chunks * CELL)
        if work.sums == NULL:
            return MEMORY_ERROR
        memset(work.sums, 0, chunks * CELL)
        parallel_for(_dot_chunk, work, n, DOT_CHUNK)
        for i in range(chunks):
            _add_cells(work.dtype, one, work.sums + i * CELL)
        deallocate(work.sums, chunks * CELL)
    memcpy(result, one, itemsize(work.dtype))
    return OK


cdef int dot_arrays(text_t operation, bint conjugate, array_t *a, array_t *b, value_t *results) noexcept nogil:
    cdef dot_t work
    cdef array_t *result
    cdef int64_t n
    cdef int status = MEMORY_ERROR
    if a.ndim != 1 or b.ndim != 1:
        snprintf(message(), MESSAGE, b"%s: 1D tensors expected, but got %dD and %dD tensors (shapes %s and %s)",
                 operation, a.ndim, b.ndim, shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    n = a.shape[0]
    if n != b.shape[0]:
        snprintf(message(), MESSAGE, b"%s: inconsistent tensor size, expected vectors with the same number of "
                 b"elements (got %lld and %lld)", operation, <long long>n, <long long>b.shape[0])
        return RUNTIME_ERROR
    a, b = _steady(a), _steady(b)
    result = array_empty(a.dtype if a != NULL else 0, 0, NULL)
    if a != NULL and b != NULL and result != NULL:
        work.dtype, work.conjugate = a.dtype, conjugate
        work.a, work.b = a.data, b.data
        work.a_step = a.strides[0] if n > 1 else 1
        work.b_step = b.strides[0] if n > 1 else 1
        status = _sum_of_products(&work, n, result.data)
    release(a)
    release(b)
    if status == OK:
        set_array(results, result)
    else:
        release(result)
    return status


cdef int dot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """dot(a, b): the sum of products, without conjugation."""
    cdef int status = check_arrays(b"dot", arguments, 2)
    return status or dot_arrays(b"dot", False, arguments[0].of.array, arguments[1].of.array, results)


cdef int vdot_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """vdot(a, b): the sum of products, with the first factor conjugated."""
    cdef int status = check_arrays(b"vdot", arguments, 2)
    return status or dot_arrays(b"vdot", True, arguments[0].of.array, arguments[1].of.array, results)


cdef void _outer_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute some rows."""
    cdef outer_t *work = <outer_t *>context
    cdef const entry_t *product = &entries[_mul][work.result.dtype]
    cdef int64_t n = work.b.shape[0], size = itemsize(work.result.dtype), row
    cdef int64_t[3] steps
    cdef char *pointers[3]
    steps[0], steps[1], steps[2] = 0, size, size
    for row in range(begin, end):
        pointers[0], pointers[1], pointers[2] = (work.a.data + row * size, work.b.data,
                                                 work.result.data + row * n * size)
        product.loop(pointers, &n, steps, product.data)


cdef int outer_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """outer(a, b): the products of all pairs of elements, in the promoted dtype."""
    cdef outer_t work
    cdef int64_t[2] shape
    cdef int dtype, i, status = MEMORY_ERROR
    for i in range(2):
        if arguments[i].kind != ARRAY:
            snprintf(message(), MESSAGE, b"outer: argument %d must be a tensor", i + 1)
            return TYPE_ERROR
        if arguments[i].of.array.ndim != 1:
            snprintf(message(), MESSAGE, b"outer: Expected 1-D argument %s, but got %d-D (shape %s)",
                     b"self" if i == 0 else b"vec2", arguments[i].of.array.ndim, shape_text(arguments[i].of.array))
            return RUNTIME_ERROR
        shape[i] = arguments[i].of.array.shape[0]
    dtype = promote(arguments[0].of.array.dtype, arguments[1].of.array.dtype)
    work.result = array_empty(dtype, 2, shape)
    if work.result == NULL:
        return MEMORY_ERROR
    work.a = as_contiguous(arguments[0].of.array, dtype)
    work.b = as_contiguous(arguments[1].of.array, dtype)
    if work.a != NULL and work.b != NULL:
        if work.result.size > 0:
            parallel_for(_outer_chunk, &work, shape[0], rows_per_chunk(shape[1], MOVED))
        set_array(results, work.result)
        status = OK
    else:
        release(work.result)
    release(work.a)
    release(work.b)
    return status


ctypedef struct cross_t:
    int dtype
    nest_t nest                   # result and operands, without the dimension of the vectors
    int64_t[3] parts              # bytes between the elements of a vector of each


cdef void _cross_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Compute vectors begin..end-1, along the innermost dimension of the nest."""
    cdef cross_t *work = <cross_t *>context
    cdef const nest_t *nest = &work.nest
    cdef char *pointers[3][3]                 # of the result and operands; elements of a vector
    cdef int64_t[3] steps
    cdef int64_t stop
    cdef int i, k
    for i in range(3):
        steps[i] = nest.strides[i][0] // itemsize(work.dtype)
    while begin < end:
        stop = min(end - begin, nest.shape[0] - begin % nest.shape[0])
        for i in range(3):
            for k in range(3):
                pointers[i][k] = nest_pointer(nest, i, begin) + k * work.parts[i]
        cross_products(work.dtype, pointers[0], pointers[1], pointers[2], steps, stop)
        begin += stop


cdef int _cross_dim(const value_t *arguments, int ndim, const int64_t *shape, int *dim) noexcept nogil:
    """Read the dimension of the vectors: by default the first one of size 3 in the broadcast shape."""
    cdef const array_t *a = arguments[0].of.array
    cdef const array_t *b = arguments[1].of.array
    cdef int64_t first = 0, given
    cdef int status
    while first < ndim and shape[first] != 3:
        first += 1
    status = optional_integer(b"cross", b"dim", &arguments[2], first, &given)
    if status == OK and arguments[2].kind == NOTHING and first == ndim:
        snprintf(message(), MESSAGE, b"cross: no dimension of size 3 (got shapes %s and %s).", shape_text(a),
                 shape_text(b))
        return RUNTIME_ERROR
    if status == OK:
        status = wrap_dim(b"cross", given, ndim, dim)
    if status == OK and (ndim == 0 or a.shape[dim[0]] != 3 or b.shape[dim[0]] != 3):
        snprintf(message(), MESSAGE, b"cross: dimension %d must have size 3 (got shapes %s and %s).", dim[0],
                 shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    return status


cdef int cross_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """cross(a, b, dim): vectors of three elements each."""
    cdef cross_t work
    cdef value_t[2] operands
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *array = NULL
    cdef array_t *result
    cdef array_t vector
    cdef int dtype, ndim, dim, k, status = array_argument(b"cross", b"input", &arguments[0], &array)
    if status == OK:
        status = array_argument(b"cross", b"other", &arguments[1], &array)
    if status != OK:
        return status
    if arguments[0].of.array.ndim != array.ndim:
        snprintf(message(), MESSAGE, b"cross: inputs must have the same number of dimensions (got shapes %s and %s).",
                 shape_text(arguments[0].of.array), shape_text(array))
        return RUNTIME_ERROR
    ndim = broadcast_shape(arguments, 2, shape)
    status = _cross_dim(arguments, ndim, shape, &dim) if ndim >= 0 else RUNTIME_ERROR
    if status != OK:
        return status
    dtype = promote(arguments[0].of.array.dtype, array.dtype)
    if dtype == BOOL:
        snprintf(message(), MESSAGE, b"cross: not implemented for bool. Convert to an integer or floating dtype first.")
        return NOT_IMPLEMENTED
    work.dtype = dtype if is_differentiable(dtype) else INT64
    for k in range(2):
        set_array(&operands[k], as_dtype(arguments[k].of.array, work.dtype))
    result = NULL
    if operands[0].of.array != NULL and operands[1].of.array != NULL:
        result = array_for_operands(work.dtype, ndim, shape, operands, 2)
    if result != NULL and result.size:
        shape[dim] = 1
        nest_begin(&work.nest, ndim, shape)
        for k in range(3):
            array = operands[k - 1].of.array if k else result
            work.parts[k] = array.strides[dim] * itemsize(work.dtype)
            vector = array[0]
            if k == 0:
                vector.shape = shape
            nest_add(&work.nest, &vector)
        # Dimensions of size 1 are dropped, whatever the strides of operands.
        nest_finish(&work.nest)
        parallel_for(_cross_chunk, &work, work.nest.size, rows_per_chunk(8, MOVED))
    for k in range(2):
        release(operands[k].of.array)
    if result != NULL and work.dtype != dtype:
        array = as_dtype(result, dtype)
        release(result)
        result = array
    return array_result(result, &results[0])


register_kernel("dot", dot_kernel)
register_kernel("vdot", vdot_kernel)
register_kernel("outer", outer_kernel)
register_kernel("cross", cross_kernel)


# ---------------------------------------------------------------------------------------------------------------- addmm

cdef int _set_factor(text_t operation, text_t name, const value_t *number, product_t *product,
                     double *real, double *imag, int64_t *integer) noexcept nogil:
    """Read alpha or beta, of a kind that the dtype can hold."""
    if number.kind == NOTHING:
        real[0], imag[0], integer[0] = 1, 0, 1
        return OK
    if not is_number(number):
        snprintf(message(), MESSAGE, b"%s: %s must be a number", operation, name)
        return TYPE_ERROR
    if ((number.kind == COMPLEX and not is_complex(product.dtype))
            or (number.kind == REAL and not is_differentiable(product.dtype))):
        snprintf(message(), MESSAGE, b"%s: %s cannot be a %s number for operands of dtype %s. Convert the operands "
                 b"first.", operation, name, b"complex" if number.kind == COMPLEX else b"floating-point",
                 dtype_name(product.dtype))
        return RUNTIME_ERROR
    real[0] = as_real(number)
    imag[0] = number.imag if number.kind == COMPLEX else 0
    integer[0] = number.of.integer if number.kind < REAL else 0
    return OK


cdef int _take_addend(text_t operation, text_t name, product_t *product, const array_t *addend, int ndim,
                      const int64_t *shape) noexcept nogil:
    """Set an addend that broadcasts to `shape`: the last one or two sizes of the result."""
    cdef int i, offset = ndim - addend.ndim
    cdef bint fits = offset >= 0
    for i in range(addend.ndim):
        if fits and addend.shape[i] != shape[offset + i] and addend.shape[i] != 1:
            fits = False
    if not fits:
        snprintf(message(), MESSAGE, b"%s: cannot broadcast %s of shape %s to the product, whose last two sizes are "
                 b"%lld and %lld. Reshape it.", operation, name, shape_text(addend), <long long>product.m,
                 <long long>product.n)
        return RUNTIME_ERROR
    product.addend = addend.data
    product.addend_row_step = product.addend_column_step = 0
    if addend.ndim >= 1 and addend.shape[addend.ndim - 1] != 1:
        product.addend_column_step = addend.strides[addend.ndim - 1]
    if addend.ndim >= 2 and addend.shape[addend.ndim - 2] != 1:
        product.addend_row_step = addend.strides[addend.ndim - 2]
    return OK


cdef int _set_bias(product_t *product, const array_t *bias, int ndim) noexcept nogil:
    """Set a bias with one number per output, or with the shape of a matrix of outputs."""
    cdef int64_t[2] matrix
    matrix[0], matrix[1] = product.m, product.n
    product.beta.real, product.integer_beta = 1, 1
    if ndim == 2:
        return _take_addend(b"linear", b"bias", product, bias, 2, matrix)
    return _take_addend(b"linear", b"bias", product, bias, 1, matrix + 1)


cdef int addmm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """addmm(input, mat1, mat2, beta, alpha): beta * input + alpha * mat1 @ mat2."""
    cdef array_t *addend
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[2] shape
    cdef int status = check_arrays(b"addmm", arguments, 3)
    if status != OK:
        return status
    addend, a, b = arguments[0].of.array, arguments[1].of.array, arguments[2].of.array
    status = check_ndim(b"addmm", b"mat1", a, 2) or check_ndim(b"addmm", b"mat2", b, 2)
    if status != OK:
        return status
    if a.shape[1] != b.shape[0]:
        return cannot_multiply(b"addmm", a, b)
    shape[0], shape[1] = a.shape[0], b.shape[1]
    left, right = matrix_of(a), matrix_of(b)
    status = prepare(b"addmm", &product, a, &left, &right)
    if status == OK:
        status = _take_addend(b"addmm", b"input", &product, addend, 2, shape)
    if status == OK:
        status = _set_factor(b"addmm", b"beta", &arguments[3], &product, &product.beta.real, &product.beta.imag,
                             &product.integer_beta)
    if status == OK:
        status = _set_factor(b"addmm", b"alpha", &arguments[4], &product, &product.alpha.real,
                             &product.alpha.imag, &product.integer_alpha)
    if status == OK and product.beta.real == 0 and product.beta.imag == 0:
        product.addend = NULL         # ignored, nan included
    return finish(&product, status, 2, shape, results)


cdef int add_product_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """add_product(addend, a, b): addend + a @ b for matrices, in-place if addend has no other owner."""
    cdef array_t *addend = arguments[0].of.array
    cdef int status
    if exclusive(addend):
        status = add_product_into_kernel(arguments, results)
        if status == OK:
            set_array(results, retain(addend))
        return status
    return _add_product(arguments, NULL, results)


cdef int add_product_into_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """add_product_into(addend, a, b): the same, in-place in the row-major addend; no result."""
    return _add_product(arguments, arguments[0].of.array.data, results)


cdef int _add_product(const value_t *arguments, char *c, value_t *results) noexcept nogil:
    """Compute addend + a @ b at `c`, or in a new array."""
    cdef array_t *addend = arguments[0].of.array
    cdef product_t product
    cdef matrix_t left = matrix_of(arguments[1].of.array), right = matrix_of(arguments[2].of.array)
    cdef int status = prepare(b"matmul", &product, addend, &left, &right)
    product.beta.real = 1
    if status == OK:
        status = _take_addend(b"matmul", b"input", &product, addend, 2, addend.shape)
    if status != OK or c == NULL:
        return finish(&product, status, 2, addend.shape, results)
    product.c = c
    multiply(&product)
    release_matrix(&product.a)
    release_matrix(&product.b)
    return OK


cdef int linear_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear(input, weight, bias): input @ weight.T + bias, for input of any rank."""
    cdef array_t *x
    cdef array_t *weight
    cdef array_t *rows
    cdef array_t *bias = NULL
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[MAX_DIMS] shape
    cdef int i, ndim, status
    cdef bint has_bias = arguments[2].kind != NOTHING
    status = check_arrays(b"linear", arguments, 3 if has_bias else 2)
    if status != OK:
        return status
    x, weight = arguments[0].of.array, arguments[1].of.array
    if has_bias:
        bias = arguments[2].of.array
    if x.ndim == 0:
        snprintf(message(), MESSAGE, b"linear: input must have at least one dimension (got a 0-D tensor)")
        return RUNTIME_ERROR
    if weight.ndim != 2 and (weight.ndim != 1 or has_bias):
        snprintf(message(), MESSAGE, b"linear: weight must be a matrix%s (got shape %s)",
                 b", or a vector if there is no bias" if not has_bias else b"", shape_text(weight))
        return RUNTIME_ERROR
    if x.shape[x.ndim - 1] != weight.shape[weight.ndim - 1]:
        snprintf(message(), MESSAGE, b"linear: mat1 and mat2 shapes cannot be multiplied (got input %s and weight %s, "
                 b"expected the last sizes to be equal)", shape_text(x), shape_text(weight))
        return RUNTIME_ERROR
    if x.ndim == 1 and weight.ndim == 1:
        return dot_arrays(b"linear", False, x, weight, results)
    left = row_of(x) if x.ndim == 1 else matrix_of(x)
    if weight.ndim == 1:
        right = column_of(weight)
    else:
        right = matrix_of(weight)
        transpose_matrix(&right)
    ndim = x.ndim - 1
    for i in range(ndim):
        shape[i] = x.shape[i]
    if weight.ndim == 2:
        shape[ndim] = weight.shape[0]
        ndim += 1
    if x.ndim > 2 and not fold_rows(&left):
        rows = as_contiguous(x, -1)
        release_matrix(&left)
        if rows == NULL:
            release_matrix(&right)
            return MEMORY_ERROR
        left = matrix_of(rows)
        release(rows)                 # the matrix has its own reference
        fold_rows(&left)
    status = prepare(b"linear", &product, x, &left, &right)
    if status == OK and has_bias:
        status = _set_bias(&product, bias, ndim)
    return finish(&product, status, ndim, shape, results)


register_kernel("addmm", addmm_kernel)
register_kernel("add_product", add_product_kernel)
register_kernel("add_product_into", add_product_into_kernel)
register_kernel("linear", linear_kernel)


# ------------------------------------------------------------------------------------------------------------- products

# Kernels check their operands, view them as batches of matrices (blas.pyx) and multiply these. Nothing is copied if
# each matrix has a stride of 1; broadcast batches are read in place.

# ---- the common part

cdef int prepare(text_t operation, product_t *product, array_t *like, matrix_t *a, matrix_t *b) noexcept nogil:
    cdef int status
    start_product(product, like.dtype, a.rows, b.columns, a.columns)
    product.a, product.b = a[0], b[0]
    if a.columns > BLAS_MAX or b.columns > BLAS_MAX:
        snprintf(message(), MESSAGE, b"%s: too large (got an inner dimension of %lld and %lld columns, expected "
                 b"at most 2147483647 each)", operation, <long long>a.columns, <long long>b.columns)
        return RUNTIME_ERROR
    if product.m == 0 or product.n == 0 or product.k == 0:
        return OK         # a and b are not read
    status = lay_out(&product.a, False)
    if status == OK:
        status = lay_out(&product.b, not is_differentiable(like.dtype))
    return status


cdef int finish(product_t *product, int status, int ndim, const int64_t *shape, value_t *results) noexcept nogil:
    cdef array_t *result
    if status == OK:
        result = array_empty(product.dtype, ndim, shape)
        if result == NULL:
            status = MEMORY_ERROR
        else:
            product.c = result.data
            multiply(product)
            set_array(results, result)
    release_matrix(&product.a)
    release_matrix(&product.b)
    return status


cdef int _broadcast_batches(text_t operation, product_t *product, int64_t *shape) noexcept nogil:
    """Broadcast the leading dimensions of both operands to the batch and the front of `shape`."""
    cdef matrix_t *a = &product.a
    cdef matrix_t *b = &product.b
    cdef int ndim = max(a.batch_ndim, b.batch_ndim)
    cdef int i, in_a, in_b
    cdef int64_t a_size, b_size
    for i in range(ndim):
        in_a = i - (ndim - a.batch_ndim)
        in_b = i - (ndim - b.batch_ndim)
        a_size = a.batch_shape[in_a] if in_a >= 0 else 1
        b_size = b.batch_shape[in_b] if in_b >= 0 else 1
        if a_size != b_size and a_size != 1 and b_size != 1:
            snprintf(message(), MESSAGE, b"%s: batch dimensions do not broadcast: the size of tensor a (%lld) "
                     b"must match the size of tensor b (%lld) at dimension %d (got shapes %s and %s)", operation,
                     <long long>a_size, <long long>b_size, i, shape_text(a.array), shape_text(b.array))
            return RUNTIME_ERROR
        shape[i] = b_size if a_size == 1 else a_size
        product.batch_shape[i] = shape[i]
        product.a_steps[i] = a.batch_steps[in_a] if in_a >= 0 and a_size != 1 else 0
        product.b_steps[i] = b.batch_steps[in_b] if in_b >= 0 and b_size != 1 else 0
    product.batch_ndim = ndim
    return OK


# ---- kernels

cdef int mm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mm(a, b): product of two matrices."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[2] shape
    cdef int status = check_arrays(b"mm", arguments, 2)
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"mm", b"mat1", a, 2) or check_ndim(b"mm", b"mat2", b, 2)
    if status != OK:
        return status
    if a.shape[1] != b.shape[0]:
        return cannot_multiply(b"mm", a, b)
    shape[0], shape[1] = a.shape[0], b.shape[1]
    left, right = matrix_of(a), matrix_of(b)
    return finish(&product, prepare(b"mm", &product, a, &left, &right), 2, shape, results)


cdef int bmm_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """bmm(a, b): products of the matrices of two batches."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[3] shape
    cdef int status = check_arrays(b"bmm", arguments, 2)
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"bmm", b"batch1", a, 3) or check_ndim(b"bmm", b"batch2", b, 3)
    if status != OK:
        return status
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        snprintf(message(), MESSAGE, b"bmm: Expected size for first two dimensions of batch2 tensor to be: "
                 b"[%lld, %lld] (got shapes %s and %s)", <long long>a.shape[0], <long long>a.shape[2],
                 shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    left, right = matrix_of(a), matrix_of(b)
    status = prepare(b"bmm", &product, a, &left, &right)
    if status == OK:
        status = _broadcast_batches(b"bmm", &product, shape)
    shape[1], shape[2] = a.shape[1], b.shape[2]
    return finish(&product, status, 3, shape, results)


cdef int mv_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """mv(matrix, vector): product of a matrix and a vector."""
    cdef array_t *a
    cdef array_t *x
    cdef product_t product
    cdef matrix_t left, right
    cdef int status = check_arrays(b"mv", arguments, 2)
    if status != OK:
        return status
    a, x = arguments[0].of.array, arguments[1].of.array
    status = check_ndim(b"mv", b"input", a, 2) or check_ndim(b"mv", b"vec", x, 1)
    if status != OK:
        return status
    if a.shape[1] != x.shape[0]:
        snprintf(message(), MESSAGE, b"mv: size mismatch, the matrix has %lld columns and the vector %lld elements "
                 b"(got shapes %s and %s)", <long long>a.shape[1], <long long>x.shape[0], shape_text(a), shape_text(x))
        return RUNTIME_ERROR
    left, right = matrix_of(a), column_of(x)
    return finish(&product, prepare(b"mv", &product, a, &left, &right), 1, a.shape, results)


cdef int matmul_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """matmul(a, b): product of vectors, matrices or batches of matrices, which broadcast."""
    cdef array_t *a
    cdef array_t *b
    cdef product_t product
    cdef matrix_t left, right
    cdef int64_t[MAX_DIMS + 2] shape
    cdef int i, ndim = 0, status = check_arrays(b"matmul", arguments, 2)
    cdef bint folded
    if status != OK:
        return status
    a, b = arguments[0].of.array, arguments[1].of.array
    if a.ndim == 0 or b.ndim == 0:
        snprintf(message(), MESSAGE, b"matmul: both arguments to matmul need to be at least 1D (got shapes %s and %s)",
                 shape_text(a), shape_text(b))
        return RUNTIME_ERROR
    if a.shape[a.ndim - 1] != b.shape[b.ndim - 2 if b.ndim > 1 else 0]:
        return cannot_multiply(b"matmul", a, b)
    if a.ndim == 1 and b.ndim == 1:
        return dot_arrays(b"matmul", False, a, b, results)
    left = row_of(a) if a.ndim == 1 else matrix_of(a)
    right = column_of(b) if b.ndim == 1 else matrix_of(b)
    # Merge a batch with one right-hand side into one large product.
    folded = a.ndim > 2 and b.ndim <= 2 and fold_rows(&left)
    status = prepare(b"matmul", &product, a, &left, &right)
    if folded:
        for i in range(a.ndim - 1):
            shape[i] = a.shape[i]
        ndim = a.ndim - 1
    else:
        if status == OK:
            status = _broadcast_batches(b"matmul", &product, shape)
            ndim = product.batch_ndim
        if a.ndim > 1:
            shape[ndim] = a.shape[a.ndim - 2]
            ndim += 1
    if b.ndim > 1:
        shape[ndim] = b.shape[b.ndim - 1]
        ndim += 1
    return finish(&product, status, ndim, shape, results)


register_kernel("mm", mm_kernel)
register_kernel("bmm", bmm_kernel)
register_kernel("mv", mv_kernel)
register_kernel("matmul", matmul_kernel)

# Imported here, so that importing this module registers all products.
import cygrad._core.kernels.linalg.matmul  # noqa: E402, F401  # no-cython-lint


# -------------------------------------------------------------------------------------------------------- packed matmul

# Products with a prepacked matrix, stored in panels of 32 interleaved rows. BLAS would pack both operands for each
# product, which takes a third of the time for a state of few rows. A panel is one task, and each sum runs through the
# columns in order, so results are bit-identical for any number of threads.

cdef enum:
    PANEL = 32                 # rows

ROWS = PANEL                   # for Python, which packs the panels

ctypedef struct packed_product_t:
    const array_t *self
    const array_t *panels
    const array_t *bias        # contiguous, with one row or those of the result; or NULL
    array_t *result
    int64_t m
    int64_t n
    int64_t k
    int64_t failed             # atomic: a thread had no memory


cdef void _body(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef packed_product_t *work = <packed_product_t *>context
    cdef int64_t panel, width, m = work.m, n = work.n, k = work.k, unit = itemsize(work.result.dtype)
    cdef int64_t bias_step = n if work.bias != NULL and work.bias.ndim > 1 else 0
    cdef const char *bias
    cdef char *target
    cdef storage_t *workspace = storage_new(WORKSPACE_BYTES)
    if workspace == NULL:
        atomic_store(&work.failed, 1)
        return
    for panel in range(begin, end):
        width = min(<int64_t>PANEL, n - panel * PANEL)
        target = work.result.data + panel * PANEL * unit
        bias = NULL if work.bias == NULL else work.bias.data + panel * PANEL * unit
        multiply_in_blocks[work.result.dtype == FLOAT64](
            m, width, k, work.self.data, k, 1, work.panels.data + panel * k * PANEL * unit, PANEL, 1, bias, bias_step,
            target, n, workspace.data)
    storage_release(workspace)


cdef int _check(const array_t *self, const array_t *weight, const array_t *panels, const array_t *bias) noexcept nogil:
    cdef bint fits
    cdef int i
    if not is_floating(self.dtype):
        snprintf(message(), MESSAGE, b"linear_in_panels: needs float32 or float64 (got %s). Convert with to() first.",
                 dtype_name(self.dtype))
        return NOT_IMPLEMENTED
    fits = (self.ndim > 0 and weight.ndim == 2 and panels.ndim == 3 and panels.dtype == self.dtype
            and self.shape[self.ndim - 1] == weight.shape[1])
    fits = (fits and panels.shape[0] == (weight.shape[0] + PANEL - 1) // PANEL and panels.shape[1] == weight.shape[1]
            and panels.shape[2] == PANEL)
    if not fits:
        snprintf(message(), MESSAGE, b"linear_in_panels: input, weight and its panels do not match (got shapes %s, %s "
                 b"and %s). Give panels of %d rows of one dtype.", shape_text(self), shape_text(weight),
                 shape_text(panels), PANEL)
        return RUNTIME_ERROR
    if bias != NULL:
        fits = bias.dtype == self.dtype and (bias.ndim == 1 or bias.ndim == self.ndim)
        fits = fits and bias.shape[bias.ndim - 1] == weight.shape[0]
        for i in range(bias.ndim - 1):
            fits = fits and bias.shape[i] == self.shape[i]
        if not fits:
            snprintf(message(), MESSAGE, b"linear_in_panels: expected a bias of %lld numbers, or as many for each row "
                     b"(got shape %s for input %s).", <long long>weight.shape[0], shape_text(bias), shape_text(self))
            return RUNTIME_ERROR
    return OK


cdef int linear_in_panels_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """linear_in_panels(self, weight, panels, back, bias): only derivatives read weight and back."""
    cdef packed_product_t work
    cdef array_t *self
    cdef array_t *weight
    cdef array_t *panels
    cdef array_t *bias = NULL
    cdef int64_t[MAX_DIMS] shape
    cdef int i, status = array_argument(b"linear_in_panels", b"input", &arguments[0], &self)
    if status == OK:
        status = array_argument(b"linear_in_panels", b"weight", &arguments[1], &weight)
    if status == OK:
        status = array_argument(b"linear_in_panels", b"panels", &arguments[2], &panels)
    if status == OK and arguments[4].kind != NOTHING:
        status = array_argument(b"linear_in_panels", b"bias", &arguments[4], &bias)
    if status == OK:
        status = _check(self, weight, panels, bias)
    if status != OK:
        return status
    for i in range(self.ndim - 1):
        shape[i] = self.shape[i]
    shape[self.ndim - 1] = weight.shape[0]
    status = new_array(b"linear_in_panels", self.dtype, self.ndim, shape, &work.result)
    if status != OK:
        return status
    self, panels = as_contiguous(self, -1), as_contiguous(panels, -1)
    bias = as_contiguous(bias, -1) if bias != NULL else NULL
    if self == NULL or panels == NULL or (bias == NULL and arguments[4].kind != NOTHING):
        status = MEMORY_ERROR
    elif work.result.size:
        work.self, work.panels, work.bias, work.failed = self, panels, bias, 0
        work.n, work.k = weight.shape[0], weight.shape[1]
        work.m = work.result.size // work.n
        parallel_for(_body, &work, panels.shape[0], products_per_chunk(work.m * work.k * PANEL))
        status = MEMORY_ERROR if work.failed else OK
    release(self)
    release(panels)
    release(bias)
    if status != OK:
        release(work.result)
        return status
    return array_result(work.result, &results[0])


register_kernel("linear_in_panels", linear_in_panels_kernel)
