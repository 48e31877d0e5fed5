"""Fractional max pooling: windows whose places are drawn at random (Graham, 2015)."""

import cygrad

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]


def _sizes(value, n, name, operation):
    """One number for each dimension of the images."""
    sizes = (value,) * n if isinstance(value, int | float) else tuple(value)
    if len(sizes) != n:
        raise RuntimeError(f"{operation}: {name} must be one number or {n} of them (got {value!r}).")
    return sizes


def _starts(samples, size, kernel, out):
    """Where the windows along one dimension begin, for each channel of each image: of shape (batch, channels, out)."""
    starts = cygrad.full((*samples.shape, out), size - kernel, dtype=cygrad.int64)
    if out > 1:
        alpha = (size - kernel) / (out - 1)
        shift = (samples * alpha).long().unsqueeze(-1)
        starts[..., :-1] = ((cygrad.arange(out - 1) + samples.unsqueeze(-1)) * alpha).long() - shift
    return starts


def _pool(n, input, kernel_size, output_size, output_ratio, samples, operation):
    """Maxima of windows of the last n dimensions, and where in their image they are."""
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{operation}: requires specifying either an output_size or an output_ratio (got "
                         f"{'neither' if output_size is None else 'both'}).")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{operation}: expected {n + 1}D or {n + 2}D input (got shape {tuple(input.shape)}).")
    if input.ndim == n + 1:
        values, places = _pool(n, input.unsqueeze(0), kernel_size, output_size, output_ratio, samples, operation)
        return values.squeeze(0), places.squeeze(0)
    batch, channels, *sizes = input.shape
    if any(size == 0 for size in input.shape[1:]):
        raise RuntimeError(f"{operation}: expected input to have non-zero size for non-batch dimensions (got shape "
                           f"{tuple(input.shape)}).")
    if output_size is None:
        ratios = _sizes(output_ratio, n, "output_ratio", operation)
        if not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{operation}: output_ratio must be between 0 and 1 (got {output_ratio}).")
        output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True)]
    kernels, outs = _sizes(kernel_size, n, "kernel_size", operation), _sizes(output_size, n, "output_size", operation)
    for size, kernel, out in zip(sizes, kernels, outs, strict=True):
        if out < 1 or kernel < 1 or out + kernel - 1 > size:
            raise RuntimeError(f"{operation}: windows do not fit (got kernel_size {kernels} and output_size {outs} for "
                               f"images of {tuple(sizes)}; sizes must be positive, and at most kernel + out - 1).")
    if samples is None:
        samples = cygrad.rand(batch, channels, n, dtype=input.dtype)
    elif samples.dtype is not input.dtype:
        raise TypeError(f"{operation}: expected _random_samples to have the same dtype as input (got {samples.dtype} "
                        f"and {input.dtype}).")
    elif samples.ndim != 3 or tuple(samples.shape[1:]) != (channels, n) or samples.shape[0] < batch:
        raise RuntimeError(f"{operation}: expected _random_samples of shape {(batch, channels, n)} (got "
                           f"{tuple(samples.shape)}).")
    samples = samples.detach()[:batch]
    place = cygrad.zeros((batch, channels, *(1,) * (2 * n)), dtype=cygrad.int64)
    for axis, (size, kernel, out) in enumerate(zip(sizes, kernels, outs, strict=True)):
        # The samples of images are for width and height, those of volumes for depth, height and width.
        starts = _starts(samples[..., 1 - axis if n == 2 else axis], size, kernel, out)
        along = starts.unsqueeze(-1) + cygrad.arange(kernel)
        shape = [1] * (2 * n)
        shape[axis], shape[n + axis] = out, kernel
        place = place * size + along.reshape(batch, channels, *shape)
    windows = place.flatten(2 + n)
    flat = input.flatten(2)
    found = flat.detach().gather(2, windows.flatten(2)).reshape(windows.shape)
    places = windows.gather(-1, found.max(-1, keepdim=True).indices).squeeze(-1)
    return flat.gather(2, places.flatten(2)).reshape(places.shape), places


def _both(n, operation):
    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        return _pool(n, input, kernel_size, output_size, output_ratio, _random_samples, operation)

    def plain(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        values, places = _pool(n, input, kernel_size, output_size, output_ratio, _random_samples, operation)
        return (values, places) if return_indices else values

    for function, name in ((pool, f"{operation}_with_indices"), (plain, operation)):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = DOC.format(name=name, dims="depth, height, width" if n == 3 else "height, width",
                                      shape=(1, 1, *(4,) * n), result=(1, 1, *(2,) * n),
                                      part="[0]" if function is pool else "")
    return plain, pool


DOC = """
    The largest elements of windows whose places are drawn at random, so that sizes shrink by any factor.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, {dims}), or without the batch.
    kernel_size : int or tuple of int
        Size of the windows, which may overlap.
    output_size : int or tuple of int, optional
        How many windows there are.
    output_ratio : float or tuple of float, optional
        The same as a part of the size, between 0 and 1; one of both is given.
    return_indices : bool, default False
        Return where in their image the elements are, too.

    Returns
    -------
    Tensor, or (Tensor, Tensor)

    Raises
    ------
    ValueError
        If not exactly one of `output_size` and `output_ratio` is given.
    RuntimeError
        If the windows do not fit into the images.

    Notes
    -----
    Derivative: 1 for the first of several maxima.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.nn.functional.{name}(cygrad.ones{shape}, 2, 2){part}.shape
    {result}
    """

fractional_max_pool2d, fractional_max_pool2d_with_indices = _both(2, "fractional_max_pool2d")
fractional_max_pool3d, fractional_max_pool3d_with_indices = _both(3, "fractional_max_pool3d")
