"""
The one door to threads: helpers, parallel loops, and how many threads there may be.

Knows work as a function and a range, or as tasks that wait for each other. Never knows what the work is, neither arrays
nor nodes. Read ``parallel.pyx`` first: what kernels call; ``workers.pyx`` has the helpers behind it.
"""
