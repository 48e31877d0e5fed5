"""In-place operations and views."""

import pytest

import cygrad
from cygrad.autograd import grad
from tests.tools import FLOAT, leaf


def names(*tensors):
    return [type(t.grad_fn).__name__ for t in tensors]


CHANGES = {
    "add_": lambda t: t.add_(1), "sub_": lambda t: t.sub_(1), "mul_": lambda t: t.mul_(2), "div_": lambda t: t.div_(2),
    "exp_": lambda t: t.exp_(), "sin_": lambda t: t.sin_(), "zero_": lambda t: t.zero_(), "fill_": lambda t: t.fill_(3),
    "copy_": lambda t: t.copy_(cygrad.ones(2, dtype=FLOAT)), "setitem": lambda t: t.__setitem__(0, 5.0),
    "set by list": lambda t: t.__setitem__([0, 1], 5.0), "set by mask": lambda t: t.__setitem__(t > 0, 5.0),
    "clamp_": lambda t: t.clamp_(max=1.0), "relu_": lambda t: t.relu_(), "pow_": lambda t: t.pow_(2),
    "+=": lambda t: t.__iadd__(1), "*=": lambda t: t.__imul__(t.detach().clone()), "normal_": lambda t: t.normal_(),
}


@pytest.mark.guarantee("I1")
@pytest.mark.parametrize("name", CHANGES)
def test_every_operation_counts(name):
    t = cygrad.tensor([1.0, 2.0], dtype=FLOAT)
    result = CHANGES[name](t)
    assert t._version == 1
    assert result is t or result is None
    y = leaf(1.0, 2.0) * 1
    CHANGES[name](y)
    assert y._version == 1
    with cygrad.no_grad():
        CHANGES[name](y)
    assert y._version == 2


@pytest.mark.guarantee("I1")
def test_shared_by_views_and_detach_not_by_data():
    x = cygrad.zeros(2, 3, dtype=FLOAT)
    views = [x.view(6), x[0], x.t(), x[:, 1], x.detach(), x[0].view(3), x.unsqueeze(0), x.expand(2, 2, 3)]
    apart = [x.data, x.clone(), x + 0]
    x.add_(1)
    views[1].mul_(2)
    views[4].zero_()
    assert x._version == 3
    assert [v._version for v in views] == [3] * len(views)
    assert [a._version for a in apart] == [0, 0, 0]
    apart[0].add_(7)
    assert x._version == 3
    assert x[0, 0].item() == 7.0
    assert apart[0]._version == 1


@pytest.mark.guarantee("I1")
def test_reading_does_not_count():
    x = cygrad.zeros(2, 3, dtype=FLOAT)
    for use in (lambda: x + 1, lambda: x.view(6), lambda: x.tolist(), lambda: repr(x), lambda: x.contiguous(),
                lambda: x.numpy(), lambda: x.requires_grad_(), lambda: x.detach()):
        use()
    assert x._version == 0


@pytest.mark.guarantee("I2")
def test_leaves():
    for change in CHANGES.values():
        x = leaf(1.0, 2.0)
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
            change(x)
        assert x.tolist() == [1.0, 2.0]
        assert x._version == 0


@pytest.mark.guarantee("I2")
def test_views_of_leaves():
    for change in CHANGES.values():
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
            change(x[0])
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place"):
            change(x.t()[1].view(2))
        assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with cygrad.no_grad():
        x[0].mul_(2)
    assert x.tolist() == [[2.0, 4.0], [3.0, 4.0]]
    x.detach()[0].zero_()                        # detached: allowed
    assert x.tolist() == [[0.0, 0.0], [3.0, 4.0]]


@pytest.mark.guarantee("I2")
def test_expanded():
    for target in (cygrad.ones(1, dtype=FLOAT).expand(3), (leaf(1.0, 2.0) * 1).expand(3, 2),
                   cygrad.ones(5, dtype=FLOAT).as_strided((3, 2), (1, 1))):
        with pytest.raises(RuntimeError, match=r"share a memory location.*clone\(\)"):
            target.add_(1)
        with pytest.raises(RuntimeError, match="share a memory location"):
            target.mul_(target.clone())
    assert cygrad.ones(1).expand(1).add_(1).tolist() == [2.0]


