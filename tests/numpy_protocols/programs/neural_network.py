"""A network with one hidden layer, its loss and its accuracy, written for NumPy."""

import numpy as np


def logsumexp(x):
    largest = np.max(x, axis=1, keepdims=True)
    return largest + np.log(np.sum(np.exp(x - largest), axis=1, keepdims=True))


def predict(weights, inputs):
    for w, b in weights[:-1]:
        inputs = np.tanh(np.dot(inputs, w) + b)
    w, b = weights[-1]
    outputs = np.dot(inputs, w) + b
    return outputs - logsumexp(outputs)


def loss(weights, inputs, targets):
    penalty = sum(np.sum(np.square(w)) + np.sum(np.square(b)) for w, b in weights)
    return -np.mean(np.sum(predict(weights, inputs) * targets, axis=1)) + 1e-3 * penalty


def accuracy(weights, inputs, targets):
    return np.mean(np.argmax(predict(weights, inputs), axis=1) == np.argmax(targets, axis=1))


def data():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 90)
    group = np.arange(90) % 3
    inputs = np.stack([np.cos(angle) * (group + 1), np.sin(angle) * (group + 1)], axis=1)
    return inputs, np.eye(3)[group]


def start():
    rng = np.random.default_rng(1)
    return [(rng.normal(size=(2, 16)), np.zeros(16)), (0.3 * rng.normal(size=(16, 3)), np.zeros(3))]
