"""
Complex numbers with infinite parts or signed zeros: cimport this in modules that cast complex numbers.

Cython makes a complex number of its parts x and y by the expression x + y * I. C multiplies y with both parts of I: an
infinite y makes x nan, and a real part of -0.0 becomes 0.0. This redefines I so that the value of the expression has
exactly these parts.
"""

cdef extern from *:
    """
    #include <complex.h>
    #pragma GCC diagnostic ignored "-Wunused-value"
    #undef _Complex_I
    #define _Complex_I 0, __builtin_complex(x, y)
    """
