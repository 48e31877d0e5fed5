"""Guards on what a function reads besides its arguments."""

from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef struct guard_t:
    int32_t kind
    void *container
    void *key
    void *value               # NULL: there must be none
    int64_t place             # of an entry; a length; a version

# A dict with the guards on it: they hold if its version is what it was when they held.
ctypedef struct watched_t:
    void *dict
    uint64_t version
    int32_t first
    int32_t n

# Changes with every change of the dict, and is no other dict's; 0 where Python does not tell.
cdef uint64_t version_of_dict(void *dict) noexcept
# Is it the same object, or a number or text of the same type and value?
cdef bint same(object a, object b) except -1

cdef class Guards:
    """What has to be the same before a program runs."""
    cdef guard_t *guards          # those of dicts after the `n_others` others
    cdef watched_t *watched
    cdef int n_guards, n_others, n_watched
    cdef list entries
    cdef bint hold(self) except -1
    cdef bint all_hold(self, guard_t *guards, int n) except -1
