"""
cygrad's loops for cheap arithmetic on contiguous elements.

In the table they replace NumPy's, which they call for other strides and for the remainder after whole vectors: there
nan may have another sign.
"""

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport FLOAT32, FLOAT64
from cygrad._core.primitives.primitive_table cimport entries, loop_t, primitive, set_entry

cdef extern from "primitives/short_loops.h" nogil:
    ctypedef struct short_entry_t:
        const char *name
        int arity
        short_loop_t loops[2][3]
    const short_entry_t short_entries[1]
    int SHORT_ENTRIES

ctypedef struct known_t:
    loop_t loop                       # NumPy's
    void *data
    loop_t long_loop                  # from WHOLE elements on
    const short_loop_t *ours
    int arity
    int64_t size                      # of an element

cdef enum:
    MOST = 16

cdef known_t[MOST] _known


cdef inline short_loop_t _ours(const known_t *entry, const int64_t *steps) noexcept nogil:
    """Return the loop for operands of these strides; the result is contiguous."""
    cdef int64_t size = entry.size
    if steps[0] == size:
        if entry.arity == 1 or steps[1] == size:
            return entry.ours[0]
        return entry.ours[2] if steps[1] == 0 else NULL
    return entry.ours[1] if entry.arity == 2 and steps[0] == 0 and steps[1] == size else NULL


cdef void _long(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """Run whole vectors by cygrad's loop, if there is one for these strides, all else by NumPy's."""
    cdef const known_t *entry = <const known_t *>data
    cdef int arity = entry.arity
    cdef short_loop_t ours
    cdef char *rest[3]
    cdef int64_t count = n[0] & ~<int64_t>(WHOLE - 1), left = n[0] - count
    cdef int k
    if steps[arity] == entry.size:
        ours = _ours(entry, steps)
        if ours != NULL:
            ours(arguments[0], arguments[1], arguments[arity], count)
            if left == 0:
                return
            for k in range(arity + 1):
                rest[k] = arguments[k] + count * steps[k]
            entry.loop(rest, &left, steps, entry.data)
            return
    entry.loop(arguments, n, steps, entry.data)


cdef void _either(char **arguments, const int64_t *n, const int64_t *steps, void *data) noexcept nogil:
    """The table entry; the call through a pointer keeps this a jump for few elements."""
    cdef const known_t *entry = <const known_t *>data
    if n[0] < WHOLE:
        entry.loop(arguments, n, steps, entry.data)
    else:
        entry.long_loop(arguments, n, steps, data)


cdef short_loop_t short_loop(loop_t loop, const void *data, const int64_t *steps) noexcept nogil:
    return _ours(<const known_t *>data, steps) if loop == <loop_t>_either else NULL


cdef int chain_operation(loop_t loop, const void *data) noexcept nogil:
    return <int>(<const known_t *>data - _known) if loop == <loop_t>_either else -1


cdef int short_operation(loop_t loop, const void *data, const int64_t *steps) noexcept nogil:
    return -1 if short_loop(loop, data, steps) == NULL else chain_operation(loop, data)


def _initialize():
    cdef int i, index, k, n = 0
    cdef known_t *known
    for i in range(SHORT_ENTRIES):
        index = primitive(short_entries[i].name.decode())
        for k, dtype in enumerate((FLOAT32, FLOAT64)):
            known = &_known[n]
            n += 1
            known.loop, known.data = entries[index][<int>dtype].loop, entries[index][<int>dtype].data
            known.long_loop, known.arity = <loop_t>_long, short_entries[i].arity
            known.ours, known.size = <const short_loop_t *>short_entries[i].loops[k], 8 if k else 4
            set_entry(index, dtype, <loop_t>_either, known, dtype)


_initialize()
