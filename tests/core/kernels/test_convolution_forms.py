"""Each convolution algorithm compared with the definition, for all layouts and numbers of threads."""

import numpy as np
import pytest

import cygrad
import cygrad.nn.functional as F
from cygrad._core.kernels.convolution.convolution import FORMS, chosen_form, force_form
from cygrad._core.table.operator import operators
from cygrad.autograd import gradgradcheck
from tests.core.kernels.test_convolution import convolved, in_some_layout

DIRECTIONS = ("forward", "input", "weight")


@pytest.fixture(params=FORMS)
def form(request):
    """All convolutions that the form can compute are computed by it."""
    force_form(request.param)
    yield request.param
    force_form(None)


@pytest.fixture
def three_threads():
    before = cygrad.get_num_threads()
    cygrad.set_num_threads(3)
    yield
    cygrad.set_num_threads(before)


def problem(form, seed):
    """Shapes of images and kernels, stride, padding, dilation and groups that the form can compute."""
    random = np.random.default_rng(seed)
    n, groups, batch = int(random.integers(1, 4)), int(random.choice([1, 2, 5])), int(random.choice([0, 1, 3, 9]))
    if form == "winograd":
        n = 2
    if form == "interleaved":
        n = min(n, 2)
    if form == "linear":
        groups = 1
    kernel, stride = random.integers(1, 6 if n < 3 else 3, n), random.integers(1, 4, n)
    padding, dilation = random.integers(0, 4, n), random.integers(1, 4, n)
    channels, outputs = random.integers(1, 7, 2)
    if form == "winograd":
        kernel[:], stride[:], dilation[:] = 3, 1, 1
        padding %= 3
        channels, outputs = random.integers(1, 35, 2)
    sizes = np.maximum(dilation * (kernel - 1) + 1 - 2 * padding, 1) + random.integers(0, 12 if n < 3 else 4, n)
    if form == "linear":
        sizes = random.integers(1, 4, n)
        padding, dilation[:] = random.integers(0, 3, n), 1
        kernel = sizes + padding + random.integers(0, padding + 1)
        stride = padding + 1
    return ((batch, int(channels * groups), *sizes.tolist()), (int(outputs * groups), int(channels), *kernel.tolist()),
            stride.tolist(), padding.tolist(), dilation.tolist(), groups)


def tensor(array):
    """The same layout, negative strides aside, which NumPy's memory may not have here."""
    if 0 in array.strides and array.size:
        return cygrad.tensor(np.ascontiguousarray(array[:1])).expand(*array.shape)
    backwards = [axis for axis, step in enumerate(array.strides) if step < 0]
    return cygrad.from_numpy(np.flip(array, backwards)).flip(*backwards) if backwards else cygrad.from_numpy(array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(15))
def test_definition(form, seed, dtype):
    """The result with a bias, and both gradients by what makes them transposes of it."""
    images, kernel, *options = problem(form, seed)
    random = np.random.default_rng(1000 + seed)
    assert {chosen_form(way, images, kernel, *options, cygrad.float64) for way in DIRECTIONS} == {form}
    x, weight = (in_some_layout(random, random.standard_normal(shape).astype(dtype)) for shape in (images, kernel))
    bias = random.standard_normal(kernel[0]).astype(dtype)
    found = operators.convolution(tensor(x), tensor(weight), cygrad.tensor(bias), *options)
    wide = x.astype(float), weight.astype(float)
    expected = convolved(*wide, *options) + bias.reshape(-1, *[1] * (x.ndim - 2))
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(found.numpy(), expected, tolerance, tolerance * 10)
    grad = random.standard_normal(expected.shape).astype(dtype)
    against = convolved(*wide, *options)
    for name, other, shape, mine in (("convolution_input_backward", tensor(weight), images, wide[0]),
                                     ("convolution_weight_backward", tensor(x), kernel, wide[1])):
        arguments = (None, shape) if name == "convolution_input_backward" else (shape,)
        back = getattr(operators, name)(tensor(grad), other, *arguments, *options).numpy().astype(float)
        np.testing.assert_allclose((back * mine).sum(), (against * grad).sum(), tolerance * 10, tolerance * 100)
    # The product with one array says little about each element; a unit gradient says all of some.
    if grad.size:
        place = tuple(random.integers(0, size) for size in grad.shape)
        unit = np.zeros_like(grad)
        unit[place] = 1
        back = operators.convolution_input_backward(tensor(unit), tensor(weight), None, images, *options).numpy()
        at = tuple(random.integers(0, size) for size in images)
        probe = np.zeros(images)
        probe[at] = 1
        np.testing.assert_allclose(back[at], convolved(probe, wide[1], *options)[place], tolerance, tolerance)


