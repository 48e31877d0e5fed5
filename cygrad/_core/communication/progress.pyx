# distutils: extra_compile_args = -O1
"""
MPI requests that are started and tested without the GIL.

Functions are addresses in the library that mpi4py has loaded, so the build needs no MPI. Handles are ``int`` in MPICH
and pointers in Open MPI. Both are passed in one register, or one stack slot, of which a function that expects an
``int`` reads the lower half; in memory a pointer is large enough for either.
"""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uintptr_t
from cygrad._core.arrays.array cimport array_t, release, retain
from cygrad._core.graph.inplace cimport bump_version
from cygrad._core.graph.tensor cimport Tensor, data_escapes, is_meta

cdef extern from "<time.h>" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    int clock_gettime(int clock, timespec *time)
    int CLOCK_MONOTONIC
    int CLOCK_THREAD_CPUTIME_ID

cdef extern from "<sched.h>" nogil:
    int sched_yield()

# Polling is fastest; ranks that share a core yield it to each other in between. After that, sleep between polls. On a
# busy machine sleep immediately: a process that only polls has used up its time slice when the others arrive, and one
# that wakes up has not. A process that loses its core while polling finds the machine busy.
cdef enum:
    IMPATIENT = 20000000          # nanoseconds of polling
    IMPATIENT_IF_BUSY = 300000
    LOST = 4000000                # nanoseconds without the core that mean a busy machine
    BUSY_WAITS = 200              # waits until polling is tried again
    SOON = 200                    # polls before the clock is first read,
    SOON_IF_CROWDED = 32
    BETWEEN_LOOKS = 16            # between two reads,
    PATIENCE = 4                  # and between two yields
    STATUS = 32                   # words of an MPI status; the largest has four

ctypedef int (*test_t)(void *request, int *complete, void *status) noexcept nogil
ctypedef int (*all_reduce_t)(uintptr_t sent, void *received, int count, uintptr_t dtype, uintptr_t operation,
                             uintptr_t communicator, void *request) noexcept nogil


@cython.binding(False)      # methods check the type of self
cdef class Reduction:
    """
    The request of an in-place all-reduce, a collective of several steps.

    One that is forgotten before its end keeps the memory for good: MPI may still write to it.
    """
    cdef Tensor tensor
    cdef array_t *array           # the tensor's memory may be replaced meanwhile
    cdef Progress progress
    cdef uintptr_t dtype, operation, communicator, handle
    cdef bint begun, under_way

    def __cinit__(self):
        self.begun = True             # until `Progress` has filled it

    def __dealloc__(self):
        if not self.under_way:
            release(self.array)

    def __iter__(self):
        return self

    def __next__(self):
        """Start, and return the request; the second time end, with the result."""
        cdef int code
        if self.begun:
            raise StopIteration([self.tensor])
        data_escapes()                       # as for all memory that escapes from the operators
        self.begun = self.under_way = True
        with nogil:
            code = self.progress.start(self.progress.in_place, self.array.data, <int>self.array.size, self.dtype,
                                       self.operation, self.communicator, &self.handle)
        self._ended(False, code)
        return self

    def Test(self):
        """Make progress; return whether it is complete."""
        cdef uintptr_t[STATUS] status
        cdef int complete = 0, code = 0
        if not self.under_way:
            return True
        with nogil:
            code = self.progress.test(&self.handle, &complete, status)
        return self._ended(complete, code)

    cdef bint _ended(self, bint complete, int code) except -1:
        if complete or code:
            self.under_way = False
            bump_version(self.tensor)
        if code:
            raise self.progress.error(code)
        return complete


