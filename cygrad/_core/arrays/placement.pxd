"""Where the elements of a tensor are, and how they lie: devices, layouts, memory formats."""

cdef class device:
    """A place for elements. Only that of the CPU has memory; `meta` tensors have none."""
    cdef readonly str type
    cdef readonly object index
    cdef tuple entered                # (the default before, what was entered before), or None

# Where new tensors go: 1 for meta, 0 for the CPU; an error for what is not there. None: the default device.
cdef int meta_place(object place, str operation) except -1
