"""
Complex numbers whose parts are infinite, or zeros with a sign: for modules that cast complex numbers, by cimport.

Cython makes a complex number of its parts x and y by the expression x + y * I. C multiplies y with both parts of I: an
infinite y makes x nan, and a real part of -0.0 becomes 0.0. With this the expression still begins so, but its value is
the number that has these parts.
"""

cdef extern from *:
    """
    #include <complex.h>
    #pragma GCC diagnostic ignored "-Wunused-value"
    #undef _Complex_I
    #define _Complex_I 0, __builtin_complex(x, y)
    """
