"""Guards on what a function reads besides its arguments."""

from libc.stdint cimport int32_t, int64_t, uint64_t

ctypedef struct guard_t:
    int32_t kind
    void *container
    void *key
    void *value               # NULL: the key must be missing
    int64_t number            # index of an entry, a length, or a version

# Guards on the items of one dict; skipped while the version of the dict is unchanged.
ctypedef struct watched_t:
    void *dict
    uint64_t version
    int32_t first
    int32_t n

# Return the version tag of a dict, which changes with each change and is unique; 0 if Python has none.
cdef uint64_t version_of_dict(void *dict) noexcept
# Compare by identity, or numbers and strings by type and value.
cdef bint is_same_value(object a, object b) except -1

cdef class Guards:
    """Guards to check before a program runs."""
    cdef guard_t *guards          # guards on dicts follow the `n_others` other ones
    cdef watched_t *watched
    cdef int n_guards, n_others, n_watched
    cdef list entries
    cdef bint hold(self) except -1
    cdef bint all_hold(self, guard_t *guards, int n) except -1
