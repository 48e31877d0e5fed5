/* The header LOOPS for float and double: REAL and NAME say which. */
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
