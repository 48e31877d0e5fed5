"""
Backward: a plan of all nodes that will run, and what runs it, on one thread or on a team.

Knows nodes and edges, and calls nodes through a function pointer; only node fusion reads formulas. Never knows which
operator a node belongs to. Read ``engine.pyx`` first, then ``plan.pyx``.
"""
