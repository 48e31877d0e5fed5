"""
Window functions of length `M`: symmetric, or periodic (a window of length ``M + 1`` without its last element).
"""

from math import pi

import cygrad
from cygrad._core.graph.argument_errors import as_integer
from cygrad.composite.dtypes import on_device

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

_PARAMETERS = """

    Parameters
    ----------
    M : int
        Length.
{own}    sym : bool, default True
        Whether the window is symmetric instead of periodic.
    dtype : dtype, optional
        float32 or float64.
    device : device or str, optional
    layout : optional
        Accepted and ignored.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        Vector with a maximum of about 1.
    """


def _window(function, own="", **defaults):
    """Create a window function from ``function(positions, last position of the symmetric window, sym, **options)``."""

    def window(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False, **options):
        name = function.__name__
        dtype = cygrad.get_default_dtype() if dtype is None else dtype
        if (M := as_integer(name, "M", M)) < 0 or dtype not in (cygrad.float32, cygrad.float64):
            raise ValueError(
                f"{name}: the length must not be negative and the dtype float32 or float64 (got {M} and {dtype})."
            )
        if layout is not None and layout is not cygrad.strided:
            raise ValueError(f"{name}: expected the layout strided (got {layout}).")
        unknown = set(options) - set(defaults)
        if unknown:
            raise TypeError(f"{name}: unexpected arguments (got {sorted(unknown)}).")
        k = cygrad.arange(M, dtype=cygrad.float64)
        last = M - 1 if sym and M > 1 else M
        values = function(k, last, sym, **defaults | options) if M > 1 else cygrad.ones(M, dtype=cygrad.float64)
        return values.to(dtype).requires_grad_(requires_grad)

    window.__name__ = window.__qualname__ = function.__name__
    window.__doc__ = f"{function.__doc__.strip()}{_PARAMETERS.format(own=own)}"
    return on_device(window)


def bartlett(k, last, sym):
    """
    Return a Bartlett (triangular) window.

    Examples
    --------
    >>> cygrad.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return 1 - (2 * k / last - 1).abs()


def _cosines(k, last, a):
    return sum((-1) ** i * coefficient * (2 * pi * i * k / last).cos() for i, coefficient in enumerate(a))


def general_cosine(k, last, sym, a):
    """
    Return a sum of cosines with coefficients `a` of alternating signs.

    Examples
    --------
    >>> cygrad.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if not len(a):
        raise ValueError("general_cosine: coefficients cannot be empty (got none).")
    return _cosines(k, last, a)


def general_hamming(k, last, sym, alpha):
    """
    Return the window ``alpha - (1 - alpha) cos``.

    Examples
    --------
    >>> cygrad.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return _cosines(k, last, (alpha, 1 - alpha))


def hamming(k, last, sym):
    """
    Return a Hamming window: ``0.54 - 0.46 cos``.

    Examples
    --------
    >>> cygrad.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return _cosines(k, last, (0.54, 0.46))


def hann(k, last, sym):
    """
    Return a Hann window: ``0.5 - 0.5 cos``.

    Examples
    --------
    >>> cygrad.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines(k, last, (0.5, 0.5))


def blackman(k, last, sym):
    """
    Return a Blackman window: a sum of three cosines.

    Examples
    --------
    >>> cygrad.signal.windows.blackman(3).abs().round(decimals=3)
    tensor([0., 1., 0.])
    """
    return _cosines(k, last, (0.42, 0.5, 0.08))


def nuttall(k, last, sym):
    """
    Return a Nuttall window: a sum of four cosines.

    Examples
    --------
    >>> cygrad.signal.windows.nuttall(3).round(decimals=3)
    tensor([0., 1., 0.])
    """
    return _cosines(k, last, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


def cosine(k, last, sym):
    """
    Return a cosine window: half a period.

    Examples
    --------
    >>> cygrad.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return (pi * (k + 0.5) / (len(k) if sym else len(k) + 1)).sin()


def exponential(k, last, sym, center=None, tau=1.0):
    """
    Return a window that decays exponentially on both sides of the center.

    Examples
    --------
    >>> cygrad.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0 or (sym and center is not None):
        raise ValueError(
            "exponential: tau must be positive, and center must be None for a symmetric window (got tau="
            f"{tau}, center={center})."
        )
    center = (len(k) - 1 if sym or len(k) == 1 else len(k)) / 2 if center is None else center
    return (-(k - center).abs() / tau).exp()


def gaussian(k, last, sym, std=1.0):
    """
    Return a Gaussian window with a standard deviation of `std` elements.

    Examples
    --------
    >>> cygrad.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"gaussian: std must be positive (got {std}).")
    return (-0.5 * ((k - last / 2) / std) ** 2).exp()


def kaiser(k, last, sym, beta=12.0):
    """
    Return a Kaiser window.

    Examples
    --------
    >>> cygrad.signal.windows.kaiser(3)
    tensor([5.2773e-05, 1.0000e+00, 5.2773e-05])
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta must not be negative (got {beta}).")
    inside = (1 - (2 * k / last - 1) ** 2).clamp(min=0).sqrt()
    return (
        cygrad.special.i0e(beta * inside)
        * (beta * (inside - 1)).exp()
        / cygrad.special.i0e(cygrad.tensor(beta, dtype=cygrad.float64))
    )


bartlett, hamming, hann, blackman, nuttall, cosine = map(_window, (bartlett, hamming, hann, blackman, nuttall, cosine))
general_cosine = _window(general_cosine, "    a : sequence of float\n        Coefficients.\n", a=())
general_hamming = _window(general_hamming, "    alpha : float, default 0.54\n", alpha=0.54)
exponential = _window(exponential, "    center : float, optional\n    tau : float, default 1.0\n", center=None, tau=1.0)
gaussian = _window(gaussian, "    std : float, default 1.0\n", std=1.0)
kaiser = _window(kaiser, "    beta : float, default 12.0\n", beta=12.0)
