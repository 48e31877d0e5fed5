"""PyTorch's and NumPy's streams of random numbers, bit for bit: written into the memory of contiguous ndarrays."""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

cdef extern from "creation/pcg64.h" nogil:
    const int HAS_PCG
    ctypedef struct pcg64_t:
        pass
    void pcg_prepare()
    void pcg_state(const pcg64_t *source, uint64_t *words)
    void pcg_uniform(pcg64_t *source, float *out, int64_t n)
    void pcg_normal(pcg64_t *source, float *out, int64_t n)
    void pcg_permutation(pcg64_t *source, int64_t *out, int64_t n)

cdef extern from "creation/mt19937.h" nogil:
    ctypedef struct mt19937_t:
        pass
    void mt_seed(mt19937_t *mt, uint64_t seed)
    double mt_normal(mt19937_t *mt, double mean, double std)
    void mt_uniform_float(mt19937_t *mt, float *out, int64_t n, float low, float high)
    void mt_uniform_double(mt19937_t *mt, double *out, int64_t n, double low, double high)
    void mt_integers(mt19937_t *mt, int64_t *out, int64_t n, uint64_t range, int64_t base, int wide)
    void mt_permutation(mt19937_t *mt, int64_t *out, int64_t n, int wide)
    void mt_exponential(mt19937_t *mt, double *out, int64_t n, double rate)
    void mt_normal_float(mt19937_t *mt, float *out, int64_t n, float mean, float std)
    void mt_normal_double(mt19937_t *mt, double *out, int64_t n, double mean, double std)

cdef enum:
    FEW = 16                   # from this many normal numbers on, they are drawn in blocks

ctypedef fused real:
    float
    double


cdef class RandomStream:
    """
    A Mersenne Twister that produces the numbers of ``torch.Generator``. The caller ensures that one thread draws at
    a time.

    Parameters
    ----------
    seed : int
        Of 64 bits, of which the lower half matters.
    """
    cdef mt19937_t mt

    def __init__(self, uint64_t seed):
        mt_seed(&self.mt, seed)

    def packed(self):
        """Return the state as bytes."""
        return (<char *>&self.mt)[:sizeof(mt19937_t)]

    def unpack(self, bytes state not None):
        """Restore a state."""
        if len(state) != sizeof(mt19937_t):
            raise ValueError(f"set_state: not a state of this stream (got {len(state)} bytes, expected "
                             f"{sizeof(mt19937_t)}).")
        memcpy(&self.mt, <const char *>state, sizeof(mt19937_t))

    def uniform(self, real[::1] out, double low, double high):
        """Fill with uniform numbers in [low, high)."""
        with nogil:
            if out.shape[0] == 0:
                pass
            elif real is float:
                mt_uniform_float(&self.mt, &out[0], out.shape[0], <float>low, <float>high)
            else:
                mt_uniform_double(&self.mt, &out[0], out.shape[0], low, high)

    def normal(self, real[::1] out, double mean, double std, bint in_blocks):
        """Fill with normal numbers; `in_blocks` if the tensor is contiguous, else one at a time."""
        cdef int64_t i, n = out.shape[0]
        with nogil:
            if n < FEW or not in_blocks:
                for i in range(n):
                    out[i] = <real>mt_normal(&self.mt, mean, std)
            elif real is float:
                mt_normal_float(&self.mt, &out[0], n, <float>mean, <float>std)
            else:
                mt_normal_double(&self.mt, &out[0], n, mean, std)

    def exponential(self, double[::1] out, double rate):
        """Fill with exponential numbers with mean 1 / rate."""
        with nogil:
            if out.shape[0]:
                mt_exponential(&self.mt, &out[0], out.shape[0], rate)

    def integers(self, int64_t[::1] out, low, high, bint wide):
        """Fill with integers in [low, high), of one word each, or of two if `wide`."""
        cdef uint64_t span = (high - low) & 0xffffffffffffffff
        cdef int64_t base = low
        with nogil:
            if out.shape[0]:
                mt_integers(&self.mt, &out[0], out.shape[0], span, base, wide)

    def permutation(self, int64_t[::1] out, bint wide):
        """Fill with a random permutation of the integers below the size of `out`, one word each, or two if `wide`."""
        with nogil:
            if out.shape[0]:
                mt_permutation(&self.mt, &out[0], out.shape[0], wide)


cdef class PCG64Stream:
    """
    The numbers that `numpy.random.Generator` makes from a PCG64, made faster, in the memory of the same bit generator.

    Its owner sees to it that one thread draws at a time. `is_known` tells whether that memory is laid out as expected.
    """
    cdef pcg64_t *source
    cdef object bit_generator
    cdef readonly bint is_known

    def __init__(self, bit_generator):
        cdef uint64_t words[5]
        self.bit_generator = bit_generator
        # The first field of NumPy's `bitgen_t` is the state.
        self.source = (<pcg64_t **>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator"))[0]
        if HAS_PCG:
            pcg_state(self.source, words)
            state = bit_generator.state
            self.is_known = (state["state"]["state"], state["state"]["inc"], state["has_uint32"]) == (
                words[0] | <object>words[1] << 64, words[2] | <object>words[3] << 64, words[4])

    def _fill(self, out, int kind):
        cdef Py_buffer view
        PyObject_GetBuffer(out, &view, PyBUF_WRITABLE)
        with nogil:
            if kind == 0:
                pcg_uniform(self.source, <float *>view.buf, view.len // 4)
            elif kind == 1:
                pcg_normal(self.source, <float *>view.buf, view.len // 4)
            else:
                pcg_permutation(self.source, <int64_t *>view.buf, view.len // 8)
        PyBuffer_Release(&view)

    def random(self, out):
        """Evenly distributed float32 in [0, 1)."""
        self._fill(out, 0)

    def standard_normal(self, out):
        """Normally distributed float32."""
        self._fill(out, 1)

    def permutation(self, out):
        """The integers below the size of `out`, an int64 array of less than 2**32 elements, in random order."""
        self._fill(out, 2)


pcg_prepare()
