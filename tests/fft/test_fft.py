"""Fourier transforms compared with NumPy: precision, frames, threads, empty sizes."""

import threading
import warnings

import numpy as np
import pytest

import cygrad
from cygrad import fft
from cygrad._core.testing.interop import call_kernel
from cygrad.autograd import gradcheck, gradgradcheck
from tests.reference import torch
from tests.tools import random_array


@pytest.mark.parametrize("n", [1, 2, 7, 64, 97, 1000, 4099])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_lengths(name, n):
    values = random_array(3, n)
    if n == 1 and name in ("irfft", "hfft"):
        with pytest.raises(RuntimeError, match="data points"):
            getattr(fft, name)(cygrad.from_numpy(values))
        return
    np.testing.assert_allclose(getattr(fft, name)(cygrad.from_numpy(values)).numpy(), getattr(np.fft, name)(values),
                               atol=1e-10)


@pytest.mark.parametrize(("name", "dtype", "expected"), [
    ("fft", np.float32, np.complex64), ("fft", np.complex64, np.complex64), ("rfft", np.float32, np.complex64),
    ("irfft", np.complex64, np.float32), ("irfft", np.float32, np.float32), ("hfft", np.complex128, np.float64),
    ("fft", np.int64, np.complex64), ("rfft", np.bool_, np.complex64),
])
def test_precision_is_kept(name, dtype, expected):
    assert getattr(fft, name)(cygrad.from_numpy(np.ones(4, dtype))).numpy().dtype == expected


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 4)])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_no_lines(name, shape):
    x = cygrad.zeros(shape, requires_grad=True)
    result = getattr(fft, name)(x)
    result.sum().real.backward()
    assert result.numel() == 0
    assert x.grad.shape == shape


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: fft.rfft(cygrad.ones(3) * 1j), RuntimeError, "real input"),
    (lambda: fft.fft(cygrad.tensor(1.0)), IndexError, "dim"),
    (lambda: fft.rfftn(cygrad.ones(3), dim=()), RuntimeError, "at least one"),
    (lambda: fft.fftn(cygrad.ones(3), s=(2, 2)), RuntimeError, "2 values"),
    (lambda: fft.fft2(cygrad.ones(3, 3), dim=None), TypeError, "dim"),
    (lambda: fft.fft([1.0]), TypeError, "Tensor"),
    (lambda: fft.fftfreq(3, dtype=cygrad.int64), ValueError, "dtype"),
    (lambda: cygrad.stft(cygrad.ones(9), 4), RuntimeError, "return_complex"),
    (lambda: cygrad.stft(cygrad.ones(3), 9, center=False, return_complex=True), RuntimeError, "n_fft"),
    (lambda: cygrad.stft(cygrad.ones(9), 4, hop_length=0, return_complex=True), RuntimeError, "hop_length"),
    (lambda: cygrad.stft(cygrad.ones(9), 4, win_length=5, return_complex=True), RuntimeError, "win_length"),
    (lambda: cygrad.stft(cygrad.ones(9), 4, window=cygrad.ones(3), return_complex=True), RuntimeError, "window"),
    (lambda: cygrad.stft(cygrad.ones(9) * 1j, 4, onesided=True), RuntimeError, "onesided"),
    (lambda: cygrad.stft(cygrad.ones(2, 2, 9), 4, return_complex=True), RuntimeError, "1D or 2D"),
    (lambda: cygrad.istft(cygrad.ones(3, 4), 4), RuntimeError, "complex"),
    (lambda: cygrad.istft(cygrad.ones(4, 4) * 1j, 8), RuntimeError, "frequency"),
    (lambda: cygrad.istft(cygrad.ones(3, 4) * 1j, 4, window=cygrad.zeros(4)), RuntimeError, "overlap"),
])
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("n", range(1, 7))
def test_frequencies(n):
    np.testing.assert_allclose(fft.fftfreq(n, 0.5, dtype=cygrad.float64).numpy(), np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(fft.rfftfreq(n, 2.0, dtype=cygrad.float64).numpy(), np.fft.rfftfreq(n, 2.0))
    assert fft.fftfreq(n, requires_grad=True).requires_grad


def test_frequencies_of_nothing():
    assert fft.fftfreq(0).shape == (0,) and fft.rfftfreq(0).isnan().all()
    np.testing.assert_array_equal(fft.fftfreq(4, 0.0).numpy(), [np.nan, np.inf, -np.inf, -np.inf])


# ---- frames

OPTIONS = [
    {}, {"hop_length": 3}, {"center": False}, {"normalized": True}, {"onesided": False}, {"pad_mode": "constant"},
    {"win_length": 8, "window": np.hamming(8)}, {"window": np.hamming(12)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(40,), (2, 40)])
def test_stft_as_the_reference(shape, options):
    values = random_array(*shape)

    def call(library):
        own = {**options}
        if "window" in own:
            own["window"] = library.from_numpy(own["window"].copy())
        return library.stft(library.from_numpy(values.copy()), 12, return_complex=True, **own).numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")           # PyTorch warns where no window is given
        expected = call(torch)
    np.testing.assert_allclose(call(cygrad), expected, atol=1e-12)


@pytest.mark.parametrize("length", [None, 30, 50])
@pytest.mark.parametrize("options", [{}, {"normalized": True}, {"onesided": False}, {"hop_length": 2}], ids=str)
def test_istft_gives_the_signal_back(options, length):
    values, window = random_array(2, 40), cygrad.from_numpy(np.hamming(12))
    spectra = cygrad.stft(cygrad.from_numpy(values), 12, window=window, return_complex=True, **options)
    found = cygrad.istft(spectra, 12, window=window, length=length, **options).numpy()
    known = min(found.shape[-1], 39)
    np.testing.assert_allclose(found[:, :known], values[:, :known], atol=1e-12)
    assert length is None or found.shape == (2, length)


def test_gradients_of_frames():
    x, window = (cygrad.from_numpy(random_array(size) + 2).requires_grad_() for size in (20, 8))

    def there(x, window):
        return cygrad.stft(x, 8, 3, window=window, return_complex=True)

    assert gradcheck(there, [x, window], fast_mode=True)
    assert gradgradcheck(there, [x, window], fast_mode=True)
    spectra = there(x, window).detach().requires_grad_()

    def back(spectra, window):
        return cygrad.istft(spectra, 8, 3, window=window)

    assert gradcheck(back, [spectra, window], fast_mode=True)
    assert gradgradcheck(back, [spectra, window], fast_mode=True)


# ---- threads

def test_same_bits_for_any_number_of_threads():
    values, found = random_array(700, 96, dtype=np.complex128), []
    for count in (1, 2, 4):
        with cygrad.threads(count):
            found.append(fft.fftn(cygrad.from_numpy(values)).numpy().tobytes())
    assert found[0] == found[1] == found[2]


def test_transforms_at_the_same_time():
    """Threads transform different lengths, without shared plans."""
    failures = []

    def work(seed):
        for n in range(seed, 400, 7):
            values = random_array(5, n, seed=seed)
            if not np.allclose(fft.fft(cygrad.from_numpy(values)).numpy(), np.fft.fft(values)):
                failures.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_doubling_a_half_spectrum_multiplies_each_part_alone(dtype):
    x = np.array([1 + 2j, complex(np.inf, 1), complex(-0.0, -3), complex(2, -0.0)], dtype)
    result = call_kernel("fft_weigh", x, [0], 8, 2.0)[0]
    assert result.tolist()[1] == complex(np.inf, 2)
    assert np.signbit(result.real).tolist() == [False, False, True, False]
    assert np.signbit(result.imag).tolist() == [False, False, True, True]
