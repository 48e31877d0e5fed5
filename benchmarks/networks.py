"""Networks, their first and second derivatives, and optimizers, for any library with the common interface."""

from itertools import pairwise

import numpy as np

from .workloads import gradient_step, is_functional, needs, random_tensor

MLP_SIZES = (784, 256, 128, 10)
HEAD = 32                              # features of one head of attention


def weights(lib, *shapes, scale):
    """Return leaves that require grad, with different numbers."""
    return [random_tensor(lib, *shape, seed=seed, scale=scale, requires_grad=True) for seed, shape in enumerate(shapes)]


# ---- recurrent

def tanh_network(lib, steps=100, size=64, batch=16):
    """Return a function: forward and backward of a tanh RNN, step by step."""
    inputs, start = random_tensor(lib, steps, batch, size), lib.zeros((batch, size))

    def loss(of_input, of_state, bias):
        hidden = start
        for number in range(steps):
            hidden = lib.tanh(inputs[number] @ of_input + hidden @ of_state + bias)
        return lib.sum(hidden)
    return gradient_step(lib, loss, weights(lib, (size, size), (size, size), (size,), scale=0.1))


def lstm(lib, steps=50, size=64, batch=16):
    """Return a function: forward and backward of an LSTM of elementary operations, step by step."""
    inputs, start = random_tensor(lib, steps, batch, size), lib.zeros((batch, size))

    def loss(of_input, of_state, bias):
        hidden = cell = start
        for number in range(steps):
            gates = inputs[number] @ of_input + hidden @ of_state + bias
            enter, forget, candidate, leave = lib.chunk(gates, 4, 1)
            cell = lib.sigmoid(forget) * cell + lib.sigmoid(enter) * lib.tanh(candidate)
            hidden = lib.sigmoid(leave) * lib.tanh(cell)
        return lib.sum(hidden)
    return gradient_step(lib, loss, weights(lib, (size, 4 * size), (size, 4 * size), (4 * size,), scale=0.1))


# ---- perceptrons

def perceptron(lib, sizes=MLP_SIZES):
    """A multi-layer perceptron with ReLU, as a module."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [lib.nn.Linear(inputs, outputs), lib.nn.ReLU()]
    return lib.nn.Sequential(*layers[:-1])


def perceptron_weights(lib, sizes):
    """Return alternating weights and biases, for a functional perceptron."""
    shapes = [shape for inputs, outputs in pairwise(sizes) for shape in ((outputs, inputs), (outputs,))]
    return weights(lib, *shapes, scale=0.05)


def perceptron_loss(lib, sizes, batch):
    """Return a function of the parameters: the loss on one batch."""
    images, classes = random_tensor(lib, batch, sizes[0]), class_numbers(lib, sizes, batch)

    def loss(*parameters):
        result = images
        for number in range(0, len(parameters), 2):
            result = lib.nn.functional.linear(lib.relu(result) if number else result, *parameters[number:number + 2])
        return lib.nn.functional.cross_entropy(result, classes)
    return loss


def class_numbers(lib, sizes, batch):
    """Return the classes of a batch."""
    return lib.from_numpy(np.arange(batch) % sizes[-1])


def training_step(lib, batch=64, optimizer="SGD", sizes=MLP_SIZES, **options):
    """Return a function: one training step on one batch, with its own model, data and optimizer."""
    if is_functional(lib):
        return lib.descent_step(perceptron_loss(lib, sizes, batch), perceptron_weights(lib, sizes), 0.01)
    needs(lib, "nn.Sequential", f"optim.{optimizer}", "nn.functional.cross_entropy")
    model = perceptron(lib, sizes)
    images, classes = random_tensor(lib, batch, sizes[0]), class_numbers(lib, sizes, batch)
    optimizer = getattr(lib.optim, optimizer)(model.parameters(), **{"lr": 0.01, **options})

    def step():
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(images), classes).backward()
        optimizer.step()
    return step


def deep_training_step(lib):
    """Return a function: one step of 50 layers of 1,024 on a batch of 512, for its memory."""
    return training_step(lib, 512, sizes=(1024,) * 51)


# ---- transformers

def normalized(lib, x):
    """Normalize to mean 0 and variance 1, along the last dimension."""
    centered = x - lib.mean(x, -1, keepdim=True)
    return centered / lib.sqrt(lib.mean(lib.square(centered), -1, keepdim=True) + 1e-5)


def transformer_block(lib, size, steps, batch=4):
    """Return a function: forward and backward of a pre-norm block of elementary operators."""
    x, heads = random_tensor(lib, batch, steps, size), size // HEAD

    def loss(to_heads, from_heads, wide, narrow):
        parts = lib.chunk(normalized(lib, x) @ to_heads, 3, -1)
        query, key, value = (lib.transpose(lib.reshape(part, (batch, steps, heads, HEAD)), 1, 2) for part in parts)
        attention = lib.softmax(query @ lib.transpose(key, -1, -2) * HEAD ** -0.5, -1) @ value
        y = x + lib.reshape(lib.transpose(attention, 1, 2), (batch, steps, size)) @ from_heads
        return lib.sum(y + lib.nn.functional.gelu(normalized(lib, y) @ wide) @ narrow)
    return gradient_step(lib, loss, weights(lib, (size, 3 * size), (size, size), (size, 4 * size), (4 * size, size),
                                            scale=0.02))


def encoder_layer(lib, size, steps, batch=4):
    """Return a function: forward and backward of the layer of `nn`."""
    needs(lib, "nn.TransformerEncoderLayer")
    module = lib.nn.TransformerEncoderLayer(size, size // HEAD, 4 * size, dropout=0.0, batch_first=True)
    x = random_tensor(lib, batch, steps, size)

    def step():
        module.zero_grad()
        module(x).sum().backward()
    return step


# ---- second order

def hessian_times_vector(lib, sizes=MLP_SIZES, batch=64):
    """Return a function: Hessian-vector product of a perceptron's loss, by double backward."""
    loss, parameters = perceptron_loss(lib, sizes, batch), perceptron_weights(lib, sizes)
    vectors = [random_tensor(lib, *parameter.shape, seed=7) for parameter in parameters]
    if is_functional(lib):
        return lib.hessian_vector_step(loss, parameters, vectors)

    def step():
        gradients = lib.autograd.grad(loss(*parameters), parameters, create_graph=True)
        return lib.autograd.grad(gradients, parameters, vectors)
    return step


