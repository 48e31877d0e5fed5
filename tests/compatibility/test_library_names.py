"""Private names that libraries import from torch."""

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch

import cygrad
from cygrad.compatibility import flex_attention, library, overrides, pytree_names, quasirandom
from tests.compatibility.test_stand_in import run

PATHS = [
    "torch._C._functorch.is_batchedtensor", "torch.utils._foreach_utils._group_tensors_by_device_and_dtype",
    "torch.nn._reduction.get_enum", "torch.serialization.DEFAULT_PROTOCOL",
    "torch.utils.data.dataloader._collate_fn_t", "torch.utils.data._utils.collate.default_collate_fn_map",
    "torch.utils.data.IterDataPipe", "torch.ops.aten.add.Tensor", "torch.return_types.max",
    "torch.return_types.topk", "torch.utils._pytree._dict_flatten_with_keys", "torch.jit.annotations.List",
    "torch.ao.quantization.QuantStub", "torch.distributed.tensor.Shard", "torch.cuda.nvtx.range_push",
    "torch.hub.HASH_REGEX", "torch.nn.attention.flex_attention.create_block_mask", "torch.quasirandom.SobolEngine",
    "torch.Tensor._make_subclass", "torch.distributed.GroupMember.WORLD", "torch._dynamo.eval_frame.OptimizedModule",
    "torch.library.custom_op", "torch.nn.functional.BroadcastingList2", "torch._C.DispatchKeySet",
    "torch.backends.mps.is_macos_or_newer",
]


def test_paths(tmp_path):
    printed = run(tmp_path, f"""
        import importlib, torch
        for path in {PATHS!r}:
            parts = path.split(".")
            for n in range(2, len(parts)):
                try:
                    importlib.import_module(".".join(parts[:n]))
                except ImportError:
                    break
            found = torch
            for part in parts[1:]:
                found = getattr(found, part)
            assert type(found).__name__ not in ("Anything", "Absent"), path
        try:
            torch.ops.load_library("some.so")
        except OSError as error:
            print(error)
        print(torch.distributed.rpc.is_available(), torch.zeros(1).type(torch.DoubleTensor).dtype)
        print(isinstance(torch.ones(2).max(0), torch.return_types.max))
        """)
    assert printed == ("some.so: extensions for PyTorch cannot be loaded by cygrad.\nFalse torch.float64\nTrue\n")


# ------------------------------------------------------------------------------------------------- attention
def causal(batch, head, query, key):
    return query >= key


def near(batch, head, query, key):
    return (query - key).abs() < 3


def slope(score, batch, head, query, key):
    return score - (query - key).abs() * 0.1 * (head + 1)


def expected_attention(query, key, value, score_mod, allowed):
    """By the definition, in PyTorch."""
    times = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = (query @ key.mT) / query.shape[-1] ** 0.5
    places = [torch.arange(n).reshape([n if at == dim else 1 for at in range(4)]) for dim, n in enumerate(scores.shape)]
    if score_mod is not None:
        scores = score_mod(scores, *places)
    for function in allowed:
        scores = scores.masked_fill(~function(*places), -torch.inf)
    return scores.softmax(-1) @ value


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("mod", [None, slope])
@pytest.mark.parametrize("allowed", [(), (causal,), (causal, near)])
def test_flex_attention(heads, mod, allowed):
    generator = torch.Generator().manual_seed(0)
    arrays = [torch.randn(2, n, 8, 16, generator=generator, dtype=torch.float64) for n in (4, heads, heads)]
    tensors = [cygrad.tensor(array.numpy(), requires_grad=True) for array in arrays]
    mask = flex_attention.create_block_mask(flex_attention.and_masks(*allowed), None, None, 8, 8) if allowed else None
    result = flex_attention.flex_attention(*tensors, score_mod=mod, block_mask=mask, enable_gqa=heads == 2)
    result.square().sum().backward()
    references = [array.requires_grad_() for array in arrays]
    expected = expected_attention(*references, mod, allowed)
    expected.square().sum().backward()
    for found, wanted in [(result.detach(), expected.detach()), *((x.grad, y.grad) for x, y in zip(
            tensors, references, strict=True))]:
        assert abs(found.numpy() - wanted.numpy()).max() < 1e-12


def test_nobody_to_be_met_and_what_else_is_returned():
    query = cygrad.ones(1, 1, 2, 4)
    mask = flex_attention.create_block_mask(lambda batch, head, query, key: query > key, None, None, 2, 2)
    result, lse = flex_attention.flex_attention(query, query, query, block_mask=mask, return_lse=True)
    assert result[0, 0].tolist() == [[0.0] * 4, [1.0] * 4] and lse[0, 0].tolist() == [-cygrad.inf, 2.0]
    _, further = flex_attention.flex_attention(query, query, query, return_aux=flex_attention.AuxRequest(lse=True))
    assert further.lse.shape == (1, 1, 2) and further.max_scores is None


