"""Errors about wrong arguments begin with the operation that the user called."""

import builtins
import contextlib
import inspect
import io
import re
import warnings

import pytest

import cygrad as t
from cygrad import nn
from cygrad._core.table.operator import operators
from cygrad.optim import lr_scheduler

NAMESPACES = {
    "cygrad": t, "Tensor": t.Tensor, "nn.functional": nn.functional, "nn": nn, "nn.init": nn.init,
    "nn.utils": nn.utils, "nn.utils.rnn": nn.utils.rnn, "nn.utils.prune": nn.utils.prune,
    "nn.utils.parametrizations": nn.utils.parametrizations, "nn.utils.parametrize": nn.utils.parametrize,
    "linalg": t.linalg, "fft": t.fft, "special": t.special,
    "func": t.func, "autograd": t.autograd, "sparse": t.sparse, "signal.windows": t.signal.windows, "optim": t.optim,
    "optim.lr_scheduler": lr_scheduler, "distributions": t.distributions, "utils.data": t.utils.data,
}
# They change the process, write files, ask for input, or are types with the constructors of str and tuple.
LEFT_OUT = re.compile("set_.*|save|load|compile|stand_in|show_.*|manual_seed|seed|use_.*|from_file|memory_format|Size|"
                      "share_memory_|module_load")
# Python itself names the function if the number or the names of arguments are wrong.
BY_PYTHON = re.compile(r"[\w.<>]+\(\) (missing|takes|got)|[\w.]+ expected (at|exactly)")
NAMED = re.compile(r"([\w.]+)(\(\))?: ")
# Besides the names of functions: a constructor may fail in a public method, and an operator names its row of the table.
PUBLIC = {name for home in (*NAMESPACES.values(), nn.Module, nn.ModuleList, nn.parallel, operators)
          for name in dir(home)}


def wrong_values():
    return ["abc", None, [1, "a"], object(), 99, -99, float("nan"), 2.5, 1j, t.ones(2, 3), t.ones(5, 7),
            t.ones(2, dtype=t.int64), t.ones(2, dtype=t.bool), t.ones(2, 3, dtype=t.complex64), t.ones(1, 2, 1, 2, 1)]


def contexts(namespace):
    """Return the positional arguments before the wrong value."""
    x = t.ones(2, 3)
    layer, weights = nn.Linear(2, 2), [t.ones(2, requires_grad=True)]
    ours = {
        "Tensor": [(x,), (x, x), (x, 1)], "nn": [(), (3,), (3, 3), (3, 3, 3)], "optim": [(), (weights,)],
        "optim.lr_scheduler": [(), (t.optim.SGD(weights, 0.1),), (t.optim.SGD(weights, 0.1), 3)],
        "func": [(), (abs,), (layer,)], "autograd": [(), (x,), (abs,)], "utils.data": [(), ([1, 2],), ([1, 2], 1)],
    }
    if namespace.startswith("nn.utils"):
        return [(), (layer,), (x,), (layer, "weight"), (x, x)]
    return ours.get(namespace, [(), (x,), (x, x), (3,)])


def public_functions(namespace):
    home = NAMESPACES[namespace]
    for name in sorted(getattr(home, "__all__", None) or dir(home)):
        function = getattr(home, name, None)
        if not (name.startswith("_") or LEFT_OUT.fullmatch(name) or inspect.ismodule(function)) and callable(function):
            yield name, function


def error_of(function, arguments):
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
        try:
            made = function(*arguments)
            if isinstance(made, nn.Module):
                made(arguments[-1])
        except Exception as error:
            return error
    return None


def is_named(name, error):
    """Return whether the text begins with the public name of an operation."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if text.startswith(name) or BY_PYTHON.match(text):
        return True
    found = NAMED.match(text)
    return found is not None and (found[1] in name or not PUBLIC.isdisjoint(found[1].split(".")))


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_function_names_itself_in_errors_about_wrong_arguments(namespace):
    values = wrong_values() + [1 << 70] * (not namespace.startswith(("nn.utils", "optim", "utils")))
    unnamed = {}
    called = 0
    for name, function in public_functions(namespace):
        for before in contexts(namespace):
            for value in values:
                error = error_of(function, (*before, value))
                called += error is not None
                if error is not None and not is_named(name, error):
                    unnamed.setdefault(f"{name}: {type(error).__name__}: {str(error)[:120]}", (*before, value))
    assert called > 20
    assert not unnamed, "\n".join(f"{key}   {builtins.str(given)[:100]}" for key, given in unnamed.items())
