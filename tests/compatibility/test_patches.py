"""Programs that replace attributes of PyTorch's classes and modules, or read module paths of types."""

import cygrad
from tests.compatibility.test_stand_in import run


def test_attributes_of_the_tensor_type_can_be_added_replaced_and_put_back(tmp_path):
    printed = run(tmp_path, """
        import torch
        x, told = torch.ones(2, requires_grad=True), []
        torch.Tensor.twice = lambda self: self * 2
        torch.Tensor.first = property(lambda self: self[0])
        print(x.twice().tolist(), torch.nn.Parameter(x).first.item())
        for name, call in (("__add__", lambda: x + 1), ("sum", lambda: x.sum()), ("__getitem__", lambda: x[0]),
                           ("backward", lambda: (x * 2).sum().backward()), ("__repr__", lambda: repr(x)),
                           ("__setitem__", lambda: x.detach().__setitem__(0, 1))):
            former = getattr(torch.Tensor, name)
            def replaced(self, *args, **options):
                told.append(name)
                return former(self, *args, **options)
            setattr(torch.Tensor, name, replaced)
            call()
            setattr(torch.Tensor, name, former)
            call()
        del torch.Tensor.twice
        print(told, hasattr(x, "twice"), x.grad.tolist())
        """)
    assert printed == ("[2.0, 2.0] 1.0\n['__add__', 'sum', '__getitem__', 'backward', '__repr__', '__setitem__'] False "
                       "[4.0, 4.0]\n")


def test_replaced_calls_of_modules_and_functions_are_taken_everywhere(tmp_path):
    printed = run(tmp_path, """
        import torch
        from torch import nn
        F, told, x = nn.functional, [], torch.ones(1, 2)
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        former = nn.Module.__call__
        nn.Module.__call__ = lambda self, *args: (told.append(type(self).__name__), former(self, *args))[1]
        net(x)
        nn.Module.__call__ = former
        net(x)
        for name, layer in (("linear", nn.Linear(2, 2)), ("relu", nn.ReLU()), ("softmax", nn.Softmax(1)),
                            ("silu", nn.SiLU()), ("gelu", nn.GELU()), ("layer_norm", nn.LayerNorm(2)),
                            ("hardswish", nn.Hardswish()), ("hardshrink", nn.Hardshrink())):
            function = getattr(F, name)
            setattr(F, name, lambda *args, **options: (told.append(name), function(*args, **options))[1])
            layer(x)
            setattr(F, name, function)
        print(*told)
        """)
    assert printed == "Sequential Linear ReLU linear relu softmax silu gelu layer_norm hardswish hardshrink\n"


def test_types_are_of_the_modules_of_pytorch(tmp_path):
    printed = run(tmp_path, """
        import pickle, torch
        types = (torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.nn.Linear, torch.nn.Conv2d, torch.optim.SGD,
                 torch.optim.Adam)
        print(*(f"{kind.__module__}.{kind.__qualname__}" for kind in types))
        print(all(pickle.loads(pickle.dumps(kind)) is kind for kind in types))
        torch.save(torch.nn.Linear(1, 1), "layer.pt")
        print(torch.load("layer.pt", weights_only=False), torch.compile(torch.nn.Linear(1, 1))(torch.zeros(1)).shape)
        """)
    assert printed == (
        "torch.Tensor torch.nn.parameter.Parameter torch.nn.modules.module.Module torch.nn.modules.linear.Linear "
        "torch.nn.modules.conv.Conv2d torch.optim.sgd.SGD torch.optim.adam.Adam\nTrue\n"
        "Linear(in_features=1, out_features=1, bias=True) torch.Size([1])\n")


def test_whole_modules_saved_below_the_stand_in_load_without_it(tmp_path):
    import cygrad
    run(tmp_path, """
        import torch
        torch.save(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()), "net.pt")
        """)
    net = cygrad.load(tmp_path / "net.pt", weights_only=False)
    assert type(net[0]) is cygrad.nn.Linear and net[0].weight.shape == (1, 2)


def test_call_impl_of_a_subclass_is_what_is_called():
    import cygrad

    class Counted(cygrad.nn.Linear):
        calls = 0

        def _call_impl(self, *args, **options):
            self.calls += 1
            return super()._call_impl(*args, **options)

    layer = Counted(1, 1)
    assert layer(cygrad.ones(1)).shape == (1,) and layer.calls == 1


