"""
Which form of computing a convolution is the fastest: a rule found by measurement, in one place.

Measured with float32, one thread of a Zen 5 core with AVX-512, batch 8; GFLOP/s of the definition's operations:

==========================================  =======  ======  ========
kernels, images                             columns  direct  winograd
==========================================  =======  ======  ========
3 x 3, 128 groups of 1 channel, 56 x 56          12      31         1
3 x 3, 32 groups of 4 -> 4, 28 x 28              42     127        17
3 x 3, 4 -> 4, 28 x 28                           49     122        21
3 x 3, 16 -> 4, 28 x 28                          50     129        71
3 x 3, 4 -> 16, 28 x 28                         113     148        77
3 x 3, 8 -> 16, 28 x 28                         117     175       145
3 x 3, 4 -> 64, 28 x 28                         173     162       145
3 x 3, 8 -> 64, 28 x 28                         157     187       248
3 x 3, 16 -> 64, 28 x 28                        152     197       409
3 x 3, 64 -> 64, 56 x 56                        157     204       452
3 x 3 with stride 2, 64 -> 128, 56 x 56         161     183         -
7 x 7 with stride 2, 3 -> 64, 224 x 224         179     187         -
1 x 1, 16 -> 16, 28 x 28                        139      93         -
==========================================  =======  ======  ========

The direct form makes no patches, but computes what lies between lines too, which is much where these are short, and an
image is a task, of which one image has too few for threads. For the gradient of the input it needs several channels of
the input, and the kernel in another order; for that of the kernel it adds up lanes for each image, tap and pair of
channels, for which lines have to be long. Products of matrices with few rows are slow. Winograd's form saves three
products of four, and pays with transforms of the tiles (for each channel of images) and of the kernels (for each pair
of channels); what these cost is in `_winograd_pays`.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, dtype_code, itemsize
from cygrad._core.kernels.convolution.convolution_direct cimport direct_bytes, direct_elements
from cygrad._core.kernels.convolution.convolution_geometry cimport fit_output, geometry_t
from cygrad._core.kernels.convolution.convolution_winograd cimport winograd_bytes, winograd_fits
from cygrad._core.memory.errors cimport check

cdef enum:
    NEAR_BYTES = 1 << 24       # buffers that stay in the last cache
    MOST_BYTES = 1 << 26       # for buffers of one thread
    FEW = 16                   # channels of a result for which products of matrices are slow
    TASKS = 4                  # images for threads
    SMALL_WORK = 1 << 19       # multiplications that one thread does
    LARGE_KERNEL = 120000      # elements, whose order costs too much
    LONG = 1024                # elements, of which a sum is worth beginning
    MOST_PAIRS = 4096          # of channels, for sums of that many elements

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
    return 12 + tiles * (0.36 + transforms) < 4 + 0.1 * g.batch * g.positions


cdef bint _direct_pays(const geometry_t *g, direction_t direction, int64_t bytes) noexcept nogil:
    cdef int64_t elements = direct_elements(g, direction == INPUT_GRADIENT)
    cdef int64_t needed = g.size[0] * g.size[1] * g.size[2] if direction == INPUT_GRADIENT else g.positions
    cdef int64_t pairs = g.in_channels * g.out_channels
    # In three dimensions there are so few gaps between lines that they hardly count.
    cdef bint dense = 5 * elements <= 6 * needed or g.kernel[0] > 1
    # Images are its tasks; the columns have more of them.
    cdef bint many = g.batch * g.groups >= TASKS or pairs * g.taps * g.positions * g.batch * g.groups <= SMALL_WORK
    if pairs == 1:
        return True
    if g.taps == 1 or direct_bytes(g, bytes, direction == INPUT_GRADIENT) > NEAR_BYTES:
        return False
    if direction == FORWARD:
        return g.out_channels <= FEW or (many and dense and g.stride[2] < g.kernel[2])
    if direction == INPUT_GRADIENT:
        return (g.out_channels <= FEW // 2 or (g.out_channels <= FEW and g.in_channels >= 4)
                or (many and g.in_channels >= 8 and pairs * g.taps <= LARGE_KERNEL and dense))
    if g.out_channels < FEW or (g.in_channels <= 8 and elements >= LONG // 2):
        return True
    return many and elements >= LONG and pairs <= MOST_PAIRS


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
