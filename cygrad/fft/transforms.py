"""The eighteen Fourier transforms: along one, two and several dimensions."""

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
        If {refused}a length is 0, or `norm` is unknown.

    Notes
    -----
    Derivative: the {derivative}.

    Examples
    --------
    >>> cygrad.fft.{example}
    """
_CUT = ("n : int, optional\n        Length; the input is truncated or zero-padded. Default: the size of the dimension.",
        "s : tuple of int, optional\n"
        "        Lengths in these dimensions; the input is truncated or zero-padded. -1 keeps the size.")
_LAST = ("n : int, optional\n        Length of the result, by default ``2 * (input.shape[dim] - 1)``; the spectrum is "
         "truncated or zero-padded.",
         "s : tuple of int, optional\n        Lengths of the result, by default those of the input, and "
         "``2 * (m - 1)`` in the last dimension. -1: the default.")
_HALF = ("Complex, with ``n // 2 + 1`` elements along `dim`.",
         "Complex, with ``m // 2 + 1`` elements along the last of the dimensions.")
# Texts of docstrings: input, lengths and result along one and along several dimensions, refused inputs,
# derivative.
_KINDS = {
    complex_n: ("Real or complex.", _CUT, ("Complex.", "Complex."), "",
                "inverse transform, with the same factor"),
    half_n: ("Real.", _CUT, _HALF, "the input is complex, ", "real part of the inverse transform"),
    whole_n: ("One-sided spectrum.", _LAST, ("Real.", "Real."), "",
              "inverse transform, doubled for entries that represent two conjugate ones"),
}
_NORMS = (
    "'backward' (default): divided by the number of elements n; 'forward': no factor; 'ortho': divided by sqrt(n).",
    "'backward' (default): no factor; 'forward': divided by the number of elements n; 'ortho': by sqrt(n).")


def _pair(operation, dim):
    """Check the two dimensions."""
    if isinstance(dim, int):
        return (dim,)
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"{operation}: argument 'dim' must be a tuple of ints (got {dim!r}).")
    return dim


def _made(name, run, forward, summary, example):
    """Create a transform; the suffix of its name determines the dimensions."""
    if name.endswith("2"):
        def transform(input, s=None, dim=(-2, -1), norm=None, *, out=None):
            return into(name, run(name, input, s, _pair(name, dim), norm, forward), out)
        place = "dim : tuple of int, default (-2, -1)\n        Dimensions to transform."
    elif name.endswith("n"):
        def transform(input, s=None, dim=None, norm=None, *, out=None):
            return into(name, run(name, input, s, dim, norm, forward), out)
        place = ("dim : tuple of int, optional\n        Dimensions to transform; by default all, or the last "
                 "``len(s)``.")
    else:
        def transform(input, n=None, dim=-1, norm=None, *, out=None):
            return into(name, run(name, input, n, dim, norm, forward), out)
        place = "dim : int, default -1\n        Dimension to transform."
    taken, lengths, returned, refused, derivative = _KINDS[run]
    several = name.endswith(("2", "n"))
    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = _DOC.format(
        summary=summary, input=taken, lengths=lengths[several], dim=place, norm=_NORMS[forward],
        returned=returned[several], refused=refused, derivative=derivative, example=example)
    return transform


fft = _made("fft", complex_n, True,
            "Compute the discrete Fourier transform: ``sum(x[j] * exp(-2j * pi * j * k / n))``.",
            "fft(cygrad.tensor([1., 0., 0., 0.]))\n    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.-0.j])")
ifft = _made("ifft", complex_n, False, "Compute the inverse discrete Fourier transform.",
             "ifft(cygrad.ones(4, dtype=cygrad.complex64))\n    tensor([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])")
rfft = _made("rfft", half_n, True,
             "Compute the one-sided discrete Fourier transform of real numbers.",
             "rfft(cygrad.tensor([1., 0., 0., 0.]))\n    tensor([1.+0.j, 1.+0.j, 1.+0.j])")
irfft = _made("irfft", whole_n, False, "Invert `rfft`: compute real numbers from a one-sided spectrum.",
              "irfft(cygrad.ones(3))\n    tensor([1., 0., 0., 0.])")
hfft = _made("hfft", whole_n, True,
             "Compute the real discrete Fourier transform of a Hermitian signal, given by its first half.",
             "hfft(cygrad.ones(3))\n    tensor([4., 0., 0., 0.])")
ihfft = _made("ihfft", half_n, False, "Invert `hfft`: compute half of a Hermitian signal from its real spectrum.",
              "ihfft(cygrad.tensor([4., 0., 0., 0.])).real\n    tensor([1., 1., 1.])")


def _in_dimensions(end, where):
    """Return the six transforms in two dimensions, or in several."""
    first = "\n    tensor([[{}.+0.j, 0.+0.j],\n            [0.+0.j, 0.+0.j]])"
    return (
        _made(f"fft{end}", complex_n, True, f"Compute the discrete Fourier transform in {where} dimensions.",
              f"fft{end}(cygrad.ones(2, 2)){first.format(4)}"),
        _made(f"ifft{end}", complex_n, False, f"Compute the inverse discrete Fourier transform in {where} dimensions.",
              f"ifft{end}(cygrad.ones(2, 2, dtype=cygrad.complex64)){first.format(1)}"),
        _made(f"rfft{end}", half_n, True, f"Compute the Fourier transform of real numbers in {where} dimensions, "
              "one-sided in the last one.", f"rfft{end}(cygrad.ones(2, 4)).shape\n    (2, 3)"),
        _made(f"irfft{end}", whole_n, False, f"Invert `rfft{end}`: compute real numbers from a one-sided spectrum.",
              f"irfft{end}(cygrad.ones(2, 3)).shape\n    (2, 4)"),
        _made(f"hfft{end}", whole_n, True, f"Compute the real discrete Fourier transform in {where} dimensions of a "
              "Hermitian signal, given by one half.", f"hfft{end}(cygrad.ones(2, 3)).shape\n    (2, 4)"),
        _made(f"ihfft{end}", half_n, False, f"Invert `hfft{end}`: compute one half of a Hermitian signal from its real "
              "spectrum.", f"ihfft{end}(cygrad.ones(2, 4)).shape\n    (2, 3)"),
    )


fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = _in_dimensions("2", "two")
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = _in_dimensions("n", "several")
