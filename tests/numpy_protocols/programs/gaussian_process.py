"""The marginal likelihood of a Gaussian process, and its predictions, written for NumPy."""

import numpy as np


def covariance(parameters, a, b):
    scale, length = np.exp(parameters[0]), np.exp(parameters[1])
    difference = (a[:, np.newaxis] - b[np.newaxis, :]) / length
    return scale * np.exp(-0.5 * difference ** 2)


def log_marginal_likelihood(parameters, x, y):
    matrix = covariance(parameters, x, x) + np.exp(parameters[2]) * np.eye(len(x))
    lower = np.linalg.cholesky(matrix)
    white = np.linalg.solve(lower, y)
    return (-0.5 * np.dot(white, white) - np.sum(np.log(np.diag(lower))) - 0.5 * len(x) * np.log(2 * np.pi))


def predict(parameters, x, y, at):
    matrix = covariance(parameters, x, x) + np.exp(parameters[2]) * np.eye(len(x))
    cross = covariance(parameters, at, x)
    mean = cross @ np.linalg.solve(matrix, y)
    spread = np.diagonal(covariance(parameters, at, at) - cross @ np.linalg.solve(matrix, cross.T))
    return mean, spread


def data():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3, 3, 20))
    return x, np.sin(x) + 0.1 * rng.normal(size=20)
