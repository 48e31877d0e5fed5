/* Loops over the functions of vector_functions.h and vector_error.h; see vector_math.h. */
#include "vector_functions.h"
#include "vector_error.h"

/* `out` may be `x`, but overlap it no otherwise. */
#define EACH(name, value) \
    static void NAME(name)(const REAL *x, REAL *out, int64_t n) { \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) \
            out[i] = value; \
    }

EACH(rectifications, x[i] <= 0 ? 0 : x[i])           /* nan stays, -0 becomes 0 */
EACH(exponentials, NAME(exponential)(x[i]))
EACH(sigmoids, NAME(sigmoid)(x[i]))
EACH(softpluses, NAME(softplus)(x[i]))
EACH(logarithms_of_sums, NAME(logarithm_of_sum)(x[i]))
EACH(normal_distributions, NAME(normal_distribution)(x[i]))
EACH(gelus, x[i] * NAME(normal_distribution)(x[i]))
EACH(gelu_slopes, NAME(gelu_slope)(x[i]))
EACH(error_functions, NAME(error_function)(x[i]))
EACH(complementary_error_functions, NAME(complementary_error_function)(x[i]))
#if !DOUBLE
EACH(inverse_error_functions, NAME(inverse_error_function)(x[i]))
#endif
#undef EACH
