"""
From a Python call to a recorded operation; Python's operators and indexing; forward mode.

Knows operators, graph and engine. Never knows kernels but by the operators that call them. Read ``dispatch.pyx`` first.
"""
