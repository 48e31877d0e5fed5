"""
The programs of the note "Autograd mechanics", all versions of it, and of the tutorial before it: in our own words, with
the note's calls, after ``import cygrad as torch``.
"""

import os
import threading
import uuid

import numpy as np
import pytest

import cygrad as torch
from cygrad import nn, optim
from examples.models import resnet

# ---------------------------------------------------------------------------------------------------- saved tensors

def test_saved_input_is_the_tensor_itself():
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    assert x.equal(y.grad_fn._saved_self)
    assert x is y.grad_fn._saved_self


def test_saved_result_is_another_tensor_in_the_same_memory():
    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    assert y.equal(y.grad_fn._saved_result)
    assert y is not y.grad_fn._saved_result
    assert y.data_ptr() == y.grad_fn._saved_result.data_ptr()


class SelfDeletingFile:
    """A file that is deleted with the object."""

    def __init__(self, folder):
        self.name = os.path.join(folder, str(uuid.uuid4()))

    def __del__(self):
        os.remove(self.name)


@pytest.fixture
def file_hooks(tmp_path):
    """Return (pack, unpack) for tensors on disk, and a function that counts the files."""
    written = []

    def pack_hook(tensor):
        temp_file = SelfDeletingFile(tmp_path)
        torch.save(tensor, temp_file.name)
        written.append(temp_file.name)
        return temp_file

    def unpack_hook(temp_file):
        return torch.load(temp_file.name)
    return pack_hook, unpack_hook, written


def test_one_saved_tensor_on_disk(file_hooks, tmp_path):
    pack_hook, unpack_hook, written = file_hooks
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(pack_hook, unpack_hook)
    assert len(written) == len(list(tmp_path.iterdir())) == 1
    assert y.grad_fn._saved_self.equal(x)
    y.sum().backward()
    assert x.grad.equal(2 * x)
    del y
    assert not list(tmp_path.iterdir())


def test_large_saved_tensors_on_disk(file_hooks, tmp_path):
    to_file, from_file, written = file_hooks
    SAVE_ON_DISK_THRESHOLD = 1000

    def pack_hook(x):
        return x if x.numel() < SAVE_ON_DISK_THRESHOLD else to_file(x)

    def unpack_hook(tensor_or_file):
        return tensor_or_file if isinstance(tensor_or_file, torch.Tensor) else from_file(tensor_or_file)

    class Model(nn.Module):
        def forward(self, x):
            with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
                return (x * x).sum() + (x[:10] * x[:10]).sum()
    x = torch.randn(1000, requires_grad=True)
    output = Model()(x)
    assert len(written) == len(list(tmp_path.iterdir())) == 2
    output.backward()
    expected = 2 * x.detach()
    expected[:10] *= 2
    assert x.grad.equal(expected)
    del output
    assert not list(tmp_path.iterdir())


def test_hooks_inside_the_model_reach_the_replicas_of_data_parallel(file_hooks):
    pack_hook, unpack_hook, written = file_hooks

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
                return self.layer(x).tanh()
    net = nn.DataParallel(Model(), device_ids=[0, 1])
    output = net(torch.randn(4, 3))
    assert written
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_hooks_around_data_parallel_do_not():
    """They hold for this thread, and the layers of the replicas run in others."""
    packed_in = set()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x):
            ran_in.add(threading.current_thread())
            return self.layer(x).tanh()

    def pack_hook(x):
        packed_in.add(threading.current_thread())
        return x
    ran_in = set()
    net = nn.DataParallel(Model(), device_ids=[0, 1])
    with torch.autograd.graph.saved_tensors_hooks(pack_hook, lambda x: x):
        net(torch.randn(4, 3)).sum().backward()
    assert len(ran_in) == 2
    assert not packed_in & (ran_in - {threading.current_thread()})