@pytest.mark.guarantee("I2")
def test_views_made_in_no_grad_mode():
    y = leaf(1.0, 2.0) * 1
    with cygrad.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        v.mul_(2)
    with cygrad.no_grad():
        v.mul_(2)
    assert y.tolist() == [2.0, 2.0]
    assert y._version == 1
    with cygrad.no_grad():
        v = leaf(1.0, 2.0)[:1]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):       # not: a view of a leaf
        v.mul_(2)


@pytest.mark.guarantee("I2")
@pytest.mark.parametrize("make", [lambda y: y.unbind(0), lambda y: y.split(1), lambda y: y.chunk(2)])
def test_one_of_several_outputs(make):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    parts = make(y)
    with pytest.raises(RuntimeError, match=r"function that returns multiple views.*clone\(\)"):
        parts[0].mul_(2)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        parts[1][0].mul_(2)                      # and so are their views
    assert y._version == 0
    y.mul_(2)                                    # the base may be modified, without effect on their graph
    with pytest.raises(RuntimeError, match=r"view whose base was modified in place"):
        parts[0] * 2
    with cygrad.no_grad():
        parts[0].zero_()


@pytest.mark.guarantee("I3")
def test_base_and_views_see_the_change():
    x = leaf([[3.0, 4.0], [5.0, 6.0]])
    y = x * 1
    row = y[0]
    element = row[1]
    other = y.t()
    element.mul_(10)
    row.add_(1)
    assert names(y, row, element, other) == ["CopySlices"] + ["AsStridedBackward0"] * 3
    assert y.tolist() == [[4.0, 41.0], [5.0, 6.0]]
    assert other.tolist() == [[4.0, 5.0], [41.0, 6.0]]
    assert row.tolist() == [4.0, 41.0]
    assert element.item() == 41.0
    assert y._version == 2
    assert grad(element * element, x, retain_graph=True)[0].tolist() == [[0.0, 820.0], [0.0, 0.0]]
    assert grad(other.sum() + row.sum(), x, retain_graph=True)[0].tolist() == [[2.0, 20.0], [1.0, 1.0]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[8.0, 820.0], [10.0, 12.0]]


@pytest.mark.guarantee("I3")
def test_change_of_the_base_is_seen_by_views():
    x = leaf(3.0, 4.0)
    y = x * 1
    v = y[0]
    y.mul_(y.detach().clone())
    assert v.item() == 9.0
    assert names(v) == ["AsStridedBackward0"]
    assert grad(v * v, x)[0].tolist() == [54.0, 0.0]


@pytest.mark.guarantee("I3")
def test_first_use_of_a_view_after_the_change():
    """The history of the view is made while the operation that uses it is recorded; it must still run after it."""
    for use in (lambda v: v * v, lambda v: v.exp(), lambda v: cygrad.stack([v, v]), lambda v: v.view(1),
                lambda v: v.sum(), lambda v: v + 1, lambda v: 2 * v, lambda v: v.clone().mul_(v)):
        def run(changed_first, use=use):
            x = leaf(3.0, 4.0)
            y = x * 1
            v = y[0] if not changed_first else None
            y.mul_(x)
            v = y[0] if changed_first else v
            return grad(use(v).sum(), x)[0].tolist()
        assert run(False) == run(True)


@pytest.mark.guarantee("I3")
def test_base_that_needed_no_gradient():
    base, w = cygrad.zeros(3, dtype=FLOAT), leaf(2.0)
    v = base[1]
    v.add_(w)
    assert base.requires_grad
    assert names(base) == ["CopySlices"]
    assert grad((base * base).sum(), w)[0].item() == 4.0
    base = cygrad.zeros(3, dtype=FLOAT)
    before = base.view(3)
    base[1:] = w * cygrad.ones(2, dtype=FLOAT)
    assert before.requires_grad
    assert grad((before * 3).sum(), w)[0].item() == 6.0


