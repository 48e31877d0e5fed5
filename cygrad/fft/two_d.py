"""Fourier transforms in two dimensions."""

from cygrad.composite.out_forms import into
from cygrad.fft.common import complex_n, half_n, whole_n

__all__ = ["fft2", "hfft2", "ifft2", "ihfft2", "irfft2", "rfft2"]


def pair(operation, dim):
    """The dimensions, which must be given."""
    if isinstance(dim, int):
        return (dim,)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"{operation}: argument 'dim' must be a tuple of ints (got {dim!r}).")
    return dim


def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The discrete Fourier transform in two dimensions.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
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
    >>> cygrad.fft.fft2(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return into("fft2", complex_n("fft2", input, s, pair("fft2", dim), norm, True), out)


def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of the discrete Fourier transform in two dimensions.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
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
    >>> cygrad.fft.ifft2(cygrad.ones(2, 2, dtype=cygrad.complex64))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return into("ifft2", complex_n("ifft2", input, s, pair("ifft2", dim), norm, False), out)


def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The discrete Fourier transform of real numbers in two dimensions, half of it in the last one.

    Parameters
    ----------
    input : Tensor
        Real.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
    norm : str, optional
        'backward', the default: no factor; 'forward': divided by the number of elements; 'ortho': by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex; the last of the dimensions has ``m // 2 + 1`` elements.

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
    >>> cygrad.fft.rfft2(cygrad.ones(2, 4)).shape
    (2, 3)
    """
    return into("rfft2", half_n("rfft2", input, s, pair("rfft2", dim), norm, True), out)


def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of `rfft2`: real numbers from half of a spectrum.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    s : tuple of int, optional
        Lengths of the result, by default those of the input, and ``2 * (m - 1)`` in the last dimension. -1: the same.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
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
    >>> cygrad.fft.irfft2(cygrad.ones(2, 3)).shape
    (2, 4)
    """
    return into("irfft2", whole_n("irfft2", input, s, pair("irfft2", dim), norm, False), out)


def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The discrete Fourier transform in two dimensions of Hermitian numbers, given by half of them: real spectra.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    s : tuple of int, optional
        Lengths of the result, by default those of the input, and ``2 * (m - 1)`` in the last dimension. -1: the same.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
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
    >>> cygrad.fft.hfft2(cygrad.ones(2, 3)).shape
    (2, 4)
    """
    return into("hfft2", whole_n("hfft2", input, s, pair("hfft2", dim), norm, True), out)


def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """The inverse of `hfft2`: half of the Hermitian numbers from real spectra.

    Parameters
    ----------
    input : Tensor
        Real.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, default (-2, -1)
        Dimensions that are transformed.
    norm : str, optional
        'backward', the default: divided by the number of elements; 'forward': no factor; 'ortho': divided by its root.
    out : Tensor, optional
        Written to instead.

    Returns
    -------
    Tensor
        Complex; the last of the dimensions has ``m // 2 + 1`` elements.

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
    >>> cygrad.fft.ihfft2(cygrad.ones(2, 4)).shape
    (2, 3)
    """
    return into("ihfft2", half_n("ihfft2", input, s, pair("ihfft2", dim), norm, False), out)
