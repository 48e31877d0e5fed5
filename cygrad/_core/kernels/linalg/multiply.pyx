"""
The engine of matrix products: batches of matrices in tiles that depend only on the problem.

The result is cut into tiles, and each is one product over the whole inner dimension, so results are bit-identical for
any number of threads. Tiles have a cost, because operands are packed for each of them; they are therefore as large as
parallelism allows, and nearly square. Operands in the caches are multiplied in register blocks (product_blocks.h),
others by BLAS.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, is_differentiable, is_floating, itemsize
from cygrad._core.kernels.linalg.blas cimport blas_scalar_t, gemm, gemv, reads_in_place
from cygrad._core.kernels.linalg.integer_matmul cimport multiply_integers, scale_tile
from cygrad._core.kernels.linalg.product_blocks cimport ROOM_BYTES, fits_blocks, needs_room
from cygrad._core.kernels.linalg.product_blocks cimport multiply as multiply_in_blocks
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.parallel cimport parallel_for

cdef extern from "kernels/linalg/small_products.h" nogil:
    bint is_small(bint double_precision, int64_t m, int64_t n, int64_t k)
    void small_product(bint double_precision, const void *a, int64_t a_row, int64_t a_column, const void *b,
                       int64_t b_row, int64_t b_column, const void *addend, int64_t addend_row, void *c, int64_t c_row,
                       int64_t m, int64_t n, int64_t k, double alpha, double beta)
    void outer_product(bint double_precision, const void *a, int64_t a_row, const void *b, void *c, int64_t c_row,
                       int64_t m, int64_t n)

cdef enum:
    PIECE_WORK = 1 << 18      # multiplications that are worth a piece of a batch
    VECTOR_WORK = 1 << 18     # ... or a tile where each element of a matrix is used once
    MANY_TILES = 16
    SHORT_SIDE = 64           # tiles are not cut further than this
    LARGEST_SIDE = 1024       # ... and not left larger than this


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
    """Half of a side, rounded up to what the innermost loops of BLAS like."""
    return ((side + 1) // 2 + 31) // 32 * 32


cdef int64_t _wanted_tiles(int64_t work, bint vector) noexcept nogil:
    """How many tiles are worth while: s / 64 for a cube of side s, so that they grow with the problem."""
    cdef int64_t tiles = 1
    if vector:
        tiles = work // VECTOR_WORK
        return tiles if tiles < MANY_TILES else MANY_TILES
    while tiles < MANY_TILES and (64 * (tiles + 1)) ** 3 <= work:
        tiles += 1
    return tiles


cdef void _choose_tiles(product_t *product) noexcept nogil:
    """Cut the longer side in two until there are enough tiles, or they would become too small."""
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
    """A product that is not worth a call of BLAS; a, b and c are the whole matrices."""
    cdef const char *addend = product.addend
    cdef int64_t addend_row = product.addend_row_step
    if addend != NULL and product.addend_column_step != 1 and product.n > 1:
        _set_addend(product, c, 0, product.m, 0, product.n)
        addend, addend_row = c, product.n
    small_product(product.dtype == FLOAT64, a, 1 if product.a.transposed else product.a.leading,
                  product.a.leading if product.a.transposed else 1, b,
                  1 if product.b.transposed else product.b.leading, product.b.leading if product.b.transposed else 1,
                  addend, addend_row, c, product.n, product.m, product.n, product.k, product.alpha.real,
                  product.beta.real)


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
    """One tile, at a, b and c; -> was there memory?"""
    cdef const char *addend = product.addend
    cdef int64_t addend_row = product.addend_row_step
    cdef int64_t a_row = product.a.leading, a_step = 1, b_row = product.b.leading, b_column = 1
    cdef storage_t *room = NULL
    if product.a.transposed:
        a_row, a_step = a_step, a_row
    if product.b.transposed:
        b_row, b_column = b_column, b_row
    if needs_room(product.dtype == FLOAT64, columns, b_row, b_column):
        room = storage_new(ROOM_BYTES)
        if room == NULL:
            return False
    if addend != NULL and product.addend_column_step == 1:
        addend += (row * addend_row + column) * itemsize(product.dtype)
    elif addend != NULL:
        _set_addend(product, c, row, rows, column, columns)
        addend, addend_row = c, product.n
    multiply_in_blocks(product.dtype == FLOAT64, rows, columns, product.k, a, a_row, a_step, b, b_row, b_column, addend,
                       addend_row, c, product.n, NULL if room == NULL else room.data)
    if room != NULL:
        storage_release(room)
    return True


cdef inline void _multiply_tile(product_t *product, char *a, char *b, char *c, int64_t row,
                                int64_t column) noexcept nogil:
    """One tile of one matrix; a, b and c are those of the whole matrix."""
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
        # Nothing of a and b counts, not even nan.
        scale_tile(product.dtype, rows, columns, beta, product.integer_beta, c, product.n)
    elif not is_differentiable(product.dtype):
        multiply_integers(product.dtype, rows, columns, product.k, product.integer_alpha, a,
                          1 if product.a.transposed else product.a.leading,
                          product.a.leading if product.a.transposed else 1,
                          b, product.b.leading, product.integer_beta, c, product.n)
    elif (product.k == 1 and is_floating(product.dtype) and product.addend == NULL and product.alpha.real == 1
          and not product.b.transposed):
        outer_product(product.dtype == FLOAT64, a, 1 if product.a.transposed else product.a.leading, b, c, product.n,
                      rows, columns)
    elif columns == 1 and product.n == 1:
        if product.addend == NULL:
            memset(c, 0, rows * size)     # gemv might read it in spite of beta = 0
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
    """Some tiles, counted through the matrices of the batch."""
    cdef product_t *product = <product_t *>context
    cdef int64_t size = itemsize(product.dtype)
    cdef int64_t tiles = product.row_tiles * product.column_tiles
    cdef int64_t piece, tile, rest, place, a_offset = 0, b_offset = 0, matrix, last = -1
    cdef int i
    for piece in range(begin, end):
        matrix = piece // tiles
        tile = piece % tiles
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
    cdef int64_t matrices = 1, tiles, grain, work
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
    work = product.tile_rows * product.tile_columns * (product.k if product.k > 0 else 1)
    grain = PIECE_WORK // work
    parallel_for(_run_tiles, product, matrices * tiles, grain if grain > 1 else 1)


def same_bits_by_rows(int size, int64_t m, int64_t n, int64_t k):
    """Is a product of m x k and transposed k x n elements of `size` bytes bit-identical to one of a row-major copy?"""
    cdef product_t product
    if size != 4 and size != 8:
        return False
    start_product(&product, FLOAT64 if size == 8 else FLOAT32, m, n, k)
    product.a.transposed, product.b.transposed = False, True
    _choose_tiles(&product)
    return m > 1 and n > 1 and (_is_small(&product) or _fits_blocks(&product))
