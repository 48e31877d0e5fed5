"""Small pictures of values: a line for a vector, pixels for a matrix or an image."""

import base64
import struct
import zlib

import numpy as np

__all__ = ["line", "pixels"]

WIDTH, HEIGHT = 240, 60
MAX_POINTS = 480          # of a line: twice as many as there are pixels


def line(values):
    """
    Return an SVG curve of a vector that keeps its extrema at any length.

    Parameters
    ----------
    values : ndarray
        Of one dimension.

    Returns
    -------
    str
    """
    finite = np.where(np.isfinite(values), values, np.nan).astype(float)
    if len(finite) > MAX_POINTS:
        parts = np.array_split(finite, MAX_POINTS // 2)
        finite = np.array([bound for part in parts for bound in _bounds(part)])
    low, high = _bounds(finite)
    span = high - low if high > low else 1.0
    x = np.linspace(2, WIDTH - 2, len(finite))
    y = HEIGHT - 4 - (finite - low) / span * (HEIGHT - 8)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True) if b == b)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img" '
            f'aria-label="values from {low:g} to {high:g}"><polyline points="{points}" fill="none" stroke="#3572b0" '
            'stroke-width="1.5"/></svg>')


def _bounds(values):
    known = values[~np.isnan(values)]
    return (known.min(), known.max()) if known.size else (0.0, 0.0)


def pixels(values):
    """
    Return an HTML image of a matrix in shades of gray, or of three channels (first dimension) in color.

    Parameters
    ----------
    values : ndarray
        Of two dimensions, or of three, the first of size 1 or 3.

    Returns
    -------
    str
    """
    image = values[None] if values.ndim == 2 else values
    image = np.nan_to_num(image.astype(float), posinf=0, neginf=0)
    low, high = image.min(), image.max()
    bytes_ = ((image - low) / (high - low if high > low else 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)
    height, width, channels = bytes_.shape
    rows = b"".join(b"\0" + row.tobytes() for row in bytes_)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    scale = max(1, min(8, WIDTH // max(width, 1)))
    return (f'<img alt="values from {low:g} to {high:g}" width="{width * scale}" height="{height * scale}" '
            f'style="image-rendering:pixelated" src="data:image/png;base64,{base64.b64encode(png).decode()}"/>')


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
