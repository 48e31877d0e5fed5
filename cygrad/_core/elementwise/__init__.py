"""
Expressions of primitives, evaluated in one pass over operands of any layout.

Knows how operands are broadcast, ordered and split into tiles. Never knows which operator an expression belongs to.
Read ``elementwise.pxd`` first, then ``tiles.pyx``.
"""
