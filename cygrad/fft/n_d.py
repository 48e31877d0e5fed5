"""Fourier transforms in several dimensions."""

from cygrad.composite.out_forms import into
from cygrad.fft.common import complex_n, half_n, whole_n

__all__ = ["fftn", "hfftn", "ifftn", "ihfftn", "irfftn", "rfftn"]


def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """The discrete Fourier transform in several dimensions.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.fftn(cygrad.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return into("fftn", complex_n("fftn", input, s, dim, norm, True), out)


def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of the discrete Fourier transform in several dimensions.

    Parameters
    ----------
    input : Tensor
        Real ones count as complex.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.ifftn(cygrad.ones(2, 2, dtype=cygrad.complex64))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return into("ifftn", complex_n("ifftn", input, s, dim, norm, False), out)


def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The discrete Fourier transform of real numbers in several dimensions, half of it in the last one.

    Parameters
    ----------
    input : Tensor
        Real.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.rfftn(cygrad.ones(2, 4)).shape
    (2, 3)
    """
    return into("rfftn", half_n("rfftn", input, s, dim, norm, True), out)


def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of `rfftn`: real numbers from half of a spectrum.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    s : tuple of int, optional
        Lengths of the result, by default those of the input, and ``2 * (m - 1)`` in the last dimension. -1: the same.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.irfftn(cygrad.ones(2, 3)).shape
    (2, 4)
    """
    return into("irfftn", whole_n("irfftn", input, s, dim, norm, False), out)


def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The discrete Fourier transform in several dimensions of Hermitian numbers, given by half of them: real spectra.

    Parameters
    ----------
    input : Tensor
        The first half of a spectrum.
    s : tuple of int, optional
        Lengths of the result, by default those of the input, and ``2 * (m - 1)`` in the last dimension. -1: the same.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.hfftn(cygrad.ones(2, 3)).shape
    (2, 4)
    """
    return into("hfftn", whole_n("hfftn", input, s, dim, norm, True), out)


def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of `hfftn`: half of the Hermitian numbers from real spectra.

    Parameters
    ----------
    input : Tensor
        Real.
    s : tuple of int, optional
        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.
    dim : tuple of int, optional
        Dimensions that are transformed; by default all, or as many of the last ones as there are lengths.
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
    >>> cygrad.fft.ihfftn(cygrad.ones(2, 4)).shape
    (2, 3)
    """
    return into("ihfftn", half_n("ihfftn", input, s, dim, norm, False), out)
