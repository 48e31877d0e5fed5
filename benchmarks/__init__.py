"""
Benchmarks: a suite for asv (``make bench``), and comparisons with other libraries (``python -m benchmarks.compare``).

`workloads` and `networks` have what is measured, once for all libraries; `peers` makes libraries of functions alike;
`scenarios` says what is wanted. Of these `compare` makes its table and the suite its parameters.

Rules of the suite, which are those of NumPy's: data is made in ``setup``; a module imports no library at its top, so
that it loads on every past version; what a version or a machine lacks raises NotImplementedError in ``setup`` and is
skipped; libraries and numbers of threads are parameters.
"""