@pytest.mark.guarantee("I3")
def test_assignments():
    x, w = leaf([1.0, 2.0, 3.0]), leaf(10.0, 20.0)
    y = x * 2
    y[1:] = w
    y[0] = y[2] * 3
    assert y.tolist() == [60.0, 10.0, 20.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert w.grad.tolist() == [20.0, 2 * 60 * 3 + 40.0]


@pytest.mark.guarantee("I3")
def test_slices_with_negative_steps_and_gaps():
    for key in (slice(None, None, -1), slice(None, None, 2), slice(-1, None), slice(3, 1, -1)):
        def program(t, key=key):
            y = t * 1
            y[key if key.step is None or key.step > 0 else slice(None)].mul_(t[:1])
            return (y * y).sum()
        x = leaf([1.0, 2.0, 3.0, 4.0])
        (g,) = grad(program(x), x)
        step = 1e-6
        for i in range(4):
            above, below = x.detach().clone(), x.detach().clone()
            above[i] += step
            below[i] -= step
            assert g[i].item() == pytest.approx((program(above) - program(below)).item() / (2 * step), rel=1e-6)


@pytest.mark.guarantee("I3")
def test_many_views_of_views():
    x = leaf([[float(4 * i + j) for j in range(4)] for i in range(4)])
    y = x * 1
    v = y
    for _ in range(10):
        v = v.t()[:].view(4, 4) if v.is_contiguous() else v.t()
        v[1:3, 1:3].mul_(1.5)
    expected = [[1.5 ** 10 if i in (1, 2) and j in (1, 2) else 1.0 for j in range(4)] for i in range(4)]
    y.sum().backward()
    assert x.grad.tolist() == expected


@pytest.mark.guarantee("I4")
def test_attributes():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    v = x[0]
    w = v.view(2, 1)
    assert v._is_view()
    assert v._base is x
    assert w._base is x
    assert not x._is_view()
    assert x._base is None
    assert not x.clone()._is_view()
    assert not (x * 1)._is_view()
    z = cygrad.ones(2, 3)
    for view in (z.t(), z.view(6), z.expand(2, 2, 3), z.unsqueeze(0), z[0], z[:, 1:], z.diagonal(), z.split(1)[0],
                 z.unbind(0)[1], z.as_strided((2,), (1,)), z.permute(1, 0), z.narrow(0, 0, 1)):
        assert view._is_view()
        assert view._base is z
    assert not z[[0, 1]]._is_view()
    assert not z[z > 0]._is_view()
    assert not z.repeat(2, 1)._is_view()


@pytest.mark.guarantee("I4")
def test_a_view_keeps_its_base():
    v = (leaf(1.0, 2.0) * 2)[1]
    assert v._base.tolist() == [2.0, 4.0]
    v._base.mul_(3)
    assert v.item() == 12.0


@pytest.mark.guarantee("I4")
def test_hooks_and_in_place():
    x = leaf(3.0)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 7).backward()
    assert seen == [("after", 7.0), ("before", 35.0)]


@pytest.mark.guarantee("I4")
def test_saved_values_are_protected():
    x = leaf(1.0, 2.0)
    for make in (lambda a: a * a, lambda a: a.sin(), lambda a: a.pow(2), lambda a: a[:1] * a[1:]):
        a = x * 1
        y = make(a)
        a.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    a = x * 1
    y = a.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"ExpBackward0.*modified by an inplace operation"):
        y.sum().backward()
    a = x * 1
    y = a.exp()
    a.mul_(2)                                    # exp needs its result only
    y.sum().backward()


