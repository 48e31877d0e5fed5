"""Functions for pools of threads and processes, which import them by name."""

import threadpoolctl

import cygrad


def work(number):
    """Run forward and backward of a large tensor; return a checksum."""
    x = (cygrad.arange(300 * 300, dtype=cygrad.float64).reshape(300, 300) % 7).requires_grad_()
    total = (x @ x).sum() * number + (x * x).sum()
    total.backward()
    return x.grad.sum().item()


def expected_work(number):
    """The same by arithmetic: the derivative of sum(x @ x) is the sums of rows plus those of columns."""
    import numpy as np

    x = np.arange(300 * 300, dtype=float).reshape(300, 300) % 7
    return float(number * 2 * 300 * x.sum() + 2 * x.sum())


def limits_here():
    """Return the number of threads that this thread may use."""
    return cygrad.get_num_threads()


def limits_in_pool(_):
    """The same before, within and after limits of threadpoolctl."""
    found = [cygrad.get_num_threads()]
    for n in (1, 2):
        with threadpoolctl.threadpool_limits(n):
            found.append(cygrad.get_num_threads())
    return (*found, cygrad.get_num_threads())
