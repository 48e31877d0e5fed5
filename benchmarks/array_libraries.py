"""
Adapters of jax, HIPS autograd and torch.func to the interface of the workloads.

These libraries differentiate functions of arrays, not tensors with a graph. So an adapter has ways to differentiate:
`gradient_step`, `descent_step`, `pull_back` and so on.
"""

import os
from types import SimpleNamespace

from .measuring import use_cores

JAX_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def load(name, threads):
    """Return the adapter; NotImplementedError if the library already uses another number of threads."""
    if name == "autograd":
        return Hips(threads)
    if name == "torch.func":
        return TorchFunctional(threads)
    return Jax(threads, compiled=name == "jax.jit")


class Functional:
    """Base of both adapters; `numpy` is the library's version of NumPy."""

    def __init__(self, name, numpy):
        self.__name__ = name
        self.numpy = numpy
        self.nn = SimpleNamespace(functional=self)
        for function in ("tanh", "exp", "log", "sqrt", "square", "sum", "maximum", "stack", "zeros", "ones", "reshape",
                         "roll"):
            setattr(self, function, getattr(numpy, function))

    def from_numpy(self, values):
        return self.numpy.asarray(values)

    def mean(self, x, dim, keepdim):
        return self.numpy.mean(x, axis=dim, keepdims=keepdim)

    def amin(self, x, dim):
        return self.numpy.min(x, axis=dim)

    def chunk(self, x, pieces, dim):
        return self.numpy.split(x, pieces, axis=dim)

    def transpose(self, x, first, second):
        return self.numpy.swapaxes(x, first, second)

    def linear(self, x, weight, bias):
        return x @ weight.T + bias

    def ready(self, results):
        """Wait for asynchronous results."""
        return results

    def compile(self, function):
        """Return the function, compiled if the library can."""
        return function

    def value_and_gradients(self, loss, count):
        """Return a function of `count` parameters that returns the loss and a tuple of gradients."""
        raise NotImplementedError

    def gradient_step(self, loss, parameters):
        """Return a function: forward and backward."""
        both = self.compile(self.value_and_gradients(loss, len(parameters)))
        return lambda: self.ready(both(*parameters))

    def descent_step(self, loss, parameters, rate):
        """Return a function: forward, backward and the updated parameters."""
        both, current = self.value_and_gradients(loss, len(parameters)), list(parameters)

        def update(*old):
            return [p - rate * g for p, g in zip(old, both(*old)[1], strict=True)]
        update = self.compile(update)

        def step():
            current[:] = self.ready(update(*current))
        return step


class Jax(Functional):
    """jax on the CPU, which takes its number of threads from the usable cores at its start."""

    def __init__(self, threads, compiled):
        if threads == 1:
            os.environ["XLA_FLAGS"] = JAX_ONE_THREAD
        use_cores(threads)
        import jax

        if jax.local_device_count("cpu") and len(os.sched_getaffinity(0)) != threads:
            raise NotImplementedError(f"jax: this process cannot have {threads} threads")
        super().__init__("jax", jax.numpy)
        self.jax, self.compiled = jax, compiled
        self.sigmoid, self.relu, self.softmax = jax.nn.sigmoid, jax.nn.relu, jax.nn.softmax

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=False)

    def cross_entropy(self, logits, classes):
        chosen = self.numpy.take_along_axis(self.jax.nn.log_softmax(logits), classes[:, None], 1)
        return -chosen.mean()

    def ready(self, results):
        return self.jax.block_until_ready(results)

    def compile(self, function):
        return self.jax.jit(function) if self.compiled else function

    def value_and_gradients(self, loss, count):
        return self.jax.value_and_grad(loss, tuple(range(count)))

    def pull_back(self, function, leaf):
        """Return a function: backward of a scalar to the leaf."""
        value, back = self.jax.vjp(function, leaf)
        one = self.ready(self.numpy.ones_like(value))
        return lambda: self.ready(back(one))

    def hessian_vector_step(self, loss, parameters, vectors):
        gradient = self.jax.grad(loss, tuple(range(len(parameters))))

        def product(vectors, *parameters):         # arguments, because constants would be folded
            return self.jax.vjp(gradient, *parameters)[1](vectors)
        product = self.compile(product)
        return lambda: self.ready(product(tuple(vectors), *parameters))

    def hessian_step(self, function, x):
        hessian = self.compile(self.jax.hessian(function))
        return lambda: self.ready(hessian(x))


class Hips(Functional):
    """HIPS autograd, which traces NumPy and uses the threads of its BLAS."""

    def __init__(self, threads):
        use_cores(threads)
        import autograd
        import autograd.numpy
        import autograd.scipy.special
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)
        super().__init__("autograd", autograd.numpy)
        self.autograd, self.special = autograd, autograd.scipy.special

    def sigmoid(self, x):
        return 1 / (1 + self.numpy.exp(-x))

    def relu(self, x):
        return self.numpy.maximum(x, 0)

    def softmax(self, x, dim):
        return self.numpy.exp(x - self.special.logsumexp(x, axis=dim, keepdims=True))

    def gelu(self, x):
        return 0.5 * x * (1 + self.special.erf(x * 2 ** -0.5))

    def cross_entropy(self, logits, classes):
        chosen = logits[self.numpy.arange(len(classes)), classes]
        return self.numpy.mean(self.special.logsumexp(logits, axis=1) - chosen)

    def value_and_gradients(self, loss, count):
        return self.autograd.value_and_grad(loss, tuple(range(count)))

    def pull_back(self, function, leaf):
        back, value = self.autograd.make_vjp(function)(leaf)
        one = self.numpy.ones_like(value)
        return lambda: back(one)

    def hessian_vector_step(self, loss, parameters, vectors):
        gradient = self.autograd.grad(lambda all: loss(*all))
        product = self.autograd.make_vjp(gradient)
        return lambda: product(tuple(parameters))[0](tuple(vectors))

    def hessian_step(self, function, x):
        hessian = self.autograd.hessian(function)
        return lambda: hessian(x)


class TorchFunctional(Functional):
    """PyTorch with gradients as functions: forward, gradients and update are one graph of torch.compile."""

    def __init__(self, threads):
        use_cores(threads)
        import torch

        torch.set_num_threads(threads)
        super().__init__("torch.func", torch)
        self.sigmoid, self.relu, self.softmax, self.amin = torch.sigmoid, torch.relu, torch.softmax, torch.amin
        self.gelu, self.cross_entropy = torch.nn.functional.gelu, torch.nn.functional.cross_entropy
        self.linear, self.chunk = torch.nn.functional.linear, torch.chunk

    def from_numpy(self, values):
        return self.numpy.from_numpy(values)

    def compile(self, function):
        return self.numpy.compile(function, fullgraph=True)

    def value_and_gradients(self, loss, count):
        both = self.numpy.func.grad_and_value(loss, tuple(range(count)))
        return lambda *parameters: both(*parameters)[::-1]

    def pull_back(self, function, leaf):
        value, back = self.numpy.func.vjp(function, leaf)
        one = self.numpy.ones_like(value)
        return lambda: back(one)

    def hessian_vector_step(self, loss, parameters, vectors):
        gradient = self.numpy.func.grad(loss, tuple(range(len(parameters))))
        product = self.compile(lambda vectors, *parameters: self.numpy.func.vjp(gradient, *parameters)[1](vectors))
        return lambda: product(tuple(vectors), *parameters)

    def hessian_step(self, function, x):
        hessian = self.compile(self.numpy.func.hessian(function))
        return lambda: hessian(x)
