"""Python functions that do not bind in the body of a class."""

import copy
import inspect
import pickle

import pytest

import cygrad
from cygrad.nn import functional as F

HELD = [F.conv1d, F.conv2d, F.conv3d, F.conv_transpose2d, F.max_pool2d, F.avg_pool2d]


@pytest.mark.parametrize("function", HELD, ids=lambda function: function.__name__)
def test_convolutions_and_pools_do_not_bind_to_objects(function):
    class Holder:
        held = function

    assert Holder().held is function and Holder.held is function
    for twin in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert twin is function
    assert next(iter(inspect.signature(function).parameters)) == "input" and function.__doc__


def test_a_held_function_computes_with_keywords():
    class Loss:
        conv, pool = cygrad.conv2d, cygrad.max_pool2d

        def __call__(self, x):
            return self.pool(self.conv(x, weight=cygrad.ones(1, 1, 3, 3), padding=1), 2)

    assert Loss()(cygrad.ones(1, 1, 4, 4)).tolist() == [[[[9.0, 9.0], [9.0, 9.0]]]]