def test_modes_are_told_of_public_functions_and_questions_ask_nothing(tmp_path):
    printed = run(tmp_path, """
        import torch
        from torch.overrides import TorchFunctionMode
        told = []
        class Noted(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                told.append(func.__name__)
                return func(*args, **(kwargs or {}))
        image, layer = torch.ones(1, 1, 4, 4), torch.nn.Conv2d(1, 1, 3)
        with Noted():
            layer(image)
            torch.nn.functional.max_pool2d(image, 2)
            torch.einsum("bchw->bc", image)
            torch.relu(image)
        told.append("end")
        torch.relu(image)
        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__
        class Watched(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs)
        print(told, torch.is_tensor(Other()), torch.nn.functional.softmax(Other(), 0), torch.einsum("i->", Other()))
        """)
    assert printed == "['conv2d', 'max_pool2d', 'einsum', 'relu', 'end'] False softmax einsum\n"


def test_packets_of_operators_are_keys_and_norms_take_their_first_argument_by_name():
    import cygrad
    from cygrad.utils.operator_modes import ops
    assert {ops.aten.mm: 1}[ops.aten.mm.default.overloadpacket] == 1 and ops.aten.mm != ops.aten.bmm
    x = cygrad.tensor([[3.0, 4.0]])
    for norm in (cygrad.linalg.norm, cygrad.linalg.vector_norm, cygrad.linalg.matrix_norm):
        assert norm(input=x).item() == 5.0


def test_methods_that_programs_add_to_the_tensor_type_do_not_ask_subclasses(tmp_path):
    printed = run(tmp_path, """
        import torch
        def marked(self, other):
            self.mark = type(other).__name__
            return self
        torch.Tensor.marked = marked
        torch.Tensor.plain = property(lambda self: type(self).__name__)
        class Refusing(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if not all(issubclass(cls, kind) for kind in types):
                    return NotImplemented
                return super().__torch_function__(function, types, args, kwargs)
        class First(Refusing): pass
        class Second(Refusing): pass
        first, second = torch.ones(2).as_subclass(First), torch.zeros(2).as_subclass(Second)
        print(first.marked(second).mark, first.plain, first.as_subclass(Second).plain)
        """)
    assert printed == "Second First Second\n"


def test_arguments_of_products_and_convolutions_are_those_of_pytorch(tmp_path):
    printed = run(tmp_path, """
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
        class Shapes(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if func.overloadpacket in (torch.ops.aten.addmm, torch.ops.aten.mm, torch.ops.aten.convolution):
                    print(func, *(tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in args))
                    args = [value * 2 if isinstance(value, torch.Tensor) else value for value in args]
                return func(*args, **(kwargs or {}))
        ones = torch.ones
        for bias in (ones(4), None):
            with Shapes():
                given = torch.nn.functional.linear(ones(2, 5, 3), ones(4, 3), bias)
            print(tuple(given.shape), given.mean().item())
        for call in (lambda: torch.conv2d(ones(1, 2, 5, 5), ones(4, 2, 3, 3), ones(4), padding=1),
                     lambda: torch.conv_transpose2d(ones(1, 2, 5, 5), ones(2, 4, 3, 3), stride=2, output_padding=1)):
            with Shapes():
                given = call()
            print(tuple(given.shape), given.mean().item() > 2 * call().mean().item())
        """)
    assert printed == """aten.addmm.default (4,) (10, 3) (3, 4)
(2, 5, 4) 14.0
aten.mm.default (10, 3) (3, 4)
(2, 5, 4) 12.0
aten.convolution.default (1, 2, 5, 5) (4, 2, 3, 3) (4,) [1, 1] [1, 1] [1, 1] False [0, 0] 1
(1, 4, 5, 5) True
aten.convolution.default (1, 2, 5, 5) (2, 4, 3, 3) None [2, 2] [0, 0] [1, 1] True [1, 1] 1
(1, 4, 12, 12) True
"""


def test_attention_calls_a_function_that_was_set_as_pytorch_does(monkeypatch):
    layer, x = cygrad.nn.MultiheadAttention(4, 2, batch_first=True), cygrad.randn(3, 5, 4)
    expected, weights = layer(x, x, x)
    seen, own = [], cygrad.nn.functional.multi_head_attention_forward

    def attend(query, key, value, *args, **options):
        seen.append((tuple(query.shape), key is query, value is key, "batch_first" in options))
        return own(query, key, value, *args, **options)

    monkeypatch.setattr(cygrad.nn.functional, "multi_head_attention_forward", attend)
    found = layer(x, x, x)
    assert seen == [((5, 3, 4), True, True, False)]
    assert cygrad.allclose(found[0], expected) and cygrad.allclose(found[1], weights)
    layer(x, x.clone(), x.clone())
    assert seen[1] == ((5, 3, 4), False, False, False)


def test_a_step_in_a_tensor_may_precede_what_is_added():
    x, y = cygrad.ones(2), cygrad.tensor([3.0, 4.0])
    assert x.add_(cygrad.tensor(-2.0), y).tolist() == [-5.0, -7.0]
    assert cygrad.ones(2).addcmul_(cygrad.tensor(2.0), y, y).tolist() == [19.0, 33.0]