def test_masks_of_pairs():
    mask = flex_attention.create_block_mask(flex_attention.or_masks(causal, near), None, None, 4, 4)
    assert mask.to_dense().tolist() == [[[[1, 1, 1, 0], [1] * 4, [1] * 4, [1] * 4]]]
    assert mask.sparsity() == pytest.approx(100 / 16) and "sparsity" in repr(mask)


# --------------------------------------------------------------------------------------------- operators of one's own
def test_operators_of_a_program():
    @library.custom_op("test_names::cube", mutates_args=())
    def cube(x: cygrad.Tensor, times: float = 1.0) -> cygrad.Tensor:
        return x ** 3 * times

    @cube.register_fake
    def _(x, times=1.0):
        return cygrad.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.times = inputs[1]

    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 3 * x ** 2 * ctx.times * grad, None

    library.register_autograd("test_names::cube", backward, setup_context=setup)
    x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    library.ops.test_names.cube(x, times=2.0).sum().backward()
    assert x.grad.tolist() == [6.0, 24.0] and cube(x).tolist() == [1.0, 8.0]


def test_operators_by_signature():
    names = library.Library("test_more", "DEF")
    names.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="test_more::twice"):
        library.ops.test_more.twice(cygrad.ones(1))
    names.impl("twice", lambda x: 2 * x, "CPU")
    assert library.ops.test_more.twice.default(cygrad.ones(1)).tolist() == [2.0]
    assert library.ops.aten.add.Tensor(cygrad.ones(1), 2).tolist() == [3.0]
    with pytest.raises(AttributeError, match="custom_op"):
        _ = library.ops.test_more.absent


# ----------------------------------------------------------------------------------------- layers as functions
@pytest.mark.parametrize(("kind", "name"), [("LSTM", "lstm"), ("GRU", "gru"), ("RNN", "rnn_tanh")])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_recurrent_layers_as_functions(kind, name, bidirectional, packed):
    torch.manual_seed(0)
    reference = getattr(torch.nn, kind)(3, 4, 2, bidirectional=bidirectional)
    weights, x = list(reference.parameters()), torch.randn(5, 2, 3)
    state = torch.randn(4 if bidirectional else 2, 2, 4)
    answers = []
    for framework in (torch, cygrad):
        own = [framework.tensor(part.detach().numpy()) for part in (*weights, x, state)]
        hx = [own[-1], own[-1]] if kind == "LSTM" else own[-1]
        given = (own[-2].reshape(10, 3), framework.tensor([2] * 5), hx) if packed else (own[-2], hx)
        last = () if packed else (False,)
        if framework is cygrad:
            layer = getattr(cygrad.nn, kind)(3, 4, 2, bidirectional=bidirectional)
            assert [part.shape for part in layer._flat_weights] == [part.shape for part in weights]
        answers.append(getattr(framework, name)(*given, own[:-2], True, 2, 0.0, False, bidirectional, *last))
    assert len(answers[0]) == len(answers[1])
    for expected, found in zip(*answers, strict=True):
        assert abs(expected.numpy() - found.numpy()).max() < 1e-6


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_lstm_with_projections_as_function(bias, batch_first):
    torch.manual_seed(0)
    reference = torch.nn.LSTM(3, 4, 2, bias=bias, bidirectional=True, proj_size=2)
    batch = 5 if batch_first else 2
    given = [torch.randn(5, 2, 3), torch.randn(4, batch, 2), torch.randn(4, batch, 4),
             *(weight.detach() for weight in reference.parameters())]
    answers = []
    for framework in (torch, cygrad):
        x, h, c, *weights = (framework.tensor(part.numpy()) for part in given)
        answers.append(framework.lstm(x, (h, c), weights, bias, 2, 0.0, False, True, batch_first))
    for expected, found in zip(*answers, strict=True):
        assert abs(expected.numpy() - found.numpy()).max() < 1e-6


def test_recurrent_functions_name_themselves_in_errors():
    weights = [cygrad.zeros(12, 3), cygrad.zeros(12, 4), cygrad.zeros(12), cygrad.zeros(12)]
    for x, params, message in ((cygrad.zeros(2, 2, 3), weights[:3], r"gru: params must hold 4 weights .*got 3 for 1"),
                               (cygrad.zeros(2, 2, 5), weights, r"gru: expected input with input_size features")):
        with pytest.raises(RuntimeError, match=message):
            cygrad.gru(x, cygrad.zeros(1, 2, 4), params, True, 1, 0.0, False, False, False)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.0])
