"""Drawings of graphs."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

import cygrad
from cygrad.autograd.drawing import to_dot, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    return [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_dot():
    w = cygrad.ones(2, 3, requires_grad=True)
    text = to_dot((w * 2).sum(), {'the "w"': w})
    assert text.startswith("digraph {\n")
    for label in 'the \\"w\\"\\nfloat32 (2, 3)', "MulBackward0", "SumBackward0", "result\\nfloat32":
        assert f'label="{label}"' in text
    assert len(re.findall("->", text)) == 3


def test_svg_names_everything_once():
    w = cygrad.ones(2, 3, requires_grad=True)
    y = w.exp()
    loss = (y * y + w).sum()
    shown = texts(to_svg(loss, {"w <&>": w, "loss": loss}))
    assert sorted(shown) == sorted(["w <&>", "float32 (2, 3)", "ExpBackward0", "MulBackward0", "AddBackward0",
                                    "SumBackward0", "loss", "float32"])


def test_values_flow_downwards_and_boxes_do_not_overlap():
    w = cygrad.ones(3, requires_grad=True)
    loss = sum((w * k).exp().sum() for k in range(6))
    root = ElementTree.fromstring(to_svg(loss))
    boxes = [tuple(float(box.get(name)) for name in ("x", "y", "width", "height"))
             for box in root.findall(f"{SVG}g/{SVG}rect")]
    for i, (x, y, width, height) in enumerate(boxes):
        for a, b, c, d in boxes[:i]:
            assert x + width <= a + 0.1 or a + c <= x + 0.1 or y + height <= b + 0.1 or b + d <= y + 0.1
    for arrow in root.findall(f"{SVG}g/{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", arrow.get("d"))]
        assert numbers[1] < numbers[7]


def test_long_and_wide_graphs():
    w = cygrad.ones(1, requires_grad=True)
    x = w
    for _ in range(3000):
        x = x * w
    assert to_svg(x).count("MulBackward0") == 3000
    wide = cygrad.cat([w * k for k in range(500)])
    assert to_dot(wide).count("MulBackward0") == 500


def test_roots_of_all_kinds():
    leaf = cygrad.ones(2, requires_grad=True)
    assert texts(to_svg(leaf)) == ["result", "float32 (2)"]
    assert texts(to_svg(cygrad.ones(()))) == ["result", "float32"]
    a, b = leaf * 2, leaf + 1
    assert sorted(texts(to_svg([a.grad_fn, b]))) == sorted(
        ["MulBackward0", "float32 (2)", "AddBackward0", "result", "float32 (2)"])
    with pytest.raises(TypeError, match="expected a Tensor or a Node"):
        to_dot(3)
