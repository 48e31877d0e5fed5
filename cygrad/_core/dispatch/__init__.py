"""
From a Python call to a recorded operation; Python's operators and indexing; forward mode.

Knows everything above. Read ``dispatch.pyx`` first.
"""
