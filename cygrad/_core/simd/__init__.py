"""
How one text in C becomes code for several instruction sets, of which the machine's best is chosen.

Headers alone. Knows vectors and lanes, never knows arrays. Read ``each_set.h`` first: loops over REAL are compiled for
float32 and float64 and chosen where they are called. What has no type, or needs no vectors of its own, is a function of
``each_cpu.h``, which the loader chooses; templates of C++ ask ``instruction_set.h``.
"""
