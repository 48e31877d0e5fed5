/* THREAD_VARIABLE: a static variable of each thread, addressed like a local one.
 *
 * glibc keeps a little room for such in libraries that are loaded late, so this is for few bytes that are needed at every
 * operation; elsewhere the address costs a call. */
#ifndef CYGRAD_THREAD_VARIABLE_H
#define CYGRAD_THREAD_VARIABLE_H

#if defined(__GLIBC__) && defined(__ELF__)
#define THREAD_VARIABLE static __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_VARIABLE static __thread
#endif

#endif
