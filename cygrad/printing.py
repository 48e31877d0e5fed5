"""Printing of tensors: aligned numbers, summaries of large tensors, precision."""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import contextmanager
from importlib import import_module
from typing import NamedTuple

import numpy as np

from cygrad._core.arrays.dtype import bfloat16, complex32, get_default_dtype, int64
from cygrad._core.arrays.dtype import bool as bool_dtype
from cygrad._core.creation.creation import elements
from cygrad._core.dispatch import tangents
from cygrad._core.graph.boxing import Disabled
from cygrad._core.graph.tensor import Tensor
from cygrad._core.table.operator import operators

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "show_state_dicts", "tensor_format", "tensor_repr"]


_CONVERTED = (bfloat16, complex32)  # which NumPy does not have


class PrintOptions(NamedTuple):
    """Options of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Parameters
    ----------
    precision : int, optional
        Digits after the point; 4 at first.
    threshold : int, optional
        More elements than this are summarized; 1000 at first.
    edgeitems : int, optional
        How many elements a summary shows at both ends of each dimension; 3 at first.
    linewidth : int, optional
        Where lines break; 80 at first.
    profile : {"default", "short", "full"}, optional
        A set of values for the above, which they override.
    sci_mode : bool, optional
        Scientific notation always or never. Default: where numbers are very large, small or unequal.

    Raises
    ------
    ValueError
        If `profile` is unknown.

    Examples
    --------
    >>> cygrad.set_printoptions(precision=2)
    >>> cygrad.tensor([1.12345])
    tensor([1.12])
    >>> cygrad.set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"set_printoptions: unknown profile (got {profile!r}, expected one of {', '.join(PROFILES)}).")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = PROFILES[profile] if profile is not None else {}
    chosen = chosen | {name: value for name, value in given.items() if value is not None}
    _options = _options._replace(**chosen, sci_mode=sci_mode)


def get_printoptions() -> dict:
    """Return the print options, as keyword arguments for `set_printoptions`.

    Returns
    -------
    dict

    Examples
    --------
    >>> cygrad.get_printoptions()["precision"]
    4
    """
    return _options._asdict()


@contextmanager
def printoptions(**options):
    """Print tensors otherwise for a while.

    Parameters
    ----------
    **options
        As for `set_printoptions`.

    Examples
    --------
    >>> with cygrad.printoptions(precision=2):
    ...     print(cygrad.tensor([1.12345]))
    tensor([1.12])
    """
    global _options
    before = _options
    try:
        set_printoptions(**options)
        yield
    finally:
        _options = before


class _NumberFormat:
    """A common format of all real numbers of a tensor."""

    def __init__(self, values: np.ndarray):
        self.floating = values.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        if not self.floating:
            self.width = max((len(str(value)) for value in values.reshape(-1).tolist()), default=1)
            return
        values = values.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if values.size:
            self._look_at(values)

    def _look_at(self, values: np.ndarray) -> None:
        """Choose the format by the finite nonzero numbers."""
        self.whole = bool((values == np.ceil(values)).all())
        largest, smallest = np.abs(values).max(), np.abs(values).min()
        with np.errstate(over="ignore"):
            unequal = largest / smallest > 1000 or largest > 1e8
        self.scientific = bool(unequal or (not self.whole and smallest < 1e-4))
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        self.width = self._widest(values)

    def _widest(self, values: np.ndarray) -> int:
        if self.scientific:
            return max(len(f"{value:.{_options.precision}e}") for value in values.tolist())
        if self.whole:
            return max(len(f"{value:.0f}") for value in values.tolist()) + 1
        return max(len(f"{value:.{_options.precision}f}") for value in values.tolist())

    def __call__(self, value) -> str:
        """Return the text for one number, filled up with spaces from the left."""
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{_options.precision}e}"
        elif self.whole:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{_options.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """Real and imaginary parts, each written in its own way."""

    def __init__(self, values: np.ndarray):
        self.real, self.imag = _NumberFormat(values.real), _NumberFormat(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value) -> str:
        """Format one number; the imaginary part always has a sign."""
        imag = self.imag(value.imag).lstrip() + "j"
        return self.real(value.real) + (imag if imag[0] in "+-" else "+" + imag)


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the elements that a summary shows, which determine the format."""
    edge = _options.edgeitems
    for axis, size in enumerate(values.shape):
        if size > 2 * edge:
            shown = np.r_[0:edge, size - edge : size]
            values = values[(slice(None),) * axis + (shown,)]  # take() would copy all of a strided array first
    return values


def _split_ends(entries, summarize: bool) -> tuple:
    """Return the entries before and after the gap; the latter is None without a gap."""
    edge = _options.edgeitems
    if summarize and len(entries) > 2 * edge:
        return entries[:edge], entries[len(entries) - edge :]
    return entries, None