def test_identity_hooks_make_new_tensor_objects():
    x = torch.randn(5, requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is y.grad_fn._saved_other is x
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        x = torch.randn(5, requires_grad=True)
        y = x * x
    first, second = y.grad_fn._saved_self, y.grad_fn._saved_other
    assert first is not x and second is not x and first is not second
    assert first.data_ptr() == second.data_ptr() == x.data_ptr()


# ------------------------------------------------------------------------------------- which tensors require gradients

def test_one_input_that_requires_grad_is_enough():
    x, y = torch.randn(5, 5), torch.randn(5, 5)
    z = torch.randn((5, 5), requires_grad=True)
    a = x + y
    assert a.requires_grad is False
    b = a + z
    assert b.requires_grad is True


@pytest.mark.filterwarnings("ignore:.*pretrained")
def test_fine_tuning():
    """A frozen ResNet-18 and a new head: backward runs through the head only."""
    model = resnet.resnet18()
    for param in model.parameters():
        param.requires_grad = False
    model.fc = nn.Linear(512, 100)
    optimizer = optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    loss = nn.functional.cross_entropy(model(torch.randn(2, 3, 32, 32)), torch.tensor([3, 99]))
    assert {type(node).__name__ for node in torch.autograd.graph.backward_order(loss)} == {
        "CrossEntropyBackward0", "LinearBackward0", "AccumulateGrad"}
    loss.backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == name.startswith("fc.")
        assert parameter.equal(before[name]) != name.startswith("fc.")


# ------------------------------------------------------------------------------------------------------------ threads

def test_train_function_in_ten_threads():
    gradients = []

    def train_fn():
        x = torch.ones(5, 5, requires_grad=True)
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()
        gradients.append(x.grad)
    threads = []
    for _ in range(10):
        p = threading.Thread(target=train_fn, args=())
        p.start()
        threads.append(p)
    for p in threads:
        p.join()
    assert len(gradients) == 10
    assert all(gradient.equal(torch.full((5, 5), 4.5)) for gradient in gradients)


# -------------------------------------------------------------------------------------------------------------- hooks

def test_hook_after_a_change_in_place():
    seen = []
    t = torch.tensor(1., requires_grad=True).sin()
    t.cos_()
    t.register_hook(seen.append)
    t.backward()
    assert [gradient.item() for gradient in seen] == [1]


def test_hook_before_a_change_in_place():
    seen = []
    t = torch.tensor(1., requires_grad=True).sin()
    before = t.item()
    t.register_hook(seen.append)
    t.cos_()
    t.backward()
    assert [gradient.item() for gradient in seen] == pytest.approx([-np.sin(before)])


def test_hook_that_doubles():
    v = torch.tensor([0., 0., 0.], requires_grad=True)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1., 2., 3.]))
    assert str(v.grad) == "tensor([2., 4., 6.])"
    h.remove()
    v.backward(torch.tensor([1., 2., 3.]))
    assert v.grad.tolist() == [3, 6, 9]


# ------------------------------------------------------------------------------------------------------- the tutorial

def test_one_layer_network():
    x, y = torch.ones(5), torch.zeros(3)
    w = torch.randn(5, 3, requires_grad=True)
    b = torch.randn(3, requires_grad=True)
    z = torch.matmul(x, w) + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    assert "AddBackward0" in f"Gradient function for z = {z.grad_fn}"
    assert "Backward0" in f"Gradient function for loss = {loss.grad_fn}"
    loss.backward()
    expected = torch.sigmoid(z.detach()) / 3
    assert torch.allclose(b.grad, expected)
    assert torch.allclose(w.grad, expected.expand(5, 3))


def test_tracking_switched_off():
    x = torch.ones(5)
    w, b = torch.randn(5, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    z = torch.matmul(x, w) + b
    assert z.requires_grad is True
    with torch.no_grad():
        z = torch.matmul(x, w) + b
    assert z.requires_grad is False
    z = torch.matmul(x, w) + b
    z_det = z.detach()
    assert z_det.requires_grad is False


def test_jacobian_products_accumulate():
    inp = torch.eye(5, requires_grad=True)
    out = (inp + 1).pow(2)
    out.backward(torch.ones_like(inp), retain_graph=True)
    first = inp.grad.clone()
    assert first.equal(2 * torch.ones(5, 5) + 2 * torch.eye(5))
    out.backward(torch.ones_like(inp), retain_graph=True)
    assert inp.grad.equal(2 * first)
    inp.grad.zero_()
    out.backward(torch.ones_like(inp), retain_graph=True)
    assert inp.grad.equal(first)


# ---------------------------------------------------------------------------------------------------- custom functions

def test_custom_function_saves_what_it_needs():
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, i):
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            result, = ctx.saved_tensors
            return grad_output * result
    x = torch.randn(4, requires_grad=True)
    y = Exp.apply(x)
    y.sum().backward()
    assert x.grad.equal(y.detach())
    nodes = [type(node).__name__ for node in torch.autograd.graph.backward_order(y)]
    assert nodes == ["ExpBackward", "AccumulateGrad"]


# ---------------------------------------------------------------------------------------------------- complex numbers

def test_descent_along_the_conjugate_gradient():
    """The step of the note, z - lr * dL/dz*, for L = |z - c|^2: the minimum is c."""
    c = torch.tensor(2 - 3j)
    z = torch.tensor(0j, requires_grad=True)
    for _ in range(60):
        z.grad = None
        (z - c).abs().square().backward()
        with torch.no_grad():
            z -= 0.25 * z.grad
    assert abs(z.item() - c.item()) < 1e-6


def test_gradient_of_a_holomorphic_function():
    """Of L = f(z) real, f holomorphic: the conjugate of f' times the gradient of the output."""
    z = torch.tensor(1 + 2j, dtype=torch.complex128, requires_grad=True)
    w = z * z
    w.backward(torch.tensor(1 + 0j, dtype=torch.complex128))
    assert z.grad.item() == np.conj(2 * (1 + 2j))
