"""Section of a program whose operations run in parallel."""

cimport cython
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free


@cython.final
@cython.binding(False)
cdef class ParallelSection:
    """
    Section of a program whose operations run in parallel.

    Parameters
    ----------
    start : int
        First operation.
    needs : list of collection of int
        Per operation, its dependencies, relative to `start`.
    """

    def __cinit__(self, int start, list needs):
        cdef int i, n = len(needs)
        cdef list successors = [[] for _ in needs]
        self.start, self.stop, self.tasks.n = start, start + n, n
        self.tasks.n_dependencies = <int32_t *>calloc(n + 1, sizeof(int32_t))
        self.tasks.successor_start = <int32_t *>calloc(n + 2, sizeof(int32_t))
        self.tasks.successors = <int32_t *>calloc(sum(map(len, needs)) + 1, sizeof(int32_t))
        if not (self.tasks.n_dependencies and self.tasks.successor_start and self.tasks.successors):
            raise MemoryError("compile: no memory for a parallel section")
        for i in range(n):
            for need in needs[i]:
                successors[need].append(i)
        for i in range(n):
            self.tasks.n_dependencies[i] = len(needs[i])
            self.tasks.successor_start[i + 1] = self.tasks.successor_start[i]
            for other in successors[i]:
                self.tasks.successors[self.tasks.successor_start[i + 1]] = other
                self.tasks.successor_start[i + 1] += 1

    def __dealloc__(self):
        free(self.tasks.n_dependencies)
        free(self.tasks.successor_start)
        free(self.tasks.successors)
