"""Memory of a stretch of operations that threads share."""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free


@cython.final
@cython.binding(False)
cdef class Stretch:
    """
    A stretch of operations that threads share.

    Parameters
    ----------
    start : int
        Its first operation.
    needs : list of collection of int
        For each operation those that have to come before it, counted from `start`.
    """

    def __cinit__(self, int start, list needs):
        cdef int i, n = len(needs)
        cdef list behind = [[] for _ in needs]
        self.start, self.stop, self.tasks.n = start, start + n, n
        self.tasks.waits = <int32_t *>calloc(n + 1, sizeof(int32_t))
        self.tasks.first = <int32_t *>calloc(n + 2, sizeof(int32_t))
        self.tasks.behind = <int32_t *>calloc(sum(map(len, needs)) + 1, sizeof(int32_t))
        if not (self.tasks.waits and self.tasks.first and self.tasks.behind):
            raise MemoryError("compile: no memory for operations that threads share")
        for i in range(n):
            for need in needs[i]:
                behind[need].append(i)
        for i in range(n):
            self.tasks.waits[i], self.tasks.first[i + 1] = len(needs[i]), self.tasks.first[i]
            for other in behind[i]:
                self.tasks.behind[self.tasks.first[i + 1]] = other
                self.tasks.first[i + 1] += 1

    def __dealloc__(self):
        free(self.tasks.waits)
        free(self.tasks.first)
        free(self.tasks.behind)
