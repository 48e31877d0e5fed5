"""Devices, layouts, memory formats, meta tensors, sizes, dtype limits and names."""

import copy
import pickle

import numpy as np
import pytest

import cygrad
from cygrad import nn
from tests.tools import run_program


def test_device_is_a_value():
    assert cygrad.device("cuda:1") == cygrad.device("cuda", 1) == cygrad.device(type="cuda", index=1)
    assert cygrad.device("cpu") != cygrad.device("cpu:0")
    assert (str(cygrad.device("cuda:1")), repr(cygrad.device("cpu"))) == ("cuda:1", "device(type='cpu')")
    assert len({cygrad.device("cpu"), cygrad.device(cygrad.device("cpu"))}) == 1
    assert pickle.loads(pickle.dumps(cygrad.device("cuda:1"))) == copy.deepcopy(cygrad.device("cuda:1"))
    for wrong in ("nonsense", "cuda:x", "cuda:-1", "cuda:01", ""):
        with pytest.raises(RuntimeError, match="device"):
            cygrad.device(wrong)
    with pytest.raises(TypeError, match="expected a name"):
        cygrad.device(1.5)


def test_device_is_accepted_and_refused():
    for place in ("cpu", "cpu:0", cygrad.device("cpu"), cygrad.device("cpu", 0)):
        for made in (cygrad.zeros(2, device=place), cygrad.tensor([1.0], device=place), cygrad.rand(2, device=place),
                     cygrad.arange(3, device=place), cygrad.ones(1).to(place),
                     cygrad.zeros_like(cygrad.ones(1), device=place)):
            assert made.device == cygrad.device("cpu") and made.is_cpu and not made.is_cuda and made.get_device() == -1
        assert nn.Linear(1, 1, device=place).to(place).weight.layout is cygrad.strided
    for call in (lambda: cygrad.zeros(2, device="cuda"), lambda: cygrad.ones(1).to("cuda:0"),
                 lambda: cygrad.ones(1).cuda(),
                 lambda: nn.Linear(1, 1).to("mps"),
                 lambda: nn.Linear(1, 1).cuda(), lambda: cygrad.rand(1, device="xpu"),
                 lambda: cygrad.set_default_device("cuda"), lambda: cygrad.Generator("cuda")):
        with pytest.raises(RuntimeError, match="no such device"):
            call()
    assert not cygrad.cuda.is_available() and cygrad.cuda.device_count() == 0
    assert not cygrad.backends.mps.is_available() and cygrad.version.cuda is None


def test_meta_tensors_have_shapes_and_no_memory():
    x = cygrad.empty(1 << 20, 1 << 20, device="meta")
    assert x.is_meta and x.numel() == 1 << 40 and x.stride() == (1 << 20, 1) and x.is_contiguous()
    assert repr(cygrad.zeros(2, device="meta")) == "tensor(..., device='meta', size=(2,))"
    small = cygrad.ones(2, 3, device="meta")
    for made, shape in ((small + 1, (2, 3)), (small @ small.t(), (2, 2)), (small.sum(0), (3,)), (small[0], (3,)),
                        (small.view(-1), (6,)), (cygrad.cat([small, small]), (4, 3)), (small.clone(), (2, 3)),
                        (cygrad.ones_like(small), (2, 3)), (small.new_zeros(4), (4,)), (small[:1, :1] * 2, (1, 1))):
        assert made.is_meta and made.shape == shape
    huge = cygrad.empty(1 << 31, 1 << 20, device="meta")           # nothing is computed: this would take weeks
    assert huge.sum().is_meta and huge.amax(0).shape == (1 << 20,) and huge.std().shape == huge.any().shape == ()
    for made in (huge * 2 + 1, huge > 0, huge.t().exp(), huge.to(cygrad.complex128), huge.clone(), huge.add_(1)):
        assert made.is_meta and made.numel() == huge.numel()       # nor is there so much memory
    assert (small.t() * cygrad.ones(2)).shape == (3, 2) and small.clone().add_(1).contiguous().is_meta
    assert small.normal_() is small and small.zero_() is small and small.add_(1).is_meta
    with pytest.raises(RuntimeError, match="shapes"):
        small @ small
    for read in (small.tolist, small.numpy, small.cpu, small.sum().item, lambda: bool(small.sum()),
                 lambda: cygrad.ones(2, 3).copy_(small)):
        with pytest.raises(NotImplementedError, match="has no elements"):
            read()