LARGE = [((5, 24, 30, 31), (20, 24, 3, 3), 1), ((3, 24, 30, 31), (48, 1, 3, 3), 24),
         ((2, 160, 9, 9), (70, 160, 3, 3), 1), ((17, 4, 20, 21), (8, 4, 3, 3), 1),
         # Winograd's form: few tiles of many kernels, and many blocks of such tiles.
         ((1, 200, 9, 9), (160, 200, 3, 3), 1), ((20, 200, 13, 13), (160, 200, 3, 3), 1)]


@pytest.mark.parametrize(("images", "kernel", "groups"), LARGE)
def test_forms_agree(form, images, kernel, groups):
    """Compare each element of large problems, for any tiles."""
    random = np.random.default_rng(5)
    x, weight = (cygrad.tensor(random.standard_normal(shape)) for shape in (images, kernel))
    grad = cygrad.tensor(random.standard_normal((images[0], kernel[0], *images[2:])))
    bias = cygrad.tensor(random.standard_normal(images[1]))
    options = ([1, 1], [1, 1], [1, 1], groups)

    def results(name):
        force_form(name)
        return [operators.convolution(x, weight, None, *options).numpy(),
                operators.convolution_input_backward(grad, weight, bias, images, *options).numpy(),
                operators.convolution_weight_backward(grad, x, kernel, *options).numpy()]

    for found, expected in zip(results(form), results("columns"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize(("images", "kernel", "groups"), LARGE)
def test_bits_depend_on_neither_threads_nor_layout(form, images, kernel, groups, three_threads):
    random = np.random.default_rng(0)
    x, weight = (cygrad.tensor(random.standard_normal(shape).astype(np.float32)) for shape in (images, kernel))
    apart = cygrad.stack([x, x], -1)[..., 0]
    options = ([1, 1], [1, 1], [1, 1], groups)
    grad = cygrad.tensor(random.standard_normal((images[0], kernel[0], *images[2:])).astype(np.float32))

    def results(x, grad):
        return [found.numpy().tobytes() for found in (
            operators.convolution(x, weight, None, *options),
            operators.convolution_input_backward(grad, weight, None, images, *options),
            operators.convolution_weight_backward(grad, x, kernel, *options))]

    expected = results(x, grad)
    assert results(x, grad) == expected
    with cygrad.threads(1):
        assert results(x, grad) == expected
    if form != "columns":
        assert results(apart, grad.transpose(2, 3).contiguous().transpose(2, 3)) == expected


@pytest.mark.parametrize(("images", "kernel", "groups"), LARGE)
def test_what_memory_held_before_does_not_matter(form, images, kernel, groups):
    """Buffers from the cache hold old values; lanes without a channel must not read them."""
    random = np.random.default_rng(0)
    x, weight = (cygrad.tensor(random.standard_normal(shape).astype(np.float32)) for shape in (images, kernel))
    grad = cygrad.tensor(random.standard_normal((images[0], kernel[0], *images[2:])).astype(np.float32))
    options = ([1, 1], [1, 1], [1, 1], groups)

    def results(before):
        found = []
        for call in (lambda: operators.convolution(x, weight, None, *options),
                     lambda: operators.convolution_input_backward(grad, weight, None, images, *options),
                     lambda: operators.convolution_weight_backward(grad, x, kernel, *options)):
            waste = [cygrad.full((1 << size,), before) for size in range(8, 22) for _ in range(4)]
            del waste
            found.append(call().numpy().tobytes())
        return found

    with cygrad.threads(1):
        assert results(float("nan")) == results(0.0)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("which", ["image", "kernel", "grad"])
def test_inf_and_nan_stay_where_they_belong(form, which, bad):
    """A tile, or a line of zeros between two others, must not spread them."""
    random = np.random.default_rng(3)
    images, kernel, options = (1, 2, 11, 10), (3, 2, 3, 3), ([1, 1], [0, 0], [1, 1], 1)
    x, weight, grad = (random.standard_normal(shape) for shape in (images, kernel, (1, 3, 9, 8)))
    {"image": x, "kernel": weight, "grad": grad}[which][0, 1, 2, 0] = bad
    tensors = [cygrad.tensor(array) for array in (x, weight, grad)]

    def finite(forced):
        force_form(forced)
        return [np.isfinite(found.numpy()) for found in (
            operators.convolution(tensors[0], tensors[1], None, *options),
            operators.convolution_input_backward(tensors[2], tensors[1], None, images, *options),
            operators.convolution_weight_backward(tensors[2], tensors[0], kernel, *options))]

    for found, expected in zip(finite(form), finite("columns"), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_second_derivatives(form):
    cygrad.manual_seed(0)
    x, weight = cygrad.randn(1, 2, 5, 6, dtype=cygrad.float64), cygrad.randn(3, 2, 3, 3, dtype=cygrad.float64)
    bias = cygrad.randn(3, dtype=cygrad.float64)
    assert gradgradcheck(lambda *tensors: F.conv2d(*tensors, padding=1),
                         [tensor.requires_grad_() for tensor in (x, weight, bias)])


def test_rounding_of_winograd():
    """In single precision and relative to the results: 3e-6 is promised, ten units in the last place of theirs."""
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 256, 14, 14), (32, 256, 3, 3)))
    grad = random.standard_normal((2, 32, 14, 14)).astype(np.float32)
    options = ([1, 1], [1, 1], [1, 1], 1)

    def results(form, dtype):
        force_form(form)
        a, b, c = (cygrad.tensor(array.astype(dtype)) for array in (x, weight, grad))
        found = [operators.convolution(a, b, None, *options),
                 operators.convolution_input_backward(c, b, None, x.shape, *options),
                 operators.convolution_weight_backward(c, a, weight.shape, *options)]
        force_form(None)
        return [tensor.numpy().astype(float) for tensor in found]

    for found, exact in zip(results("winograd", np.float32), results("columns", np.float64), strict=True):
        assert np.sqrt(((found - exact) ** 2).mean() / (exact ** 2).mean()) < 3e-6
    for found, exact in zip(results("winograd", np.float64), results("columns", np.float64), strict=True):
        assert np.sqrt(((found - exact) ** 2).mean() / (exact ** 2).mean()) < 1e-14


