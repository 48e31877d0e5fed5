"""
Products with a prepacked matrix: its rows are stored in panels, in the order in which they are read.

A panel has 32 rows, interleaved: for each column, the elements of all its rows. Nothing is packed before such a
product, as BLAS does with both operands; for a state of few rows that is a third of the time. A panel is one task, and
each sum runs through the columns in order, so results are bit-identical for any number of threads.
"""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, release, shape_text
from cygrad._core.arrays.dtype cimport FLOAT64, dtype_name, is_floating, itemsize
from cygrad._core.arrays.value cimport NOTHING, register_kernel, value_t
from cygrad._core.elementwise.copying cimport as_contiguous
from cygrad._core.kernels.arguments cimport array_argument, array_result, new_array
from cygrad._core.kernels.linalg.product_blocks cimport ROOM_BYTES, multiply
from cygrad._core.memory.atomic cimport atomic_store
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, NOT_IMPLEMENTED, OK, RUNTIME_ERROR, message
from cygrad._core.memory.storage cimport storage_new, storage_release, storage_t
from cygrad._core.threads.parallel cimport parallel_for

cdef enum:
    PANEL = 32                 # rows
    PIECE_WORK = 1 << 18       # multiplications worth a thread

ROWS = PANEL                   # for Python, which makes the panels

ctypedef struct packed_product_t:
    const array_t *self
    const array_t *panels
    const array_t *bias        # contiguous, of one row or as many as the result; or NULL
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
    cdef storage_t *room = storage_new(ROOM_BYTES)
    if room == NULL:
        atomic_store(&work.failed, 1)
        return
    for panel in range(begin, end):
        width = min(<int64_t>PANEL, n - panel * PANEL)
        target = work.result.data + panel * PANEL * unit
        bias = NULL if work.bias == NULL else work.bias.data + panel * PANEL * unit
        multiply(work.result.dtype == FLOAT64, m, width, k, work.self.data, k, 1,
                 work.panels.data + panel * k * PANEL * unit, PANEL, 1, bias, bias_step, target, n, room.data)
    storage_release(room)


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
        snprintf(message(), MESSAGE, b"linear_in_panels: input, weight and its panels do not fit (got shapes %s, %s "
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
    """linear_in_panels(self, weight, panels, back, bias): only derivatives look at weight and back."""
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
        parallel_for(_body, &work, panels.shape[0], max(1, PIECE_WORK // max(work.m * work.k * PANEL, 1)))
        status = MEMORY_ERROR if work.failed else OK
    release(self)
    release(panels)
    release(bias)
    if status != OK:
        release(work.result)
        return status
    return array_result(work.result, &results[0])


register_kernel("linear_in_panels", linear_in_panels_kernel)