def test_views_of_meta_tensors_stay_on_the_one_zero():
    """A view by dtype must not read out of bounds for other strides."""
    assert run_program("""
import cygrad
x = cygrad.empty(2, 2**22, device="meta", dtype=cygrad.float64)
for view in (x.view(cygrad.uint8), x[1:].view(cygrad.int32), x.view(cygrad.complex128)[:, 7:], x.t().flatten()):
    print(view.roll(1).shape == view.shape and view.roll(1).is_meta)
""") == ["True"] * 4


def test_default_device():
    with cygrad.device("meta"):
        model = nn.Linear(3, 4)
        assert cygrad.rand(2).is_meta and cygrad.tensor([1.0]).is_meta and cygrad.eye(2).is_meta
    assert not cygrad.zeros(1).is_meta and model.weight.is_meta
    with pytest.raises(NotImplementedError, match="has no elements"):
        model.to("cpu")
    assert model.to_empty(device="cpu") is model and not model.weight.is_meta and model.weight.shape == (4, 3)
    assert nn.utils.skip_init(nn.Linear, 3, 4).weight.shape == (4, 3)
    cygrad.set_default_device("meta")
    try:
        assert cygrad.zeros(1).is_meta
    finally:
        cygrad.set_default_device(None)


def test_memory_formats():
    x = cygrad.arange(48.0).view(1, 2, 4, 6)
    y = x.contiguous(memory_format=cygrad.channels_last)
    assert y.stride() == (48, 1, 12, 2) and cygrad.equal(x, y)
    assert x.contiguous(memory_format=cygrad.contiguous_format) is x
    assert y.is_contiguous(memory_format=cygrad.channels_last) and not y.is_contiguous()
    assert y.contiguous(memory_format=cygrad.channels_last).data_ptr() == y.data_ptr()
    assert y.clone().stride() == y.stride() == x.clone(memory_format=cygrad.channels_last).stride()
    assert y.clone(memory_format=cygrad.contiguous_format).is_contiguous()
    assert nn.Conv2d(2, 3, 3).to(memory_format=cygrad.channels_last).weight.is_contiguous(
        memory_format=cygrad.channels_last)
    with pytest.raises(RuntimeError, match="4 dimensions"):
        x[0].contiguous(memory_format=cygrad.channels_last)


def test_size():
    size = cygrad.zeros(2, 3).shape
    assert isinstance(size, cygrad.Size) and isinstance(size, tuple) and size == (2, 3) and hash(size) == hash((2, 3))
    for part in (size[1:], size + (1,), (1, *size) and (1,) + size, size * 2, cygrad.zeros(2, 3).size(),      # noqa: RUF005
                 pickle.loads(pickle.dumps(size)), copy.deepcopy(size)):
        assert type(part) is cygrad.Size
    assert size[0] == 2 and type(size[0]) is int and size.numel() == 6 and cygrad.Size([]).numel() == 1
    with pytest.raises(TypeError, match="integers"):
        cygrad.Size([1.5])


def test_types_with_names_only():
    assert cygrad.float8_e5m2.itemsize == 1 and cygrad.float8_e5m2.is_floating_point
    assert cygrad.float32 not in (cygrad.float16, cygrad.bfloat16) and cygrad.float16 == np.dtype("float16")
    for dtype in (cygrad.bfloat16, cygrad.float8_e5m2):
        assert pickle.loads(pickle.dumps(dtype)) is dtype
    for use in (lambda: cygrad.zeros(1, dtype=cygrad.float8_e5m2), lambda: cygrad.ones(1).to(cygrad.float8_e4m3fn),
                lambda: cygrad.tensor([1], dtype=cygrad.qint8)):
        with pytest.raises(TypeError, match="is not supported for tensors"):
            use()


