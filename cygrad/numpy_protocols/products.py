"""NumPy's products of arrays: dot, tensordot, einsum, convolve and others."""

import cygrad as c
from cygrad.numpy_protocols.arrays import Rows, by_bits, promoted

__all__ = ["rows"]

rows = Rows()


@rows
def dot(a, b):
    a, b = promoted(a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if b.ndim == 1 or (a.ndim <= 2 and b.ndim <= 2):
        return c.matmul(a, b)
    return c.tensordot(a, b, ((a.ndim - 1,), (b.ndim - 2,)))


@rows
def vdot(a, b, /):
    a, b = promoted(a, b)
    return c.sum(c.conj(a).reshape(-1) * b.reshape(-1)) if not (a.is_floating_point() or a.is_complex()) else c.vdot(
        a.reshape(-1), b.reshape(-1))


@rows
def inner(a, b, /):
    a, b = promoted(a, b)
    return a * b if not a.ndim or not b.ndim else c.tensordot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


@rows
def outer(a, b):
    a, b = promoted(a, b)
    return a.reshape(-1, 1) * b.reshape(1, -1)


@rows
def tensordot(a, b, axes=2):
    a, b = promoted(a, b)
    if not isinstance(axes, int):
        axes = tuple([part] if isinstance(part, int) else list(part) for part in axes)
    return by_bits(lambda a, b: c.tensordot(a, b, axes), a, b)


@rows
def einsum(*operands, optimize=False, dtype=None, order="K", casting="safe"):
    if isinstance(operands[0], str):
        return c.einsum(operands[0].replace(" ", ""), *promoted(*operands[1:], dtype=dtype))
    arrays = promoted(*operands[:len(operands) // 2 * 2:2], dtype=dtype)
    pairs = [part for pair in zip(arrays, operands[1::2], strict=True) for part in pair]
    return c.einsum(*pairs, *operands[len(operands) // 2 * 2:])


@rows
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted(a, b)
    a, b = a.movedim(axisa, -1), b.movedim(axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(f"cross: vectors must have three elements (got {a.shape[-1]} and {b.shape[-1]}).")
    result = c.cross(*c.broadcast_tensors(a, b), dim=-1)
    return result.movedim(-1, axisc)


def _windows(longer, shorter, mode):
    """Convolve: sum products of the shorter vector with each window of the longer one."""
    m = shorter.shape[0]
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: unknown mode (got {mode!r}, expected 'full', 'same' or 'valid').")
    if not m:
        raise ValueError("convolve: vectors must not be empty.")
    before = {"full": m - 1, "same": m // 2, "valid": 0}[mode]
    after = {"full": m - 1, "same": (m - 1) // 2, "valid": 0}[mode]
    zeros = c.zeros(max(before, after), dtype=longer.dtype)
    return c.matmul(c.cat((zeros[:before], longer, zeros[:after])).unfold(0, m, 1), shorter)


@rows
def convolve(a, v, mode="full"):
    a, v = promoted(a, v)
    a, v = c.atleast_1d(a), c.atleast_1d(v)
    a, v = (v, a) if v.shape[0] > a.shape[0] else (a, v)
    return _windows(a, v.flip(0), mode)


@rows
def correlate(a, v, mode="valid"):
    a, v = promoted(a, v)
    if v.shape[0] > a.shape[0]:
        return _windows(c.conj(v), a, mode).flip(0)
    return _windows(a, c.conj(v), mode)


@rows
def kron(a, b):
    return c.kron(*promoted(a, b))
