"""Saved values of tensors whose elements are not needed."""


class Meta:
    """Shape and dtype of a tensor, saved without its elements."""

    __slots__ = ("dtype", "shape", "storage_offset", "strides")

    def __init__(self, shape, dtype, strides, storage_offset):
        self.shape, self.dtype, self.strides, self.storage_offset = shape, dtype, strides, storage_offset

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self.shape)

    def numel(self):
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_complex(self):
        """Return whether the dtype is complex."""
        return self.dtype.is_complex

    def __repr__(self):
        return f"Meta(shape={self.shape}, dtype={self.dtype})"
