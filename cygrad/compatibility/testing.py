"""``torch.testing``: `assert_close` and `make_tensor`."""

import cygrad
from cygrad import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# rtol and atol, by the narrower dtype of the two
TOLERANCES = {
    cygrad.float32: (1.3e-6, 1e-5), cygrad.complex64: (1.3e-6, 1e-5),
    cygrad.float64: (1e-7, 1e-7), cygrad.complex128: (1e-7, 1e-7),
}


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    """
    Raise AssertionError unless two results are close: tensors, numbers, or sequences and mappings of such.

    Parameters
    ----------
    actual, expected : Tensor, number, sequence or mapping
    rtol, atol : float, optional
        Both or neither; default by dtype.
    equal_nan : bool, default False
        Whether nan equals nan.
    check_dtype, check_stride : bool
        Whether they must be equal.
    allow_subclasses, check_device, check_layout : optional
        Accepted and ignored.
    msg : str or callable, optional
        Replacement of the message, or function of it.

    Examples
    --------
    >>> cygrad.testing.assert_close(cygrad.ones(2), cygrad.ones(2) + 1e-7)
    >>> cygrad.testing.assert_close(cygrad.ones(2), cygrad.tensor([1.0, 2.0]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close! 1 of 2 elements differ, by 1.0 at most (at index (1,)).
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: rtol and atol must both be given or omitted (got only one of them).")

    def fail(text):
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg)

    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype,
               "check_stride": check_stride, "msg": msg}
    if isinstance(actual, dict) and isinstance(expected, dict):
        if set(actual) != set(expected):
            fail(f"The keys differ: got {sorted(map(str, actual))}, expected {sorted(map(str, expected))}.")
        for key in actual:
            assert_close(actual[key], expected[key], **options)
    elif isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            fail(f"The lengths differ: got {len(actual)}, expected {len(expected)}.")
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other, **options)
    elif actual is None or expected is None:
        if actual is not expected:
            fail(f"None is not close to anything else: got {actual!r}, expected {expected!r}.")
    else:
        _compare(actual, expected, options, fail)


def _compare(actual, expected, options, fail):
    """Compare tensors or numbers."""
    both_tensors = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    actual, expected = cygrad.as_tensor(actual).detach(), cygrad.as_tensor(expected).detach()
    if actual.shape != expected.shape:
        fail(f"The values for attribute 'shape' do not match: {tuple(actual.shape)} != {tuple(expected.shape)}.")
    if both_tensors and options["check_dtype"] and actual.dtype != expected.dtype:
        fail(f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.")
    if options["check_stride"] and actual.stride() != expected.stride():
        fail(f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}.")
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        rtol, atol = map(max, zip(*(TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)), strict=True))
    common = cygrad.promote_types(actual.dtype, expected.dtype)
    common = cygrad.int64 if common is cygrad.bool else common
    actual, expected = actual.to(common), expected.to(common)
    wrong = cygrad.logical_not(cygrad.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options["equal_nan"]))
    if wrong.any():
        distance = (actual - expected).abs()
        distance = cygrad.where(wrong, distance, cygrad.zeros_like(distance)).nan_to_num(float("inf"))
        place = cygrad.unravel_index(distance.argmax(), distance.shape) if distance.ndim else ()
        fail(f"{'Tensor-likes' if both_tensors else 'Scalars'} are not close! {int(wrong.sum())} of {wrong.numel()} "
             f"elements differ, by {distance.max().item()} at most (at index {tuple(int(i) for i in place)}).")


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """`assert_close` without comparing dtypes. Deprecated."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad=False, noncontiguous=False,
                exclude_zero=False, memory_format=None):
    """
    Return a tensor with random elements.

    Parameters
    ----------
    *shape : int or tuple of int
    dtype : dtype
    low, high : number, optional
        Range [low, high) of the elements; default: -9 to 9, unsigned integers from 0, int8 and uint8 below 10.
    requires_grad : bool, default False
    noncontiguous : bool, default False
        Whether to leave gaps between elements.
    exclude_zero : bool, default False
        Whether to replace zeros by the smallest normal number or 1.
    device, memory_format : optional
        Ignored.

    Examples
    --------
    >>> cygrad.testing.make_tensor(2, 3, dtype=cygrad.float64, low=0).shape
    (2, 3)
    """
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    inexact = dtype.is_floating_point or dtype.is_complex
    low = (0 if not dtype.is_signed else -9) if low is None else low
    high = (2 if dtype is cygrad.bool else 10 if not inexact else 9) if high is None else high
    if low > high or (requires_grad and not inexact):
        raise ValueError(f"make_tensor: low must not be above high, and only floating and complex tensors require grad "
                         f"(got low={low}, high={high}, dtype={dtype}).")
    drawn = (*shape[:-1], 2 * shape[-1]) if noncontiguous and shape else shape
    if inexact:
        real = dtype.to_real()
        wide = 2 if high - low > cygrad.finfo(real).max else 1          # uniform_ refuses wider ranges
        parts = [cygrad.empty(drawn, dtype=real).uniform_(low / wide, high / wide) * wide
                 for _ in range(1 + dtype.is_complex)]
        made = cygrad.complex(*parts) if dtype.is_complex else parts[0]
    else:
        made = cygrad.randint(int(low), max(int(high), int(low) + 1), drawn, dtype=cygrad.int64).to(dtype)
    made = made[..., ::2] if drawn != shape else made
    if exclude_zero:
        made[made == 0] = cygrad.finfo(dtype).tiny if inexact else 1
    return made.requires_grad_(requires_grad)
