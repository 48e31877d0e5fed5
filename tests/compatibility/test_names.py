"""Rarely used names compute the values of PyTorch."""

import gzip
import json
import threading
import warnings

import numpy as np
import pytest

import cygrad

torch = pytest.importorskip("torch")


def both(expression, **arrays):
    """What an expression gives in both libraries; `T` is the library, arrays are tensors of it."""
    found = []
    for library in (cygrad, torch):
        values = {name: library.tensor(value) if isinstance(value, (np.ndarray, list)) else value
                  for name, value in arrays.items()}
        found.append(eval(expression, {"T": library, **values}))
    return found


def plain(value):
    """Tensors as arrays, also within tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def same(expression, rtol=1e-5, atol=1e-6, **arrays):
    ours, theirs = map(plain, both(expression, **arrays))
    ours, theirs = (value if isinstance(value, list) else [value] for value in (ours, theirs))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol, atol)


rng = np.random.default_rng(0)
x = rng.normal(size=(2, 6, 5)).astype("float32")
image = rng.normal(size=(2, 4, 9, 8)).astype("float32")
vector = rng.normal(size=6).astype("float32")
positive = np.abs(vector)
index = np.array([[1, 2], [0, 1]])

FORMS = [
    "T.batch_norm(x, v, v, v, p, False, 0.1, 1e-5, True)", "T.layer_norm(x, [5])", "T.group_norm(x, 3, v, v)",
    "T.instance_norm(x, v, v, None, None, True, 0.1, 1e-5, True)", "T.embedding(x[0], i)", "T.dropout(x, 0.5, False)",
    "T.feature_dropout(x, 0.5, False)", "T.alpha_dropout(x, 0.5, False)", "T.kl_div(x, x.abs(), 2)",
    "T.constant_pad_nd(x, (1, 2), 3.0)", "T.norm_except_dim(x, 2, 1)", "T.norm_except_dim(x, 2, -1)",
    "T.nuclear_norm(x)", "T.frobenius_norm(x, (1, 2))", "T.native_layer_norm(x, [5], None, None, 1e-5)",
    "T.convolution(m, m[:2].detach(), None, [2, 1], [1, 0], [1, 1], False, [0, 0], 1)",
    "T.convolution(m, m[0, :, :3, :2].reshape(4, 1, 3, 2), None, [2, 1], [1, 0], [1, 1], True, [1, 0], 1)",
    "T.conv_tbc(x, T.ones(3, 5, 2), T.ones(2), 1)", "T.max_pool1d_with_indices(x, 2)",
    "T.grid_sampler(m, T.zeros(2, 3, 3, 2), 0, 0, False)", "T.embedding_bag(x[0], i.flatten(), T.tensor([0, 1]))[0]",
    "T.affine_grid_generator(T.ones(2, 2, 3), [2, 1, 3, 3], False)", "T.native_channel_shuffle(m, 2)",
    "T.native_group_norm(x, v, v, 2, 6, 5, 3, 1e-5)", "T.native_group_norm(x[:0], v, v, 0, 6, 5, 3, 1e-5)",
    "T.view_copy(x, (12, 5))", "T.unbind_copy(x)",
    "T.transpose_copy(x, 0, 1)", "T._foreach_add([x, v], 2)", "T._foreach_mul([x, v], [3.0, 4.0])",
    "T._foreach_sub([x, v], [x, v], alpha=3)", "T._foreach_norm([x, v])", "T._foreach_maximum([v], 0.5)",
    "T._foreach_addcmul([x, v], [x, v], [x, v], value=2.0)", "T._foreach_lerp([x, v], [-x, -v], 0.25)",
    "T._foreach_addcdiv([v, v], [v, v], [p, p], [1.0, 2.0])", "T._foreach_pow([p], 2)", "T._foreach_sqrt([p])",
    "x.narrow_copy(1, 2, 3)", "x.prelu(T.ones(1) * 0.5)", "T._shape_as_tensor(x)",
]


@pytest.mark.filterwarnings("ignore:.*is deprecated and it is just left")
@pytest.mark.parametrize("expression", FORMS)
def test_forms_at_the_top_level(expression):
    same(expression, x=x, v=vector, p=positive, i=index, m=image)


def test_lists_are_changed_in_place():
    tensors = [cygrad.ones(2), cygrad.ones(3)]
    assert cygrad._foreach_add_(tensors, [cygrad.ones(2), cygrad.zeros(3)], alpha=2) is None
    cygrad._foreach_zero_(tensors[1:])
    cygrad._foreach_copy_(tensors[:1], [cygrad.full((2,), 4.0)])
    assert [tensor.tolist() for tensor in tensors] == [[4.0, 4.0], [0.0, 0.0, 0.0]]
    with pytest.raises(RuntimeError, match="lists must have one length"):
        cygrad._foreach_add(tensors, [1.0])


@pytest.mark.parametrize("name", cygrad.signal.windows.__all__)
@pytest.mark.parametrize("sym", [True, False])
def test_windows(name, sym):
    options = {"general_cosine": "a=[0.4, 0.5, 0.1], ", "exponential": "tau=2.0, ", "gaussian": "std=2.0, ",
               "kaiser": "beta=5.0, "}.get(name, "")
    for length in (0, 1, 2, 9, 10):
        same(f"T.signal.windows.{name}({length}, {options}sym={sym}, dtype=T.float64)", 1e-9, 1e-9)
    with pytest.raises(ValueError, match="must not be negative"):
        getattr(cygrad.signal.windows, name)(-1)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling(n):
    volume = rng.normal(size=(2, 3, 9, 8, 7)[:n + 2]).astype("float32")
    samples = rng.random((2, 3, n)).astype("float32")
    for options in ("2, output_size=3", "(3, 2, 2)[:n], output_ratio=(0.5, 0.5, 0.5)[:n]", "1, output_size=1"):
        same(f"T.nn.functional.fractional_max_pool{n}d(v, {options}, return_indices=True, _random_samples=s)",
             v=volume, s=samples, n=n)
    same(f"T.autograd.grad(T.nn.FractionalMaxPool{n}d(2, 3, _random_samples=s)(v.requires_grad_()).square().sum(), v)",
         v=volume, s=samples)
    assert getattr(cygrad.nn, f"FractionalMaxPool{n}d")(2, 3)(cygrad.tensor(volume[0])).shape == (3,) + (3,) * n
    with pytest.raises(ValueError, match="exactly one"):
        getattr(cygrad.nn, f"FractionalMaxPool{n}d")(2)
    with pytest.raises(RuntimeError, match="exceed the input"):
        getattr(cygrad.nn.functional, f"fractional_max_pool{n}d")(cygrad.tensor(volume), 7, 5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions(n):
    sizes = (7, 6, 5)[:n]
    data, weight = rng.normal(size=(2, 4, *sizes)), rng.normal(size=(6, 2, *[3] * n))
    result = f"T.nn.functional.conv{n}d(x, w, None, 2, 1, 1, 2)"
    same(f"T.nn.grad.conv{n}d_input(x.shape, w, {result}, 2, 1, 1, 2)", x=data, w=weight)
    same(f"T.nn.functional.grad.conv{n}d_weight(x, w.shape, {result}, 2, 1, 1, 2)", x=data, w=weight)


def test_fusing_layers_with_batch_norms():
    cygrad.manual_seed(0)
    for layer, norm, shape in (
            (cygrad.nn.Conv2d(3, 4, 3), cygrad.nn.BatchNorm2d(4), (2, 3, 5, 5)),
            (cygrad.nn.Conv1d(3, 4, 3, bias=False), cygrad.nn.BatchNorm1d(4, affine=False), (2, 3, 5)),
            (cygrad.nn.Linear(3, 4), cygrad.nn.BatchNorm1d(4), (2, 3)),
            (cygrad.nn.ConvTranspose2d(3, 4, 3), cygrad.nn.BatchNorm2d(4), (2, 3, 5, 5))):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        layer, norm, data = layer.eval(), norm.eval(), cygrad.randn(*shape)
        if isinstance(layer, cygrad.nn.Linear):
            fused = cygrad.nn.utils.fuse_linear_bn_eval(layer, norm)
        else:
            fused = cygrad.nn.utils.fuse_conv_bn_eval(layer, norm, isinstance(layer, cygrad.nn.ConvTranspose2d))
        assert cygrad.allclose(fused(data), norm(layer(data)), atol=1e-5)
    with pytest.raises(AssertionError, match="evaluation mode"):
        cygrad.nn.utils.fuse_conv_bn_eval(cygrad.nn.Conv2d(1, 1, 1), cygrad.nn.BatchNorm2d(1))


PRUNINGS = [
    'l1_unstructured(m, "weight", 0.3)', 'l1_unstructured(m, "weight", 5)', 'ln_structured(m, "weight", 2, 2, 0)',
    'ln_structured(m, "weight", 0.5, 1, 1)', 'identity(m, "weight")',
    'custom_from_mask(m, "weight", (m.weight > 0).float())',
    'global_unstructured([(m, "weight"), (m, "bias")], prune.L1Unstructured, amount=0.4)',
]


@pytest.mark.parametrize("first", PRUNINGS)
@pytest.mark.parametrize("second", PRUNINGS)
def test_pruning(first, second):
    weight, found = rng.normal(size=(4, 5)).astype("float32"), []
    for library in (cygrad, torch):
        prune = __import__(f"{library.__name__}.nn.utils.prune", fromlist=["prune"])
        m = library.nn.Linear(5, 4)
        m.weight.data, m.bias.data = library.tensor(weight), library.tensor(weight[:, 0].copy())
        for call in (first, second):
            eval(f"prune.{call}", {"prune": prune, "m": m})
        m(library.ones(1, 5)).sum().backward()
        found.append((m.weight.detach().numpy(), m.weight_mask.numpy(), m.weight_orig.grad.numpy(),
                      sorted(m.state_dict())))
        prune.remove(m, "weight")
        assert prune.is_pruned(m) == hasattr(m, "bias_mask") and isinstance(m.weight, library.nn.Parameter)
        found[-1] += (m.weight.detach().numpy(),)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_pruning_by_chance_and_refusals():
    from cygrad.nn.utils import prune
    layer = prune.random_unstructured(cygrad.nn.Linear(6, 4), "weight", 10)
    assert layer.weight_mask.sum() == 14
    assert prune.random_structured(cygrad.nn.Linear(6, 4), "weight", 1, 0).weight_mask.sum() == 18
    for wrong in (lambda: prune.l1_unstructured(layer, "weight", 1.5),
                  lambda: prune.l1_unstructured(layer, "weight", 99),
                  lambda: prune.remove(cygrad.nn.Linear(1, 1), "weight"),
                  lambda: prune.ln_structured(layer, "bias", 1, 2, 0)):
        with pytest.raises(ValueError, match=r"amount|not pruned|dimensions"):
            wrong()


@pytest.mark.parametrize(("name", "options"), [
    ("Adafactor", {}), ("Adafactor", {"lr": 0.3, "weight_decay": 0.1, "maximize": True, "eps": (1e-5, 0.1)}),
    ("Adafactor", {"d": 2.0, "beta2_decay": -0.5}),
])
def test_optimizers(name, options):
    weight, found = rng.normal(size=(4, 5)).astype("float32"), []
    for library in (cygrad, torch):
        parameters = [library.tensor(weight, requires_grad=True), library.tensor(weight[0], requires_grad=True)]
        optimizer = getattr(library.optim, name)(parameters, **options)
        for _ in range(5):
            optimizer.zero_grad()
            sum((parameter ** 3).sum() for parameter in parameters).backward()
            optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        found.append([parameter.detach().numpy() for parameter in parameters])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_is_close_to_its_form_in_16_bits(adjust, nesterov):
    weight, found = rng.normal(size=(6, 4)).astype("float32"), []
    for library in (cygrad, torch):
        parameter = library.tensor(weight, requires_grad=True)
        optimizer = library.optim.Muon([parameter], lr=0.02, adjust_lr_fn=adjust, nesterov=nesterov)
        for _ in range(3):
            optimizer.zero_grad()
            parameter.square().sum().backward()
            optimizer.step()
        found.append(parameter.detach().numpy())
    assert np.abs(found[0] - found[1]).max() < 0.05 * np.abs(found[1] - weight).max()
    with pytest.raises(ValueError, match="must be matrices"):
        cygrad.optim.Muon([cygrad.ones(2, requires_grad=True)])


def test_rare_layers_and_aliases():
    same("T.nn.functional.local_response_norm(m, 3)", m=image)
    assert issubclass(cygrad.nn.NLLLoss2d, cygrad.nn.NLLLoss)
    assert cygrad.nn.CrossMapLRN2d(3)(cygrad.tensor(image)).shape == image.shape
    assert [name for name, _ in cygrad.nn.Container(a=cygrad.nn.ReLU()).named_children()] == ["a"]
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        cygrad.nn.utils.clip_grad_norm([cygrad.ones(2)], 1.0)
    convolution = cygrad.nn.Conv2d(3, 4, 3)
    cygrad.nn.utils.convert_conv2d_weight_memory_format(convolution, cygrad.channels_last)
    assert convolution.weight.is_contiguous(memory_format=cygrad.channels_last)


def test_low_rank_factorizations():
    matrix = cygrad.randn(20, 4, dtype=cygrad.float64) @ cygrad.randn(4, 9, dtype=cygrad.float64)
    U, S, V = cygrad.svd_lowrank(matrix, 4)
    assert cygrad.allclose(U @ S.diag() @ V.mT, matrix)
    assert cygrad.allclose(cygrad.pca_lowrank(matrix, 4)[1], cygrad.linalg.svdvals(matrix - matrix.mean(0))[:4])
    square = matrix.mT @ matrix
    assert cygrad.allclose(cygrad.lobpcg(square, 2)[0], cygrad.linalg.eigvalsh(square).flip(0)[:2])


@pytest.mark.parametrize("call", ["cauchy_(1.0, 2.0)", "log_normal_(0.5, 0.7)", "geometric_(0.3)"])
def test_rare_random_numbers_are_those_of_pytorch(call):
    from cygrad.random.generator import own_generator
    torch.manual_seed(5)
    theirs = eval(f"torch.empty(40).{call}", {"torch": torch}).numpy()
    generator = cygrad.Generator(algorithm="mt19937").manual_seed(5)
    with own_generator(generator):
        ours = eval(f"cygrad.empty(40).{call}", {"cygrad": cygrad}).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert eval(f"cygrad.empty(4).{call}", {"cygrad": cygrad}).isfinite().all()


def test_counts_that_are_drawn():
    assert abs(cygrad.poisson(cygrad.full((4000,), 3.0)).mean().item() - 3) < 0.2
    drawn = cygrad.binomial(cygrad.full((4000,), 10.0), cygrad.tensor(0.3))
    assert abs(drawn.mean().item() - 3) < 0.2 and drawn.max() <= 10


def test_hub_with_local_files(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "import cygrad\nfrom helper import size\ndependencies = ['numpy']\n"
        "def net(n=1):\n    '''A layer.'''\n    return cygrad.nn.Linear(size, n)\n")
    (tmp_path / "helper.py").write_text("size = 3\n")
    assert cygrad.hub.load(str(tmp_path), "net", 2, source="local").weight.shape == (2, 3)
    assert "net" in cygrad.hub.list(str(tmp_path)) and cygrad.hub.help(str(tmp_path), "net") == "A layer."
    cygrad.save({"w": cygrad.ones(1)}, tmp_path / "w.pt")
    assert cygrad.hub.load_state_dict_from_url("https://somewhere/w.pt", model_dir=str(tmp_path))["w"].item() == 1
    with pytest.raises(RuntimeError, match="downloads are not supported"):
        cygrad.hub.load("pytorch/vision", "resnet18")
    with pytest.raises(RuntimeError, match="no function 'other'"):
        cygrad.hub.load(str(tmp_path), "other", source="local")


def test_futures():
    future = cygrad.futures.Future()
    later = future.then(lambda done: done.value() + 1).then(lambda done: 1 / (done.wait() - 5))
    threading.Timer(0.01, future.set_result, (4,)).start()
    with pytest.raises(ZeroDivisionError):
        later.wait()
    assert future.done() and cygrad.futures.wait_all([future, future]) == [4, 4]


def test_timer():
    from cygrad.compatibility.benchmark import Compare, Timer
    found = [Timer("x + 1", globals={"x": cygrad.ones(n)}, label="add", sub_label=str(n), description=text)
             .blocked_autorange(min_run_time=0.01) for n in (1, 9) for text in ("first", "second")]
    assert all(1e-8 < result.median < 1e-2 and result.number_per_run > 1 for result in found)
    table = str(Compare(found))
    assert all(text in table for text in ("first", "second", "add 9")) and len(table.splitlines()) == 4
    assert Timer("1 + 1").adaptive_autorange(min_run_time=0.001).mean < 1e-5


# ------------------------------------------------------------------------------------------------------------ profiler

def test_profiler_sees_operations_nodes_and_ranges(tmp_path):
    from cygrad.profiler import profile, record_function
    w = cygrad.ones(3, 3, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("forward"):
            y = (w @ w).exp_().sum()
        y.backward()
    (w * w).sum().backward()                            # not seen
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts["matmul"] == counts["exp_"] == counts["sum"] == counts["forward"] == counts["AccumulateGrad"] == 1
    assert {"MatmulBackward0", "ExpBackward0", "SumBackward0"} <= set(counts) and "mul" not in counts
    inside = next(event for event in prof.events() if event.name == "matmul")
    assert inside.cpu_parent.name == "forward" and inside.input_shapes == [[3, 3], [3, 3]]
    assert 0 < inside.cpu_time <= inside.cpu_parent.cpu_time
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert "Self CPU" in text and "CPU Mem" in text and len(text.splitlines()) == 8
    for name in ("trace.json", "trace.json.gz"):
        prof.export_chrome_trace(tmp_path / name)
        content = (tmp_path / name).read_bytes()
        content = gzip.decompress(content) if name.endswith("gz") else content
        names = {event["name"] for event in json.loads(content)["traceEvents"]}
        assert {"matmul", "forward", "ExpBackward0"} <= names
    prof.export_stacks(tmp_path / "stacks")
    assert any(line.startswith("forward;matmul ") for line in (tmp_path / "stacks").read_text().splitlines())


def test_profiler_with_a_schedule():
    from cygrad.profiler import profile, schedule
    seen = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda prof: seen.append(
            (prof.step_num, sum(event.name == "add" for event in prof.events())))) as prof:
        for _ in range(10):
            cygrad.ones(2) + 1
            prof.step()
    assert seen == [(4, 2), (8, 2)]


def test_profiler_nests_and_survives_errors():
    from cygrad.profiler import profile, record_function
    with profile() as outer:
        with profile() as inner:
            cygrad.ones(2) + 1
        with pytest.raises(RuntimeError):
            cygrad.ones(2) @ cygrad.ones(3)
        cygrad.ones(2) * 2
    assert [event.name for event in inner.events()] == ["add"]
    assert {"matmul", "mul"} <= {event.name for event in outer.events()}
    with record_function("not recorded"), profile(enabled=False) as nothing:
        cygrad.ones(2) + 1
    assert not nothing.events()
    gradients = []
    for watched in (True, False):
        w = cygrad.linspace(0, 1, 5, requires_grad=True)
        with profile(enabled=watched), warnings.catch_warnings():
            warnings.simplefilter("error")
            (w.sin() * w.exp()).sum().backward()
        gradients.append(w.grad)
    assert cygrad.equal(*gradients)


def test_modules_of_utilities_are_found_below_the_package():
    import cygrad.utils.tensorboard as _writers
    from cygrad.utils.hooks import RemovableHandle

    handle = cygrad.ones(1, requires_grad=True).register_hook(print)
    assert isinstance(handle, RemovableHandle) and _writers.SummaryWriter
    assert cygrad.utils.benchmark.Timer("1 + 1").timeit(10).mean > 0
    assert cygrad.utils.dlpack.from_dlpack is cygrad.from_dlpack
    assert cygrad.quasirandom.SobolEngine(2).draw(2).tolist() == [[0.0, 0.0], [0.5, 0.5]]


def test_operators_are_registered_without_the_stand_in():
    @cygrad.library.custom_op("tests::squares", mutates_args=())
    def squares(x: cygrad.Tensor) -> cygrad.Tensor:
        return cygrad.from_numpy(np.square(x.numpy()))

    squares.register_autograd(lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
                              setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x = cygrad.tensor([3.0], requires_grad=True)
    squares(x).backward()
    assert x.grad.item() == 6


def test_copies_of_views_are_contiguous():
    x = cygrad.arange(12.0).reshape(3, 4)
    for copy in (cygrad.t_copy(x), cygrad.as_strided_copy(x, (2, 2), (1, 2)), *cygrad.split_copy(x.t(), 2)):
        assert copy.is_contiguous()
