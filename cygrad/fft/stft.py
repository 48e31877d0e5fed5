"""Short-time Fourier transforms: spectra of overlapping frames, and signals from them."""

from math import sqrt

from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators
from cygrad.fft.common import complex_tensor

__all__ = ["istft", "stft"]


def _window(operation, window, win_length, n_fft, like):
    """Return the window padded with zeros to n_fft; by default ones."""
    if window is None:
        window = like.new_full((win_length,), 1.0)
    if window.ndim != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"{operation}: expected a 1D window tensor of size equal to win_length={win_length} (got "
                           f"size {tuple(window.shape)}).")
    if win_length < n_fft:
        before = (n_fft - win_length) // 2
        window = operators.pad(window, [before, n_fft - win_length - before])
    return window


def _lengths(operation, n_fft, hop_length, win_length):
    """Return hop and window length with their defaults."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if hop_length <= 0:
        raise RuntimeError(f"{operation}: expected hop_length > 0 (got {hop_length}).")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{operation}: expected 0 < win_length <= n_fft (got {win_length} and {n_fft}).")
    return hop_length, win_length


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):
    """Compute the short-time Fourier transform: spectra of overlapping frames of a signal.

    Parameters
    ----------
    input : Tensor
        Signals of shape (t,) or (b, t).
    n_fft : int
        Length of a frame.
    hop_length : int, optional
        Distance of two frames; by default ``n_fft // 4``.
    win_length : int, optional
        Length of the window, which is in the middle of a frame; by default n_fft.
    window : Tensor, optional
        Of win_length elements; ones by default.
    center : bool, default True
        Continue the signal by ``n_fft // 2`` elements on both sides, so that frame k is around element k * hop_length.
    pad_mode : str, default 'reflect'
        How it is continued: as for `nn.functional.pad`.
    normalized : bool, default False
        Divide by the root of n_fft.
    onesided : bool, optional
        Whether to return only the first half of spectra; by default for real signals and windows.
    return_complex : bool
        Give complex numbers; else a last dimension of real and imaginary parts. It must be given for real signals.
    align_to_window : None
        For `center=False` elsewhere; not supported.

    Returns
    -------
    Tensor
        Of shape (b, frequencies, frames).

    Raises
    ------
    RuntimeError
        If lengths do not match, or a complex signal is combined with a one-sided spectrum.

    Notes
    -----
    It is composed of frames, a product with the window, and a transform; so is its derivative.

    Examples
    --------
    >>> cygrad.stft(cygrad.ones(16), 8, return_complex=True).shape
    (5, 9)
    """
    operation = "stft"
    if not isinstance(input, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(input).__name__}).")
    if not (input.is_floating_point() or input.is_complex()) or input.ndim not in (1, 2):
        raise RuntimeError(f"{operation}: expected a 1D or 2D tensor of floating or complex values (got {input.dtype} "
                           f"of shape {tuple(input.shape)}).")
    if align_to_window is not None:
        raise RuntimeError(f"{operation}: align_to_window is not supported (got a value). Omit it.")
    twofold = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not twofold:
            raise RuntimeError(f"{operation}: requires the return_complex parameter be given for real inputs. Say "
                               "return_complex=True.")
        return_complex = True
    onesided = not twofold if onesided is None else onesided
    if onesided and twofold:
        raise RuntimeError(f"{operation}: Cannot have onesided output if window or input is complex.")
    hop_length, win_length = _lengths(operation, n_fft, hop_length, win_length)
    signal = operators.unsqueeze(input, 0) if input.ndim == 1 else input
    if center:
        # Signals have channels for padding.
        around = [n_fft // 2, n_fft // 2]
        signal = operators.squeeze(operators.pad(operators.unsqueeze(signal, 1), around, pad_mode), (1,))
    if not 0 < n_fft <= signal.shape[-1]:
        raise RuntimeError(f"{operation}: expected 0 < n_fft <= {signal.shape[-1]} (got n_fft={n_fft}).")
    window = _window(operation, window, win_length, n_fft, signal)
    frames = operators.mul(operators.unfold(signal, -1, n_fft, hop_length), window)
    scale = 1.0 / sqrt(n_fft) if normalized else 1.0
    if onesided:
        found = operators.fft_r2c(frames, (2,), scale)
    else:
        if not frames.is_complex():
            frames = complex_tensor(operation, frames)
        found = operators.fft_c2c(frames, (2,), scale, True)
    found = operators.transpose(found, 1, 2)
    found = operators.squeeze(found, (0,)) if input.ndim == 1 else found
    return found if return_complex else operators.view_as_real(found)


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):
    """Invert the short-time Fourier transform by summing windowed frames.

    Parameters
    ----------
    input : Tensor
        What `stft` gave, complex: (frequencies, frames) or (b, frequencies, frames).
    n_fft : int
        Length of a frame.
    hop_length, win_length, window, center, normalized, onesided : optional
        As `stft` had them.
    length : int, optional
        Cut the signal to this length, or continue it by zeros.
    return_complex : bool, default False
        Whether to return a complex signal; requires two-sided spectra.

    Returns
    -------
    Tensor
        Of shape (t,) or (b, t).

    Raises
    ------
    RuntimeError
        If lengths do not match, or samples are not covered by any window.

    Notes
    -----
    The least squares signal of D. W. Griffin and J. S. Lim, Signal estimation from modified short-time Fourier
    transform (1984). It is composed of a transform, products and sums, and so is its derivative.

    Examples
    --------
    >>> x = cygrad.arange(16.)
    >>> cygrad.dist(cygrad.istft(cygrad.stft(x, 8, return_complex=True), 8), x) < 1e-4
    tensor(True)
    """
    operation = "istft"
    if not isinstance(input, Tensor) or not input.is_complex():
        raise RuntimeError(f"{operation}: requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    if input.ndim not in (2, 3) or input.numel() == 0:
        raise RuntimeError(f"{operation}: expected a tensor with 2 or 3 dimensions and elements (got shape "
                           f"{tuple(input.shape)}).")
    spectra = operators.unsqueeze(input, 0) if input.ndim == 2 else input
    hop_length, win_length = _lengths(operation, n_fft, hop_length, win_length)
    onesided = spectra.shape[1] != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if spectra.shape[1] != expected:
        raise RuntimeError(f"{operation}: expected the frequency dimension (3rd to the last) of the input tensor to "
                           f"match n_fft / 2 + 1 when onesided=True, and n_fft otherwise (got {spectra.shape[1]}, "
                           f"expected {expected}).")
    if return_complex and onesided:
        raise RuntimeError(f"{operation}: complex signals have no one-sided spectrum. Pass onesided=False.")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError(f"{operation}: Complex windows are incompatible with return_complex=False.")
    scale = 1.0 / sqrt(n_fft) if normalized else 1.0 / n_fft
    spectra = operators.transpose(spectra, 1, 2)
    if onesided:
        frames = operators.fft_c2r(spectra, (2,), scale, n_fft)
    elif return_complex:
        frames = operators.fft_c2c(spectra, (2,), scale, False)
    else:                          # the other half of the spectrum of a real signal says nothing new
        frames = operators.fft_c2r(operators.narrow(spectra, 2, 0, n_fft // 2 + 1), (2,), scale, n_fft)
    window = _window(operation, window, win_length, n_fft, frames)
    frames = operators.mul(frames, window)
    count = n_fft + hop_length * (frames.shape[1] - 1)
    squares = operators.expand(operators.mul(window, window), (1, frames.shape[1], n_fft))
    signal = operators.unfold_backward(frames, (frames.shape[0], count), -1, n_fft, hop_length)
    weights = operators.unfold_backward(squares, (1, count), -1, n_fft, hop_length)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else count - n_fft // 2 if center else count
    stop = min(end, count)
    signal, weights = (operators.narrow(part, 1, start, max(stop - start, 0)) for part in (signal, weights))
    if weights.numel() and float(operators.amin(operators.abs(weights.detach())).item()) < 1e-11:
        raise RuntimeError(f"{operation}: window overlap add min: some elements of the signal are not reached by any "
                           "window. Use a smaller hop_length, or another window.")
    signal = operators.div(signal, weights)
    if end > stop:
        signal = operators.pad(signal, [0, end - stop])
    return operators.squeeze(signal, (0,)) if input.ndim == 2 else signal
