"""Report on the memory saved by a graph."""

import pytest

import cygrad
from cygrad.autograd.graph import get_gradient_edge, memory_report, saved_tensors_hooks

FLOAT = cygrad.float64


def leaf(size):
    return cygrad.ones(size, dtype=FLOAT).requires_grad_()


def test_storages_count_once():
    x, w = leaf(100), leaf(100)
    y = (x * w).exp()
    report = memory_report((y * y).sin().sum())
    assert report.by_name["MulBackward0"] == (2, 1600, 1600)      # x and w; y is counted where it is freed last
    assert report.by_name["ExpBackward0"] == (1, 800, 0)
    assert report.by_name["SinBackward0"] == (1, 800, 0)
    assert (report.nbytes, report.leaf_nbytes) == (3200, 1600)
    assert [entry.node.name() for entry in report.nodes][:2] == ["SumBackward0", "SinBackward0"]
    assert sum(entry.nbytes for entry in report.nodes) == report.nbytes


def test_views_count_as_their_storage():
    x = leaf(100)
    y = x.exp()
    parts = [y[i].sin() for i in range(3)]
    assert memory_report(parts).nbytes == 800                     # the result of exp, whole
    assert memory_report(parts[0].reshape(1).expand(7)).nbytes == 800


def test_memory_goes_with_backward():
    x = leaf(100)
    y = x.exp()
    z = y.sin().sum()
    before = memory_report(z)
    assert before.nbytes == 800
    z.backward(retain_graph=True)
    assert memory_report(z).nbytes == 800
    z.backward()
    assert memory_report(z).nbytes == 0
    assert repr(memory_report(z)).splitlines()[1].split() == ["all", "4", "0", "0"]


def test_custom_functions_and_changed_slices():
    class Square(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.variable = "an attribute of the user's"
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    assert memory_report(Square.apply(leaf(10) * 1)).by_name["SquareBackward"] == (1, 80, 0)
    x = leaf(10)
    y = x * 1
    y[:5].sin_()
    report = memory_report(y)
    assert report.by_name["CopySlices"][1] > 0


def test_packed_values_are_not_seen():
    with saved_tensors_hooks(lambda x: x.tolist(), lambda values: cygrad.tensor(values, dtype=FLOAT)):
        y = leaf(10).exp()
    assert memory_report(y).nbytes == 0


def test_where_it_starts_and_how_it_looks():
    x = leaf(1000)
    y = x.exp()
    numbers = {memory_report(root).nbytes for root in (y, y.grad_fn, get_gradient_edge(y), [y, y])}
    assert numbers == {8000}
    assert repr(memory_report(y)).splitlines()[1].split() == ["ExpBackward0", "1", "8,000", "0"]
    assert "<td>8,000</td>" in memory_report(y)._repr_html_()
    assert repr(memory_report(y).nodes[0]) == "NodeMemory(ExpBackward0, nbytes=8000, leaf_nbytes=0)"
    with pytest.raises(RuntimeError, match="does not require grad"):
        memory_report(cygrad.ones(1))
    with pytest.raises(TypeError, match="memory_report: expected a Tensor"):
        memory_report("y")
