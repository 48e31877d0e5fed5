/* Include LOOPS for float and double, with REAL and NAME defined. */
#define REAL float
#define NAME(function) function##_float
#include LOOPS
#undef REAL
#undef NAME
#define REAL double
#define NAME(function) function##_double
#include LOOPS
#undef REAL
#undef NAME
#undef LOOPS
