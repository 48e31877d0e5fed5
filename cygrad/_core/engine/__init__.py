"""
Backward: planning of the nodes to run, and execution on one or several threads.

Knows nodes and edges, and calls nodes through a function pointer; only node fusion reads formulas. Never knows which
operator a node belongs to. Read ``engine.pyx`` first, then ``plan.pyx``.
"""
