"""
Memory: blocks, storages, counted references, and errors that are set without the GIL.

Knows bytes and counts. Never knows dtypes, shapes, Python objects (but for references to be given up later) or threads
other than the one it runs on. Read ``storage.pyx`` first, then ``slabs.pyx`` and ``large_blocks.pyx``.
"""
