"""Programs that import torch run with cygrad in its place; missing names raise an error."""

import subprocess
import sys
import textwrap

import pytest


def run(tmp_path, program, *arguments, how=None, input=None):
    """The output of a program below ``python -m cygrad``."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    command = [sys.executable, "-W", "error", *(how or ("-m", "cygrad", str(path))), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, input=input)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_program_with_arguments_and_neighbors(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.ones(2)\n")
    assert run(tmp_path, """
        import sys
        import torch
        import helper
        print(sys.argv[1:], __name__, __file__.endswith("program.py"), sys.modules["__main__"].torch is torch)
        print(helper.value, torch.__version__ >= "2.1", torch.__version__ > (1, 8))
        print(type(helper.value).__module__.split(".")[0])
        """, "-a", "b").splitlines() == [
            "['-a', 'b'] __main__ True True", "tensor([1., 1.]) True True", "torch"]


def test_module_form(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text("import sys, torch\nprint(sys.argv[1:], torch.zeros(1))\n")
    assert run(tmp_path, "", "x", how=("-m", "cygrad", "-m", "package")) == "['x'] tensor([0.])\n"


def test_text_of_the_command_line_and_of_standard_input(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.ones(1)\n")
    text = "import sys, helper; print(sys.argv, __name__, helper.value, sys.path[0] == '')"
    told = "['x'] __main__ tensor([1.]) True\n"
    assert run(tmp_path, "", "x", how=("-m", "cygrad", "-c", text)) == told.replace("[", "['-c', ", 1)
    assert run(tmp_path, "", "x", how=("-m", "cygrad", "-"), input=text) == told.replace("[", "['-', ", 1)


def test_losses_are_noted_in_arrays(tmp_path):
    assert run(tmp_path, """
        import numpy as np
        import torch
        losses = np.zeros(2)
        losses[1] = torch.ones((), requires_grad=True) * 3
        print(losses)
        """) == "[0. 3.]\n"


def test_named_results_are_printed_as_in_pytorch(tmp_path):
    answer = run(tmp_path, """
        import torch
        print(torch.sort(torch.tensor([2.0, 1.0])))
        print(torch.distributions.Normal(torch.zeros(2), torch.ones(2)))
        """)
    assert answer.splitlines() == ["torch.return_types.sort(", "values=tensor([1., 2.]),", "indices=tensor([1, 0]))",
                                   "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"]


def test_function_form_and_its_refusal(tmp_path):
    program = """
        import cygrad
        cygrad.stand_in()
        cygrad.stand_in()
        import torch
        import importlib.metadata
        print(torch.Tensor is cygrad.Tensor, torch.nn is cygrad.nn, importlib.metadata.version("torch"))
        """
    assert run(tmp_path, program, how=(str(tmp_path / "program.py"),)) == "True True 2.13.0\n"
    refused = """
        import sys, types
        sys.modules["torch"] = types.ModuleType("torch")
        import cygrad
        try:
            cygrad.stand_in()
        except RuntimeError as error:
            print(error)
        """
    assert "imported already" in run(tmp_path, refused, how=(str(tmp_path / "program.py"),))


def test_classes_with_torch_function_do_not_change_vmap_and_sparse_tensors(tmp_path):
    assert run(tmp_path, """
        import torch

        class Own(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs or {})

        seen = []
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
        for function in (torch.add, torch.sub, torch.div, torch.cdist,
                         lambda a, b: torch.einsum("...i,...i->...", a, b)):
            entries = torch.vmap(lambda a: function(a[None], a[None] + 1))(x)
            assert torch.equal(entries, torch.stack([function(a[None], a[None] + 1) for a in x]))
        print(torch.vmap(torch.std)(x), torch.add(x.to_sparse(), x.to_sparse()).is_sparse, seen)
        torch.std(x.as_subclass(Own))
        print(seen)
        """).splitlines() == ["tensor([0.7071, 1.4142]) True []", "['std']"]


def test_nothing_changes_without_it(tmp_path):
    assert run(tmp_path, """
        import sys
        import cygrad
        print([name for name in sys.modules if name.startswith(("torch", "cygrad.compatibility"))])
        print(cygrad.zeros(2, 3).shape, cygrad.float32, cygrad.__version__)
        """, how=(str(tmp_path / "program.py"),)).splitlines()[0] == "[]"


def test_names_print_as_those_of_torch(tmp_path):
    assert run(tmp_path, """
        import torch
        x = torch.zeros(2, 3, dtype=torch.float64)
        print(x.shape, x.dtype, x.type(), x.layout, torch.channels_last, x.shape[1:], torch.FloatTensor)
        print(x.double().sum())
        """) == (
            "torch.Size([2, 3]) torch.float64 torch.DoubleTensor torch.strided torch.channels_last torch.Size([3]) "
            "<class 'torch.FloatTensor'>\ntensor(0., dtype=torch.float64)\n")


def test_imports_in_all_their_forms(tmp_path):
    assert run(tmp_path, """
        import torch.nn.functional as F
        import torch.nn as nn, torch.optim.lr_scheduler, torch.utils.data.dataloader, torch.cuda.amp
        from torch.utils.data import DataLoader, TensorDataset
        from torch.utils.data.sampler import SubsetRandomSampler
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.modules.utils import _pair
        from torch.nn.modules.loss import _Loss
        from torch.nn.parameter import Parameter
        from torch.nn.init import xavier_uniform_
        from torch.optim.lr_scheduler import _LRScheduler, StepLR
        from torch.optim.optimizer import Optimizer
        from torch.autograd import Function, Variable
        from torch.utils.checkpoint import checkpoint
        from torch.backends import cudnn
        from torch import Tensor, device, nn as again
        from torch.types import Device, Number
        from torch._C import Size
        import cygrad
        assert F is cygrad.nn.functional and nn is again is cygrad.nn and nn.modules is cygrad.nn.modules
        assert issubclass(nn.BatchNorm2d, _BatchNorm) and issubclass(nn.MSELoss, _Loss)
        assert issubclass(StepLR, _LRScheduler) and nn.modules.linear.Linear is nn.Linear is nn.modules.Linear
        assert _pair(3) == (3, 3) and isinstance(nn.Dropout(), nn.modules.dropout._DropoutNd)
        assert cygrad.nn.__spec__.name == "cygrad.nn" and cygrad.nn.__name__ == "cygrad.nn"
        print("done")
        """) == "done\n"


MISSING = {
    "torch.foo": "AttributeError: torch.foo is not in cygrad",
    "torch.nn.Foo": "AttributeError: torch.nn.Foo is not in cygrad",
    "torch.nn.functional.foo": "AttributeError: torch.nn.functional.foo",
    "torch.quantize_per_tensor": "There is no quantization",
    "exec('from torch import foo')": "torch.foo",
    "exec('import torch.foo')": "torch.foo",
    "exec('from torch.nn import Foo')": "cannot import name 'Foo' from 'torch.nn'",
    "exec('from torch.nn.modules.conv import Foo')": "torch.nn.modules.conv.Foo",
    "torch.fx.symbolic_trace(print)": "NotImplementedError: torch.fx.symbolic_trace is not available in cygrad",
    "torch.onnx.export(None, None)": "torch.onnx.export is not available",
    "torch.cuda.current_device()": "no such device",
    "torch.cuda.Stream()": "which has no streams",
    "torch.device('nonsense')": "no such type (got 'nonsense')",
    "torch.ones(2, dtype=torch.float8_e5m2)": "float8_e5m2 is not supported for tensors",
}


def test_what_is_missing_says_so(tmp_path):
    told = run(tmp_path, f"""
        import torch
        for expression in {list(MISSING)}:
            try:
                eval(expression)
            except Exception as error:
                print(type(error).__name__ + ": " + str(error))
            else:
                print("nothing")
        """).splitlines()
    for expression, line in zip(MISSING, told, strict=True):
        assert MISSING[expression] in line, (expression, line)


def test_modules_that_are_only_imported(tmp_path):
    assert run(tmp_path, """
        import torch, torch.fx, torch.onnx, torch._dynamo, torch.utils.tensorboard, torch.profiler
        from torch.fx import GraphModule
        from torch.fx.experimental.proxy_tensor import make_fx
        from typing import Optional
        def f(x: Optional[GraphModule] = None): return isinstance(x, GraphModule)
        class Traced(torch.fx.Tracer): pass
        torch._dynamo.config.suppress_errors = True
        torch._dynamo.reset()
        print(f(1), torch.distributed.is_available(), hasattr(torch, "foo"), hasattr(torch.nn, "Foo"))
        """) == "False True False False\n"


def test_processes_of_every_kind(tmp_path):
    assert run(tmp_path, """
        import multiprocessing
        import torch
        def work(n):
            return torch.ones(n).sum().item(), repr(torch.float32)
        if __name__ == "__main__":
            for method in ("spawn", "forkserver", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(work, [3]))
        """).splitlines() == [f"{method} [(3.0, 'torch.float32')]" for method in ("spawn", "forkserver", "fork")]


def test_pickles_find_their_classes(tmp_path):
    assert run(tmp_path, """
        import pickle, copy
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        again = pickle.loads(pickle.dumps((model, torch.float32, torch.Size([2]), torch.device("cpu"))))
        assert torch.equal(again[0][0].weight, model[0].weight) and again[1:] == (
            torch.float32, torch.Size([2]), torch.device("cpu"))
        named = pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.")
        print(named is nn.Linear, copy.deepcopy(torch.channels_last) is torch.channels_last)
        """) == "True True\n"


def test_a_usual_program_trains(tmp_path):
    lines = run(tmp_path, """
        import torch, torch.nn as nn, torch.nn.functional as F
        from torch.utils.data import DataLoader, TensorDataset
        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = True
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
        scaler = torch.cuda.amp.GradScaler(enabled=torch.cuda.is_available())
        x = torch.randn(64, 4, device=device)
        data = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16, shuffle=True, num_workers=2)
        for epoch in range(20):
            for x, y in data:
                x, y = x.to(device, non_blocking=True), y.to(device)
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast(device_type=device.type, enabled=False):
                    loss = F.cross_entropy(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            print(loss.item())
        """).split()
    assert float(lines[-1]) < 0.3 * float(lines[0])


@pytest.mark.parametrize("arguments", [("--help",), ("-x",), (), ("absent.py",)])
def test_command_line(tmp_path, arguments):
    answer = subprocess.run([sys.executable, "-m", "cygrad", *arguments], capture_output=True, text=True, check=False)
    assert ("usage" in answer.stdout + answer.stderr) == (arguments != ("absent.py",))
    assert (answer.returncode == 0) == (arguments == ("--help",)) and "Traceback" not in answer.stderr


def test_function_transforms_are_there_under_the_stand_in(tmp_path):
    assert run(tmp_path, """
        import torch
        from torch.func import functional_call, grad, vmap
        from torch.nn.utils.stateless import functional_call as former
        from torch._functorch.apis import vmap as private
        assert private is torch.vmap is vmap and former is functional_call
        print(vmap(grad(torch.sin))(torch.zeros(2)))
        """) == "tensor([1., 1.])\n"
