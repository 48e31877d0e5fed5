"""Devices, layouts and memory formats."""

cdef class device:
    """A device. Only the CPU has memory; `meta` tensors have none."""
    cdef readonly str type
    cdef readonly object index
    cdef tuple entered                # (the default before, what was entered before), or None

# Return 1 for meta, 0 for the CPU; raise for unavailable devices. None: the default device.
cdef int meta_place(object place, str operation) except -1
