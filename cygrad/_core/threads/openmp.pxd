"""The one door to OpenMP and to new threads: the limits that are set there, and a parallel region that stays open."""

cdef extern from "threads/openmp_region.h" nogil:
    int omp_get_max_threads()
    void omp_set_num_threads(int n)
    int omp_get_thread_limit()
    # Start a thread; not 0 if that failed.
    int start_thread(void *(*main)(void *) noexcept nogil)
    # A parallel region: the calling thread runs host(members), at most `members` others run member(); back when all
    # have returned. Fewer come where OpenMP's settings have it so. What they run is set once for this module.
    void set_region(void (*host)(int members) noexcept nogil, void (*member)() noexcept nogil)
    void hold_region(int members)
