"""
Benchmarks: a suite for asv (``make bench``), and a comparison with PyTorch (``python -m benchmarks.compare``).

Rules of the suite, which are those of NumPy's: data is made in ``setup``; a module imports no library at its top, so
that it loads on every past version; what a version or a machine lacks raises NotImplementedError in ``setup`` and is
skipped; libraries and numbers of threads are parameters.
"""
