"""
Memory: blocks, refcounted storages, and errors that are set without the GIL.

Knows bytes and counts. Never knows dtypes, shapes, Python objects (except references to drop later) or other threads.
Read ``storage.pyx`` first.
"""