def test_segments(reduce, initial):
    data = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    options = {} if initial is None else {"initial": initial}
    expected = torch.segment_reduce(data, reduce, lengths=torch.tensor([2, 1, 3]), **options)
    lengths, own = cygrad.tensor([2, 1, 3]), cygrad.tensor(data.numpy())
    found = cygrad.segment_reduce(own, reduce, lengths=lengths, **options)
    assert abs(found.numpy() - expected.numpy()).max() < 1e-6
    rows = cygrad.segment_reduce(own.mT.contiguous(), reduce, lengths=lengths.expand(3, 3), axis=1, **options)
    assert abs(rows.mT.numpy() - expected.numpy()).max() < 1e-6
    with pytest.raises(RuntimeError, match="add up"):
        cygrad.segment_reduce(own, reduce, lengths=cygrad.tensor([1, 2]))


# ------------------------------------------------------------------------------------------------------ the rest
def test_blocks_that_take_functions_over():
    class Doubled(overrides.TorchFunctionMode):
        seen = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen += (func,)
            return func(*args, **(kwargs or {})) * (2 if func is cygrad.add else 1)

    x = cygrad.ones(2, requires_grad=True)
    with Doubled() as mode:
        y = (x + 1).sum()
        x.detach().mul_(2)
    assert y.item() == 8 and mode.seen[0] is cygrad.add and [func.__name__ for func in mode.seen][-1] == "mul_"
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0] and (cygrad.ones(1) + 1).item() == 2
    with pytest.raises(NotImplementedError, match="__torch_function__"), overrides.TorchFunctionMode():
        cygrad.ones(1) + 1


def test_quasirandom_numbers():
    engine, expected = quasirandom.SobolEngine(3), torch.quasirandom.SobolEngine(3)
    assert engine.draw(4).tolist() == expected.draw(4).tolist()
    engine.fast_forward(4), expected.fast_forward(4)
    assert engine.draw(8, dtype=cygrad.float64).tolist() == expected.draw(8, dtype=torch.float64).tolist()
    assert engine.reset().draw_base2(1).tolist() == expected.reset().draw_base2(1).tolist()
    assert 0 <= quasirandom.SobolEngine(2, scramble=True).draw(16).min() < 1


def test_paths_of_leaves():
    from torch.utils import _pytree
    tree = {"a": [1, (2, 3)], "b": {"c": 4}}
    found, _ = pytree_names.tree_flatten_with_path(tree)
    expected, _ = _pytree.tree_flatten_with_path(tree)
    assert [(pytree_names.keystr(path), leaf) for path, leaf in found] == [
        (_pytree.keystr(path), leaf) for path, leaf in expected]
    assert pytree_names.tree_map_with_path(lambda path, leaf: leaf * len(path), tree) == {
        "a": [2, (6, 9)], "b": {"c": 8}}
    assert pytree_names.key_get(tree, found[2][0]) == 3 and pytree_names.tree_is_leaf(3)


def test_stubs_of_quantization(tmp_path):
    assert run(tmp_path, """
        import torch
        from torch.ao.quantization import DeQuantStub, QuantStub
        model = torch.nn.Sequential(QuantStub(), torch.nn.Identity(), DeQuantStub())
        plus = torch.ao.nn.quantized.FloatFunctional()
        print(plus.add_relu(model(torch.ones(2)), torch.tensor([-2.0, 1.0])))
        """) == "tensor([0., 2.])\n"


def test_split_by_either_name():
    assert [len(part) for part in cygrad.arange(5).split(split_size=2)] == [2, 2, 1]
    with pytest.raises(TypeError, match="split"):
        cygrad.arange(5).split()


