"""Lotka-Volterra equations by the Runge-Kutta method, and the distance to observations; for NumPy."""

import numpy as np


def change(state, parameters):
    prey, predators = state
    birth, eaten, death, growth = parameters
    return np.stack([birth * prey - eaten * prey * predators, -death * predators + growth * prey * predators])


def solve(parameters, state, times):
    states = np.zeros_like(parameters, shape=(len(times), 2))
    states[0] = state
    for i, step in enumerate(np.diff(times)):
        k1 = change(state, parameters)
        k2 = change(state + step / 2 * k1, parameters)
        k3 = change(state + step / 2 * k2, parameters)
        k4 = change(state + step * k3, parameters)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states[i + 1] = state
    return states


def solve_by_euler(parameters, state, times):
    """Each state is read from the array that the next one is written to."""
    states = np.zeros_like(parameters, shape=(len(times), 2))
    states[0] = state
    for i, step in enumerate(np.diff(times)):
        states[i + 1] = states[i] + step * change(states[i], parameters)
    return states


def distance(parameters, observed, times):
    return np.linalg.norm(solve(parameters, observed[0], times) - observed) ** 2


PARAMETERS = np.array([0.8, 0.4, 0.6, 0.2])
TIMES = np.linspace(0.0, 4.0, 17)
