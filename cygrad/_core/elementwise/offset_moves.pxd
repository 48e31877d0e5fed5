"""
Gather, scatter and scatter-add by a list of offsets, to and from a contiguous array.

Advanced indexing, index_select, embedding and padding are implemented by this. One array, here called sparse, is
addressed as sparse[before..., offsets[i], after...] and the other, dense, is contiguous with the shape (before..., n,
after...).
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t

cdef extern from * nogil:
    """
    typedef struct { double real, imag; } pair_t;      /* 16 bytes that are only moved */
    """
    ctypedef struct pair_t:
        double real
        double imag

ctypedef float complex complex64_t
ctypedef double complex complex128_t

# Words of each size, for elements that are only moved.
ctypedef fused word_t:
    int8_t
    int16_t
    int32_t
    int64_t
    pair_t

# Element types, for sums.
ctypedef fused number_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double
    complex64_t
    complex128_t

cdef extern from * nogil:
    """
    /* an offset that stands for "leave out" when writing or adding */
    #define SKIP ((int64_t)(-0x7fffffffffffffffLL))
    """
    const int64_t SKIP

ctypedef enum move_t:
    READ = 0       # dense = sparse[offsets]
    WRITE          # sparse[offsets] = dense; the last of equal offsets wins
    ADD            # sparse[offsets] += dense, in the order of the offsets
    TAKE           # READ from the last offset to the first, each leaving zeros: undoes WRITE

ctypedef struct nest_of_offsets_t:
    move_t move
    int dtype
    char *sparse
    char *dense
    const int64_t *offsets            # in bytes from `sparse`
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
