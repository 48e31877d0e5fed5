"""
Memory: blocks, storages, counted references, and errors that are noted without the interpreter's lock.

Knows bytes and counts. Never knows dtypes, shapes, Python objects (but for references to be given up later) or threads
other than the one it runs on. Read ``storage.pyx`` first, then ``slabs.pyx`` and ``large_blocks.pyx``.
"""
