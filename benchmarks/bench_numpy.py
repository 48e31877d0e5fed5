"""Overhead of NumPy's functions on tensors of four elements, next to our own functions."""

import numpy as np

from .workloads import library


class NumpyFunctions:
    """Forward, recorded."""

    params = (("cygrad",),)
    param_names = ("library",)

    def setup(self, name):
        lib = library(name)
        self.x = lib.ones(4, requires_grad=True)
        self.namespace = self.x.__array_namespace__()

    def time_method(self, name):
        self.x.sin()

    def time_ufunc(self, name):
        np.sin(self.x)

    def time_function(self, name):
        np.sum(self.x)

    def time_concatenate(self, name):
        np.concatenate([self.x, self.x])

    def time_array_api(self, name):
        self.namespace.sin(self.x)
