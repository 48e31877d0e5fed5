/* getrf and getrs for `count` real matrices of at most SMALL rows and columns, for float32 and float64. */
#pragma once

#include "simd/exported.h"

enum { SMALL = 8, SMALL_WIDTH = 16 };   /* rows and columns up to which LAPACK is not called; matrices of one call */

EXPORTED void (*const small_getrf[2])(int count, int m, int n, void *a, int *pivots, int *info);
EXPORTED void (*const small_getrs[2])(int count, int transposed, int n, int k, const void *a, const int *pivots,
                                      void *b);