def test_private_functions_that_programs_copy(tmp_path):
    program = """
        import typing, torch
        from torch import nn
        from torch.distributions.normal import broadcast_all
        from torch.distributions.transforms import ExpTransform, _InverseTransform
        from torch.fx.experimental.proxy_tensor import get_proxy_mode
        from torch.nn import functional as F
        from torch.nn.modules.module import _addindent
        from torch.nn.modules.transformer import _get_clones
        from torch.optim.lbfgs import _cubic_interpolate, _strong_wolfe

        matrix, x = torch.arange(1.0, 5.0).diag(), torch.ones(4)
        def value_and_gradient(x, t, d):
            at = x + t * d
            return float(at @ matrix @ at / 2), matrix @ at
        f, g = value_and_gradient(x, 0.0, x)
        for first in (1.0, 0.01, 0.3):
            value, gradient, step, calls = _strong_wolfe(value_and_gradient, x, first, -g, f, g, -g.dot(g))
            print(f"{float(value):.5f} {gradient.norm():.5f} {float(step):.5f}", calls)
        slopes = torch.tensor(-1.0), torch.tensor(4.0)
        for bounds in (None, (0.1, 0.2)):
            print(f"{float(_cubic_interpolate(0.0, 1.0, slopes[0], 2.0, 3.0, slopes[1], bounds=bounds)):.5f}")
        print(len(_get_clones(nn.Linear(2, 2), 3)), repr(_addindent("a\\nb", 2)), len(broadcast_all(1.0, 2.0)))
        print(F._canonical_mask(torch.tensor([True, False]), "mask", None, "other", torch.float32).tolist())
        q, w, b = torch.arange(8.0).reshape(2, 1, 4), torch.arange(48.0).reshape(12, 4), torch.arange(12.0)
        print([part.sum().item() for part in F._in_projection_packed(q, q, q, w, b)])
        print(type(ExpTransform().inv) is _InverseTransform, get_proxy_mode())
        loss = nn.CrossEntropyLoss()
        loss.__annotations__ = typing.get_type_hints(loss)
        F.relu.initialized_by = F.leaky_relu.initialized_by = nn.init.zeros_
        print(F.relu.initialized_by is F.leaky_relu.initialized_by, loss(torch.zeros(1, 2), torch.tensor([1])).item())
    """
    text = textwrap.dedent(program)
    expected = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    assert run(tmp_path, program) == expected and "True None" in expected


def test_operators_keep_what_programs_set_on_them():
    cygrad.sin.calls = 3
    assert cygrad.sin.calls == 3 and not hasattr(cygrad.cos, "calls")
    with pytest.raises(AttributeError, match="attribute 'name' cannot be set"):
        cygrad.sin.name = "cos"
    with pytest.raises(AttributeError, match="operator 'sin' has no attribute 'wrong'"):
        cygrad.sin.wrong  # noqa: B018


def test_the_attributes_of_a_tensor_can_be_replaced():
    class Image(cygrad.Tensor):
        pass
    for x in (cygrad.ones(2), cygrad.ones(2).as_subclass(Image)):
        shared = {"size": 3}
        x.former, x.__dict__ = 1, shared
        x.added = x                                       # a cycle, which the collector sees
        assert vars(x) is shared and not hasattr(x, "former") and sorted(shared) == ["added", "size"]
        with pytest.raises(TypeError):
            x.__dict__ = [1]
    held = weakref.ref(x)
    del x, shared
    gc.collect()
    assert held() is None


def test_a_loader_says_whether_its_data_set_is_a_stream():
    class Loader(cygrad.utils.data.DataLoader):
        _dataset_kind = 1

    class Numbers:
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 5
    assert [batch.tolist() for batch in Loader(Numbers(), batch_size=2)] == [[0, 1], [2, 3], [4]]


def test_wrapper_subclasses_are_recognized_and_transformed(tmp_path):
    printed = run(tmp_path, """
        import torch
        from torch.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass
        class Pair(torch.Tensor):
            @staticmethod
            def __new__(cls, first, second):
                pair = torch.Tensor._make_wrapper_subclass(cls, first.shape, dtype=first.dtype)
                pair.first, pair.second = first, second
                return pair
            def __tensor_flatten__(self):
                return ["first", "second"], "context"
            @staticmethod
            def __tensor_unflatten__(inner, context, size, stride):
                print(context, size, stride)
                return Pair(**inner)
        pair = Pair(torch.ones(2), torch.zeros(2))
        print(is_traceable_wrapper_subclass(pair), is_traceable_wrapper_subclass(torch.ones(2)))
        double = transform_subclass(pair, lambda name, part: part + len(name))
        print(type(double).__name__, double.first.tolist(), double.second.tolist())
        """)
    assert printed == "True False\ncontext torch.Size([2]) (1,)\nPair [6.0, 6.0] [6.0, 6.0]\n"


def test_predicates_of_what_is_absent_answer_false(tmp_path):
    printed = run(tmp_path, """
        import torch
        from torch._subclasses.fake_tensor import FakeTensor, is_fake
        x = torch.ones(1)
        print(is_fake(x), isinstance(x, FakeTensor), torch.onnx.is_in_onnx_export(),
              torch.fx._symbolic_trace.is_fx_tracing())
        for error in (RuntimeError, AssertionError):
            try:
                x.to("cuda")
            except error as caught:
                print(str(caught).partition(" (")[0])
        """)
    assert printed == "False False False False\nto: no such device\nto: no such device\n"
