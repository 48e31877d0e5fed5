"""Private functions of PyTorch's engine."""

import json
import subprocess
import sys
import textwrap

import pytest

from tests.reference import torch

PROGRAM = """
import json
import torch
from torch.autograd.gradcheck import GradcheckError

out, x = [], torch.ones(2, dtype=torch.double, requires_grad=True)
out.append([torch.autograd.gradcheck(torch.exp, (x,)), issubclass(GradcheckError, RuntimeError)])
y = x * 2
y.register_hook(lambda g: out.append(torch._C._current_graph_task_id() >= 0))
y.register_hook(lambda g: out.append(torch._C._will_engine_execute_node(y.grad_fn)))
y.sum().backward()
out.append([torch._C._current_graph_task_id(), len(y._backward_hooks)])
out.append([x._backward_hooks, x._post_accumulate_grad_hooks])
out.append([y.grad_fn.next_functions[0][0].name(), y.grad_fn.name(), x.sum().grad_fn._saved_self_sym_sizes, x.name])
z = torch.zeros(2)
with torch.autograd._unsafe_preserve_version_counter(z):
    z.add_(1)
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(z, torch.ones(2))
    for mode in (True, False):
        with torch.autograd.forward_ad._set_fwd_grad_enabled(mode):
            product = dual * 2
        tangent = torch.autograd.forward_ad.unpack_dual(product).tangent
        out.append(None if tangent is None else tangent.tolist())
with torch.autograd.set_multithreading_enabled(False):
    out.append([z._version, torch.autograd.is_multithreading_enabled()])
with torch.autograd._force_original_view_tracking(True):
    out.append(torch.autograd.is_view_replay_enabled())
out.append([torch.is_anomaly_check_nan_enabled(), torch.autograd.is_view_replay_enabled()])
with torch.autograd.forward_ad.dual_level():
    out.append(torch.autograd.forward_ad._current_level)
out.append(torch.autograd.forward_ad._current_level)
a = torch.ones(2, requires_grad=True)
b = (a * 3).sin()
b.register_hook(lambda g: out.append([node.name() for node in torch._C._current_graph_task_execution_order()]))
with torch.autograd.set_multithreading_enabled(False):
    torch.autograd.grad(b, a, torch.ones(2))
failing = torch._C._functions.DelayedError("stop", 1)(a)
for target in (failing, a):
    try:
        out.append(torch.autograd.grad(failing.sum(), target)[0].tolist())
    except RuntimeError as error:
        out.append("stop" in str(error))
asymmetric = torch.tensor([[2.0, 0.3, 0.0], [0.1, 1.0, 0.2], [0.4, 0.0, 0.5]], dtype=torch.double, requires_grad=True)
largest = torch.lobpcg(asymmetric, k=1, X=torch.eye(3, 1, dtype=torch.double))[0]
out.append([round(number, 5) for row in torch.autograd.grad(largest.sum(), asymmetric)[0].tolist() for number in row])
table = torch.ones(4, 2)
reference = torch._C._WeakTensorRef(table)
out.append([reference.expired(), torch._C._autograd._saved_tensors_hooks_is_enabled()])
with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    out.append(torch._C._autograd._saved_tensors_hooks_is_enabled())
out.append(torch.nn.functional.embedding_bag(table, torch.tensor([0, 1, 2]), torch.tensor([0, 2]), mode="sum").tolist())
with torch.inference_mode():
    with torch.enable_grad():
        out.append([torch.is_grad_enabled(), torch.is_inference_mode_enabled(), (x * 2).requires_grad])
    out.append(torch.is_grad_enabled())
    z = torch.ones(1)
torch.autograd.graph.increment_version(z)
w = torch.ones(2, requires_grad=True)
torch.autograd.backward([w.sum()], grad_variables=[torch.tensor(2.0)])
out.append([w.grad.tolist(), [float(v) for v in reversed(torch.tensor([1.0, 2.0]))]])
for wrong in (lambda: torch.set_grad_enabled("x"),
              lambda: torch.autograd.backward([w.sum()], [torch.ones(())], grad_variables=[torch.ones(())])):
    try:
        wrong()
    except Exception as error:
        out.append(type(error).__name__)
print(json.dumps(out))
"""


@pytest.fixture
def stand_in_program(tmp_path):
    def run(text):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(text))
        done = subprocess.run([sys.executable, "-W", "ignore", "-m", "cygrad", str(program)], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
    return run


def test_questions_about_the_engine(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    found, expected = (json.loads(subprocess.run([sys.executable, "-W", "ignore", *start, str(program)], check=True,
                                                 capture_output=True, text=True).stdout)
                       for start in (["-m", "cygrad"], []))
    assert found == expected


@pytest.mark.parametrize("call", [lambda x: x.max(0)[0], lambda x: x.T, lambda x: x.mT, lambda x: x.norm(), lambda x:
                                  x.narrow(0, 0, 1), lambda x: x.log1p(), lambda x: x.clamp(0, 1)])
def test_names_of_nodes(call):
    import cygrad
    names = [call(library.ones(2, 2, requires_grad=True)).grad_fn.name() for library in (cygrad, torch)]
    assert names[0] == names[1]


def test_switches_are_decorators_and_calls(stand_in_program):
    stand_in_program("""
        import torch
        from torch.autograd import forward_ad
        for switch, get in ((torch.autograd.set_multithreading_enabled, torch._C._is_multithreading_enabled),
                            (torch.autograd._force_original_view_tracking, torch._C._is_view_replay_enabled),
                            (forward_ad._set_fwd_grad_enabled, torch._C._is_fwd_grad_enabled)):
            before = get()
            decorated = switch(not before)(get)
            assert (get(), decorated(), get()) == (before, not before, before)
            assert type(switch(before).clone()) is switch
        with forward_ad.dual_level(), forward_ad._set_fwd_grad_enabled(False):
            assert forward_ad.unpack_dual(forward_ad.make_dual(torch.ones(2), torch.ones(2))).tangent is None
    """)


def test_classes_of_nodes_and_errors_of_backward(stand_in_program):
    stand_in_program("""
        import torch
        x = torch.ones(2, requires_grad=True)
        Node, functions = torch.autograd.graph.Node, torch._C._functions
        assert issubclass(functions.AccumulateGrad, Node)
        assert issubclass(torch.autograd.function.BackwardCFunction, Node)
        assert isinstance((x * 2).grad_fn.next_functions[0][0], functions.AccumulateGrad)
        functions.UndefinedGrad()(x * 2).sum().backward()
        assert x.grad is None
        try:
            functions.DelayedError("not here", 1)(x).sum().backward()
        except RuntimeError as error:
            assert "not here" in str(error)
        else:
            raise AssertionError
        try:
            torch._C._autograd._unsafe_set_version_counter((torch.ones(1),), (-1,))
        except RuntimeError:
            pass
        else:
            raise AssertionError
    """)


def test_leaves_that_grad_does_not_reach_are_not_run(stand_in_program):
    stand_in_program("""
        import torch
        a = torch.ones(2, requires_grad=True)
        b = a * 2
        leaf, found = b.grad_fn.next_functions[0][0], []
        c = b * 3
        c.register_hook(lambda gradient: found.append(torch._C._will_engine_execute_node(leaf)))
        torch.autograd.grad(c.sum(), b)
        assert found == [False]
    """)
