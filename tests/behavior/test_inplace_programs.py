"""Programs with in-place operations, views, set_ and out= behave as in PyTorch."""

import pytest

import cygrad
from tests.behavior.two_libraries import Program
from tests.reference import torch

pytestmark = pytest.mark.guarantee("I1")

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def fill_expanded(p):
    return p.lib.zeros(1).expand(3).fill_(2.0)


@program
def zero_expanded(p):
    return p.lib.zeros(1).expand(3).zero_()


@program
def copy_expanded(p):
    return p.lib.zeros(1).expand(3).copy_(p.lib.ones(3))


@program
def add_expanded(p):
    return p.lib.zeros(1).expand(3).add_(1)


@program
def setitem_expanded(p):
    a = p.lib.zeros(1).expand(3)
    a[0] = 5
    return a


@program
def setitem_all_expanded(p):
    a = p.lib.zeros(1).expand(3)
    a[:] = 5
    return a


@program
def view_nograd_inplace_in_grad(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = p.under_no_grad(lambda: y[:1])
    v.mul_(2)
    return y


@program
def view_nograd_of_norg_inplace(p):
    y = p.lib.ones(2)
    v = p.under_no_grad(lambda: y[:1])
    v.mul_(p.leaf(3.0))
    return y, y.requires_grad, v.requires_grad


@program
def view_nograd_setrg(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = p.under_no_grad(lambda: y[:1])
    v.requires_grad_()
    return v.requires_grad


@program
def view_of_detach_(p):
    x = p.leaf(1.0, 2.0)
    v = x[:1]
    x.detach_()
    return v.requires_grad, x.requires_grad


@program
def view_of_detach__inplace(p):
    x = p.leaf(1.0, 2.0)
    v = x[:1]
    x.detach_()
    v.mul_(2)
    return v.requires_grad, x


@program
def view_of_detach__nonleaf(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = y[:1]
    y.detach_()
    return v.requires_grad, v.grad_fn is None


@program
def view_of_detach__nonleaf_inplace(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = y[:1]
    y.detach_()
    v.mul_(3)
    return v.requires_grad, y.requires_grad, y


@program
def detach__view(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = y[:1]
    v.detach_()
    return v.requires_grad


@program
def detach_of_view(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = y[:1].detach()
    return v._is_view(), v._version


@program
def detach_of_view_inplace(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    v = y[:1].detach()
    v.mul_(5)
    return y._version, y, y.requires_grad


@program
def detach_share_version_error(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.detach().mul_(2)
    z.sum().backward()


@program
def data_no_version_error(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    y.data.mul_(2)
    z.sum().backward()
    return x.grad


@program
def view_view_slice_siblings(p):
    x = p.lib.arange(12.0, requires_grad=True)
    y = x * 1
    a = y.view(3, 4)
    b = a[1]
    c = a[:, 1]
    b.mul_(2)
    c.add_(b[:3])
    (y * y).sum().backward()
    return x.grad, a.grad_fn.name(), c


@program
def multi_out_inplace(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    a, _b = y.split(1)
    a.mul_(2)


@program
def multi_out_chunk(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    a, _b = y.chunk(2)
    a.mul_(2)


@program
def multi_out_unbind_nograd(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    a, _b = y.unbind()
    p.under_no_grad(lambda: a.mul_(2))
    return y


@program
def multi_out_base_norg(p):
    y = p.lib.ones(2)
    a, _b = y.split(1)
    a.mul_(2)
    return y


@program
def multi_out_base_norg_with_rg(p):
    y = p.lib.ones(2)
    a, _b = y.split(1)
    a.mul_(p.leaf(2.0))
    return y.requires_grad


@program
def multi_out_base_changed(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    a, _b = y.split(1)
    y.mul_(2)
    return a.grad_fn


@program
def multi_out_base_changed_norg(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    a, _b = y.split(1)
    p.under_no_grad(lambda: y.mul_(2))
    return a * 2


@program
def multi_out_view_of(p):
    x = p.leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    a, _b = y.split(2)
    a[:1].mul_(2)
    return y


@program
def single_of_multi_detach(p):
    x = p.leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    a, _b = y.split(2)
    a.detach().mul_(2)
    return y


@program
def set_basic(p):
    a = p.lib.zeros(3)
    b = p.lib.ones(2)
    v = a._version
    a.set_(b)
    return a, a._version - v, b._version


@program
def set_rg_leaf(p):
    a = p.leaf(1.0, 2.0)
    a.set_(p.lib.ones(2))
    return a


@program
def set_nograd(p):
    a = p.leaf(1.0, 2.0)
    p.under_no_grad(lambda: a.set_(p.lib.ones(3)))
    return a, a.requires_grad, a._version


@program
def set_saved(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    p.under_no_grad(lambda: y.set_(p.lib.ones(2)))
    z.sum().backward()
    return x.grad


@program
def out_version(p):
    a = p.lib.zeros(2)
    p.lib.add(p.lib.ones(2), p.lib.ones(2), out=a)
    return a, a._version


@program
def out_requires_grad_input(p):
    a = p.lib.zeros(2)
    p.lib.add(p.leaf(1.0, 2.0), p.lib.ones(2), out=a)


@program
def out_is_leaf_rg(p):
    p.lib.add(p.lib.ones(2), p.lib.ones(2), out=p.leaf(1.0, 2.0))


@program
def out_nograd(p):
    a = p.lib.zeros(2)
    p.under_no_grad(lambda: p.lib.add(p.leaf(1.0, 2.0), p.lib.ones(2), out=a))
    return a, a._version


@program
def out_saved(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    z = y * y
    yd = y.detach()
    p.lib.add(p.lib.ones(2), 1, out=yd)
    z.sum().backward()


@program
def out_empty(p):
    a = p.lib.zeros(0)
    p.lib.add(p.lib.ones(2), p.lib.ones(2), out=a)
    return a, a._version


@program
def out_dtype(p):
    a = p.lib.zeros(2, dtype=p.lib.int64)
    p.lib.add(p.lib.ones(2), p.lib.ones(2), out=a)
    return a


@program
def out_view(p):
    a = p.lib.zeros(4)
    p.lib.add(p.lib.ones(2), p.lib.ones(2), out=a[::2])
    return a, a._version


@program
def sgd_version(p):
    w = p.leaf(1.0, 2.0)
    w.grad = p.lib.ones(2)
    v = w._version
    p.lib.optim.SGD([w], lr=0.1).step()
    return w._version > v


@program
def sgd_saved(p):
    w = p.leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    p.lib.optim.SGD([w], lr=0.1).step()
    loss.backward()


@program
def adam_saved(p):
    w = p.leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    p.lib.optim.Adam([w], lr=0.1).step()
    loss.backward()


@program
def leaf_inplace(p):
    p.leaf(1.0, 2.0).mul_(2)


@program
def leaf_view_inplace(p):
    p.leaf(1.0, 2.0)[:1].mul_(2)


@program
def leaf_nograd_inplace(p):
    a = p.leaf(1.0, 2.0)
    p.under_no_grad(lambda: a.mul_(2))
    return a, a._version, a.is_leaf


@program
def inplace_norg_with_rg(p):
    a = p.lib.ones(2)
    a.mul_(p.leaf(2.0, 3.0))
    return a.requires_grad, a.is_leaf, a.grad_fn.name()


@program
def inplace_broadcast(p):
    return p.lib.ones(2).add_(p.lib.ones(3, 2))


@program
def inplace_bcast_rg(p):
    x = p.leaf(1.0)
    y = p.lib.ones(3)
    y.mul_(x)
    y.sum().backward()
    return x.grad


@program
def inplace_self(p):
    x = p.leaf(2.0, 3.0)
    y = x * 1
    y.mul_(y)
    y.sum().backward()
    return x.grad


@program
def inplace_base_by_view(p):
    x = p.leaf(2.0, 3.0)
    y = x * 1
    y.mul_(y[:1])
    y.sum().backward()
    return x.grad


@program
def inplace_view_by_base(p):
    x = p.leaf(2.0, 3.0)
    y = x * 1
    y[:1].mul_(y.sum())
    y.sum().backward()
    return x.grad


@program
def requires_grad_on_view(p):
    a = p.lib.ones(4)
    v = a[:2]
    v.requires_grad_()
    (v * 2).sum().backward()
    return v.grad, a.grad, v.is_leaf


@program
def requires_grad_on_view_inplace(p):
    a = p.lib.ones(4)
    v = a[:2]
    v.requires_grad_()
    v.mul_(2)


@program
def requires_grad_on_base_after_view_inplace(p):
    a = p.lib.ones(4)
    v = a[:2]
    a.requires_grad_()
    v.mul_(2)
    return a


@program
def view_fill_(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    y[:1].fill_(7.0)
    y.sum().backward()
    return x.grad, y


@program
def view_fill_tensor(p):
    x = p.leaf(1.0, 2.0)
    w = p.leaf(5.0)
    y = x * 1
    y[:1].fill_(w[0])
    (y * y).sum().backward()
    return x.grad, w.grad


@program
def setitem_tensor(p):
    x = p.leaf(1.0, 2.0, 3.0)
    w = p.leaf(5.0)
    y = x * 1
    y[1] = w[0]
    (y * y).sum().backward()
    return x.grad, w.grad


@program
def setitem_mask(p):
    x = p.leaf(1.0, 2.0, 3.0)
    w = p.leaf(5.0, 6.0)
    y = x * 1
    y[x.detach() > 1] = w
    (y * y).sum().backward()
    return x.grad, w.grad


@program
def diag_inplace(p):
    x = p.lib.ones(3, 3, requires_grad=True)
    y = x * 1
    y.diagonal().mul_(2)
    y.sum().backward()
    return x.grad


@program
def transpose_inplace(p):
    x = p.lib.ones(2, 3, requires_grad=True)
    y = x * 1
    y.t()[0].mul_(2)
    y.sum().backward()
    return x.grad


@program
def version_views(p):
    x = p.lib.ones(4)
    a = x[:2]
    b = a.view(2, 1)
    b.add_(1)
    return x._version, a._version, b._version, x.detach()._version, x.data._version


@program
def base_retain_view_changed(p):
    x = p.leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    v = y[:1]
    v.mul_(3)
    y.sum().backward()
    return y.grad


@program
def relu_inplace_on_view(p):
    x = p.leaf(-1.0, 2.0)
    y = x * 2
    p.lib.nn.functional.relu(y[:1], inplace=True)
    y.sum().backward()
    return x.grad


@program
def saved_output_changed(p):
    x = p.leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


@program
def saved_by_view_changed(p):
    x = p.leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y[:1].add_(1)
    z.sum().backward()


@program
def alias_detach_then_rg(p):
    x = p.leaf(1.0, 2.0)
    d = x.detach()
    d.requires_grad_()
    p.under_no_grad(lambda: d.mul_(2))
    return x, x._version


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", PROGRAMS, ids=[function.__name__ for function in PROGRAMS])
def test_programs_with_changes_in_place(function):
    assert Program(cygrad).run(function) == Program(torch).run(function)
