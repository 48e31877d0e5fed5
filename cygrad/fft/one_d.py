"""Fourier transforms of lines: in one dimension."""

from cygrad.composite.out_forms import into
from cygrad.fft.common import complex_n, half_n, whole_n

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The discrete Fourier transform of lines: ``sum(x[j] * exp(-2j * pi * j * k / n))``.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    n : int, optional
        Length of the lines: they are cut, or continued by zeros. By default as they are.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: no factor; 'forward': divided by the number of elements; 'ortho': by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex.

    Raises
    ------
    RuntimeError
        If there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the transform in the other direction, with the same factor.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.fft(cygrad.tensor([1., 0., 0., 0.]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.-0.j])
    """
    return into("fft", complex_n("fft", input, n, dim, norm, True), out)


def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of the discrete Fourier transform of lines.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    n : int, optional
        Length of the lines: they are cut, or continued by zeros. By default as they are.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: divided by the number of elements; 'forward': no factor; 'ortho': divided by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex.

    Raises
    ------
    RuntimeError
        If there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the transform in the other direction, with the same factor.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.ifft(cygrad.ones(4, dtype=cygrad.complex64))
    tensor([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    """
    return into("ifft", complex_n("ifft", input, n, dim, norm, False), out)


def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The first half of the discrete Fourier transform of real lines, which tells the other.

    Parameters
    ----------
    input : Tensor
        Real.
    n : int, optional
        Length of the lines: they are cut, or continued by zeros. By default as they are.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: no factor; 'forward': divided by the number of elements; 'ortho': by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex; lines have ``n // 2 + 1`` elements.

    Raises
    ------
    RuntimeError
        If the input is complex, there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the real part of the transform in the other direction.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.rfft(cygrad.tensor([1., 0., 0., 0.]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return into("rfft", half_n("rfft", input, n, dim, norm, True), out)


def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of `rfft`: real lines from the first half of a spectrum.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    n : int, optional
        Length of the result, by default ``2 * (input.shape[dim] - 1)``; the spectrum is cut, or continued by zeros.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: divided by the number of elements; 'forward': no factor; 'ortho': divided by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Real.

    Raises
    ------
    RuntimeError
        If there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the transform in the other direction, twice where an entry of the half stands for two of the whole.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.irfft(cygrad.ones(3))
    tensor([1., 0., 0., 0.])
    """
    return into("irfft", whole_n("irfft", input, n, dim, norm, False), out)


def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The discrete Fourier transform of lines that are Hermitian, given by their first half: real spectra.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    n : int, optional
        Length of the result, by default ``2 * (input.shape[dim] - 1)``; the spectrum is cut, or continued by zeros.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: no factor; 'forward': divided by the number of elements; 'ortho': by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Real.

    Raises
    ------
    RuntimeError
        If there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the transform in the other direction, twice where an entry of the half stands for two of the whole.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.hfft(cygrad.ones(3))
    tensor([4., 0., 0., 0.])
    """
    return into("hfft", whole_n("hfft", input, n, dim, norm, True), out)


def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of `hfft`: the first half of Hermitian lines from real spectra.

    Parameters
    ----------
    input : Tensor
        Real.
    n : int, optional
        Length of the lines: they are cut, or continued by zeros. By default as they are.
    dim : int, default -1
        Dimension of the lines.
    norm : str, optional
        'backward', the default: divided by the number of elements; 'forward': no factor; 'ortho': divided by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex; lines have ``n // 2 + 1`` elements.

    Raises
    ------
    RuntimeError
        If the input is complex, there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the real part of the transform in the other direction.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.fft.ihfft(cygrad.tensor([4., 0., 0., 0.])).real
    tensor([1., 1., 1.])
    """
    return into("ihfft", half_n("ihfft", input, n, dim, norm, False), out)
