"""The eighteen Fourier transforms: of lines, in two dimensions and in several; each row says what one is."""

from cygrad.composite.out_forms import into
from cygrad.fft.common import complex_n, half_n, whole_n

__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2", "ihfftn", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]

_DOC = """{summary}

    Parameters
    ----------
    input : Tensor
        {input}
    {lengths}
    {dim}
    norm : str, optional
        {norm}
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        {returned}

    Raises
    ------
    RuntimeError
        If {refused}there is no element to transform, or `norm` is unknown.

    Notes
    -----
    Derivative: the {derivative}.

    Examples
    --------
    >>> cygrad.fft.{example}
    """
_CUT = ("n : int, optional\n        Length of the lines: they are cut, or continued by zeros. By default as they are.",
        "s : tuple of int, optional\n"
        "        Lengths in these dimensions: the input is cut, or continued by zeros. -1: as it is.")
_LAST = ("n : int, optional\n        Length of the result, by default ``2 * (input.shape[dim] - 1)``; the spectrum is "
         "cut, or continued by zeros.",
         "s : tuple of int, optional\n        Lengths of the result, by default those of the input, and "
         "``2 * (m - 1)`` in the last dimension. -1: the same.")
_HALF = ("Complex; lines have ``n // 2 + 1`` elements.",
         "Complex; the last of the dimensions has ``m // 2 + 1`` elements.")
# How numbers become others: what is taken, lengths and result of lines and in several dimensions, what is refused,
# and the derivative.
_KINDS = {
    complex_n: ("Real ones count as complex.", _CUT, ("Complex.", "Complex."), "",
                "transform in the other direction, with the same factor"),
    half_n: ("Real.", _CUT, _HALF, "the input is complex, ", "real part of the transform in the other direction"),
    whole_n: ("The first half of a spectrum.", _LAST, ("Real.", "Real."), "",
              "transform in the other direction, twice where an entry of the half stands for two of the whole"),
}
_NORMS = (
    "'backward', the default: divided by the number of elements; 'forward': no factor; 'ortho': divided by its root.",
    "'backward', the default: no factor; 'forward': divided by the number of elements; 'ortho': by its root.")


def _pair(operation, dim):
    """The dimensions, which must be given."""
    if isinstance(dim, int):
        return (dim,)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"{operation}: argument 'dim' must be a tuple of ints (got {dim!r}).")
    return dim


def _made(name, run, forward, summary, example):
    """The function of a row; where it works its name tells."""
    if name.endswith("2"):
        def transform(input, s=None, dim=(-2, -1), norm=None, *, out=None):
            return into(name, run(name, input, s, _pair(name, dim), norm, forward), out)
        place = "dim : tuple of int, default (-2, -1)\n        Dimensions that are transformed."
    elif name.endswith("n"):
        def transform(input, s=None, dim=None, norm=None, *, out=None):
            return into(name, run(name, input, s, dim, norm, forward), out)
        place = ("dim : tuple of int, optional\n        Dimensions that are transformed; by default all, or as many of "
                 "the last ones as there are lengths.")
    else:
        def transform(input, n=None, dim=-1, norm=None, *, out=None):
            return into(name, run(name, input, n, dim, norm, forward), out)
        place = "dim : int, default -1\n        Dimension of the lines."
    taken, lengths, returned, refused, derivative = _KINDS[run]
    several = name.endswith(("2", "n"))
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = _DOC.format(
        summary=summary, input=taken, lengths=lengths[several], dim=place, norm=_NORMS[forward],
        returned=returned[several], refused=refused, derivative=derivative, example=example)
    return transform


fft = _made("fft", complex_n, True,
            "The discrete Fourier transform of lines: ``sum(x[j] * exp(-2j * pi * j * k / n))``.",
            "fft(cygrad.tensor([1., 0., 0., 0.]))\n    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.-0.j])")
ifft = _made("ifft", complex_n, False, "The inverse of the discrete Fourier transform of lines.",
             "ifft(cygrad.ones(4, dtype=cygrad.complex64))\n    tensor([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])")
rfft = _made("rfft", half_n, True,
             "The first half of the discrete Fourier transform of real lines, which tells the other.",
             "rfft(cygrad.tensor([1., 0., 0., 0.]))\n    tensor([1.+0.j, 1.+0.j, 1.+0.j])")
irfft = _made("irfft", whole_n, False, "The inverse of `rfft`: real lines from the first half of a spectrum.",
              "irfft(cygrad.ones(3))\n    tensor([1., 0., 0., 0.])")
hfft = _made("hfft", whole_n, True,
             "The discrete Fourier transform of lines that are Hermitian, given by their first half: real spectra.",
             "hfft(cygrad.ones(3))\n    tensor([4., 0., 0., 0.])")
ihfft = _made("ihfft", half_n, False, "The inverse of `hfft`: the first half of Hermitian lines from real spectra.",
              "ihfft(cygrad.tensor([4., 0., 0., 0.])).real\n    tensor([1., 1., 1.])")


def _in_dimensions(end, where):
    """Return the six transforms in two dimensions, or in several."""
    first = "\n    tensor([[{}.+0.j, 0.+0.j],\n            [0.+0.j, 0.+0.j]])"
    return (
        _made(f"fft{end}", complex_n, True, f"The discrete Fourier transform in {where} dimensions.",
              f"fft{end}(cygrad.ones(2, 2)){first.format(4)}"),
        _made(f"ifft{end}", complex_n, False, f"The inverse of the discrete Fourier transform in {where} dimensions.",
              f"ifft{end}(cygrad.ones(2, 2, dtype=cygrad.complex64)){first.format(1)}"),
        _made(f"rfft{end}", half_n, True, f"The discrete Fourier transform of real numbers in {where} dimensions, half "
              "of it in the last one.", f"rfft{end}(cygrad.ones(2, 4)).shape\n    (2, 3)"),
        _made(f"irfft{end}", whole_n, False, f"The inverse of `rfft{end}`: real numbers from half of a spectrum.",
              f"irfft{end}(cygrad.ones(2, 3)).shape\n    (2, 4)"),
        _made(f"hfft{end}", whole_n, True, f"The discrete Fourier transform in {where} dimensions of Hermitian "
              "numbers, given by half of them: real spectra.", f"hfft{end}(cygrad.ones(2, 3)).shape\n    (2, 4)"),
        _made(f"ihfft{end}", half_n, False, f"The inverse of `hfft{end}`: half of the Hermitian numbers from real "
              "spectra.", f"ihfft{end}(cygrad.ones(2, 4)).shape\n    (2, 3)"),
    )


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = _in_dimensions("2", "two")
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = _in_dimensions("n", "several")
