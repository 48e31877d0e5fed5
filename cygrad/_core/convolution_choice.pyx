"""
Which form of computing a convolution is the fastest: a rule found by measurement, in one place.

Measured with float32, one thread of a Zen 5 core with AVX-512, batch 8; GFLOP/s of the definition's operations:

==========================================  =======  ======  ========
kernels, images                             columns  direct  winograd
==========================================  =======  ======  ========
3 x 3, 128 groups of 1 channel, 56 x 56           7      29         5
3 x 3, 32 groups of 4 -> 4, 28 x 28              22      53        12
3 x 3, 4 -> 4, 28 x 28                           44     101        13
3 x 3, 16 -> 4, 28 x 28                          43      93        56
3 x 3, 4 -> 16, 28 x 28                         107     114        68
3 x 3, 8 -> 16, 28 x 28                         109     115       120
3 x 3, 4 -> 64, 28 x 28                         163     116       115
3 x 3, 8 -> 64, 28 x 28                         113      94       142
3 x 3, 16 -> 64, 28 x 28                        137     116       328
3 x 3, 64 -> 64, 56 x 56                        129       -       407
7 x 7 with stride 2, 3 -> 64, 224 x 224         117     137         -
1 x 1, 16 -> 16, 28 x 28                        160      71         -
==========================================  =======  ======  ========

Products of matrices with few rows are slow: the columns' speed is that of the number of output channels, and for the
gradient of the input of the number of input channels, where adding up columns comes on top. The direct form has one
speed. Winograd's form saves three products of four, and pays with transforms of the tiles (for each channel of images)
and of the kernels (for each pair of channels); what these cost is in `_winograd_pays`.
"""

from libc.stdint cimport int64_t
from cygrad._core.convolution_direct cimport direct_bytes
from cygrad._core.convolution_geometry cimport fit_output, geometry_t
from cygrad._core.convolution_winograd cimport winograd_bytes, winograd_fits
from cygrad._core.dtype cimport FLOAT32, FLOAT64, dtype_code, itemsize
from cygrad._core.errors cimport check

cdef enum:
    NEAR_BYTES = 1 << 22       # buffers that stay in a cache
    MOST_BYTES = 1 << 26       # for buffers of one thread
    FEW = 16                   # channels of a result for which products of matrices are slow

cdef int forced = -1               # a form that is taken wherever it fits, for tests and measurements; -1: none

DIRECTIONS = ("forward", "input", "weight")
FORMS = ("columns", "direct", "winograd")


cdef bint _fits(const geometry_t *g, int dtype, form_t form) noexcept nogil:
    """Can it compute that at all, in bounded memory?"""
    if form == COLUMNS:
        return True
    if (dtype != FLOAT32 and dtype != FLOAT64) or g.in_channels == 0:
        return False
    if form == DIRECT:
        return max(direct_bytes(g, itemsize(dtype), False), direct_bytes(g, itemsize(dtype), True)) <= MOST_BYTES
    return winograd_fits(g) and winograd_bytes(g, itemsize(dtype)) <= 2 * MOST_BYTES


cdef bint _winograd_pays(const geometry_t *g) noexcept nogil:
    """Times in nanoseconds for each pair of channels, as measured for 16 to 512 channels and up to 1000 tiles."""
    cdef double tiles = g.batch * ((g.out[1] + 3) // 4) * ((g.out[2] + 3) // 4)
    cdef double transforms = 5.0 / g.in_channels + 5.0 / g.out_channels
    if min(g.in_channels, g.out_channels) < 8 or max(g.in_channels, g.out_channels) < FEW:
        return False
    return 12 + tiles * (0.36 + transforms) < 4 + 0.125 * g.batch * g.positions


cdef bint _direct_pays(const geometry_t *g, direction_t direction, int64_t bytes) noexcept nogil:
    if g.in_channels == 1 and g.out_channels == 1:
        return True
    if g.taps == 1 or direct_bytes(g, bytes, direction == INPUT_GRADIENT) > NEAR_BYTES:
        return False
    if direction == FORWARD:
        return g.out_channels <= FEW or (g.in_channels <= 8 and g.stride[2] > 1)
    if direction == INPUT_GRADIENT:
        return g.out_channels <= FEW // 2 or (g.out_channels <= FEW and g.in_channels >= 4)
    return g.out_channels <= FEW or 3 <= g.in_channels <= 8


cdef form_t choose_form(const geometry_t *g, int dtype, direction_t direction) noexcept nogil:
    if forced >= 0:
        return <form_t>forced if _fits(g, dtype, <form_t>forced) else COLUMNS
    if _fits(g, dtype, WINOGRAD) and _winograd_pays(g):
        return WINOGRAD
    if _fits(g, dtype, DIRECT) and _direct_pays(g, direction, itemsize(dtype)):
        return DIRECT
    return COLUMNS


def force_form(form):
    """Take the form of that name for all convolutions which it can compute; None: choose again."""
    global forced
    forced = -1 if form is None else FORMS.index(form)


def chosen_form(direction, images, kernel, stride, padding, dilation, groups, dtype):
    """The name of the form chosen for a direction ("forward", "input", "weight") and shapes."""
    cdef geometry_t g
    cdef int i, n = len(images) - 2
    g.batch, g.groups = images[0], groups
    g.in_channels, g.out_channels = kernel[1], kernel[0] // groups
    for i in range(3):
        g.size[i] = g.kernel[i] = g.stride[i] = g.dilation[i] = 1
        g.padding[i] = 0
        if i >= 3 - n:
            g.size[i], g.kernel[i] = images[i + n - 1], kernel[i + n - 1]
            g.stride[i], g.padding[i], g.dilation[i] = stride[i + n - 3], padding[i + n - 3], dilation[i + n - 3]
    check(fit_output(b"chosen_form", n, &g))
    return FORMS[choose_form(&g, dtype_code(dtype, "chosen_form"), DIRECTIONS.index(direction))]
