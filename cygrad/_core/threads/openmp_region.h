/* Threads: members of an OpenMP parallel region, or POSIX threads where the compiler has no OpenMP.
 *
 * The only place that creates threads. The pragma is here because Cython's `parallel()` queries the interpreter about
 * the thread that opens the region, and gets wrong answers for non-Python threads after a sub-interpreter. */
#ifndef CYGRAD_OPENMP_REGION_H
#define CYGRAD_OPENMP_REGION_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static void omp_set_num_threads(int n) { (void)n; }
static int omp_get_thread_limit(void) { return INT_MAX; }
#endif

/* Start a detached thread; return nonzero on failure. All signals, which are for Python's threads, are blocked in it and
   in the threads it starts. */
static int start_thread(void *(*main)(void *)) {
    sigset_t all, before;
    pthread_t thread;
    int failed;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, NULL, main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? failed : pthread_detach(thread);
}

/* Functions of the region, set once before the first region, so that no pointer passes through the runtime, which the
   thread sanitizer does not see. */
static void (*run_host)(int members);
static void (*run_member)(void);
static void set_region(void (*host)(int), void (*member)(void)) {
    run_host = host;
    run_member = member;
}

/* Run host(number of members) on the calling thread and member() on at most `members` others. Return when all have
   returned. */
#ifdef _OPENMP
static void hold_region(int members) {
    #pragma omp parallel num_threads(members + 1)
    {
        if (omp_get_thread_num() == 0)
            run_host(omp_get_num_threads() - 1);
        else
            run_member();
    }
}
#else
static void *start_member(void *unused) {
    run_member();
    return unused;
}
static void hold_region(int members) {
    pthread_t *threads = (pthread_t *)malloc(members * sizeof(pthread_t));
    int n = 0;
    while (threads && n < members && pthread_create(&threads[n], NULL, start_member, NULL) == 0) n++;
    run_host(n);
    while (n > 0) pthread_join(threads[--n], NULL);
    free(threads);
}
#endif

#endif
