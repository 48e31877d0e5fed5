"""Logistic regression by Newton's method or gradient descent, written for NumPy."""

import numpy as np


def probabilities(weights, inputs):
    return 0.5 * (np.tanh(np.matmul(inputs, weights) / 2.0) + 1)


def negative_log_likelihood(weights, inputs, labels):
    logits = np.einsum("ij,j->i", inputs, weights)
    return np.sum(np.logaddexp(0.0, np.where(labels, -logits, logits))) + 0.05 * np.vdot(weights, weights)


def data():
    rng = np.random.default_rng(4)
    inputs = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    labels = inputs @ np.array([0.3, 1.5, -2.0]) + 0.5 * rng.normal(size=60) > 0
    return inputs, labels