@pytest.mark.guarantee("I4")
def test_in_place_with_itself():
    x = leaf(3.0, 4.0)
    y = x * 1
    y.add_(y)
    y.mul_(2)
    assert grad(y.sum(), x)[0].tolist() == [4.0, 4.0]
    y = x * 1
    y.mul_(y)                                    # needs the old value as well, which is gone
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.guarantee("I2")
def test_expanded_may_be_filled():
    target = cygrad.zeros(2, 1, dtype=FLOAT)
    assert target.expand(2, 3).fill_(5).tolist() == [[5.0] * 3] * 2
    assert target.tolist() == [[5.0], [5.0]] and target._version == 1
    target.expand(4, 2, 3)[:, 1].zero_()
    assert target.tolist() == [[5.0], [0.0]]


@pytest.mark.guarantee("I2")
def test_views_of_a_base_that_detach_took_out_of_the_graph():
    y = leaf(1.0, 2.0) * 1
    v = y[:1]
    y.detach_()
    with pytest.raises(RuntimeError, match=r"detach_\(\) has detached its base from the graph"):
        v.mul_(2)
    with cygrad.no_grad():
        v.mul_(2)
    assert y.tolist() == [2.0, 2.0] and v.requires_grad


@pytest.mark.guarantee("I3")
def test_views_of_a_base_that_left_the_graph_lose_their_gradient_with_its_next_change():
    x = leaf(1.0, 2.0)
    y = x * 1
    v, parts = y[:1], y.unbind(0)
    y.detach_()
    assert grad(v, x, cygrad.ones_like(v), retain_graph=True)[0].tolist() == [1.0, 0.0]
    y.fill_(7)
    assert v.requires_grad and not v.is_leaf and v.grad_fn.next_functions == ((None, 0),)
    assert grad((v * x).sum(), x)[0].tolist() == [7.0, 7.0]
    with pytest.raises(RuntimeError, match="its history cannot be rewritten"):
        parts[0].grad_fn  # noqa: B018


@pytest.mark.guarantee("I3")
def test_parts_of_a_base_that_got_a_history_require_grad_but_have_none_themselves():
    y = cygrad.zeros(2, dtype=FLOAT)
    part = y.unbind(0)[0]
    y.add_(leaf(1.0, 2.0))
    assert part.requires_grad
    with pytest.raises(RuntimeError, match="its history cannot be rewritten"):
        part * 2


@pytest.mark.guarantee("I3")
def test_a_view_follows_a_base_that_requires_grad_only_after_its_change():
    y = cygrad.zeros(2, dtype=FLOAT)
    v = y[:1]
    y.fill_(3)
    assert v.is_leaf
    y.requires_grad_()
    assert grad((v * v).sum(), y)[0].tolist() == [6.0, 0.0]


@pytest.mark.guarantee("I1")
def test_complex_values_do_not_lose_their_imaginary_parts_through_masks():
    y, mask = cygrad.zeros(2, dtype=FLOAT), cygrad.tensor([True, False])
    for index in (mask, [0]):
        with pytest.raises(RuntimeError, match="complex values cannot be written"):
            y[index] = cygrad.tensor(1 + 1j)
    y[mask] = cygrad.tensor(2 + 0j)
    assert y.tolist() == [2.0, 0.0]
    mask.fill_(1j)
    assert mask.tolist() == [True, True]


@pytest.mark.guarantee("I1")
def test_set_gives_other_memory():
    x, source = cygrad.zeros(3, dtype=FLOAT), cygrad.arange(6, dtype=FLOAT)
    assert x.set_(source) is x and x.data_ptr() == source.data_ptr() and x._version == 1 and source._version == 0
    assert x.set_(source, 1, (2, 2), (1, 2)).tolist() == [[1.0, 3.0], [2.0, 4.0]] and x._version == 2
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match=r"dtypes differ \(got int64 for a float64 tensor\)"):
        x.set_(cygrad.arange(2))
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf(1.0).set_(source)
    y = leaf(1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="not differentiable"):
        y.set_(source)
    z = y * y
    with cygrad.no_grad():
        y.set_(source)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation .* version 1; expected version 0"):
        z.sum().backward()
