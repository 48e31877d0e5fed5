"""Operations on subclasses of Tensor and on other classes with ``__torch_function__``."""

import contextlib
import pickle

import pytest

import cygrad
from cygrad import nn


class Sub(cygrad.Tensor):
    """A subclass without changes."""


class Subsub(Sub):
    """A subclass of that."""


def sub(values, cls=Sub, requires_grad=False):
    return cygrad._core.graph.type_slots.make_subclass(cls, cygrad.tensor(values), requires_grad)


@pytest.mark.parametrize("operation", [
    lambda x: x + 1, lambda x: 1 - x, lambda x: x * cygrad.ones(3), lambda x: cygrad.ones(3) / x, lambda x: -x, abs,
    lambda x: x.exp(), cygrad.sin, lambda x: x.sum(), lambda x: x.reshape(3, 1), lambda x: x[1:], lambda x: x[0],
    lambda x: x[cygrad.tensor([True, False, True])], lambda x: x > 1, lambda x: x.clone(), lambda x: cygrad.cat([x, x]),
    lambda x: cygrad.stack([cygrad.ones(3), x]), lambda x: x.to(cygrad.float64), lambda x: x @ x, lambda x: x ** 2,
    lambda x: x.mean(), lambda x: cygrad.where(x > 1, x, 0), lambda x: nn.functional.softmax(x, 0),
    lambda x: x.double(), lambda x: x.std(), lambda x: x.pow(cygrad.ones(3)),
])
def test_results_have_the_class_of_the_argument(operation):
    x = sub([1.0, 2.0, 3.0])
    result, plain = operation(x), operation(cygrad.tensor([1.0, 2.0, 3.0]))
    assert type(result) is Sub
    assert type(plain) is cygrad.Tensor
    assert result.tolist() == plain.tolist()
    assert result.dtype is plain.dtype


def test_several_results_and_changes_in_place():
    x = sub([3.0, 1.0, 2.0])
    assert [type(part) for part in x.split(1)] == [Sub] * 3
    values, indices = x.sort()
    assert type(values) is type(indices) is Sub
    y = x.add_(1)
    assert y is x
    assert x.tolist() == [4.0, 2.0, 3.0]


def test_history_is_kept():
    x = sub([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert type(y) is Sub
    assert y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    view = x[0:1]
    assert view._is_view()
    assert view.grad_fn is not None


def test_the_most_derived_class_wins_and_strangers_are_refused():
    class Other(cygrad.Tensor):
        pass

    x, y = sub([1.0]), sub([1.0], Subsub)
    assert type(x + y) is type(y + x) is Subsub
    with pytest.raises(TypeError, match="no implementation"):
        x + sub([1.0], Other)


def test_parameters_give_plain_tensors():
    parameter = nn.Parameter(cygrad.ones(2))
    assert type(parameter + 1) is type(parameter[0]) is cygrad.Tensor
    assert type(nn.Buffer(cygrad.ones(2)) * 2) is cygrad.Tensor
    assert type(parameter * sub([1.0, 2.0])) is Sub


def test_a_class_may_look_at_every_call():
    seen = []

    class Watched(cygrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, types, kwargs))
            return super().__torch_function__(func, types, args, kwargs)

    x = sub([1.0, 2.0], Watched)
    assert type(cygrad.sum(x, 0, dtype=cygrad.float64)) is Watched
    assert [entry[:2] for entry in seen] == [("sum", (Watched,))]
    assert seen[0][2] == {"dtype": cygrad.float64}


class Diagonal:
    """A class that is not a Tensor."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is cygrad.sum:
            return args[0].n * args[0].value
        if func.__name__ == "add":
            return "added"
        return NotImplemented


def test_classes_that_are_no_tensors():
    found = Diagonal(3, 2.0)
    assert cygrad.sum(found) == 6.0
    assert cygrad.ones(2) + found == "added"
    with pytest.raises(TypeError, match="no implementation"):
        cygrad.exp(found)
    with pytest.raises(TypeError, match="must be a Tensor"):
        cygrad.exp(object())


def test_subclasses_are_copied_and_pickled():
    x = sub([1.0, 2.0]) * 2
    assert type(pickle.loads(pickle.dumps(x))) is Sub


class Answers(cygrad.Tensor):
    """Has one answer to everything."""

    answer = None

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.answer


@pytest.mark.parametrize("answer", [None, 3, "x", cygrad.Tensor])
def test_any_answer_is_taken_or_refused(answer):
    Answers.answer = answer
    x = cygrad.ones(2).as_subclass(Answers)
    assert x[0] is answer
    x[0] = 1.0
    x[cygrad.tensor([0])] = 2.0
    assert cygrad.ones(2).add(x) is answer
    for call in (lambda: cygrad.ones(2).__setitem__(slice(0, 1), x), lambda: cygrad.ones(2).copy_(x),
                 lambda: cygrad.tensor([x, x]), lambda: x.backward(), lambda: cygrad.ones(2)[x]):
        with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
            call()


def test_assignments_go_to_the_class():
    seen = []

    class Seen(cygrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = cygrad.zeros(3).as_subclass(Seen)
    x[1:] = 2.0
    assert seen == [cygrad.Tensor.__setitem__]
    assert cygrad.Tensor(x).tolist() == [0.0, 2.0, 2.0]