@cython.binding(False)      # methods check the type of self
cdef class Progress:
    """
    Makes progress on the collectives of a group.

    Parameters
    ----------
    test, all_reduce : int
        Addresses of ``MPI_Test`` and ``MPI_Iallreduce``.
    in_place : int
        What stands for "in place" among addresses.
    requests : type
        Of other requests.
    address_of : callable
        From one of those to the address of its handle.
    error : callable
        From a code of MPI to an exception.
    crowded : bool
        Whether there are more ranks on this machine than cores.
    """
    cdef test_t test
    cdef all_reduce_t start
    cdef uintptr_t in_place
    cdef object requests, address_of, error
    cdef bint crowded
    cdef int32_t busy             # number of waits that begin with sleep

    def __cinit__(self, uintptr_t test, uintptr_t all_reduce, uintptr_t in_place, requests, address_of, error,
                  bint crowded):
        self.test, self.start, self.in_place = <test_t>test, <all_reduce_t>all_reduce, in_place
        self.requests, self.address_of, self.error, self.crowded = requests, address_of, error, crowded

    def all_reduce(self, tensor, handles, uintptr_t communicator):
        """
        Steps of an in-place all-reduce.

        Parameters
        ----------
        tensor : Tensor
        handles : list
            For each dtype those of the dtype and the operation, or None.
        communicator : int
            A handle.

        Returns
        -------
        Reduction or None
            None if it is no tensor of a dtype with handles, in writable memory without gaps.
        """
        cdef array_t *array
        cdef Reduction made
        if not isinstance(tensor, Tensor):
            return None
        array = (<Tensor>tensor).array
        pair = handles[array.dtype]
        if (pair is None or array.storage == NULL or is_meta(array) or not array.contiguous
                or not array.storage.writable or not 0 < array.size <= INT32_MAX):
            return None
        made = Reduction.__new__(Reduction)
        made.tensor, made.array, made.progress, made.communicator = tensor, retain(array), self, communicator
        made.dtype, made.operation = pair
        made.begun = False
        return made

    def ask(self, request):
        """
        Poll a request for a short time.

        Parameters
        ----------
        request : Reduction or object
            Others are asked if they are of the type `requests`.

        Returns
        -------
        bool
            Whether it is complete, or not known. Otherwise the time is up.
        """
        cdef void *handle = NULL
        cdef int code = 0, found
        cdef bint busy = self.busy > 0
        cdef int64_t limit = IMPATIENT if not busy else 0 if self.crowded else IMPATIENT_IF_BUSY
        if type(request) is Reduction:
            if not (<Reduction>request).under_way:
                return True
            handle = &(<Reduction>request).handle
        elif isinstance(request, self.requests):
            handle = <void *><uintptr_t>self.address_of(request)
        else:
            with nogil:
                sched_yield()
            return not busy
        self.busy -= busy
        with nogil:
            found = _asked(self.test, handle, self.crowded, limit, &code)
        if found < 0:
            self.busy = BUSY_WAITS
        if type(request) is Reduction:
            return (<Reduction>request)._ended(found > 0, code)
        if code:
            raise self.error(code)
        return found > 0


cdef int64_t _now(int clock) noexcept nogil:
    cdef timespec time
    clock_gettime(clock, &time)
    return time.tv_sec * 1000000000 + time.tv_nsec


cdef int _asked(test_t test, void *handle, bint crowded, int64_t limit, int *code) noexcept nogil:
    """-> 1 if it is complete (or `code` is an error), 0 after the time limit, -1 if the core was lost."""
    cdef uintptr_t[STATUS] status
    cdef int i, complete = 0, times = SOON_IF_CROWDED if crowded else SOON
    cdef int64_t begin = 0, used = 0, before = 0, now
    while True:
        for i in range(times):
            code[0] = test(handle, &complete, status)
            if complete or code[0]:
                return 1
            if crowded and i % PATIENCE == PATIENCE - 1:
                sched_yield()
        now = _now(CLOCK_MONOTONIC)
        if begin == 0:
            begin, used = now, _now(CLOCK_THREAD_CPUTIME_ID)
        elif now - before > LOST and now - begin > _now(CLOCK_THREAD_CPUTIME_ID) - used + LOST:
            return -1
        if now - begin >= limit:
            return 0
        before, times = now, 2 * PATIENCE if crowded else BETWEEN_LOOKS
