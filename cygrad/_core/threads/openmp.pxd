"""Access to OpenMP and thread creation: thread limits, and a parallel region that stays open."""

cdef extern from "threads/openmp_region.h" nogil:
    int omp_get_max_threads()
    void omp_set_num_threads(int n)
    int omp_get_thread_limit()
    # Start a thread; return nonzero on failure.
    int start_thread(void *(*main)(void *) noexcept nogil)
    # Run host(members) on the calling thread and member() on at most `members` others in a parallel region; return when
    # all have returned. OpenMP settings may allow fewer. The functions are set once per process.
    void set_region(void (*host)(int members) noexcept nogil, void (*member)() noexcept nogil)
    void hold_region(int members)
