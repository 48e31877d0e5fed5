"""
DLPack capsules of dtypes that NumPy lacks.

NumPy's functions export and import such capsules as integers of the same size; the type in the capsule is rewritten
before NumPy reads one or after it has made one.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from cygrad._core.arrays.dtype cimport BFLOAT16, COMPLEX32, dtype_code, dtype_object, itemsize

cdef enum:
    INTEGER_TYPE = 0          # the codes of DLPack
    BFLOAT_TYPE = 4
    COMPLEX_TYPE = 5
    MOST_DIMS = 64            # codes of NumPy, which refuses more

cdef struct element_type_t:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct capsule_contents_t:
    void *data
    int32_t device
    int32_t device_number
    int32_t ndim
    element_type_t type
    int64_t *shape            # strides and offset follow

cdef struct capsule_with_version_t:
    uint32_t major
    uint32_t minor
    void *context
    void *deleter
    uint64_t flags
    capsule_contents_t contents


cdef capsule_contents_t *_contents_of(object capsule) except? NULL:
    """Return the tensor of a capsule; NULL if it is no capsule, used, or of an unknown version."""
    cdef capsule_with_version_t *versioned
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <capsule_with_version_t *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        return &versioned.contents if versioned.major == 1 else NULL
    if PyCapsule_IsValid(capsule, "dltensor"):
        return <capsule_contents_t *>PyCapsule_GetPointer(capsule, "dltensor")
    return NULL


cdef element_type_t *_type_of(object capsule) except? NULL:
    cdef capsule_contents_t *contents = _contents_of(capsule)
    return NULL if contents == NULL else &contents.type


def checked_capsule(capsule):
    """Return the capsule; raise for what NumPy would read beyond its end or through a NULL pointer."""
    cdef capsule_contents_t *contents = _contents_of(capsule)
    cdef bint empty = False
    cdef int32_t i
    if contents == NULL:
        return capsule
    if contents.ndim < 0 or contents.ndim > 0 and contents.shape == NULL:
        raise BufferError(f"from_dlpack: the capsule has no valid shape (got {contents.ndim} dimensions and "
                          f"{'a NULL pointer' if contents.shape == NULL else 'a pointer'}). Ask its maker to fill it.")
    for i in range(min(contents.ndim, MOST_DIMS)):
        if contents.shape[i] < 0:
            raise BufferError(f"from_dlpack: the capsule has a negative size (got {contents.shape[i]} in dimension "
                              f"{i}). Ask its maker to fill it.")
        empty = empty or contents.shape[i] == 0
    if contents.data == NULL and not empty:
        raise BufferError("from_dlpack: the capsule has no memory (got a NULL pointer). Ask its maker to fill it.")
    return capsule


def as_integers(capsule):
    """
    Mark the elements of a capsule as integers if NumPy lacks their dtype.

    Parameters
    ----------
    capsule : capsule
        Not to be read by other code.

    Returns
    -------
    dtype or None
        The dtype that they have; None if it is none of those, and nothing has changed.
    """
    cdef element_type_t *type = _type_of(capsule)
    cdef int code
    if type == NULL or type.lanes != 1:
        return None
    if type.code == BFLOAT_TYPE and type.bits == 16:
        code = BFLOAT16
    elif type.code == COMPLEX_TYPE and type.bits == 32:
        code = COMPLEX32
    else:
        return None
    type.code = INTEGER_TYPE
    return dtype_object(code)


def from_integers(capsule, dtype not None):
    """Set the dtype of a capsule whose elements are marked as integers of the same size."""
    cdef element_type_t *type = _type_of(capsule)
    cdef int code = dtype_code(dtype, "__dlpack__")
    if type == NULL or type.code != INTEGER_TYPE or type.bits != 8 * itemsize(code):
        raise BufferError(f"__dlpack__: NumPy made no capsule that is known here (got {capsule!r}, expected one of "
                          "DLPack 1 or before, of integers).")
    type.code = BFLOAT_TYPE if code == BFLOAT16 else COMPLEX_TYPE
    return capsule