@pytest.mark.parametrize(("images", "kernel", "stride", "padding", "groups", "expected"), [
    ((8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, ("winograd",) * 3),
    ((8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1, ("winograd",) * 3),
    ((1, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1, ("columns",) * 3),
    ((8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1, ("direct", "direct", "columns")),
    ((1, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1, ("columns",) * 3),
    ((8, 256, 14, 14), (512, 256, 3, 3), 2, 1, 1, ("interleaved",) * 3),
    ((4, 256, 14, 14), (512, 256, 3, 3), 2, 1, 1, ("columns",) * 3),
    ((8, 256, 2, 2), (256, 256, 3, 3), 1, 1, 1, ("interleaved",) * 3),
    ((64, 32, 16, 16), (64, 32, 5, 5), 1, 0, 1, ("columns", "interleaved", "columns")),
    ((8, 256, 1, 1), (256, 256, 3, 3), 1, 1, 1, ("linear",) * 3),
    ((8, 256, 4, 4), (1, 256, 4, 4), 1, 0, 1, ("linear",) * 3),
    ((8, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1, ("columns",) * 3),
    ((8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1, ("direct", "columns", "direct")),
    ((8, 128, 56, 56), (128, 1, 3, 3), 2, 1, 128, ("direct",) * 3),
    ((8, 128, 28, 28), (128, 4, 3, 3), 1, 1, 32, ("direct",) * 3),
    ((8, 1, 28, 28), (6, 1, 5, 5), 1, 2, 1, ("direct",) * 3),
    ((8, 2, 28, 28), (64, 2, 3, 3), 1, 1, 1, ("direct", "columns", "direct")),
    ((4, 0, 28, 28), (64, 0, 3, 3), 1, 1, 1, ("columns",) * 3),
])
def test_choice(images, kernel, stride, padding, groups, expected):
    options = ([stride] * 2, [padding] * 2, [1, 1], groups)
    assert tuple(chosen_form(way, images, kernel, *options, cygrad.float32) for way in DIRECTIONS) == expected
    assert {chosen_form(way, images, kernel, *options, cygrad.complex64) for way in DIRECTIONS} == {"columns"}
    with cygrad.threads(1):
        assert tuple(chosen_form(way, images, kernel, *options, cygrad.float32) for way in DIRECTIONS) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("images", "kernel", "options"), [
    ((1, 8, 90, 91), (8, 8, 3, 3), {}), ((1, 8, 89, 90), (16, 8, 5, 5), {"stride": 2, "padding": 2}),
    ((1, 3, 97, 101), (13, 3, 3, 3), {"padding": 1}), ((3, 6, 60, 61), (10, 3, 3, 3), {"groups": 2}),
    ((1, 8, 9001), (16, 8, 5), {}), ((1, 4, 8, 30, 30), (8, 4, 3, 3, 3), {}),
], ids=str)
def test_threads_share_the_channels_of_one_image_without_changing_a_bit(form, three_threads, images, kernel, options,
                                                                        dtype):
    random = np.random.default_rng(0)
    x, weight = (cygrad.tensor(random.standard_normal(shape).astype(dtype), requires_grad=True)
                 for shape in (images, kernel))
    function = (F.conv1d, F.conv2d, F.conv3d)[len(images) - 3]
    grad = cygrad.tensor(random.standard_normal(tuple(function(x, weight, **options).shape)).astype(dtype))
    found = []
    for number in (1, 2, 3, 8):
        cygrad.set_num_threads(number)
        result = function(x, weight, **options)
        found.append([array.detach().numpy().tobytes() for array in
                      (result, *cygrad.autograd.grad(result, (x, weight), grad))])
    assert all(bits == found[0] for bits in found)