def _row_text(values: np.ndarray, indent: int, summarize: bool, write) -> str:
    per_line = max(1, (_options.linewidth - indent) // (write.width + 2))
    head, tail = _split_ends(values, summarize)
    texts = [write(value) for value in head.tolist()]
    if tail is not None:
        texts += [" ..." if head.size else "..."] + [write(value) for value in tail.tolist()]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested_text(values: np.ndarray, indent: int, summarize: bool, write) -> str:
    """Format the parts along the first dimension in brackets."""
    if values.ndim == 0:
        return write(values.item())
    if values.ndim == 1:
        return _row_text(values, indent, summarize, write)
    head, tail = _split_ends(values, summarize)
    parts = [_nested_text(part, indent + 1, summarize, write) for part in head]
    if tail is not None:
        parts += ["..."] + [_nested_text(part, indent + 1, summarize, write) for part in tail]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _shortened(tensor):
    """
    Return the tensor without most elements that a summary omits.

    Keep one element in each gap, so that only few elements have to be converted for NumPy.
    """
    edge = _options.edgeitems
    with Disabled():  # of subclasses, too, only the elements are wanted
        for dim in sorted(range(tensor.ndim), key=tensor.size, reverse=True):
            size = tensor.size(dim)
            if size > 2 * edge + 1:
                tensor = operators.cat((tensor.narrow(dim, 0, edge + 1), tensor.narrow(dim, size - edge, edge)), dim)
    return tensor


def _remarks(tensor) -> list[str]:
    """Return the attributes printed after the elements, except defaults."""
    default = get_default_dtype()
    remarks = []
    if tensor.is_meta:
        remarks += ["device='meta'", f"size={tuple(tensor.shape)}"]
        if tensor.dtype is not default:
            remarks.append(f"dtype={tensor.dtype}")
    elif tensor.numel() == 0:
        if tensor.ndim != 1:
            remarks.append(f"size={tuple(tensor.shape)}")
        # There are no elements from which to see that they would be integers.
        if tensor.dtype is not default:
            remarks.append(f"dtype={tensor.dtype}")
    else:
        if not _options.edgeitems:
            remarks.append(f"size={tuple(tensor.shape)}")
        remarks += dtype_remarks(tensor)
    remarks += history_remarks(tensor)
    tangent = tangents.tangent(tensor)
    if tangent is not None:
        remarks.append(f"tangent={tangent}")
    return remarks


def dtype_remarks(tensor) -> list[str]:
    """Return the dtype, unless the printed elements imply it."""
    default = get_default_dtype()
    usual = any(tensor.dtype is dtype for dtype in (default, default.to_complex(), int64, bool_dtype))
    return [] if usual else [f"dtype={tensor.dtype}"]


def history_remarks(tensor) -> list[str]:
    """Return the node of a result, or whether a leaf requires grad."""
    try:
        maker = tensor.grad_fn and tensor.grad_fn.name().removesuffix("()")
    except RuntimeError:  # a view that lost its history by a change of its base
        maker = "Invalid"
    if maker is not None:
        return [f"grad_fn=<{maker}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def elements_text(tensor, indent: int) -> str:
    """Return the elements of a tensor in brackets that begin in column `indent`."""
    if tensor.is_meta:
        return "..."
    summarize = tensor.numel() > _options.threshold
    shown = tensor.detach()
    values = elements(_shortened(shown) if summarize and tensor.dtype in _CONVERTED else shown)
    if not values.size:
        return "[]"
    shown = _edges(values) if summarize else values
    write = _ComplexFormat(shown) if values.dtype.kind == "c" else _NumberFormat(shown)
    return _nested_text(values, indent, summarize, write)


def with_remarks(text: str, indent: int, remarks: list[str], new_line: bool = False) -> str:
    """Return the text of a tensor with attributes and a closing bracket, in lines of the width that is set."""
    # The length of the last line, with the closing bracket and a space to spare.
    used = len(text) - text.rfind("\n") + 1
    for remark in remarks:
        if new_line or used + len(remark) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + remark
            used, new_line = indent + len(remark), False
        else:
            text += ", " + remark
            used += len(remark) + 2
    return text + ")"


def tensor_repr(self) -> str:
    """Implement ``Tensor.__repr__``.

    Parameters
    ----------
    self : Tensor

    Returns
    -------
    str

    Examples
    --------
    >>> cygrad.tensor([[1., 2.5], [3., 4.]], requires_grad=True)
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]], requires_grad=True)
    """
    name = type(self).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter", "_BareBuffer") else f"{name}("
    return with_remarks(prefix + elements_text(self, len(prefix)), len(prefix), _remarks(self))


def tensor_format(self, spec: str) -> str:
    """Implement ``Tensor.__format__``.

    Parameters
    ----------
    self : Tensor
    spec : str
        A tensor without dimensions is formatted as its number; others take no specification.

    Returns
    -------
    str

    Examples
    --------
    >>> f"{cygrad.tensor(2.5):.3f}"
    '2.500'
    """
    if self.ndim == 0 and not self.is_meta:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def show_state_dicts(shell):
    """Let an IPython shell show an OrderedDict of tensors as a table; Python's class has no method for it."""

    def html(entries):
        if any(isinstance(value, Tensor) for value in entries.values()):
            return import_module("cygrad.notebook.objects").object_html(entries)
        return None  # shown as text

    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(OrderedDict, html)
