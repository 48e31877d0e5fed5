/* Threads: members of an OpenMP parallel region, or POSIX threads where the compiler has no OpenMP.
 *
 * The only place where either is asked for a thread. The pragma stands here as Cython's `parallel()` asks the
 * interpreter about the thread that opens the region, and answers for a thread that Python has never seen are wrong
 * as soon as there has been a sub-interpreter. */
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

/* Start a detached thread; not 0 if that failed. Signals are for Python's threads: those that a thread of ours starts
 * in turn inherit that it gets none. */
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

/* What runs in the region: said once, before there is any, so that nothing has to pass through the runtime, where the
 * thread sanitizer does not see it. */
static void (*run_host)(int members);
static void (*run_member)(void);
static void set_region(void (*host)(int), void (*member)(void)) {
    run_host = host;
    run_member = member;
}

/* The calling thread runs host(how many members there are), at most `members` others run member(). Returns when all
 * have. */
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
