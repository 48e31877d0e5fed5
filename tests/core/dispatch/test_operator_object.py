"""Operators as objects: introspection, calls, errors."""

import copy
import functools
import inspect
import pickle
import typing

import pytest

import cygrad
from cygrad import Tensor
from cygrad._core.table.operator import operators
from cygrad.operators import FUNCTIONS, METHODS


@pytest.fixture
def x():
    return cygrad.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_operators_tell_of_themselves_what_functions_do():
    sin = cygrad.sin
    assert (sin.__name__, sin.__qualname__, sin.__module__) == ("sin", "sin", "cygrad")
    assert sin.__doc__.startswith("Compute the sine of each element")
    assert str(inspect.signature(sin)) == sin.__text_signature__ == "(input, *, out=None)"
    assert callable(sin) and inspect.isroutine(sin)
    assert typing.get_type_hints(sin) == {}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_has_a_docstring_and_a_signature(name):
    function = FUNCTIONS[name]
    assert function.__doc__.strip()
    assert inspect.signature(function).parameters
    assert function.__doc__.startswith("In-place version of ") == function.is_inplace


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_a_descriptor_over_its_operator(name):
    method = METHODS[name]
    assert method.__name__ == name
    assert method.__qualname__ == f"Tensor.{name}"
    assert method.__objclass__ is Tensor
    assert method == method.operator
    assert hash(method) == hash(method.operator)
    assert method.__doc__ == method.operator.__doc__


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("operator", [
    cygrad.sin, cygrad.sum, operators.sin_, operators.add_scaled, operators.index_backward, Tensor.sin, Tensor.sin_])
def test_copies_are_the_operator_itself(make, operator):
    assert make(operator) is operator


def test_wrapped_functions_have_its_name_and_docstring():
    @functools.wraps(cygrad.exp)
    def wrapped(x):
        return cygrad.exp(x)
    assert (wrapped.__name__, wrapped.__doc__) == ("exp", cygrad.exp.__doc__)
    assert inspect.signature(wrapped) == inspect.signature(cygrad.exp)


def test_an_operator_does_not_bind_where_a_class_holds_it(x):
    class Layer:
        function = cygrad.exp
        method = Tensor.exp
    assert Layer().function is cygrad.exp
    assert Layer().function(x).equal(x.exp())
    assert inspect.ismethod(Layer().method)


def test_methods_are_found_and_bound_as_those_of_python(x):
    bound = x.exp
    assert inspect.ismethod(bound) and bound.__self__ is x
    assert bound().equal(cygrad.exp(x))
    assert str(inspect.signature(x.sum)).startswith("(dim=None, keepdim=False")


@pytest.mark.parametrize("call", [
    lambda x: cygrad.softmax(x, 1), lambda x: cygrad.softmax(x, dim=1), lambda x: cygrad.softmax(x, axis=1),
    lambda x: cygrad.softmax(input=x, dim=1), lambda x: cygrad.softmax(self=x, axis=1), lambda x: x.softmax(1),
    lambda x: x.softmax(axis=1), lambda x: cygrad.softmax(x, 1, dtype=None),
    lambda x: cygrad.softmax(x, **{"".join(["di", "m"]): 1}),         # a name that is not interned
])
def test_arguments_have_both_spellings(x, call):
    assert cygrad.allclose(call(x), x.exp() / x.exp().sum(1, keepdim=True))


def test_numpys_spelling_that_is_none_is_left_out(x):
    assert cygrad.sum(x, 0, axis=None, keepdims=None).equal(x.sum(0))


@pytest.mark.parametrize("call", [
    lambda x: x.reshape(4), lambda x: x.reshape((4,)), lambda x: x.reshape([4]), lambda x: x.reshape(-1),
    lambda x: cygrad.reshape(x, shape=(4,)), lambda x: x.reshape(cygrad.tensor(4)), lambda x: x.view(2, 2).view(4)])
def test_sizes_come_in_every_form(x, call):
    assert call(x).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_no_sizes_at_all_mean_no_dimensions():
    assert cygrad.ones(1).reshape().shape == ()


def test_out_is_written_and_returned(x):
    out = cygrad.empty(2, 2)
    assert cygrad.exp(x, out=out) is out
    assert out.equal(x.exp())


def test_overloads_answer_calls_with_their_keyword(x):
    assert x.view(cygrad.int32).dtype is x.view(dtype=cygrad.int32).dtype is cygrad.int32
    index = cygrad.tensor([[0], [1]])
    leaf = x.clone().requires_grad_()
    cygrad.gather(leaf, 1, index, sparse_grad=True).sum().backward()
    assert leaf.grad.is_sparse
    assert cygrad.gather(x, 1, index, sparse_grad=False).tolist() == [[1.0], [4.0]]


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: cygrad.exp(), r"^exp: missing required argument 'input'. Its signature is exp\(input, \*, out=None\).$"),
    (lambda x: cygrad.exp(x, x), r"^exp: takes 1 positional argument but 2 were given"),
    (lambda x: cygrad.exp(x, base=2), r"^exp: got an unexpected keyword argument 'base'. Its signature is exp\("),
    (lambda x: x.exp_(out=x), r"^exp_: got an unexpected keyword argument 'out'"),
    (lambda x: cygrad.softmax(x, 0, dim=0), r"^softmax: got multiple values for argument 'dim'. Pass it once.$"),
    (lambda x: cygrad.softmax(x, 0, axis=0), r"^softmax: got multiple values for argument 'dim'"),
    (lambda x: cygrad.softmax(x), r"^softmax: missing required argument 'dim'"),
    (lambda x: x.reshape(2, 2, shape=(4,)), r"^reshape: got multiple values for argument 'shape'"),
    (lambda x: cygrad.softmax(x, axis=None), r"^softmax: missing required argument 'dim'"),
])
def test_calls_that_do_not_fit_the_signature_are_refused(x, call, message):
    with pytest.raises(TypeError, match=message):
        call(x)


def test_operators_can_be_keys_under_either_name():
    handlers = {cygrad.exp: "exp"}
    assert handlers[Tensor.exp] == "exp"
    assert Tensor.exp_ not in handlers


def test_torch_function_gets_the_operator(x):
    seen = []

    class Wrapper:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append((function, args[1:], kwargs))
            return 7
    assert cygrad.sum(Wrapper(), 0, keepdim=True) == 7
    assert seen == [(cygrad.sum, (0, True), {"dtype": None})]

