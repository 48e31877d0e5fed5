"""Copies, casts and fills of whole arrays."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, value_t

# ------------------------------------------------------------------------------------------------------------ iteration

# Loop nests over several arrays: broadcast, with dimensions sorted and merged.

cdef enum:
    MAX_OPERANDS = 13

ctypedef struct nest_t:
    int32_t ndim
    int32_t n                 # operands; 0 is the one that is written
    int64_t size              # elements
    int64_t shape[MAX_DIMS]   # innermost dimension first
    char *data[MAX_OPERANDS]
    int64_t strides[MAX_OPERANDS][MAX_DIMS]    # bytes, innermost first

# Begin a nest over `shape` (outermost first), without operands.
cdef void nest_begin(nest_t *nest, int ndim, const int64_t *shape) noexcept nogil
# Add an operand that broadcasts to the shape; or one value for all elements.
cdef void nest_add(nest_t *nest, const array_t *array) noexcept nogil
cdef void nest_add_value(nest_t *nest, char *value) noexcept nogil
# Sort dimensions by the strides of operand 0, flip its negative strides, merge, drop those of size 1. `ndim` becomes at
# least 1 unless `size` is 0.
cdef void nest_finish(nest_t *nest) noexcept nogil
# Address of element `index` of operand `k` (in the order of the nest).
cdef char *nest_pointer(const nest_t *nest, int k, int64_t index) noexcept nogil

# Broadcast the shapes of n arrays into shape[MAX_DIMS]; return ndim or -1 with a message naming the shapes.
cdef int broadcast_shape(const value_t *operands, int n, int64_t *shape) noexcept nogil
# Return whether `array` broadcasts to this shape.
cdef bint broadcasts_to(const array_t *array, int ndim, const int64_t *shape) noexcept nogil
# Same elements at the same addresses.
cdef bint same_place(const array_t *a, const array_t *b) noexcept nogil

# -------------------------------------------------------------------------------------------------------------- copying

# to[...] = source[...], cast and broadcast; any strides; overlap handled.
cdef int copy_into(array_t *to, array_t *source) noexcept nogil
# Return the array itself (retained) if it has this dtype (-1: any) and is contiguous, else a contiguous copy.
cdef array_t *as_contiguous(array_t *array, int dtype) noexcept nogil
# Return the array itself (retained) if it has this dtype, else a cast contiguous copy.
cdef array_t *as_dtype(array_t *array, int dtype) noexcept nogil
# Return the array as a dtype, contiguous or in channels_last if it is in channels_last. New reference; NULL: no memory.
cdef array_t *images_as_dtype(array_t *array, int dtype) noexcept nogil
# Return a contiguous copy.
cdef array_t *as_copy(array_t *array, int dtype) noexcept nogil
cdef int fill(array_t *array, const value_t *number) noexcept nogil
# Return whether the number is in the range of the dtype; negative ones wrap around in unsigned dtypes, as in C.
cdef bint is_representable(const value_t *number, int dtype) noexcept nogil
# Return RUNTIME_ERROR if it is not, or, unless it `wraps`, if it is negative and the dtype unsigned.
cdef int check_fits(const char *operation, const value_t *number, int dtype, bint wraps=?) noexcept nogil
# Fill a contiguous array with zeros.
cdef void fill_zeros(array_t *array) noexcept nogil
# Return RUNTIME_ERROR if several elements of the array share memory, so that it cannot be written.
cdef int check_writable(array_t *array, const char *operation) noexcept nogil

# --------------------------------------------------------------------------------------------------------------- layout

# Layout of results: the order of their dimensions in memory, following the operands.

# As in PyTorch: no gaps, no elements that share memory, no negative strides.
cdef bint is_non_overlapping_and_dense(const array_t *array) noexcept nogil
# New arrays, uninitialized; NULL and a message when memory is exhausted. array_for_operands: of the broadcast shape of
# the operands; row-major if they all are, else in their layout. array_like: of the shape and layout of `like`, without
# its gaps; `dtype` -1 for its dtype. array_strided: with these strides, which must be dense.
cdef array_t *array_for_operands(int dtype, int ndim, const int64_t *shape, const value_t *operands,
                                 int n) noexcept nogil
cdef array_t *array_like(const array_t *like, int dtype) noexcept nogil
cdef array_t *array_strided(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil
# Return whether array_for_operands would be row-major.
cdef bint is_row_major_result(int ndim, const int64_t *shape, const value_t *operands, int n) noexcept nogil
# Copy in the layout of `like`, which has the same shape and may be `array` itself; `dtype` -1 for its own.
cdef array_t *copy_like(array_t *array, const array_t *like, int dtype) noexcept nogil
# Strides of a channels_last array of this shape.
cdef void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) noexcept nogil
# Return whether it is a channels_last batch of images of two or three dimensions.
cdef bint is_channels_last(const array_t *array) noexcept nogil
# Convert a row-major result to the memory format of its images: `result` itself or, in its place, a copy.
cdef array_t *with_layout_of_images(array_t *result, const array_t *images) noexcept nogil

# --------------------------------------------------------------------------------------------------------- offset moves

# Gather, scatter and scatter-add by a list of offsets, to and from a contiguous array.
#
# Advanced indexing, index_select, embedding and padding are implemented by this. One array, here called sparse, is
# addressed as sparse[before..., offsets[i], after...] and the other, dense, is contiguous with the shape (before..., n,
# after...).

cdef extern from "elementwise/offset_loops.h" nogil:
    const int64_t SKIP
    ctypedef enum move_t:
        READ
        WRITE
        ADD
        TAKE

ctypedef struct nest_of_offsets_t:
    move_t move
    int dtype
    char *sparse
    char *dense
    const int64_t *offsets            # in bytes from `sparse`
    int64_t columns                   # per chunk, unless reading
    int64_t n
    int n_before, n_after
    int64_t before_shape[MAX_DIMS]
    int64_t before_strides[MAX_DIMS]  # in bytes
    int64_t after_shape[MAX_DIMS]
    int64_t after_strides[MAX_DIMS]

# Bit-identical for any number of threads: reads are independent, writes and sums are divided by columns and by
# positions before, never by offsets.
cdef void move_by_offsets(nest_of_offsets_t *nest) noexcept nogil

# Add dimension `dim` of `sparse` to the nest, before or after the offsets.
cdef void add_before(nest_of_offsets_t *nest, const array_t *sparse, int dim) noexcept nogil
cdef void add_after(nest_of_offsets_t *nest, const array_t *sparse, int dim) noexcept nogil
# Begin a nest: direction and arrays.
cdef void begin_nest(nest_of_offsets_t *nest, move_t move, const array_t *sparse, const array_t *dense,
                     const int64_t *offsets, int64_t n) noexcept nogil
# The common case of one indexed dimension: before = dimensions in front of it, after = dimensions after it.
cdef void move_along(move_t move, const array_t *sparse, int dim, const array_t *dense,
                     const int64_t *offsets, int64_t n) noexcept nogil
