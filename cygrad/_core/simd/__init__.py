"""
Compilation of C loops for several SIMD targets, of which the machine's best is chosen.

Headers alone. Knows vectors and lanes, never knows arrays. Read ``simd_targets.h`` first: loops over REAL are compiled
for float32 and float64 and chosen where they are called. Functions without a type parameter, or without fused
multiply-adds, use ``target_clones.h``, which the loader chooses; templates of C++ use ``instruction_set.h``.
"""
