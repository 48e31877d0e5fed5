"""PyTorch's stream of random numbers on a CPU, bit-identical: written into the memory of one-dimensional ndarrays."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

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
