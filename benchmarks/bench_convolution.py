"""Convolutional networks: LeNet and a residual block, forward and backward, and their layers."""

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


# name: channels of images and results, size of images and kernels, stride, groups; padding keeps sizes with stride 1
LAYERS = {
    "stem": (3, 64, 224, 7, 2, 1), "64 at 56": (64, 64, 56, 3, 1, 1), "256 at 14": (256, 256, 14, 3, 1, 1),
    "512 at 7": (512, 512, 7, 3, 1, 1), "128 at 28, stride 2": (64, 128, 56, 3, 2, 1), "1 x 1": (64, 256, 56, 1, 1, 1),
    "depthwise at 56": (128, 128, 56, 3, 1, 128), "depthwise at 14, stride 2": (512, 512, 14, 3, 2, 512),
    "groups of 4": (128, 128, 28, 3, 1, 32),
}


class Convolution:
    """Layers of residual and mobile networks with 8 images, by all algorithms, and their gradients."""

    params = (LIBRARIES, tuple(LAYERS), THREADS)
    param_names = ("library", "layer", "threads")

    def setup(self, name, layer, threads):
        self.lib = library(name, threads)
        channels, results, size, kernel, stride, groups = LAYERS[layer]
        self.options = {"stride": stride, "padding": kernel // 2, "groups": groups}
        self.x = images(self.lib, 8, channels, size, size)
        self.weight = images(self.lib, results, channels // groups, kernel, kernel, seed=1)
        self.leaves = [self.x.detach().clone().requires_grad_(), self.weight.detach().clone().requires_grad_()]
        self.y = self.lib.nn.functional.conv2d(*self.leaves, **self.options)
        self.grad = images(self.lib, *self.y.shape, seed=2)

    def time_forward(self, name, layer, threads):
        self.lib.nn.functional.conv2d(self.x, self.weight, **self.options)

    def time_input_gradient(self, name, layer, threads):
        self.lib.autograd.grad(self.y, self.leaves[0], self.grad, retain_graph=True)

    def time_weight_gradient(self, name, layer, threads):
        self.lib.autograd.grad(self.y, self.leaves[1], self.grad, retain_graph=True)


class Pooling:
    """Pooling of 8 images of 56 x 56 with 64 channels, and its gradient."""

    params = (LIBRARIES, ("max_pool2d", "avg_pool2d"), ((2, 2, 0), (3, 1, 1)), THREADS)
    param_names = ("library", "function", "window", "threads")

    def setup(self, name, function, window, threads):
        self.lib = library(name, threads)
        self.x = images(self.lib, 8, 64, 56, 56)
        self.pool = getattr(self.lib.nn.functional, function)
        self.leaf = self.x.detach().clone().requires_grad_()
        self.y = self.pool(self.leaf, *window)
        self.grad = images(self.lib, *self.y.shape, seed=2)

    def time_forward(self, name, function, window, threads):
        self.pool(self.x, *window)

    def time_backward(self, name, function, window, threads):
        self.lib.autograd.grad(self.y, self.leaf, self.grad, retain_graph=True)


class Pieces:
    """Normalization and interpolation of 8 images of 56 x 56 with 64 channels."""

    params = (LIBRARIES, THREADS)
    param_names = ("library", "threads")

    def setup(self, name, threads):
        self.lib = library(name, threads)
        self.x = images(self.lib, 8, 64, 56, 56)
        self.functional = self.lib.nn.functional

    def time_batch_norm(self, name, threads):
        self.functional.batch_norm(self.x, None, None, training=True)

    def time_layer_norm(self, name, threads):
        self.functional.layer_norm(self.x, (56, 56))

    def time_interpolate(self, name, threads):
        self.functional.interpolate(self.x, scale_factor=2, mode="bilinear")
