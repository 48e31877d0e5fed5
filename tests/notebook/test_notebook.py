"""HTML for notebooks is well-formed and complete."""

import base64
import re
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest

import cygrad
from cygrad import nn
from cygrad.autograd.drawing import to_svg
from cygrad.utils.data import DataLoader, Subset, TensorDataset
from tests.tools import leaf, run_program


def parsed(html):
    """The HTML as a tree: it must be well-formed, and hold no script."""
    tree = ElementTree.fromstring(html.replace("&middot;", "·"))
    assert not list(tree.iter("script"))
    return tree


def texts(html):
    return " ".join(parsed(html).itertext())


def test_a_tensor_says_what_it_is():
    x = leaf(1.0, 2.0, 3.0)
    assert all(word in texts(x._repr_html_()) for word in ("(3,)", "float64", "requires_grad", "none"))
    (x * x).sum().backward()
    assert "of norm 7.483" in texts(x._repr_html_())
    html = (x * 2).exp()._repr_html_()
    assert "ExpBackward0" in texts(html) and "<details>" in html and "mul" in texts(html).lower()
    deep = x
    for _ in range(200):
        deep = deep + 1
    assert "<details>" not in deep._repr_html_()


@pytest.mark.parametrize(("tensor", "element"), [
    (cygrad.linspace(0, 1, 2000), "polyline"), (cygrad.tensor([1.0, float("nan"), float("inf"), 2.0]), "polyline"),
    (cygrad.rand(10, 12), "img"), (cygrad.rand(3, 16, 16), "img"), (cygrad.rand(4, 4), None),
    (cygrad.rand(2, 3, 4, 5), None),
    (cygrad.tensor(3.0), None), (cygrad.zeros(0), None), (cygrad.ones(3, dtype=cygrad.complex64), None),
    (cygrad.zeros(5), "polyline"), (cygrad.ones(9, 9, dtype=cygrad.bool), "img"),
    (cygrad.ones(2, 2, device="meta"), None),
    (cygrad.arange(12, dtype=cygrad.int64), "polyline"), (cygrad.ones(12, dtype=cygrad.bfloat16), "polyline"),
])
def test_pictures(tensor, element):
    tree = parsed(tensor._repr_html_())
    found = {item.tag.rpartition("}")[2] for item in tree.iter()} & {"polyline", "img"}
    assert found == ({element} if element else set())


def test_pixels_are_those_of_the_values():
    values = np.arange(80.0).reshape(8, 10)
    data = re.search(r"base64,([^\"]+)", cygrad.tensor(values)._repr_html_()).group(1)
    png = base64.b64decode(data)
    start = png.index(b"IDAT") + 4
    rows = np.frombuffer(zlib.decompress(png[start:-16]), np.uint8).reshape(8, 11)
    assert rows[:, 0].tolist() == [0] * 8                       # no filter
    np.testing.assert_array_equal(rows[:, 1:], (values / 79 * 255).round())


def test_values_are_escaped():
    class Strange(cygrad.Tensor):
        pass

    Strange.__name__ = "<b>"
    assert "&lt;b&gt;" in cygrad.ones(2).as_subclass(Strange)._repr_html_()


def test_a_module_is_a_tree_with_counts():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2, bias=False)))
    model[0].weight.requires_grad_(False)
    html = model._repr_html_()
    said = texts(html)
    assert all(word in said for word in ("Sequential", "27 parameters", "(3, 4), float32, frozen", "running_mean",
                                         "(3,), float32, buffer", "in_features=4", "ReLU", "0 parameters"))
    assert sum(item.tag == "details" for item in parsed(html).iter()) == 5


@pytest.mark.parametrize("make", [
    lambda: leaf(1.0, 2.0) * 2, lambda: nn.Linear(2, 3), lambda: to_svg(leaf(1.0, 2.0) * 2)])
def test_bundles_of_all_forms(make):
    value = make()
    forms = {"text/plain": repr(value), "text/html": value._repr_html_()}
    if isinstance(value, str):
        forms["image/svg+xml"] = str(value)
    assert value._repr_mimebundle_() == forms
    assert value._repr_mimebundle_(include={"text/html"}) == {"text/html": forms["text/html"]}
    assert "text/html" not in value._repr_mimebundle_(exclude=["text/html"])


def test_nothing_is_loaded_before_it_is_asked_for():
    program = """
import sys, cygrad, cygrad.nn
assert "cygrad.notebook" not in sys.modules
print(len(cygrad.ones(1)._repr_html_()) > 0, "cygrad.notebook" in sys.modules)
"""
    assert run_program(program) == ["True", "True"]


@pytest.mark.parametrize(("value", "words"), [
    (DataLoader(TensorDataset(cygrad.ones(6, 2)), batch_size=4), "DataLoader TensorDataset(6 samples) batch_size 4"),
    (TensorDataset(cygrad.ones(6, 2)), "TensorDataset tensors[0] (6, 2), float32"),
    (Subset(TensorDataset(cygrad.ones(6, 2)), [1, 2]), "Subset(2 samples)"),
    (leaf(1.0, 2.0).exp().grad_fn, "ExpBackward0 _saved_result (2,), float64 AccumulateGrad <svg"),
    (cygrad.compile(max), "Compiled function max variants 0"),
], ids=["loader", "dataset", "subset", "node", "compiled"])
def test_objects_show_what_they_hold(value, words):
    html = value._repr_html_()
    assert all(word in html if word.startswith("<") else word in texts(html) for word in words.split())


def test_an_entry_of_a_state_dict_shows_its_shape_in_a_shell():
    program = """
from IPython.core.interactiveshell import InteractiveShell
from collections import OrderedDict
shell = InteractiveShell.instance()
from cygrad import nn
shown = shell.display_formatter.format(nn.Linear(3, 2).state_dict())[0]
print("(2, 3), float32" in shown["text/html"], "text/html" in shell.display_formatter.format(OrderedDict(a=1))[0])
"""
    assert run_program(program) == ["True", "False"]
