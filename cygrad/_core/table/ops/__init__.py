"""
The rows of the operator table, by family, and next to them the rules of vmap and of per-sample gradients that are more
than a key of a row.

A rule of vmap gets a `func.batching.Call`, a rule of `per_sample` the gradient, what the node has saved, and the
parameter. Knows operators by their names, and the tensors that they take. Never knows how batches or nodes are made.
Read ``products.toml`` and ``products.py`` first.
"""
