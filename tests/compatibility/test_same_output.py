"""Small programs print exactly PyTorch's output under the stand-in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAMS = {
    "random low rank": """
        A = torch.randn(3, 20, 8, dtype=torch.float64)
        for matrix in (A, A.mT):
            for factors in (torch.svd_lowrank(matrix, 4), torch.pca_lowrank(matrix, 3)):
                print([tuple(part.shape) for part in factors], factors[1], torch.rand(1))
        square = A.mT @ A
        print(torch.lobpcg(square, 2)[0], torch.rand(1))
        print(torch.lobpcg(square[0], 1, largest=False)[0].shape, torch.rand(1))
        """,
    "Sobol": """
        for options in (dict(dimension=3), dict(dimension=4, scramble=True, seed=5), dict(dimension=2, scramble=True)):
            engine = torch.quasirandom.SobolEngine(**options)
            print(engine, engine.draw(3), engine.draw(2, dtype=torch.float64).tolist(), torch.rand(1))
            print(engine.fast_forward(4).draw(), engine.reset().draw_base2(2).tolist(), engine.num_generated)
        """,
    "classes of a module": """
        import torch.nn.modules.activation as activation
        from torch.nn.modules.pooling import *
        print(activation.__all__, MaxPool2d(2))
        print({"Tanh", "GELU"} <= {kind.__name__ for kind in vars(activation).values() if isinstance(kind, type)})
        """,
    "evenly spaced numbers": """
        for dtype in (torch.float32, torch.float64):
            for start, end in ((-1, 1), (0.1, 7.3), (1e-4, 0.02), (5, -3)):
                print([torch.linspace(start, end, n, dtype=dtype).tolist() for n in (1, 2, 7, 28, 100)])
        """,
    "gradients of the identical map": """
        import torch.nn.functional as F
        for dtype in (torch.float32, torch.float64):
            for size in ((28, 28), (7, 20)):
                for aligned in (False, True):
                    image = torch.randint(0, 99, (1, 2, *size)).to(dtype)
                    theta = torch.eye(2, 3, dtype=dtype)[None]
                    grid = F.affine_grid(theta, image.shape, align_corners=aligned).requires_grad_()
                    print(grid.detach().tolist())
                    for padding in ("zeros", "border", "reflection"):
                        read = F.grid_sample(image, grid, align_corners=aligned, padding_mode=padding)
                        steps = torch.autograd.grad(read.sum(), grid)[0] / (torch.tensor(size[::-1]) - int(aligned))
                        print((2 * steps).round().int().tolist())
        """,
    "transforms with parameters": """
        class Shift(torch.distributions.Transform, torch.nn.Module):
            domain = codomain = torch.distributions.constraints.real
            bijective = True

            def __init__(self):
                super().__init__(cache_size=1)
                self.by = torch.nn.Parameter(torch.ones(2))

            def _call(self, x):
                return x + self.by

        shift = Shift()
        x = torch.zeros(2)
        y = shift(x)
        print(list(shift.state_dict()), shift._cached_x_y[0] is x, shift._cached_x_y[1] is y, shift.inv(y) is x)
        """,
    "sparse tensors in a custom Function": """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, sparse, dense):
                ctx.save_for_backward(sparse)
                return torch.mm(sparse, dense)

            @staticmethod
            def backward(ctx, gradient):
                return None, torch.mm(ctx.saved_tensors[0].t(), gradient)

        dense = torch.ones(3, 2, requires_grad=True)
        Product.apply((torch.arange(9.0).view(3, 3) % 4).to_sparse(), dense).sum().backward()
        print(dense.grad, dense._cdata == dense._cdata, dense._cdata == dense.grad._cdata)
        """,
    "an iterator draws its seed when it is made": """
        from torch.utils.data import DataLoader
        iterator = iter(DataLoader(range(6), batch_size=2, shuffle=True))
        print(torch.rand(1), next(iterator), torch.rand(1))
        """,
    "equal elements": """
        for n in (12, 17, 64, 300, 5000):
            lengths = torch.randint(0, n // 4, (n,))
            for values in (lengths, lengths.float(), torch.stack([lengths, lengths.flip(0)], 1), (lengths % 2).byte()):
                for descending in (False, True):
                    order = torch.sort(values, 0, descending=descending)[1]
                    print(n, values.dtype, (order * torch.arange(n).view(-1, *[1] * (order.ndim - 1))).sum().item(),
                          (torch.argsort(values, 0, descending) == order).all().item(),
                          torch.sort(values, dim=0, descending=descending, stable=True)[1][:9].tolist())
                for k in (1, 3, n // 65, n // 2, n):
                    for largest in (False, True):
                        chosen = values.topk(k, 0, largest)[1]
                        print(k, chosen[:9].tolist(), chosen.sum().item(),
                              values.topk(k, 0, largest, sorted=False)[1][:9].tolist())
        print(torch.sort(torch.tensor([float("nan"), 1.0] * 20), descending=True)[1].tolist())
        print(torch.sort(torch.randint(0, 9, (40000,)))[1][:9].tolist())
        """,
    "packed sequences of equal lengths": """
        from torch.nn.utils.rnn import pack_padded_sequence
        lstm = torch.nn.LSTM(4, 5, 2, dropout=0.5, batch_first=True)
        lengths = torch.randint(1, 9, (40,))
        packed = pack_padded_sequence(torch.randn(40, 8, 4), lengths, batch_first=True, enforce_sorted=False)
        print(packed.sorted_indices, round(lstm(packed)[0].data.sum().item(), 3))
        """,
    "prefixes of state dicts": """
        state = {"module.a": 1}
        torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        print(state, torch.nn.modules.utils._pair(3))
        state = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).state_dict()
        torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
        print(list(state), dict(state._metadata))
        """,
    "containers of parameters": """
        parameters = {"a": torch.nn.Parameter(torch.zeros(2, 3)), "b": torch.zeros(1, dtype=torch.float64)}
        print(torch.nn.ParameterDict(parameters), torch.nn.ParameterList(parameters.values()))
        """,
    "optimizers": """
        print(torch.optim.SGD([{"params": torch.zeros(1)}, {"params": torch.zeros(2), "lr": 1}], lr=0.5))
        """,
    "errors": """
        for value in ("a", ["a"], [1, "a"], [[1], ["a"]], b"a", [b"a"]):
            try:
                torch.tensor(value)
            except Exception as error:
                print(value, type(error))
        """,
}


def output(library, folder, programs):
    """What programs print, one after another in one process."""
    path = folder / "programs.py"
    path.write_text("import textwrap, torch, warnings\nwarnings.simplefilter('ignore')\n"
                    f"for name, text in {programs!r}.items():\n    print('\\f' + name)\n"
                    "    torch.manual_seed(0)\n    exec(textwrap.dedent(text))\n")
    done = subprocess.run([sys.executable, *library, str(path)], capture_output=True, text=True, cwd=folder,
                          check=False, env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])})
    assert done.returncode == 0, done.stderr
    return dict(part.split("\n", 1) for part in done.stdout.split("\f")[1:])


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What all of them print, by PyTorch and under the stand-in."""
    folder = tmp_path_factory.mktemp("programs")
    return output((), folder, PROGRAMS), output(("-m", "cygrad"), folder, PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_output(name, outputs):
    theirs, ours = outputs
    assert ours[name] == theirs[name]


def test_whole_modules_of_pytorch(tmp_path):
    saves = {"save": "torch.save(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LSTM(3, 3)), 'whole.pt')"}
    loads = {"load": """
        net = torch.load("whole.pt", weights_only=False)
        print(net, net(torch.ones(1, 2))[0].detach())
        """}
    output((), tmp_path, saves)
    assert output(("-m", "cygrad"), tmp_path, loads) == output((), tmp_path, loads)


def test_a_file_of_safetensors(tmp_path):
    pytest.importorskip("safetensors")
    assert "tensor([1., 1.])" in output(("-m", "cygrad"), tmp_path, {"file": """
        from safetensors import safe_open
        from safetensors.torch import save_file
        save_file({"a": torch.ones(2)}, "a.safetensors")
        with safe_open("a.safetensors", "pt") as file:
            print(file.get_tensor("a"))
        """})["file"]
