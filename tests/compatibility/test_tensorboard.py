"""Images of `SummaryWriter`, without the tensorboard package."""

import numpy as np
import pytest

from cygrad.compatibility.tensorboard import _pixels


@pytest.mark.parametrize(("shape", "formats", "expected"), [
    ((3, 4, 5), "CHW", (4, 5, 3)), ((4, 5, 3), "HWC", (4, 5, 3)), ((4, 5), "HW", (4, 5, 3)),
    ((1, 4, 5), "CHW", (4, 5, 3)), ((2, 3, 4, 5), "NCHW", (4, 10, 3)), ((9, 4, 5, 1), "NHWC", (8, 40, 3))])
def test_pictures_have_three_channels_and_rows_of_eight(shape, formats, expected):
    pixels = _pixels(np.ones(shape), formats)
    assert pixels.shape == expected
    assert pixels.dtype == np.uint8
    assert int(pixels.astype(int).sum()) == 255 * np.prod(shape) * (3 if 3 not in shape else 1)


def test_colors_keep_their_places():
    image = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)               # two pictures of two by two
    pixels = _pixels(image, "NCHW")
    assert pixels[0, 0].tolist() == [0, 4, 8]
    assert pixels[1, 3].tolist() == [15, 19, 23]


def test_numbers_beyond_one_are_clipped():
    assert _pixels(np.array([[-1.0, 0.5, 2.0]]), "HW")[0, :, 0].tolist() == [0, 127, 255]


def test_other_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"dataformats must name each dimension .*got 'CHW' for shape \(2, 2\)"):
        _pixels(np.ones((2, 2)), "CHW")
