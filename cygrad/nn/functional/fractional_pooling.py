"""Fractional max pooling: overlapping windows at random positions (Graham, 2014)."""

import cygrad
from cygrad.nn.functional.convolution import spread

__all__ = [f"fractional_max_pool{n}d{end}" for n in (2, 3) for end in ("", "_with_indices")]


def _starts(samples, length, count, window):
    """Return the starts of the windows along one dimension: shape (batch, channels, count)."""
    last = cygrad.full((*samples.shape, 1), length - window, dtype=cygrad.int64)
    if count == 1:
        return last
    alpha = (length - window) / (count - 1)
    steps = cygrad.arange(count - 1, dtype=samples.dtype)
    first = ((steps + samples.unsqueeze(-1)) * alpha).long() - (samples.unsqueeze(-1) * alpha).long()
    return cygrad.cat([first, last], -1)


def _pool(n, input, kernel_size, output_size, output_ratio, samples):
    operation = f"fractional_max_pool{n}d"
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{operation}: expected exactly one of output_size and output_ratio (got {output_size} and "
                         f"{output_ratio}).")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{operation}: expected {n + 1}D (unbatched) or {n + 2}D (batched) input (got shape "
                           f"{tuple(input.shape)}).")
    for name, sizes in (("kernel_size", kernel_size), ("output_size", output_size)):
        if isinstance(sizes, tuple | list) and len(sizes) != n:
            raise RuntimeError(f"{operation}: {name} must either be a single Int or tuple of {n} Ints (got {sizes}).")
    single = input.ndim == n + 1
    batch = input.unsqueeze(0) if single else input
    lengths, windows = batch.shape[2:], spread(kernel_size, n, operation, "kernel_size")
    if output_size is None:
        ratios = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        if len(ratios) != n:
            raise ValueError(f"{operation}: output_ratio must be one number or {n} (got {output_ratio}).")
        output_size = [int(length * ratio) for length, ratio in zip(lengths, ratios, strict=True)]
    counts = spread(output_size, n, operation, "output_size")
    if 0 in batch.shape[1:]:
        raise RuntimeError(f"{operation}: only the batch may be empty (got an input of shape {tuple(input.shape)}).")
    for length, window, count in zip(lengths, windows, counts, strict=True):
        if count < 0 or window < 1 or window + count - 1 > length:
            raise RuntimeError(f"{operation}: the windows exceed the input (got output sizes {list(counts)} and "
                               f"windows {list(windows)} for an input of {list(lengths)}).")
    if 0 in counts:
        values = batch.flatten(2)[..., :0].reshape(*batch.shape[:2], *counts)
        values = values.squeeze(0) if single else values
        return values, cygrad.zeros(values.shape, dtype=cygrad.int64)
    if samples is None:
        samples = cygrad.rand(*batch.shape[:2], n, dtype=batch.dtype)
    # Positions differ between channels. For images, the sample of the width comes first.
    samples = samples[:len(batch)].flip(-1) if n == 2 else samples[:len(batch)]
    places = cygrad.zeros(*batch.shape[:2], *[1] * (2 * n), dtype=cygrad.int64)
    for dim, (length, window, count) in enumerate(zip(lengths, windows, counts, strict=True)):
        along = _starts(samples[..., dim], length, count, window).unsqueeze(-1) + cygrad.arange(window)
        shape = [1] * (2 * n)
        shape[dim], shape[n + dim] = count, window
        places = places * length + along.reshape(*batch.shape[:2], *shape)
    places = places.flatten(2 + len(counts))
    flat = batch.flatten(2)
    with cygrad.no_grad():
        best = flat.detach().gather(2, places.flatten(2)).reshape(places.shape).argmax(-1, keepdim=True)
        indices = places.gather(-1, best).squeeze(-1)
    values = flat.gather(2, indices.flatten(2)).reshape(indices.shape)
    return (values.squeeze(0), indices.squeeze(0)) if single else (values, indices)


_DOC = """
    Return the maxima of overlapping windows of {what} at random positions.

    Parameters
    ----------
    input : Tensor
        Real, of shape (batch, channels, {sizes}), or without the batch.
    kernel_size : int or tuple
        Size of the windows.
    output_size : int or tuple, optional
        Number of windows along each dimension.
    output_ratio : float or tuple, optional
        Output size divided by input size; either this or `output_size`.
    return_indices : bool
        Whether the indices of the maxima are returned as well.
    _random_samples : Tensor of shape (batch, channels, {n}), optional
        Random numbers in [0, 1) that determine the positions.

    Returns
    -------
    Tensor, or a tuple (values, indices)

    Examples
    --------
    >>> found = F.{name}(cygrad.randn(1, 1, {lengths}), 2, output_size=3, return_indices=True)
    >>> found[0].shape, found[1].dtype
    ((1, 1, {results}), cygrad.int64)
"""


def _make(n):
    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        found = _pool(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    def pool_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
                          _random_samples=None):
        return _pool(n, input, kernel_size, output_size, output_ratio, _random_samples)

    what = ("images", "volumes")[n - 2]
    sizes = "height, width" if n == 2 else "depth, height, width"
    for function, end in ((pool, ""), (pool_with_indices, "_with_indices")):
        function.__name__ = function.__qualname__ = f"fractional_max_pool{n}d{end}"
        function.__doc__ = _DOC.format(what=what, sizes=sizes, n=n, name=function.__name__,
                                       lengths=", ".join("6" * n), results=", ".join("3" * n))
    return pool, pool_with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _make(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _make(3)
