"""
Threads: workers, parallel loops and the thread limit. All threads of the library start here.

Knows work as a function and a range, or as a task graph. Never knows arrays or nodes. Read ``parallel.pyx`` first.
"""
