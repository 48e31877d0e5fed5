"""
What only tests and benchmarks call. Built in the source tree, never installed.

Read ``probes.pyx`` first.
"""
