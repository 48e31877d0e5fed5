"""
Headers that compile C loops for several SIMD targets and dispatch to the best one at run time.

Knows vectors and lanes, never knows arrays. Read ``targets.h`` first: loops over REAL are compiled for float32 and
float64. Functions without a type parameter or fused multiply-adds use ``target_clones.h``, where the loader dispatches;
C++ templates use ``instruction_set.h``.
"""
