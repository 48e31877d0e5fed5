"""
Benchmarks: a suite for asv (``make bench``), and comparisons with other libraries (``python -m benchmarks.compare``).

`workloads` and `networks` have the programs, once for all libraries; `array_libraries` adapts jax and HIPS autograd;
`scenarios` lists programs and targets, for the table of `compare` and the parameters of the suite.

Rules of the suite, as for NumPy's: create data in ``setup``; import no library at the top, so that a module loads on
every past version; raise NotImplementedError in ``setup`` to skip; libraries and numbers of threads are parameters.
"""
