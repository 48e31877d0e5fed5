"""
Backward: a plan of all nodes to run, and its execution on one thread or a team.

Knows nodes and edges, and calls nodes through a function pointer; only node fusion reads formulas. Never knows which
operator a node belongs to. Read ``engine.pyx`` first, then ``plan.pyx``.
"""