def test_limits():
    torch = pytest.importorskip("torch")
    for name in ("float16", "bfloat16", "float32", "float64", "complex64"):
        for limit in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
            assert getattr(cygrad.finfo(getattr(cygrad, name)), limit) == getattr(
                torch.finfo(getattr(torch, name)), limit), (name, limit)
    for name in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32"):
        for limit in ("bits", "max", "min"):
            assert getattr(cygrad.iinfo(getattr(cygrad, name)), limit) == getattr(
                torch.iinfo(getattr(torch, name)), limit), (name, limit)


def test_old_constructors():
    assert cygrad.Tensor(2, 3).shape == (2, 3) and cygrad.Tensor(cygrad.Size([2])).shape == (2,)
    assert cygrad.Tensor([1, 2]).dtype is cygrad.float32 and cygrad.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert cygrad.LongTensor([1.0, 2]).dtype is cygrad.int64 and isinstance(cygrad.ones(1), cygrad.FloatTensor)
    assert not isinstance(cygrad.ones(1), cygrad.LongTensor) and cygrad.ones(1).new([1, 2]).dtype is cygrad.float32
    assert cygrad.FloatTensor().shape == cygrad.ones(2).new().shape == (0,)
    for wrong in (lambda: cygrad.Tensor(1.5), lambda: cygrad.Tensor([1], [2]),
                  lambda: cygrad.LongTensor(cygrad.ones(1))):
        with pytest.raises(TypeError):
            wrong()


def test_storages_and_resizing():
    x = cygrad.arange(6).view(2, 3)
    assert x[1].storage().tolist() == [0, 1, 2, 3, 4, 5] and x.untyped_storage().nbytes() == 48
    assert x.untyped_storage().data_ptr() == x.data_ptr() == x.t().untyped_storage().data_ptr()
    assert x.resize_(3, 3).shape == (3, 3) and x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(2).tolist() == [0, 1] and x.resize_as_(cygrad.ones(4)).tolist() == [0, 1, 2, 3]
    assert cygrad.empty(0).set_(cygrad.arange(4.0).storage(), 1, (2,)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("make", [
    lambda **o: cygrad.hann_window(4, **o), lambda **o: cygrad.hamming_window(1, **o),
    lambda **o: cygrad.blackman_window(4, **o), lambda **o: cygrad.bartlett_window(4, **o),
    lambda **o: cygrad.kaiser_window(4, **o), lambda **o: cygrad.signal.windows.kaiser(4, **o),
    lambda **o: cygrad.tril_indices(3, 3, **o), lambda **o: cygrad.triu_indices(3, 3, **o),
    lambda **o: cygrad.fft.fftfreq(4, **o), lambda **o: cygrad.fft.rfftfreq(4, **o),
])
def test_whatever_makes_tensors_obeys_device(make):
    assert make(device="cpu:0").is_cpu and make(device=cygrad.device("meta")).is_meta
    assert make(device="meta").shape == make().shape and make(device="meta").dtype is make().dtype
    with pytest.raises(RuntimeError, match=r"\w+: no such device"):
        make(device="cuda")


def test_sparse_tensors_are_on_the_cpu():
    assert cygrad.sparse_coo_tensor([[0]], [1.0], (2,), device="cpu").to_dense().tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="no such device"):
        cygrad.sparse_coo_tensor([[0]], [1.0], (2,), device="cuda")


def test_memory_formats_of_other_sizes_and_types():
    x = cygrad.rand(2, 3, 4, 5)
    for made in (cygrad.empty(0).resize_(2, 3, 4, 5, memory_format=cygrad.channels_last),
                 cygrad.empty(0).resize_as_(x, memory_format=cygrad.channels_last),
                 cygrad.empty(2, 3, 4, 5).resize_(2, 3, 4, 5, memory_format=cygrad.channels_last),
                 x.type(cygrad.float64, memory_format=cygrad.channels_last)):
        assert made.is_contiguous(memory_format=cygrad.channels_last) and made.shape == x.shape
