/* The header LOOPS for float and double: REAL, INTEGER (of the same size) and NAME say which. */
#define REAL float
#define INTEGER int32_t
#define NAME(function) function##_float
#include LOOPS
#undef REAL
#undef INTEGER
#undef NAME
#define REAL double
#define INTEGER int64_t
#define NAME(function) function##_double
#include LOOPS
#undef REAL
#undef INTEGER
#undef NAME
#undef LOOPS
