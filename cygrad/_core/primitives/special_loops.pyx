"""
Primitives for special functions: gamma, error and Bessel functions and their relatives.

The functions themselves are in C headers and of doubles; float32 is computed in double and rounded, functions of one
argument by tables (float_tables.h). Those of doubles which are interpolated come in blocks (piecewise.h), the others
one by one; the function is the `data` of the loop. Importing this module enters them in the table of `loops`.
"""

cimport numpy as np
import numpy
from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64, INT64, UINT8, code_of_typenum
from cygrad._core.primitives.primitive_table cimport FLOAT, SAME, define, loop_t, type_rule_t, set_entry

ctypedef double (*function_t)(double) noexcept nogil
ctypedef double (*function_of_two_t)(double, double) noexcept nogil

cdef extern from "primitives/ufunc_types.h":
    const char *ufunc_types(void *)

cdef extern from "primitives/piecewise.h" nogil:
    ctypedef struct piecewise_t:
        pass
    void piecewise_block(const piecewise_t *f, const double *x, double *out, int count)

cdef extern from "primitives/bessel_functions.h" nogil:
    const piecewise_t bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e
    double bessel_j0(double)
    double bessel_j1(double)
    double bessel_y0(double)
    double bessel_y1(double)
    double spherical_j0(double)

cdef extern from "primitives/airy_function.h" nogil:
    double airy_ai(double)
    double airy_ai_slope(double)

cdef extern from "primitives/error_functions.h" nogil:
    const piecewise_t scaled_erfc, inverse_normal

cdef extern from "primitives/gamma_functions.h" nogil:
    const piecewise_t digamma_function
    double log_gamma(double)
    double polygamma_1(double)
    double polygamma_2(double)
    double polygamma_3(double)
    double polygamma_4(double)
    double zeta_function(double, double)
    double polygamma_function(double, double)
    double gamma_lower(double, double)
    double gamma_upper(double, double)
    double gamma_lower_single(double, double)
    double gamma_upper_single(double, double)

cdef extern from "primitives/float_tables.h" nogil:
    ctypedef struct float_table_t:
        function_t function
        const piecewise_t *piecewise
        int bits
    void (*table_loop)(float_table_t *table, const char *x, int64_t x_step, char *out, int64_t out_step, int64_t n)

cdef extern from "primitives/polynomial_functions.h" nogil:
    ctypedef struct polynomial_t:
        pass
    const polynomial_t chebyshev_polynomials[2][4]
    const polynomial_t other_polynomials[4]
    loop_t polynomial_loop[2]

cdef enum:
    BLOCK = 64             # as PIECEWISE_BLOCK
    MAX_TABLES = 24


cdef void piecewise_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef double[BLOCK] values
    cdef int64_t done = 0
    cdef int count, k
    cdef char *x
    cdef char *out
    while done < n[0]:
        count = <int>min(n[0] - done, <int64_t>BLOCK)
        x, out = arguments[0] + done * steps[0], arguments[1] + done * steps[1]
        for k in range(count):
            values[k] = (<double *>(x + k * steps[0]))[0]
        piecewise_block(<const piecewise_t *>data, values, values, count)
        for k in range(count):
            (<double *>(out + k * steps[1]))[0] = values[k]
        done += count


cdef void unary_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef int64_t i
    cdef function_t function = <function_t>data
    for i in range(n[0]):
        (<double *>(arguments[1] + i * steps[1]))[0] = function((<double *>(arguments[0] + i * steps[0]))[0])


cdef void unary_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    table_loop(<float_table_t *>data, arguments[0], steps[0], arguments[1], steps[1], n[0])


cdef void binary_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """For doubles."""
    cdef int64_t i
    cdef function_of_two_t function = <function_of_two_t>data
    for i in range(n[0]):
        (<double *>(arguments[2] + i * steps[2]))[0] = function(
            (<double *>(arguments[0] + i * steps[0]))[0], (<double *>(arguments[1] + i * steps[1]))[0])


cdef void binary_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    cdef int64_t i
    cdef function_of_two_t function = <function_of_two_t>data
    for i in range(n[0]):
        (<float *>(arguments[2] + i * steps[2]))[0] = <float>function(
            (<float *>(arguments[0] + i * steps[0]))[0], (<float *>(arguments[1] + i * steps[1]))[0])


cdef void polygamma_float_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """Run elements of one order together, for orders with tables."""
    cdef int64_t start = 0, stop
    cdef float order
    cdef char *rest[3]
    while start < n[0]:
        order = (<float *>(arguments[0] + start * steps[0]))[0]
        stop = n[0] if steps[0] == 0 else start + 1
        while stop < n[0] and (<float *>(arguments[0] + stop * steps[0]))[0] == order:
            stop += 1
        rest = [arguments[0] + start * steps[0], arguments[1] + start * steps[1], arguments[2] + start * steps[2]]
        stop -= start
        if 1 <= order <= 4 and order == <int>order:
            table_loop(&polygamma_tables[<int>order - 1], rest[1], steps[1], rest[2], steps[2], stop)
        else:
            binary_float_loop(rest, &stop, steps, <void *>polygamma_function)
        start += stop


cdef float_table_t[MAX_TABLES] _tables
cdef float_table_t[4] polygamma_tables
cdef int _n_tables = 0


