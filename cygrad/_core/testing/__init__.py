"""
What only tests and benchmarks call. Built in the source tree, never installed.

Knows everything; nothing knows it. Read ``probes.pyx`` first.
"""
