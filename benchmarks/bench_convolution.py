"""Nets of convolutions: LeNet and a residual block, forward and backward, and their parts by themselves."""

import numpy as np

from .workloads import LIBRARIES, library

THREADS = (1, 2)


def images(lib, *shape, seed=0):
    """Random images, float32."""
    return lib.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def lenet(nn):
    """For images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def block(nn):
    """The layers of a residual block of 64 channels."""
    return nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64))


class Networks:
    """One forward and backward."""

    params = (LIBRARIES, THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.lib = library(name, threads)
        self.lenet, self.block = lenet(self.lib.nn), block(self.lib.nn)
        self.small, self.large = images(self.lib, 32, 1, 28, 28), images(self.lib, 8, 64, 32, 32)
        self.classes = self.lib.from_numpy(np.arange(32) % 10)

    def time_lenet(self, name, threads):
        """A batch of 32 images."""
        self.lib.nn.functional.cross_entropy(self.lenet(self.small), self.classes).backward()

    def time_block(self, name, threads):
        """A batch of 8 images of 32 x 32 with 64 channels."""
        self.lib.relu(self.block(self.large) + self.large).sum().backward()


class Convolution:
    """One convolution of 64 channels, kernel of 3 x 3, and what goes back through it."""

    params = (LIBRARIES, (14, 56), THREADS)
    param_names = ("library", "size", "threads")

    def setup(self, name, size, threads):
        self.lib = library(name, threads)
        self.x, self.weight = images(self.lib, 8, 64, size, size), images(self.lib, 64, 64, 3, 3, seed=1)
        self.leaves = [self.x.detach().clone().requires_grad_(), self.weight.detach().clone().requires_grad_()]
        self.y = self.lib.nn.functional.conv2d(*self.leaves, padding=1)
        self.grad = images(self.lib, *self.y.shape, seed=2)

    def time_forward(self, name, size, threads):
        self.lib.nn.functional.conv2d(self.x, self.weight, padding=1)

    def time_backward(self, name, size, threads):
        self.lib.autograd.grad(self.y, self.leaves, self.grad, retain_graph=True)


class Pieces:
    """Pooling, normalisation and resampling of 8 images of 56 x 56 with 64 channels."""

    params = (LIBRARIES, THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.lib = library(name, threads)
        self.x = images(self.lib, 8, 64, 56, 56)
        self.functional = self.lib.nn.functional

    def time_max_pool(self, name, threads):
        self.functional.max_pool2d(self.x, 2)

    def time_avg_pool(self, name, threads):
        self.functional.avg_pool2d(self.x, 2)

    def time_batch_norm(self, name, threads):
        self.functional.batch_norm(self.x, None, None, training=True)

    def time_layer_norm(self, name, threads):
        self.functional.layer_norm(self.x, (56, 56))

    def time_interpolate(self, name, threads):
        self.functional.interpolate(self.x, scale_factor=2, mode="bilinear")