cdef int _enter_one(str name, loop_t loop, function_t function, const piecewise_t *piecewise, int cost,
                    int bits) except -1:
    """Enter a function of one argument, or an interpolated one where `function` is NULL."""
    global _n_tables
    cdef int index = define(name, 1, FLOAT, cost, True, -1)
    if _n_tables == MAX_TABLES:
        raise RuntimeError(f"define: too many tables for {name!r}. Increase MAX_TABLES")
    _tables[_n_tables].function, _tables[_n_tables].piecewise, _tables[_n_tables].bits = function, piecewise, bits
    set_entry(index, FLOAT32, unary_float_loop, &_tables[_n_tables], FLOAT32)
    set_entry(index, FLOAT64, loop, <void *>function if piecewise == NULL else <void *>piecewise, FLOAT64)
    _n_tables += 1
    return 0


cdef int _enter(str name, function_t function, int cost, int bits=4) except -1:
    return _enter_one(name, unary_loop, function, NULL, cost, bits)


cdef int _enter_piecewise(str name, const piecewise_t *function, int cost, int bits=4) except -1:
    return _enter_one(name, piecewise_loop, NULL, function, cost, bits)


cdef int _enter_binary(str name, function_of_two_t single, function_of_two_t function, int cost) except -1:
    cdef int index = define(name, 2, FLOAT, cost, True, -1)
    set_entry(index, FLOAT32, binary_float_loop, <void *>single, FLOAT32)
    set_entry(index, FLOAT64, binary_loop, <void *>function, FLOAT64)
    return 0


cdef int _enter_polynomial(str name, const polynomial_t *polynomial) except -1:
    cdef int index = define(name, 2, FLOAT, 60, True, -1)
    set_entry(index, FLOAT32, <loop_t>polynomial_loop[0], <void *>polynomial, FLOAT32)
    set_entry(index, FLOAT64, <loop_t>polynomial_loop[1], <void *>polynomial, FLOAT64)
    return 0


cdef int _enter_from_numpy(str name, np.ufunc ufunc, type_rule_t rule, int lowest, int highest) except -1:
    """Enter the loops of a ufunc whose inputs have one dtype between two bounds."""
    cdef int i, k, code, index = define(name, ufunc.nin, rule, 20, True, -1)
    cdef bint uniform
    cdef const char *types
    for i in range(ufunc.ntypes):
        types = ufunc_types(<void *>ufunc) + i * ufunc.nargs
        code = code_of_typenum(types[0])
        uniform = lowest <= code <= highest
        for k in range(1, ufunc.nargs):
            uniform = uniform and types[k] == types[0]
        if uniform:
            set_entry(index, code, <loop_t><void *>ufunc.functions[i], ufunc.data[i], code)
    return 0


def _initialize():
    cdef int index, kind
    _enter_piecewise("i0", &bessel_i0, 20)
    _enter_piecewise("i0e", &bessel_i0e, 10)
    _enter_piecewise("i1", &bessel_i1, 20)
    _enter_piecewise("i1e", &bessel_i1e, 10)
    _enter_piecewise("modified_bessel_k0", &bessel_k0, 60)
    _enter_piecewise("modified_bessel_k1", &bessel_k1, 60)
    _enter_piecewise("scaled_modified_bessel_k0", &bessel_k0e, 60)
    _enter_piecewise("scaled_modified_bessel_k1", &bessel_k1e, 60)
    _enter("bessel_j0", bessel_j0, 60)
    _enter("bessel_j1", bessel_j1, 60)
    _enter("bessel_y0", bessel_y0, 80)
    _enter("bessel_y1", bessel_y1, 80)
    _enter("spherical_bessel_j0", spherical_j0, 20)
    _enter("airy_ai", airy_ai, 100)
    _enter("airy_ai_slope", airy_ai_slope, 100)
    _enter_piecewise("erfcx", &scaled_erfc, 15)
    _enter_piecewise("ndtri", &inverse_normal, 30, 6)
    _enter_piecewise("digamma", &digamma_function, 30, 6)
    _enter("lgamma", log_gamma, 60, 6)
    _enter_binary("zeta", zeta_function, zeta_function, 300)
    _enter_binary("polygamma", polygamma_function, polygamma_function, 300)
    set_entry(define("polygamma", 2, FLOAT, 300, True, -1), FLOAT32, polygamma_float_loop, NULL, FLOAT32)
    polygamma_tables[0].function, polygamma_tables[1].function = polygamma_1, polygamma_2
    polygamma_tables[2].function, polygamma_tables[3].function = polygamma_3, polygamma_4
    for index in range(4):
        polygamma_tables[index].bits = 6
    _enter_binary("igamma", gamma_lower_single, gamma_lower, 400)
    _enter_binary("igammac", gamma_upper_single, gamma_upper, 400)
    for kind in range(4):
        _enter_polynomial("chebyshev_polynomial_" + "tuvw"[kind], &chebyshev_polynomials[0][kind])
        _enter_polynomial("shifted_chebyshev_polynomial_" + "tuvw"[kind], &chebyshev_polynomials[1][kind])
        _enter_polynomial(("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
                           "legendre_polynomial_p")[kind], &other_polynomials[kind])
    _enter_from_numpy("gcd", numpy.gcd, SAME, UINT8, INT64)
    _enter_from_numpy("lcm", numpy.lcm, SAME, UINT8, INT64)


_initialize()
