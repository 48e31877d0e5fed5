"""
Array kernels: boxed arrays in, boxed arrays out, one package for each subject.

Know arrays, threads and BLAS. Never know nodes, tensors or derivatives. Read ``arguments.pyx`` first, then any kernel;
``register_kernel`` gives one the name by which a row of the operator table calls it.
"""
