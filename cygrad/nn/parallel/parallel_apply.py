"""Calls of several modules on threads."""

import threading
from typing import Any

import cygrad
from cygrad._core.dispatch.operator_modes import Again
from cygrad.random.generator import own_generator

__all__ = ["parallel_apply"]


def parallel_apply(modules, inputs, kwargs_tup=None):
    """
    Call each module with its arguments on a separate thread.

    Threads inherit grad mode, inference mode and `autocast`, but no other thread-local settings, such as saved tensor
    hooks. Each thread has a generator, seeded by the default generator.

    Parameters
    ----------
    modules : list of Module
    inputs : list
        Positional arguments of each module: a tuple, or a single argument.
    kwargs_tup : list of dict, optional

    Returns
    -------
    list
        The results of the modules.

    Raises
    ------
    Exception
        The exception of the first module that raised.

    Examples
    --------
    >>> models = [nn.Linear(3, 2), nn.Linear(3, 2)]
    >>> [y.shape for y in nn.parallel.parallel_apply(models, [(cygrad.ones(1, 3),)] * 2)]
    [(1, 2), (1, 2)]
    """
    n = len(modules)
    kwargs_tup = kwargs_tup or [{}] * n
    if len(inputs) != n or len(kwargs_tup) != n:
        raise ValueError(f"parallel_apply: expected arguments for each module (got {len(inputs)} and "
                         f"{len(kwargs_tup)}, expected {n}).")
    if n == 1:
        return [modules[0](*_arguments(inputs[0]), **kwargs_tup[0])]
    recording, inference = cygrad.is_grad_enabled(), cygrad.is_inference_mode_enabled()
    blocks = [Again() for _ in modules]
    seeds = cygrad.empty((n,), dtype=cygrad.int64).random_().tolist()
    limit = max(1, cygrad.get_num_threads() // n)
    results: list[Any] = [None] * n
    errors: list[Any] = [None] * n

    def run(number):
        try:
            generator = cygrad.Generator().manual_seed(seeds[number])
            with (cygrad.inference_mode(inference), cygrad.set_grad_enabled(recording), cygrad.threads(limit),
                  own_generator(generator), blocks[number]):
                results[number] = modules[number](*_arguments(inputs[number]), **kwargs_tup[number])
        except BaseException as error:
            errors[number] = error

    threads = [threading.Thread(target=run, args=(number,), name=f"replica {number}") for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, error in enumerate(errors):
        if error is not None:
            error.add_note(f"Caught in replica {number} of {n}.")
            try:
                raise error
            finally:
                del error, errors
    return results


def _arguments(given):
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)