def full_hessian(lib, size=50):
    """Return a function: the Hessian of a function of a vector."""
    x, matrix = random_tensor(lib, size), random_tensor(lib, size, size, seed=1)

    def function(x):
        return lib.sum(lib.tanh(matrix @ x) * x) + lib.sum(x ** 3)
    if is_functional(lib):
        return lib.hessian_step(function, x)
    needs(lib, "autograd.functional.hessian")
    return lambda: lib.autograd.functional.hessian(function, x)


# ---- statistics

def mixture_gradient(lib, components=25, size=32, points=1000):
    """Return a function: the gradient of the log-likelihood of a Gaussian mixture."""
    x = random_tensor(lib, points, 1, size, seed=9)

    def loss(means, logs, scores):
        distances = lib.sum(lib.square((x - means) * lib.exp(-logs)), -1)
        exponents = scores - lib.sum(logs, -1) - 0.5 * distances
        top = lib.maximum(exponents[:, 0], exponents[:, 1])
        return lib.sum(top + lib.log(lib.sum(lib.exp(exponents - lib.reshape(top, (points, 1))), -1)))
    return gradient_step(lib, loss, weights(lib, (components, size), (components, size), (components,), scale=0.1))


def clustering_gradient(lib, clusters=10, size=8, points=1000):
    """Return a function: the gradient of the cost of k-means."""
    x = random_tensor(lib, points, 1, size, seed=9)
    return gradient_step(lib, lambda centers: lib.sum(lib.amin(lib.sum(lib.square(x - centers), -1), 1)),
                         weights(lib, (clusters, size), scale=1))


def least_squares_gradient(lib, rows=1000, columns=64):
    """Return a function: the gradient of the squared residual of a linear system."""
    matrix, wanted = random_tensor(lib, rows, columns, seed=9), random_tensor(lib, rows, seed=10)
    return gradient_step(lib, lambda x: lib.sum(lib.square(matrix @ x - wanted)), weights(lib, (columns,), scale=1))


def heat_gradient(lib, size, steps=20):
    """Return a function: the gradient of a heat equation on a ring by its initial values."""
    def loss(heat):
        for _ in range(steps):
            heat = heat + 0.1 * (lib.roll(heat, 1) - 2 * heat + lib.roll(heat, -1))
        return lib.sum(lib.square(heat))
    return gradient_step(lib, loss, weights(lib, (size,), scale=1))


# ---- optimizers alone

def optimizer_step(lib, parameters, kind, **options):
    """Return a function: an optimizer step on given gradients."""
    needs(lib, f"optim.{kind}")
    for parameter in parameters:
        parameter.grad = lib.ones_like(parameter) * 1e-3
    return getattr(lib.optim, kind)(parameters, lr=0.001, **options).step


def small_parameters(lib, count=100, size=1000):
    """Many small parameters."""
    return [lib.nn.Parameter(random_tensor(lib, size, seed=seed)) for seed in range(count)]
