"""
How one text in C becomes code for several instruction sets, of which the machine's best is chosen.

Headers alone. Knows vectors and lanes; never arrays. Read ``each_set.h`` first.
"""
